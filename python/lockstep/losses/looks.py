# SPDX-License-Identifier: Apache-2.0
"""Whether the mean over ranks of a loss of slices is that of the batch, where the script differentiates a loss of its own: in
a loop, or in a train_step.

    tf.reduce_mean(...)                     yes: each rank computes its slice
    tf.reduce_sum(...), / 64, / sum(mask)   no: a sum over the rows, or a figure that is made of sums
    tf.matmul(a, a, transpose_b=True)       no: rows are compared with each other

Where it is not, every rank computes whole batches: right, and no faster; one line says so and names the place in the script.  The
graph is looked at while a function is traced, from the rows to the target of the gradient, with the table of anatomy.py; an operator
that is not in it (a layer's) is taken to give rows where it is given some, and what is not understood is taken for a mean.
Eagerly there is no graph: what the script does with its first batch is noted, and put into one (replay.py).

The decision is taken when a function is traced for the first time.  All ranks must take the same: in a loop they have the same
whole batch then, in Keras they agree (decide).  LOCKSTEP_LOSS=mean or sum: nothing is looked at."""
import contextlib
import copy
import os
import sys
import threading
import traceback

import numpy as np
import tensorflow as tf

from lockstep import host, native, say, summary, world
from lockstep.losses import anatomy, calls, replay
from lockstep.losses.anatomy import Count, Figure, Fixed, Rows, Shape, Unclear, Unknown
from lockstep.slices import current, weak

SUM, OTHER = "a sum over the rows of the batch", "no mean over the rows of the batch"
FEEDS, COMPARISON = "made with a figure of all rows for each row", "made of rows compared with each other"
NORMALISATION = "lockstep_batchnorm"  # name scope of statistics that may be those of slices: see batchnorm.py

_local = threading.local()


class Turned:
    """A matrix with a column for each row of the batch."""


class NeedsWholeBatch(Exception):
    """Ends the tracing of a step that must not be given slices."""


def is_on():
    return world.size > 1 and native.setting("LOSS") == "auto" and native.setting("SHARD") != "off" and not weak.is_on()


