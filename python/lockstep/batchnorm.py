# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation of Keras 3 and tf_keras.

By default each rank normalises with the statistics of its slice, as all data-parallel systems do, and the moving averages
become the mean over the ranks after each step: nothing in the forward pass waits for that.  With
LOCKSTEP_SYNC_BATCHNORM the statistics are those of the whole batch, and the results those of one process.

The ranks' losses are averaged with the weight w of their rows, so what flows back through such an average m = sum(w x)
is the same average: a rank's gradient counts w times in the sum, and dL/dx = w sum(w dL/dm) / w.  Losses that are sums
(LOCKSTEP_LOSS=sum) are added up, and so is what flows back: dL/dx = w sum(dL/dm)."""
import contextlib
import threading

import tensorflow as tf

from lockstep import gradients, hooks, native, ops, variables, world
from lockstep.losses import looks
from lockstep.slices import current

_local = threading.local()


def is_synchronized():
    return native.setting("SYNC_BATCHNORM") == "on"


def _is_sliced():
    part = current.now()
    return world.size > 1 and not (part.is_static and part.is_whole)


def _mean_over_ranks(tensor, name):
    part = current.now()

    @tf.custom_gradient
    def average(own):
        together = ops.allreduce(own, name, **part.mean())
        together.set_shape(own.shape)

        def gradient(grad):
            back = ops.allreduce(part.given(grad), f"{name}/gradient", **part.reduction())
            back.set_shape(own.shape)
            return back if native.setting("LOSS") != "sum" else back * ops.exact(part.share_in_mean(), back.dtype)

        return together, gradient

    return average(tensor)


def moments(layer, inputs, axes, keepdims, mask, epsilon):
    """Mean and variance over the rows of all ranks; the variance from the distances to the mean of all, in a second
    round, since a difference of large squares would lose digits."""
    name = current.numbered(f"batchnorm/{variables.key(layer.moving_mean)}")
    own_dtype = inputs.dtype
    inputs = tf.cast(inputs, tf.float32) if own_dtype in (tf.float16, tf.bfloat16) else inputs
    weights = None if mask is None else tf.cast(tf.expand_dims(mask, -1), inputs.dtype) * tf.ones_like(inputs)

    def average(values):
        if weights is None:
            return tf.reduce_mean(values, axes, keepdims=True)
        return tf.reduce_mean(values * weights, axes, keepdims=True)

    mean = _mean_over_ranks(average(inputs), f"{name}/mean")
    valid = 1.0
    if weights is not None:
        # epsilon is added to the number of valid entries, which is that part of all entries of the batch.
        entries = tf.cast(tf.size(inputs), inputs.dtype) / tf.cast(tf.size(mean), inputs.dtype)
        entries *= tf.cast(current.now().total, inputs.dtype) / tf.cast(tf.shape(inputs)[0], inputs.dtype)
        valid = tf.stop_gradient(_mean_over_ranks(average(tf.ones_like(inputs)), f"{name}/valid")) + epsilon / entries
        mean /= valid
    distance = tf.math.squared_difference(inputs, tf.stop_gradient(mean))
    variance = _mean_over_ranks(average(distance), f"{name}/variance") / valid
    if not keepdims:
        mean, variance = tf.squeeze(mean, axes), tf.squeeze(variance, axes)
    return tf.cast(mean, own_dtype), tf.cast(variance, own_dtype)


def entries(inputs, axes):
    """How many numbers of the batch a mean over these axes, the rows among them, is made of."""
    shape, part = tf.shape(inputs, out_type=tf.int64), current.now()
    number = shape[0]
    if _is_sliced():
        number = tf.constant(part.total, tf.int64) if part.is_static else tf.where(part.is_whole, number, part.total)
    for axis in axes:
        number *= shape[axis] if axis != 0 else 1
    return number


def attach_call(layer_class, is_training, assign):
    """The moving averages become the mean over the ranks after the layer's own update; in a step of Keras those of all
    layers at once, when it is over, one of them is used, or a gradient is taken: what follows in the step may copy them (the
    average of a model in another one).

    is_training(layer, arguments) says whether this call updates them."""
    gradients.listen(_agree_on_noted)

    @hooks.wrap(layer_class, "call")
    def call(original, self, *args, **kwargs):
        if not _is_sliced():
            with tf.name_scope(looks.NORMALISATION) if looks.is_on() else contextlib.nullcontext():
                return original(self, *args, **kwargs)
        updates = not is_synchronized() and is_training(self, args, kwargs)
        if not updates:
            _agree_on_noted()
        with tf.name_scope(looks.NORMALISATION):
            outputs = original(self, *args, **kwargs)
        if updates:
            moving = [(variable, assign) for variable in _moving(self)]
            if _notes() is None or _graph() is not _local.graph:
                _agree(moving)
            else:
                _notes().update({id(variable): (variable, assign) for variable, assign in moving})
        return outputs


@contextlib.contextmanager
def agreed_at_end():
    """Around a step on a slice: moving averages that are updated in it are agreed at its end."""
    before = _notes(), getattr(_local, "graph", None)
    _local.notes, _local.graph = {}, _graph()
    try:
        yield
        _agree_on_noted()
    finally:
        _local.notes, _local.graph = before


def _notes():
    return getattr(_local, "notes", None)


def _graph():
    """What is noted in a branch or in the body of a loop can only be agreed there."""
    return None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()


def _agree_on_noted():
    if _notes() and _graph() is _local.graph:
        noted = list(_notes().values())
        _notes().clear()
        _agree(noted)


def _agree(moving):
    names = [current.numbered(f"batchnorm/{variables.key(variable)}") for variable, _ in moving]
    values = [tf.convert_to_tensor(variable) for variable, _ in moving]
    together = ops.allreduce_group(values, names, **current.now().mean())
    for (variable, assign), value, agreed in zip(moving, values, together):
        agreed.set_shape(value.shape)
        assign(variable, agreed)


def _moving(layer):
    names = ("moving_mean", "moving_variance", "moving_stddev", "renorm_mean", "renorm_stddev")
    found = [getattr(layer, name, None) for name in names]
    return [variable for variable in found if variable is not None]
