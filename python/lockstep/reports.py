# SPDX-License-Identifier: Apache-2.0
"""The loss that a training loop prints is that of the batch, not of the rank's slice of it.

  loss = train_step(x, y)    a function that takes gradients gives back the weighted means over all ranks of the scalars
                             that it returns (of equal ones: the same); seam: func_graph_from_py_func, which traces
  float(loss), print(loss)   eagerly, a scalar whose gradient was taken is read as the mean over all ranks; seam:
                             _EagerTensorBase._numpy, which everything that reads a tensor's value calls

Calculations with an eager loss use the slice's value: gradients flow through them.  Derivatives of what a function
returns stay local too: they are reduced where they are taken with respect to variables."""
import functools

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import func_graph, ops as framework_ops
from tensorflow.python.ops.control_flow_v2_func_graphs import ControlFlowFuncGraph

from lockstep import gradients, hooks, native, ops, world
from lockstep.slices import current, part as parts


def attach():
    if world.size == 1:
        return
    gradients.listen(_note_gradient)

    @hooks.wrap(func_graph, "func_graph_from_py_func")
    def trace(original, name, python_func, *args, **kwargs):
        return original(name, _reporting(python_func), *args, **kwargs)

    @hooks.wrap(polymorphic_function.Function, "__call__")
    def call(original, self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        if getattr(self, "_lockstep_trains", False):
            _note_inner()
        return result

    @hooks.wrap(framework_ops._EagerTensorBase, "_numpy")
    def read(original, self):
        return original(getattr(self, "_lockstep_number", self))


def _note_gradient(_sources=()):
    """The function being traced takes gradients.  Keras's own steps report by their logs and metrics."""
    if not tf.executing_eagerly() and not current.is_scoped():
        tf.compat.v1.get_default_graph()._lockstep_reports = True


def _note_inner():
    """The function being traced has called one that takes gradients.  Means of what that one has reduced stay as they are; sums
    would not.  The branches and loops of a function report by themselves where they take gradients."""
    graph = None if tf.executing_eagerly() or current.is_scoped() else tf.compat.v1.get_default_graph()
    if graph is not None and not isinstance(graph, ControlFlowFuncGraph) and native.setting("LOSS") != "sum":
        graph._lockstep_reports_around = True


def _is_number(value):
    """As far as is known: a shape may be open while a function is traced."""
    return tf.is_tensor(value) and not isinstance(value, tf.Variable) and value.dtype.is_floating and not value.shape.rank


# ---- what a function returns ---------------------------------------------------------------------------------

def _reporting(python_func):
    @functools.wraps(python_func)
    def function(*args, **kwargs):
        result = python_func(*args, **kwargs)
        graph = tf.compat.v1.get_default_graph()
        takes_gradients = getattr(graph, "_lockstep_reports", False)
        if takes_gradients or getattr(graph, "_lockstep_reports_around", False):
            with current.no_scope():  # of a tf.data function: the loop's body was traced without it (loops.py)
                # The inner function's collectives, of the other name, may run at the same time.
                return _with_numbers_of_all(result, "number" if takes_gradients else f"number/{graph.name}")
        return result

    return function


def _with_numbers_of_all(result, name):
    flat = tf.nest.flatten(result)
    numbers = [i for i, value in enumerate(flat) if _is_number(value)]
    own = [flat[i] for i in numbers]
    names = [current.numbered(name) for _ in own]
    part = current.now()
    reduced = ops.allreduce_group([part.given(tf.stop_gradient(_as_number(value))) for value in own], names, **part.reduction())
    for i, value, number in zip(numbers, own, reduced):
        number.set_shape(())
        flat[i] = _with_derivative_of(value, number if value.shape.rank == 0 else _if_number(value, number, value))
    return tf.nest.pack_sequence_as(result, flat)


def _if_number(value, then, otherwise):
    return tf.cond(tf.equal(tf.rank(value), 0), lambda: then, lambda: otherwise)


def _as_number(value):
    """The value, or 0 where it turns out to be no number."""
    return value if value.shape.rank == 0 else tf.reshape(_if_number(value, value, tf.zeros([], value.dtype)), [])


def _with_derivative_of(own, number):
    @tf.custom_gradient
    def replaced(_):
        return tf.identity(number), lambda gradient: gradient

    return replaced(own)


# ---- eager losses --------------------------------------------------------------------------------------------

def note_target(target):
    """Gradients of this were reduced: whoever reads it shall see the batch's."""
    if not tf.executing_eagerly() or current.is_scoped() or world.size == 1:
        return
    part = current.now()
    if part.is_whole and not parts.is_left_alone():
        return
    numbers = [value for value in tf.nest.flatten(target) if _is_number(value)]
    names = [f"number/{i}" for i in range(len(numbers))]
    reduced = ops.allreduce_group([part.given(number) for number in numbers], names, **part.reduction())
    for value, number in zip(numbers, reduced):
        value._lockstep_number = number
