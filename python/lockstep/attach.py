# SPDX-License-Identifier: Apache-2.0
"""Puts the hooks in place when TensorFlow, Keras or tf_keras have been imported."""
import sys

from lockstep import native, world


def attached(package):
    """Called once at the end of the import of each package."""
    {"tensorflow": _tensorflow, "keras": _keras, "tf_keras": _tf_keras}[package]()


def _tensorflow():
    try:
        world.enter()
    except (native.LockstepError, OSError) as error:
        _note(error)
        sys.exit(f"lockstep: {error}")
    try:
        _put_hooks_in_place()
    except native.LockstepError as error:  # another rank was lost meanwhile
        _note(error)
        raise


def _note(error):
    from lockstep.restart import fits
    fits.note_error(error)


def _put_hooks_in_place():
    from lockstep import audit, following, hooks, means, randomness, reports, seeds, summary, variables
    from lockstep.effects import clean_graphs, databases, files, output, records, saves, trackers, v1_files
    from lockstep.frontends import applied, tape, v1, while_loops
    from lockstep.losses import calls, counts, figures, looks, replay
    from lockstep.restart import fits
    from lockstep.slices import loops, order
    hooks.attach()
    variables.attach()
    tape.attach()
    applied.attach()
    while_loops.attach()
    v1.attach()
    reports.attach()
    figures.attach()
    calls.attach()
    counts.attach()
    replay.attach()
    looks.attach()
    means.attach()  # outside of the hook of figures: it looks who calls
    loops.attach()
    order.attach()
    folder = output.attach()
    files.attach(folder)
    databases.attach()
    trackers.attach()
    saves.attach()
    records.attach()
    v1_files.attach()
    clean_graphs.attach()
    randomness.attach()
    seeds.attach()
    audit.attach()
    summary.attach()
    following.attach()
    fits.attach()


def _keras():
    import tensorflow  # noqa: F401  Keras has imported it; with another backend there is nothing to do
    from lockstep import nan
    from lockstep.effects import saves
    from lockstep.frontends import applied, keras3
    from lockstep.restart import keras_fits
    keras3.attach()
    keras_fits.attach_keras()
    nan.attach_keras()
    applied.attach_keras()
    saves.attach_keras()


def _tf_keras():
    from lockstep import nan
    from lockstep.effects import saves
    from lockstep.frontends import applied, tf_keras
    from lockstep.restart import keras_fits
    tf_keras.attach()
    keras_fits.attach_tf_keras()
    nan.attach_tf_keras()
    applied.attach_tf_keras()
    saves.attach_tf_keras()
