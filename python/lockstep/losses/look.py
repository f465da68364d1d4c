# SPDX-License-Identifier: Apache-2.0
"""Is the target of a gradient a mean over the rows of the batch?  Only what is known to be one is: an operator that nobody knows, between
the rows and the target, is a problem like a sum."""
import copy
import os
import re

import tensorflow as tf

from lockstep import xla
from lockstep.losses import anatomy, calls, counts
from lockstep.losses.sizes import Sizes, known
from lockstep.losses.states import AllWithAll, Count, Figure, Fixed, Rows, Shape, Unclear, Unknown, dimension, joined, only
from lockstep.slices import current

SUM, OTHER = "a sum over the rows of the batch", "no mean over the rows of the batch"
FEEDS, COMPARISON = "made with a figure of all rows for each row", "made of rows compared with each other"
UNCLEAR = "not known to be a mean over the rows of the batch"
NEITHER = "neither a mean nor a sum over the rows of the batch"
WRITTEN = "reshaped to a number of rows that is written into the script"
SIZED = "made with the number of rows"
KEPT = "kept in a variable, and made of the rows of the batch"
CHECKED = "checked, and made of the rows of the batch, some of which would end the step on one rank only"
WRITTEN_OUT = "printed, written or handed to Python is made of the rows of the batch"
NORMALISATION = "lockstep_batchnorm"  # name scope of statistics that may be those of slices: see batchnorm.py
GOING_BACK = "gradient_tape"  # name scope of inner gradients
_WHERE_GRADIENTS_ARE_MADE = ("gradients_util.py", "gradients_impl.py")  # those of tf.gradients
COUNTING = "lockstep_metric"  # name scope of sums that are put together later: see metrics.py


_IN_NORMALISATION = re.compile(rf"(^|/){NORMALISATION}(_\d+)?/")