class Look(anatomy.Anatomy):
    """problem: what the target is, if it is no mean over the rows, and the operator that makes it so"""

    def __init__(self, graph, rows, target, is_slice=False):
        """is_slice: the rows are some of those of the batch, whose number no script knows but from their shape."""
        self.problem, self._is_slice, self._callers = None, is_slice, ()
        self._number_of_rows = anatomy.size(rows[0], 0)
        super().__init__(graph, rows, target)
        if isinstance(self.result, Figure) and not self.result.is_mean:
            self._find(SUM if self.result.totals else OTHER, target.op)

    def _find(self, what, op):
        self.problem = self.problem or (what, op)

    def _follow(self, graph, given, results):
        self._settled = getattr(graph, "_lockstep_settled", ())
        self._given = getattr(graph, "_lockstep_fixed", ())  # by replay.py, or fed whole
        return super()._follow(graph, given, results)

    def _name_of(self, op):
        return "/".join((*self._callers, op.name))

    def _pass(self, op):
        try:
            if op.type == "Placeholder" and op.outputs[0].name in self._given:
                self._states[op.outputs[0].name] = Fixed()
            else:
                super()._pass(op)
        except anatomy.AllWithAll:
            self._find(COMPARISON, op)
            self._states.update({tensor.name: Unknown() for tensor in op.outputs})
        except Unclear:
            self._states.update({tensor.name: self._guess(op, tensor) for tensor in op.outputs})
        for tensor in op.outputs:
            if tensor.name in self._settled:
                self._states[tensor.name] = Figure(True)
            elif NORMALISATION in op.name and not isinstance(self._states[tensor.name], Rows):
                self._states[tensor.name] = Fixed()
        if op.type == "Const" and self._is_of_shape(op):
            self._states[op.outputs[0].name] = Shape(counts=True) if op.outputs[0].shape.rank else Count()

    def _is_of_shape(self, op):
        """tf.shape and tf.size of what has a known shape are constants of that name."""
        name, value = op.name.rpartition("/")[2], tf.get_static_value(op.outputs[0])
        if name.startswith("Shape"):
            return value.ndim == 1 and value.size > 0 and value[0] == self._number_of_rows
        return name.startswith("Size") and value.ndim == 0 and self._number_of_rows and value % self._number_of_rows == 0

    def _called(self, op, states):
        """What an operator gives that calls functions.  What nobody uses is not looked at, but in a loop, where one thing follows from
        another."""
        is_used = [tensor.name in self._used for tensor in op.outputs]

        def inside(graph, given, wants_all):
            inner, results = copy.copy(self), [tensor for tensor, used in zip(graph.outputs, is_used) if used or wants_all]
            inner._callers += (op.name,)
            found = iter(inner._follow(graph, dict(zip((tensor.name for tensor in graph.inputs), given)), results))
            self.problem = inner.problem
            return [next(found) if used or wants_all else Unknown() for used in is_used]

        if op.type in calls.CONDITIONS and isinstance(states[0], Figure):
            self._find(OTHER, op)
        made = calls.outputs_of(op, states, inside)
        return [self._guess(op, tensor) if used and not _fits(state, tensor) else state
                for tensor, state, used in zip(op.outputs, made, is_used)]

    def _compute(self, op, states):
        if op.type in calls.TYPES:
            return self._called(op, states)
        if op.type in ("MatMul", "Transpose"):
            return [getattr(self, f"_{op.type.lower()}")(op, states)]
        if any(isinstance(state, (Unknown, Turned)) for state in states):
            raise Unclear(op.type)
        states = self._with_made_rows(op, states)
        if op.type == "StridedSlice" and isinstance(states[0], Rows) and _is_dimension_before(op):
            return [states[0]]
        if op.type in ("Max", "Min", "Prod", "EuclideanNorm") and isinstance(states[0], Rows) and anatomy.goes_over_all(op, states[0]):
            return [Figure(False)]
        if op.type == "L2Loss" and isinstance(states[0], Rows):
            return [Figure(False, frozenset([self._name_of(op)]))]
        return super()._compute(op, states)

    def _with_made_rows(self, op, states):
        """The same, where ones, noise or labels that were made with a known number of rows, and meet rows, are rows."""
        ranks = {tensor.shape.rank for tensor, state in zip(op.inputs, states) if isinstance(state, Rows)}
        if self._number_of_rows is None or len(ranks) != 1 or op.type not in anatomy.ROW_BY_ROW:
            return states
        [rank] = ranks
        return [Rows(tensor.shape.rank - 1) if isinstance(state, Fixed) and tensor.shape.rank in (rank, rank - 1) and tensor.shape.rank and
                anatomy.size(tensor, 0) == self._number_of_rows and (tensor.shape.rank == rank or op.type in anatomy.LABELLED) else state
                for tensor, state in zip(op.inputs, states)]

    def _elementwise(self, op, states):
        before, self.feeds_rows = self.feeds_rows, False
        state = super()._elementwise(op, states)
        if self.feeds_rows:
            self._find(FEEDS, op)
        self.feeds_rows |= before
        return state

    def _figure_of_figures(self, op, states):
        is_divided = op.type in ("RealDiv", "DivNoNan") and isinstance(states[0], Figure) and isinstance(states[1], Fixed)
        if self._is_slice and is_divided and states[0].totals:
            number = tf.get_static_value(op.inputs[1])
            if number is not None and number.ndim == 0 and number == self._number_of_rows:
                return Figure(True)
        return super()._figure_of_figures(op, states)

    def _matmul(self, op, states):
        one, other = states
        is_turned = op.get_attr("transpose_a"), op.get_attr("transpose_b")
        if isinstance(one, Rows) and not is_turned[0]:
            if (isinstance(other, Rows) and is_turned[1]) or (isinstance(other, Turned) and not is_turned[1]):
                raise anatomy.AllWithAll(op.type)
            if isinstance(other, (Fixed, Figure)):
                return Rows(1)
        raise Unclear(op.type)

    def _transpose(self, op, states):
        order = tf.get_static_value(op.inputs[1])
        if isinstance(states[0], Rows) and order is not None:
            if list(order) == [1, 0]:
                return Turned()
            if len(order) and order[0] == 0:
                return Rows(len(order) - 1)
        raise Unclear(op.type)

    def _guess(self, op, tensor):
        """What an operator that is not in the table makes of its inputs, or one that is in it and does what the table does not say."""
        kinds = {type(self._states[source.name]) for source in op.inputs}
        if kinds <= {Fixed} and op.type != "Placeholder":
            return Fixed()
        is_layer = op.type not in anatomy.KNOWN and op.type not in ("MatMul", "Transpose") and kinds & {Rows, Shape, Count}
        if is_layer and tensor.shape.rank and anatomy.size(tensor, 0) in (None, self._number_of_rows):
            return Rows(tensor.shape.rank - 1)
        return Unknown()


def _fits(state, tensor):
    return not isinstance(state, Unknown) and (not isinstance(state, Rows) or (tensor.shape.rank or 0) > state.inner)


def _is_dimension_before(op):
    """rows[None]: is nothing done but to put a dimension before that of the rows?"""
    number = anatomy.size(op.inputs[1], 0)
    rest = (1 << number) - 2 if number else 0
    return op.get_attr("new_axis_mask") == 1 and op.get_attr("shrink_axis_mask") == 0 and all(
        (op.get_attr(f"{name}_mask") | op.get_attr("ellipsis_mask")) & rest == rest for name in ("begin", "end"))


def settled(loss):
    """The same, marked as what is brought to a mean over the rows: a loss of Keras."""
    if is_on() and isinstance(loss, tf.Tensor) and loss.shape.rank == 0:
        if tf.executing_eagerly():
            replay.settle(loss)
            return loss
        loss.graph._lockstep_settled = {*getattr(loss.graph, "_lockstep_settled", ()), loss.name}
    return loss


# ---- where to look -------------------------------------------------------------------------------------------

