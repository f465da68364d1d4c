# SPDX-License-Identifier: Apache-2.0
"""The loss that a training loop prints is that of the batch, not of the rank's slice of it.

  loss = train_step(x, y)    a function that takes gradients gives back those numbers of the batch that it would give for
                             whole batches (losses/numbers.py); seam: func_graph_from_py_func, which traces
  tf.print(loss)             the same inside of a function, and of a train_step of Keras; seams: tf.strings.format, which tf.print
                             calls, and tf.summary.scalar
  float(loss), print(loss)   eagerly, a scalar whose gradient was taken is read as the mean over all ranks; seam:
                             _EagerTensorBase._numpy, which everything that reads a tensor's value calls

Calculations with an eager loss use the slice's value: gradients flow through them.  Derivatives of what a function
returns stay local too: they are reduced where they are taken with respect to variables."""
import functools

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.framework import func_graph, ops as framework_ops
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops import string_ops
from tensorflow.python.ops.control_flow_v2_func_graphs import ControlFlowFuncGraph

from lockstep import gradients, hooks, native, ops, world
from lockstep.losses import looks, numbers
from lockstep.slices import current, loops, part as parts, trial


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

    @hooks.wrap(string_ops, "string_format")
    def string_format(original, template, inputs, *args, **kwargs):
        return original(template, tf.nest.map_structure(_shown, inputs), *args, **kwargs)

    @hooks.wrap(tf.summary, "scalar")
    def scalar(original, name, data, *args, **kwargs):
        return original(name, _shown(data), *args, **kwargs)


def _note_gradient(_sources=()):
    """The function being traced takes gradients.  Keras's own steps report by their logs and metrics."""
    if not tf.executing_eagerly() and not current.is_scoped():
        graph = tf.compat.v1.get_default_graph()
        graph._lockstep_reports = True
        for around in current.graphs_around(graph):
            around._lockstep_takes_gradients = True  # also in a branch or a loop of it


def _note_inner():
    """The function being traced has called one that takes gradients.  Means of what that one has reduced stay as they are; sums
    would not.  The branches and loops of a function report by themselves where they take gradients."""
    graph = None if tf.executing_eagerly() or current.is_scoped() else tf.compat.v1.get_default_graph()
    if graph is not None and not isinstance(graph, ControlFlowFuncGraph) and native.setting("LOSS") != "sum":
        graph._lockstep_reports_around = True


def _is_number(value):
    """As far as is known: a shape may be open while a function is traced."""
    return isinstance(value, tf.Tensor) and value.dtype.is_floating and not value.shape.rank


# ---- what a function returns ---------------------------------------------------------------------------------

def _reporting(python_func):
    @functools.wraps(python_func)
    def function(*args, **kwargs):
        graph = tf.compat.v1.get_default_graph()
        trial.begin(graph)
        result = python_func(*args, **kwargs)
        takes_gradients = getattr(graph, "_lockstep_reports", False)
        if takes_gradients or getattr(graph, "_lockstep_reports_around", False):
            with current.no_scope():  # of a tf.data function: the loop's body was traced without it (loops.py)
                # The inner function's collectives, of the other name, may run at the same time.
                return _with_numbers_of_all(result, "number" if takes_gradients else f"number/{graph.name}")
        trial.note_other(graph)
        return result

    return function


def _with_numbers_of_all(result, name):
    flat = tf.nest.flatten(result)
    graph = tf.compat.v1.get_default_graph()
    # Loops and branches are given what the functions around them have made: nobody follows that here.
    kinds = None if isinstance(graph, ControlFlowFuncGraph) else numbers.kinds_of(flat, numbers.RETURNED)
    if kinds is not None:
        _keep_whole_for(numbers.first_problem(kinds) or looks.problem_of_effects())
        kinds = trial.note(graph, result, kinds)
    kinds = [numbers.MEAN if _is_number(value) and not isinstance(kind, str) else kind for value, kind in zip(flat, kinds or [None] * len(flat))]
    own = [_as_number(value) if kind == numbers.MEAN else value for value, kind in zip(flat, kinds)]
    names = [current.numbered(name) if kind in (numbers.MEAN, numbers.TOTAL) else None for kind in kinds]
    together = numbers.of_batch(own, kinds, names, current.now())
    return tf.nest.pack_sequence_as(result, [_returned(*item) for item in zip(flat, together, kinds)])


def _returned(value, number, kind):
    """What the function returns instead of this value, which is this number of the batch."""
    if kind not in (numbers.MEAN, numbers.TOTAL):
        return value
    if value.shape.rank is None:
        number = _if_number(value, number, value)
    return _with_derivative_of(value, number) if value.dtype.is_floating else number


def _with_derivative_of(own, number):
    """A number of the batch, whose derivative stays that of this rank's: it is reduced where it is taken."""
    @tf.custom_gradient
    def replaced(_):
        return tf.identity(number), lambda gradient: gradient

    return replaced(own)


def _if_number(value, then, otherwise):
    return tf.cond(tf.equal(tf.rank(value), 0), lambda: then, lambda: otherwise)


def _as_number(value):
    """The value, or 0 where it turns out to be no number."""
    return value if value.shape.rank is not None else tf.reshape(_if_number(value, value, tf.zeros([], value.dtype)), [])


# ---- what a function prints ----------------------------------------------------------------------------------

def _shown(value):
    """What is printed, or written as a summary, in the place of this value."""
    if isinstance(value, EagerTensor):
        return getattr(value, "_lockstep_number", value)
    if not isinstance(value, tf.Tensor) or not _is_in_step(value.graph):
        return value
    with value.graph.as_default():  # a branch that prints it is perhaps not taken by all ranks
        kind, = numbers.kinds_of([value], numbers.SHOWN)
        is_number = kind in (numbers.MEAN, numbers.TOTAL) and not isinstance(value.graph, ControlFlowFuncGraph)
        _keep_whole_for(None if is_number or kind == numbers.SAME else _problem_of_shown(kind, value))
        return numbers.of_batch([value], [kind], [current.numbered("shown")], current.now())[0] if is_number else value


def _is_in_step(graph):
    """May it be given slices: a function of the script that is being called, or a step of Keras?  Not what tf.data calls."""
    return looks.is_on() and graph.building_function and (current.has_part() or (bool(current.called) and not current.is_scoped()))


def _problem_of_shown(kind, value):
    return kind.text if isinstance(kind, numbers.Problem) else looks.told("made of the rows of a slice", value.op, numbers.SHOWN)


def _keep_whole_for(problem):
    """All ranks come here alike, also without a problem: they agree where Keras traces a step."""
    if current.has_part():
        looks.decide_by(problem)
    elif problem is not None:
        loops.keep_whole(problem)


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
