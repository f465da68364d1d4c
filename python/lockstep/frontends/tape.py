# SPDX-License-Identifier: Apache-2.0
"""tf.GradientTape, eager and in tf.function; also what Keras trains with (TensorFlow 2.16 to 2.21).

Seam: GradientTape.gradient.  Gradients with respect to tensors stay local.  A Jacobian is taken row by row with the same
method: its rows are figures of the samples, not of the batch, and stay local too.

A target with a number for each row (a loss that nobody has averaged) is differentiated as its sum.  The mean over ranks of
the slices' sums would be too small, so the numbers go in with the share of the slice in the batch as divisor."""
import threading

import tensorflow as tf
from tensorflow.python.eager import backprop

from lockstep import gradients, hooks, means, native, reports
from lockstep.frontends import steps
from lockstep.losses import looks, replay
from lockstep.slices import current, loops

_local = threading.local()


def attach():
    @hooks.wrap(backprop.GradientTape, "gradient")
    def gradient(original, self, target, sources, output_gradients=None, *args, **kwargs):
        flat_sources = tf.nest.flatten(sources)
        is_inner = getattr(_local, "in_jacobian", False) or replay.is_going_back()  # tf.recompute_grad
        are_weights = [] if is_inner else list(map(gradients.is_variable, flat_sources))
        if any(are_weights):
            is_plain = output_gradients is None and all(are_weights)
            _look_at(target if is_plain else lambda: _as_one_number(target, output_gradients))
            output_gradients = _for_rows(target) if is_plain else output_gradients
        with means.off(), replay.going_back():
            grads = original(self, target, sources, output_gradients, *args, **kwargs)
        if getattr(_local, "in_jacobian", False):
            return grads
        flat = tf.nest.flatten(grads)
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


def _as_one_number(target, output_gradients):
    """What is differentiated, if the script says what the tape starts from, or takes a gradient of rows by inputs, too."""
    flat = [tensor for tensor in tf.nest.flatten(target) if tf.is_tensor(tensor)]
    factors = tf.nest.flatten(output_gradients) if output_gradients is not None else [None] * len(flat)
    return [tf.reduce_sum(tensor if factor is None else tensor * factor) for tensor, factor in zip(flat, factors)]


def _look_at(target):
    """Batches stay whole where the mean of the slices' losses is not that of the batch.  A function makes the target, where it is looked at."""
    if not looks.is_on() or (tf.executing_eagerly() and not replay.is_noting() and not replay.is_full()):
        return
    target = target() if callable(target) else target
    if current.has_part():
        if steps.is_sliced() or looks.is_noting():
            looks.decide(target)
    elif not current.is_scoped():
        problem = looks.problem_of(target)
        if problem is not None:
            loops.keep_whole(problem)


def _for_rows(target):
    """What the tape starts from: instead of ones, larger numbers for the rows of a slice; None: ones will do."""
    flat = tf.nest.flatten(target)
    if not any(tf.is_tensor(value) and value.shape.rank for value in flat):
        return None  # mostly it is one number
    if native.setting("LOSS") == "sum" or not steps.is_sliced():
        return None
    if not all(tf.is_tensor(value) and value.dtype.is_floating for value in flat) or not any(map(steps.has_rows, flat)):
        return None
    return tf.nest.pack_sequence_as(target, [_upstream(value) for value in flat])


def _upstream(value):
    ones = tf.ones_like(value)
    if not steps.has_rows(value):
        return ones
    part = current.now()
    if part.is_static:
        return steps.sum_as_mean(ones)
    is_rows = tf.equal(tf.shape(value, out_type=tf.int64)[0], tf.maximum(tf.cast(part.count, tf.int64), 1))
    return tf.where(is_rows, steps.sum_as_mean(ones), ones)
