# SPDX-License-Identifier: Apache-2.0
"""Gradients are reduced where they are taken.

Seams: the public tf.gradients and tf.compat.v1.gradients (gradients of while loops use a function below these, which stays as
it is), and v1 Optimizer.compute_gradients, which does not call the public ones."""
import sys
import threading

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import gradients_impl
from tensorflow.python.ops.losses import losses_impl
from tensorflow.python.training import optimizer

from lockstep import gradients, hooks, native, world
from lockstep.frontends import applied
from lockstep.frontends.v1 import parts
from lockstep.losses import looks
from lockstep.slices import current

_local = threading.local()


def attach():
    current.serve_graphs(parts.part_of)
    for name in ("gradients", "gradients_v2"):
        modules = list(_public_modules(getattr(gradients_impl, name)))
        _attach_gradients(name)
        for module in modules:
            module.gradients = getattr(gradients_impl, name)

    @hooks.wrap(gradients_impl, "hessians")
    def hessians(original, *args, **kwargs):
        _local.in_hessians = True  # which takes gradients of gradients: figures of the slice
        try:
            return original(*args, **kwargs)
        finally:
            _local.in_hessians = False

    @hooks.wrap(optimizer.Optimizer, "compute_gradients")
    def compute_gradients(original, self, loss, *args, **kwargs):
        pairs = original(self, loss, *args, **kwargs)
        if callable(loss):  # taken by a tape
            return pairs
        _note_target(loss)
        return list(zip(reduce([grad for grad, _ in pairs], [variable for _, variable in pairs]),
                        [variable for _, variable in pairs]))

    @hooks.wrap(losses_impl, "compute_weighted_loss")
    def compute_weighted_loss(original, losses, weights=1.0, *args, **kwargs):
        """All of tf.losses: divided by the number of weights that are not 0, which are as many as there are losses."""
        loss = original(losses, weights, *args, **kwargs)
        reduction = kwargs.get("reduction", args[2] if len(args) > 2 else losses_impl.Reduction.SUM_BY_NONZERO_WEIGHTS)
        weight = tf.get_static_value(weights) if tf.is_tensor(weights) else weights  # some make a constant of the number
        is_mean = np.ndim(weight) == 0 and weight not in (None, 0) and reduction not in (losses_impl.Reduction.SUM, losses_impl.Reduction.NONE)
        return looks.settled(loss, losses) if is_mean else loss

    applied.attach_pairs(optimizer.Optimizer)


def _public_modules(function):
    for name, module in list(sys.modules.items()):
        if name == "tensorflow" or name.startswith(("tensorflow._api.", "tensorflow.compat.")):
            if module is not None and getattr(module, "gradients", None) is function:
                yield module


def _attach_gradients(name):
    """In the module from which the public ones take it: tensorflow.compat.v1 is made when a script imports it."""
    @hooks.wrap(gradients_impl, name)
    def public_gradients(original, ys, xs, *args, **kwargs):
        grads = original(ys, xs, *args, **kwargs)
        if getattr(_local, "in_hessians", False):
            return grads
        sources = [variable_of(source) for source in tf.nest.flatten(xs)]
        if any(map(gradients.is_variable, sources)):
            _note_target(ys)
        return tf.nest.pack_sequence_as(grads, reduce(tf.nest.flatten(grads), sources))


def _note_target(target):
    """Whether it is a mean over the rows will be looked at when a run would cut them."""
    if not tf.compat.v1.executing_eagerly_outside_functions():
        parts.state(tf.compat.v1.get_default_graph()).targets.extend(
            tensor for tensor in tf.nest.flatten(target) if isinstance(tensor, tf.Tensor))


def variable_of(source):
    """The variable that a tensor is the handle of, or the source itself."""
    if isinstance(source, tf.Variable) or not isinstance(source, tf.Tensor) or not hasattr(source, "op"):
        return source
    if tf.executing_eagerly() or source.op.type not in ("VarHandleOp", "VariableV2"):
        return source
    for variable in variables_of(source.graph):
        if variable.op is source.op:
            return variable
    return source


def variables_of(graph):
    """The variables of a graph, each once."""
    keys = tf.compat.v1.GraphKeys
    found = {}
    for collection in (keys.GLOBAL_VARIABLES, keys.TRAINABLE_VARIABLES, keys.MODEL_VARIABLES):
        for variable in graph.get_collection_ref(collection):
            if isinstance(variable, tf.Variable):
                found.setdefault(variable.op.name, variable)
    return list(found.values())


def reduce(grads, sources):
    """As gradients.reduce, in a graph of v1: the ranks' gradients of a loss that is a sum are summed here, since only the run
    knows whether they are of slices."""
    if world.size == 1 or tf.executing_eagerly() or tf.compat.v1.executing_eagerly_outside_functions():
        return gradients.reduce(grads, sources)
    if not any(grad is not None and gradients.is_variable(source) for grad, source in zip(grads, sources)):
        return list(grads)
    part = current.now(grads)
    if native.setting("LOSS") == "sum":
        grads = [_times_ranks(grad, part) if gradients.is_variable(source) else grad
                 for grad, source in zip(grads, sources)]
    with tf.name_scope("lockstep/"), tf.device("/device:CPU:0"):
        return gradients.reduce(grads, sources, part)


def _times_ranks(grad, part):
    """A mean over ranks becomes their sum, unless all have the same."""
    if grad is None:
        return None
    factor = tf.where(part.is_whole, 1.0, float(world.size))
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(grad.values * tf.cast(factor, grad.dtype), grad.indices, grad.dense_shape)
    return grad * tf.cast(factor, grad.dtype)
