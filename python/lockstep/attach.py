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
    from lockstep import audit, hooks, summary, variables
    from lockstep.effects import output
    from lockstep.frontends import tape
    from lockstep.slices import loops
    hooks.attach()
    variables.attach()
    tape.attach()
    loops.attach()
    output.attach()
    audit.attach()
    summary.attach()


def _keras():
    import tensorflow  # noqa: F401  Keras has imported it; with another backend there is nothing to do
    from lockstep.frontends import keras3
    keras3.attach()


def _tf_keras():
    from lockstep.frontends import tf_keras
    tf_keras.attach()
