# SPDX-License-Identifier: Apache-2.0
"""tf.GradientTape, eager and in tf.function; also what Keras trains with (TensorFlow 2.16 to 2.21).

Seam: GradientTape.gradient.  Gradients with respect to tensors stay local.  A Jacobian is taken row by row with the same
method: its rows are figures of the samples, not of the batch, and stay local too."""
import threading

import tensorflow as tf
from tensorflow.python.eager import backprop

from lockstep import gradients, hooks, means, reports
from lockstep.slices import current

_local = threading.local()


def attach():
    @hooks.wrap(backprop.GradientTape, "gradient")
    def gradient(original, self, target, sources, *args, **kwargs):
        with means.off():
            grads = original(self, target, sources, *args, **kwargs)
        if getattr(_local, "in_jacobian", False):
            return grads
        flat = tf.nest.flatten(grads)
        flat_sources = tf.nest.flatten(sources)
        if len(flat) != len(flat_sources):  # composite sources: no variables
            return grads
        reduced = gradients.reduce(flat, flat_sources)
        if any(map(gradients.is_variable, flat_sources)):
            reports.note_target(target)
            if tf.executing_eagerly() and not current.is_scoped():
                gradients.note_step(target)
        return tf.nest.pack_sequence_as(grads, reduced)

    for name in ("jacobian", "batch_jacobian"):
        @hooks.wrap(backprop.GradientTape, name)
        def jacobian(original, *args, **kwargs):
            _local.in_jacobian = True
            try:
                return original(*args, **kwargs)
            finally:
                _local.in_jacobian = False