def note_rows(tensors):
    """These tensors of the graph being traced are rows of the batch, and what is made of them may be differentiated."""
    if is_on() and not tf.executing_eagerly():
        tf.compat.v1.get_default_graph()._lockstep_rows = [tensor for tensor in tf.nest.flatten(tensors) if tf.is_tensor(tensor)]


def problem_of(target):
    """What the target of a gradient is and where, if it is no mean over the rows of the batch; otherwise None."""
    return _first_problem(_look_at, tf.nest.flatten(target))


def problem_in(rows, targets):
    """The same for a v1 graph, where the tensors `rows` are cut in a run."""
    return _first_problem(lambda target: _look_in_graph(rows, target), targets)


def _first_problem(look_at, targets):
    for target in targets:
        try:
            look = look_at(target)
        except Exception:  # this look must not end a script that trains
            continue
        if look is not None and look.problem is not None:
            what, op = look.problem
            frames = traceback.extract_stack() if tf.executing_eagerly() else op.traceback
            return f"{_place(frames)}: the loss is {what} ({op.type})"
    return None


def _look_in_graph(rows, target):
    """What else is fed is the same on all ranks."""
    cut = {tensor.name for tensor in rows}
    target.graph._lockstep_fixed = {op.outputs[0].name for op in target.graph.get_operations()
                                    if op.type == "Placeholder" and op.outputs[0].name not in cut}
    return Look(target.graph, rows, target)


def _look_at(target):
    if tf.executing_eagerly():
        found = replay.graph_of(target)
        return None if found is None else Look(*found)
    rows = _rows_in(target.graph) if isinstance(target, tf.Tensor) and target.graph.building_function else []
    part = current.now()
    is_slice = current.has_part() and part.is_static and part.count != part.total
    return Look(target.graph, rows, target, is_slice) if rows else None


def _rows_in(graph):
    """The tensors that are rows of the batch: those that were noted, or the arguments of the function that is being traced
    which have as many rows as the first."""
    given = getattr(graph, "_lockstep_rows", None)
    if given is None:
        captured = {inner.name for _, inner in graph.captures}
        given = [tensor for tensor in graph.inputs if tensor.name not in captured]
    given = [tensor for tensor in given if isinstance(tensor, tf.Tensor) and tensor.graph is graph and tensor.shape.rank]
    return [tensor for tensor in given if anatomy.size(tensor, 0) == anatomy.size(given[0], 0)]


def _place(frames):
    """The innermost line of the script."""
    others = tuple(os.path.dirname(os.path.abspath(sys.modules[name].__file__)) + os.sep
                   for name in ("tensorflow", "keras", "tf_keras", "lockstep") if name in sys.modules)
    for frame in reversed(list(frames or ())):
        if not os.path.abspath(frame.filename).startswith(others):
            return f"{frame.filename}:{frame.lineno}"
    return "the script"


# ---- what follows --------------------------------------------------------------------------------------------

def say_whole(problem):
    summary.note_explained()
    say.once(f"{problem}: every rank computes whole batches, which is right but not faster. LOCKSTEP_LOSS=sum is for losses that are "
             "sums; with LOCKSTEP_LOSS=mean each rank computes its slice all the same")


@contextlib.contextmanager
def deciding():
    """The first call of a train function of Keras, on all ranks at once: decide() may end it.  An eager step is not ended, since it
    has left its traces by then: it is given the whole batch (noting), and needs_whole() says how to go on."""
    _local.is_deciding, _local.problem = True, None
    try:
        yield
    finally:
        _local.is_deciding = False


def is_noting():
    """Is this the first call of an eager train function?"""
    return getattr(_local, "is_deciding", False) and tf.executing_eagerly()


@contextlib.contextmanager
def noting(rows):
    """What is computed with these rows, eagerly, is looked at where it is differentiated."""
    replay.begin(rows)
    try:
        yield
    finally:
        replay.end()


def needs_whole():
    """Has the first call shown, on any rank, that an eager step needs whole batches?"""
    problem = getattr(_local, "problem", None)
    is_needed = _agreed(problem)
    if is_needed:
        say_whole(problem or "the loss is another on each rank")
    return is_needed


def _agreed(problem):
    return bool(host.allreduce(np.array([problem is not None], np.uint8), "loss/whole", op="max")[0])


def decide(target):
    """Ends the tracing of a step that is given a slice, on all ranks, if it needs the whole batch; notes it of an eager step."""
    if not getattr(_local, "is_deciding", False):
        return
    problem = problem_of(target)
    if tf.executing_eagerly():
        _local.problem = _local.problem or problem
    elif _agreed(problem):
        say_whole(problem or "the loss is another on each rank")
        _local.gives_up = True
        raise NeedsWholeBatch(problem)


def is_giving_up():
    """Is the exception that is being handled that of decide()?"""
    return getattr(_local, "gives_up", False)


def has_given_up():
    """Was the last exception of a step that of decide()?  TensorFlow may have made another of it."""
    gives_up, _local.gives_up = getattr(_local, "gives_up", False), False
    return gives_up
