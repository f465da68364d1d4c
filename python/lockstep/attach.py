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
        sys.exit(f"lockstep: {error}")
    from lockstep import randomness, variables
    from lockstep.effects import files, output, records, saves
    from lockstep.frontends import tape
    from lockstep.slices import loops
    variables.attach()
    tape.attach()
    loops.attach()
    folder = output.attach()
    files.attach(folder)
    saves.attach()
    records.attach()
    randomness.attach()


def _keras():
    import tensorflow  # noqa: F401  Keras has imported it; with another backend there is nothing to do
    from lockstep.effects import saves
    from lockstep.frontends import keras3
    keras3.attach()
    saves.attach_keras()


def _tf_keras():
    from lockstep.effects import saves
    saves.attach_tf_keras()