class Look(anatomy.Anatomy):
    """problem: what the target is, if it is not known to be a mean over the rows, and the operator that makes it so"""

    follows_noise = True

    def __init__(self, graph, rows, others=(), is_slice=False, is_second=False, sized=None):
        """`others`: what other tensors are, by their names.  is_slice: the rows are some of those of the batch, whose number no script knows but from
        their shape.  is_second: constants with equal rows, as many as the batch has, are rows, too (the state of an LSTM at first).
        sized: tensors that have another shape where there are fewer rows, see comparison.py."""
        self._sized = sized or {}
        self.problem, self._is_slice, self._is_second, self._callers, self._graph = None, is_slice, is_second, (), graph
        self._number_of_rows = dimension(rows[0], 0) if rows and rows[0].shape.rank else None
        self._rows, self._reshaped = rows, []
        self._begin(rows, others)

    def again(self):
        """A second look, if it may see more."""
        return self.second() if self.problem is not None and self.problem[0] in (UNCLEAR, COMPARISON) else None

    def second(self):
        """None: it was one."""
        is_possible = self._number_of_rows is not None and not self._is_second
        return Look(self._graph, self._rows, self._inputs, self._is_slice, is_second=True, sized=self._sized) if is_possible else None

    def note_reshaped(self, op, rows):
        self._reshaped.append((op, rows))

    def compare(self, earlier):
        """With what was found when the same was traced for another number of rows: a reshape to a number that is written into the script puts parts
        of a slice's rows into places of rows."""
        few, many = self._number_of_rows, earlier._number_of_rows
        if few and many and len(self._reshaped) == len(earlier._reshaped):
            for (op, now), (_, before) in zip(self._reshaped, earlier._reshaped):
                if not now.after.names and now.after.number * few == before.after.number * many and few != many:
                    self._find(WRITTEN, op)
        return self

    def states_of(self, tensors):
        return self._follow(self._graph, self._inputs, tensors)

    def judge(self, target):
        """What is the problem with this target of a gradient?"""
        [result] = self.states_of([target])
        self.note_use([result], anatomy.SUM)
        if isinstance(result, Unknown):
            self._find(UNCLEAR, result.op or target.op)
        elif isinstance(result, Figure) and not (result.is_mean and target.shape.rank == 0):
            self._find(SUM if result.totals else OTHER, target.op)
        elif not isinstance(result, (Figure, Fixed)) and result != Rows():  # a number for each row: see tape.py
            self._find(OTHER, target.op)
        second = self.again()
        return self if second is None or second.judge(target).problem is not None else second

    def judge_decisions(self, tensors):
        """What the script has read, and may have gone one way or another for."""
        for state, tensor in zip(self.states_of(tensors), tensors):
            if not isinstance(state, (Fixed, Count, Shape)):
                self._find(OTHER if isinstance(state, Figure) else UNCLEAR, tensor.op)
        return self

    def judge_variables(self):
        """What is assigned to variables must be the same on all ranks: not a figure, or rows, of a slice."""
        self._judge_given(self._graph, self._inputs, _assigns, KEPT)
        return self

    def judge_effects(self):
        """The same of what leaves the graph by operators that give nothing."""
        self._judge_given(self._graph, self._inputs, calls.acts, WRITTEN_OUT)
        return self

    def judge_checks(self):
        """The same of what may end a step, which the script may catch."""
        self._judge_given(self._graph, self._inputs, calls.checks, CHECKED)
        return self

    def _judge_given(self, graph, given, is_chosen, what):
        """What the chosen operators are given must be the same on all ranks."""
        chosen, calling = [], []
        for op in graph.get_operations():
            if is_chosen(op):
                chosen.append(op)
            elif any(calls.has(is_chosen, called) for called in calls.graphs_of(op)):
                calling.append(op)
        values = [[tensor for tensor in op.inputs if tensor.dtype != tf.resource] for op in chosen] + [list(op.inputs) for op in calling]
        round_again = [list(op.outputs) if op.type in calls.LOOPS else [] for op in calling]  # what a loop's body is given later
        states = iter(self._follow(graph, given, sum(values + round_again, [])))
        found = [[next(states) for _ in tensors] for tensors in values]
        for of_op, later in zip(found[len(chosen):], round_again):
            of_op[:] = [joined([state, next(states)]) for state in of_op] if later else of_op
        for op, of_op in zip(chosen, found):
            if not only(of_op, Fixed):
                self._find(what, op)
        for op, of_op in zip(calling, found[len(chosen):]):
            for called in calls.graphs_of(op):
                inner = self._inside(op, called, list(op.inputs)[-len(called.inputs):])
                inner._judge_given(called, dict(zip((tensor.name for tensor in called.inputs), of_op[-len(called.inputs):])), is_chosen, what)
                self.problem = inner.problem

    def _find(self, what, op):
        self.problem = self.problem or (what, op)

    def _follow(self, graph, given, results):
        self._settled = getattr(graph, "_lockstep_settled", {})
        self._given = getattr(graph, "_lockstep_fixed", ())  # by replay.py, or fed whole
        self._distrusted = getattr(graph, "_lockstep_distrusted", ())
        return super()._follow(graph, given, results)

    def inputs_of(self, op):
        """A loss of Keras is brought to a mean, whatever is done between its rows and that; what the engine gives is the same on all ranks."""
        if _is_agreed(op):
            return ()
        if op.type == "Const" and self._measured_by(op) is not None:
            return [self._measured_by(op)]
        return self._settled.get(op.outputs[0].name, op.inputs) if op.outputs else op.inputs

    def _measured_by(self, op):
        """The tensor whose shape this constant is."""
        tensor = getattr(op.graph, "_lockstep_measured", {}).get(op.outputs[0].name)
        return tensor if tensor is not None and tensor.graph is op.graph else None

    def name_of(self, op):
        return "/".join((*self._callers, op.name))

    def over_rows(self, op):
        return Figure(False)

    def _pass(self, op):
        before, self.feeds_rows = self.feeds_rows, False
        is_normalisation = _IN_NORMALISATION.search(op.name) is not None
        try:
            self._understand(op)
        except AllWithAll:
            self._find(COMPARISON, op)
            self._states.update({tensor.name: Unknown(op) for tensor in op.outputs})
        except Unclear:
            known = [self._states.get(tensor.name) for tensor in self.inputs_of(op)]
            reason = next((state.op for state in known if isinstance(state, Unknown) and state.op is not None), op)
            is_count = is_normalisation and only(known, Fixed, Count, Shape, Figure)
            self._states.update({tensor.name: Fixed() if is_count else Unknown(reason) for tensor in op.outputs})
        if self.feeds_rows and not is_normalisation:
            self._find(FEEDS, op)
            self._states.update({tensor.name: Unknown(op) for tensor in op.outputs})
        self.feeds_rows |= before
        for tensor in op.outputs:
            if is_normalisation and isinstance(self._states[tensor.name], Figure):
                self._states[tensor.name] = Fixed()

    def _understand(self, op):
        if op.outputs and op.outputs[0].name in self._distrusted:
            raise Unclear("a gradient of the script's own")
        if op.type not in calls.TYPES and _has_other_gradient(op):
            raise Unclear("a gradient of the script's own")
        if op.outputs and op.outputs[0].name in self._settled:
            self._states[op.outputs[0].name] = self._brought_to_mean(op)
        elif op.type == "Placeholder" and (op.outputs[0].name in self._given or op.outputs[0].dtype == tf.resource):
            self._states[op.outputs[0].name] = Fixed()
        elif op.type == "Const" and self._measured_by(op) is not None:
            tensor = self._measured_by(op)
            self._states[op.outputs[0].name] = counts.of_measured(op.outputs[0], tensor, self._states[tensor.name])
        elif op.type == "Const" and self._may_be_number_of_rows(op):
            self._states[op.outputs[0].name] = Count(None, None)
        else:
            super()._pass(op)
            if self._is_second and len(op.outputs) == 1 and isinstance(self._states[op.outputs[0].name], Fixed):
                self._states[op.outputs[0].name] = self._as_made_rows(op.outputs[0])
            for tensor in op.outputs:
                if tensor.name in self._sized.get(id(op.graph), ()) and isinstance(self._states[tensor.name], Fixed):
                    self._states[tensor.name] = counts.of_size(tensor, self._sized[id(op.graph)][tensor.name])

    def _as_made_rows(self, tensor):
        """What has as many rows as the batch, all of them equal."""
        has_rows = (tensor.shape.rank or 0) > 1 and dimension(tensor, 0) == self._number_of_rows
        return Rows(is_made=True) if has_rows and counts.is_alike(tensor) else Fixed()

    def _brought_to_mean(self, op):
        states = [self._states[tensor.name] for tensor in self.inputs_of(op)]
        if op.outputs[0].shape.rank != 0:
            return counts.filled(states[0]) if isinstance(states[0], Shape) else states[0]
        if not only(states, Rows, Figure, Fixed):
            raise Unclear(op.type)
        if any(isinstance(state, Figure) and not (state.is_mean or state.totals) for state in states):
            return Figure(False)
        return Figure(True)

    def _may_be_number_of_rows(self, op):
        """The gradient of a mean over rows is divided by their number, or a multiple of it."""
        if (self._number_of_rows or 0) < 2 or op.outputs[0].shape.rank != 0:
            return False
        value = tf.get_static_value(op.outputs[0])
        return value.dtype.kind in "if" and value >= self._number_of_rows and value % self._number_of_rows == 0 and goes_back(op)

    def _compute(self, op, states):
        if op.type in calls.TYPES:
            return self._called(op, states)
        if op.type in ("Mul", "RealDiv", "DivNoNan", "Div") and any(map(self.may_be_number_of_rows, op.inputs)) and any(
                isinstance(state, Rows) or (isinstance(state, Figure) and not state.totals) for state in states):
            raise Unclear("scaled by what may be the number of rows")
        if _is_agreed(op):
            return [Fixed()] * len(op.outputs)
        return super()._compute(op, states)

    def may_have_rows(self, tensor):
        """As far as its shape tells?"""
        return tensor.shape.rank is None or any(size in (None, self._number_of_rows) for size in tensor.shape.as_list())

    def may_be_number_of_rows(self, tensor):
        """May this constant be it?  Where a function is traced for a known number, len(x) is a number like any other."""
        if tensor.shape.rank != 0 or not (tensor.dtype.is_floating or tensor.dtype.is_integer):
            return False
        value = known(tensor)
        return value is not None and self.is_number_of_rows(float(value))

    def is_number_of_rows(self, number):
        """Or one divided by it.  In a trial that is seen by comparing numbers."""
        rows = 0 if current.tried else self._number_of_rows or 0
        return rows > 1 and any(abs(number / other - 1) < 1e-6 for other in (rows, 1 / rows))

    def _called(self, op, states):
        """What an operator gives that calls functions.  What nobody uses is not looked at, but in a loop, where one thing follows from
        another."""
        is_used = [tensor.name in self._used for tensor in op.outputs]

        def inside(graph, tensors, given, wants_all):
            used = [True] * len(graph.outputs) if wants_all else is_used
            inner = self._inside(op, graph, tensors)
            found = iter(inner._follow(graph, dict(zip((tensor.name for tensor in graph.inputs), given)),
                                       [tensor for tensor, is_wanted in zip(graph.outputs, used) if is_wanted]))
            self.problem = inner.problem
            for tensor, outside in zip(graph.outputs, op.outputs):
                if tensor.shape.rank is not None and not wants_all:
                    self.sizes.note(outside, inner.sizes.of(tensor))
            return [next(found) if is_wanted else Unknown(op) for is_wanted in used]

        return calls.outputs_of(op, list(op.inputs), states, inside, lambda state: self._decide(op, state))

    def _inside(self, op, graph, tensors):
        """A look at a function that the operator calls."""
        inner = copy.copy(self)
        inner._callers += (op.name,)
        inner.sizes = Sizes(self.sizes, "/".join(inner._callers))
        for placeholder, tensor in zip(graph.inputs, tensors):
            if tensor.shape.rank is not None:
                inner.sizes.note(placeholder, self.sizes.of(tensor))
        return inner

    def _decide(self, op, state):
        """Which way is taken follows from this."""
        if isinstance(state, Figure):
            self._find(OTHER, op)
        if not isinstance(state, Fixed):
            raise Unclear(op.type)

    def _figure_of_figures(self, op, states):
        is_divided = op.type in ("RealDiv", "DivNoNan") and isinstance(states[0], Figure) and isinstance(states[1], Fixed)
        if self._is_slice and is_divided and states[0].totals:
            number = tf.get_static_value(op.inputs[1])
            if number is not None and number.ndim == 0 and number == self._number_of_rows:
                return Figure(True)
        return super()._figure_of_figures(op, states)


def goes_back(op):
    """Was it made to compute an inner gradient?"""
    return GOING_BACK in op.name or any(os.path.basename(frame.filename) in _WHERE_GRADIENTS_ARE_MADE for frame in op.traceback or ())


def _assigns(op):
    """Does it give a variable of the script a value?"""
    return calls.assigns(op) and not _IN_NORMALISATION.search(op.name) and COUNTING not in op.name


def _has_other_gradient(op):
    """Has the script replaced its gradient?  tf.custom_gradient, which libraries use, too, is looked after in looks.py."""
    try:
        return not op.get_attr("_gradient_op_type").startswith(b"CustomGradient-")
    except ValueError:
        return False


def _is_agreed(op):
    """Does the engine give the same on all ranks?"""
    if op.type == "XlaCustomCallV2":
        return op.get_attr("call_target_name") == xla.TARGET.encode()
    return op.type.startswith(("LockstepAllreduce", "LockstepAllgather", "LockstepBroadcast"))
