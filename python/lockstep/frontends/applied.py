# SPDX-License-Identifier: Apache-2.0
"""The safety net: what reaches an optimizer without a gradient having been reduced before is reduced there.

A script may write its derivatives by hand, or take them by a way that has no hook.  Where gradients were reduced (in
this graph; eagerly, since this optimizer was last applied) what arrives is made from them, and is left alone.

Seams: Keras 3 BaseOptimizer.apply, tf_keras Optimizer.apply_gradients (also the legacy ones), v1 Optimizer.apply_gradients."""
import threading

import tensorflow as tf

from lockstep import gradients, hooks, nan
from lockstep.frontends.v1 import walk
from lockstep.slices import current

_local = threading.local()
_reductions = 0


def attach():
    gradients.listen(_note)


def _note(_sources=()):
    global _reductions
    _reductions += 1


def attach_keras():
    from keras.src import backend
    from keras.src.optimizers import base_optimizer
    if backend.backend() != "tensorflow":
        return

    @hooks.wrap(base_optimizer.BaseOptimizer, "apply")
    def apply(original, self, grads, trainable_variables=None):
        found = self._trainable_variables if trainable_variables is None else trainable_variables
        with_net = net(self, list(grads), list(found))
        return _outermost(self, with_net, found, lambda: original(self, with_net, trainable_variables))


def attach_tf_keras():
    from tf_keras.src.optimizers import optimizer
    from tf_keras.src.optimizers.legacy import optimizer_v2
    for owner in (optimizer.Optimizer, optimizer_v2.OptimizerV2):
        attach_pairs(owner)


def attach_pairs(owner):
    """An optimizer class whose apply_gradients takes pairs."""
    @hooks.wrap(owner, "apply_gradients")
    def apply_gradients(original, self, grads_and_vars, *args, **kwargs):
        pairs = list(grads_and_vars)
        found = [variable for _, variable in pairs]
        grads = net(self, [grad for grad, _ in pairs], found)
        return _outermost(self, grads, found, lambda: original(self, list(zip(grads, found)), *args, **kwargs))


def _outermost(optimizer, grads, variables, act):
    """An optimizer that wraps another applies through it."""
    before, _local.applies = getattr(_local, "applies", False), True
    try:
        return act() if before else nan.apply(optimizer, grads, variables, act)
    finally:
        _local.applies = before


def net(optimizer, grads, variables):
    """The gradients, reduced if nothing was."""
    if getattr(_local, "applies", False):
        return grads
    if tf.executing_eagerly():
        is_reduced = _reductions > getattr(optimizer, "_lockstep_reductions", 0)
    else:
        is_reduced = _graph_has_gradients()
    if not is_reduced:
        from lockstep.frontends.v1 import taken
        grads = taken.reduce(grads, variables)
    if tf.executing_eagerly():
        # Not with setattr: Keras tracks attributes.
        object.__setattr__(optimizer, "_lockstep_reductions", _reductions)
    return grads


def _graph_has_gradients():
    graph = tf.compat.v1.get_default_graph()
    return any(getattr(around, "_lockstep_gradients", None)
               for around in (*current.graphs_around(graph), walk.outermost(graph)))
