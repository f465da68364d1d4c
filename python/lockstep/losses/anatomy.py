# SPDX-License-Identifier: Apache-2.0
"""What a loss is made of: which of its sums and means go over the rows of the batch.

    sqrt(mean((y - p) ** 2))                     y, p: Rows -> mean: a Figure -> sqrt of it
    sum(loss * mask) / sum(mask)                 two Figures, and their quotient

Every tensor of a traced function is one of the kinds of states.py.  This file goes through the graph, and knows what is computed
element by element; reductions.py, places.py, products.py, counts.py and lists.py have tables of the other operators."""
import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor

from lockstep.losses import counts, lists, places, products, reductions  # noqa: F401  enter operators into TABLE
from lockstep.losses.counts import is_alike
from lockstep.losses.elementwise import AFFINE, ELEMENTWISE, PASSED
from lockstep.losses.order import operations_before
from lockstep.losses.sizes import Size, Sizes
from lockstep.losses.states import (MEAN, MEAN_OF_SOME, SUM, SUM_BY_COUNT, TABLE, AllWithAll, Count, Figure, Fixed,  # noqa: F401
                                    Indices, Positions, Rows, Sparse, Unclear, Unknown, are_same, dimension, only, rank_of)

_OF_INDICES = ("Cast", "ConcatV2", "CropAndResize", "ExpandDims", "GatherNd", "GatherV2", "Pack", "Squeeze")
_OF_LISTS_AND_NOISE = ("EmptyTensorList", "TensorList", "StatelessRandom", "StatelessTruncated")
MOST_PASSES = 8  # through a loop
NUMBER_OF_ROWS = Size(1, (counts.ROWS,))


class Anatomy:
    """kinds: {name of a reduction's operation: SUM, ...}; feeds_rows: a figure is used row by row; result:
    what the function gives"""

    follows_noise = False

    def __init__(self, graph, rows, result):
        """`rows` are the tensors that the function was given."""
        self._begin(rows)
        [self.result] = self._follow(graph, self._inputs, [result])
        self.note_use([self.result], SUM)

    def _begin(self, rows, others=()):
        self.kinds, self.feeds_rows, self.sizes = {}, False, Sizes()
        for tensor in rows:
            self.sizes.note(tensor, [NUMBER_OF_ROWS] + [None] * ((tensor.shape.rank or 1) - 1))
        self.has_named_rows = all(tensor.shape.rank is None or dimension(tensor, 0) is None for tensor in rows)
        self._inputs = {tensor.name: Rows() for tensor in rows} | dict(others)

    def _follow(self, graph, given, results):
        """What the results are, if the tensors with these names are what is given."""
        self._states = dict(given)
        self._eager = {inner.name for outer, inner in getattr(graph, "captures", ()) if isinstance(outer, EagerTensor) or outer.dtype == tf.resource}
        operations, self._used, has_loops = operations_before(graph, results, given, self.inputs_of)
        for _ in range(MOST_PASSES):
            before = dict(self._states)
            for op in operations:
                if not has_loops or self._is_reached(op):
                    self._pass(op)
            if not has_loops or _are_all_same(before, self._states):
                break
        else:
            raise Unclear("a loop that goes on changing")
        if any(tensor.name not in self._states for tensor in results):
            raise Unclear("operators in a circle")
        return [self._states[tensor.name] for tensor in results]

    def _is_reached(self, op):
        """In a loop of TensorFlow 1 what comes from its end is not known at first."""
        known = [tensor.name in self._states for tensor in self.inputs_of(op)]
        return any(known) if op.type.endswith("Merge") else all(known)

    def inputs_of(self, op):
        return op.inputs

    def _pass(self, op):
        if op.type == "Placeholder":
            if op.outputs[0].name not in self._eager:
                raise Unclear("a tensor of another function")
            made = [Fixed()]
        else:
            made = self._compute(op, [self._states.get(tensor.name) for tensor in op.inputs])
        self._enter(op, made if isinstance(made, list) else [made])

    def _enter(self, op, made):
        for tensor, state in zip(op.outputs, made):
            if isinstance(state, Rows) and tensor.shape.rank is not None and state.axis >= tensor.shape.rank:
                raise Unclear(f"{op.type}: rows of unknown shape")
            self._states[tensor.name] = state

    def _compute(self, op, states):
        """States of the outputs."""
        if op.type in PASSED:
            for tensor, source in zip(op.outputs, op.inputs):
                self.sizes.note_like(tensor, [source])
            return states
        if any(isinstance(state, Unknown) for state in states):
            raise Unclear(op.type)
        if any(isinstance(state, (Indices, Positions)) for state in states) and op.type not in _OF_INDICES:
            raise Unclear(f"{op.type} of indices")
        if states and only(states, Fixed) and not op.op_def.is_stateful and not op.type.startswith(_OF_LISTS_AND_NOISE):
            return [Fixed()] * len(op.outputs)  # whatever it does
        if op.type in TABLE:
            return TABLE[op.type](self, op, states)
        if op.type in ELEMENTWISE:
            return self.elementwise(op, states)
        raise Unclear(op.type)

    def name_of(self, op):
        """Of a reduction, in `kinds`."""
        return op.name

    def over_rows(self, op):
        """What a reduction over the rows gives that is neither a sum nor a mean, or computes with figures otherwise."""
        raise Unclear(f"{op.type} over rows")

    # ---- element by element ------------------------------------------------------------------------------------

    def elementwise(self, op, states):
        self.sizes.note_like(op.outputs[0], op.inputs)
        kinds = {type(state) for state in states}
        if kinds <= {Fixed}:
            return Fixed()
        if Rows in kinds and kinds <= {Rows, Figure, Fixed}:
            return self.rows_by_rows(list(op.inputs), states, rank_of(op.outputs[0]))
        if Figure in kinds and kinds <= {Figure, Fixed}:
            return self._figure_of_figures(op, states)
        if Figure in kinds and Count in kinds:
            return self._figure_by_count(op, states)
        if isinstance(states[0], Sparse) and op.type in ("Cast", "Neg", "Square", "Abs", "Sign"):
            return states[0]  # 0 stays 0
        return counts.computed(self, op, states)

    def rows_by_rows(self, tensors, states, rank):
        """What tensors give that are brought to the same rank by putting dimensions before them, and then go together."""
        found = self.one_kind([state._replace(axis=rank - rank_of(tensor) + state.axis) for tensor, state in zip(tensors, states)
                               if isinstance(state, Rows)])
        for tensor, state in zip(tensors, states):
            place = found.axis - (rank - rank_of(tensor))
            if not isinstance(state, Rows) and place >= 0 and dimension(tensor, place) != 1 and not (isinstance(state, Fixed) and is_alike(tensor)):
                raise Unclear("something for each row that is not made from rows")
            self.feeds_rows = self.feeds_rows or isinstance(state, Figure)
        self.note_use(states, SUM)
        return found

    def one_kind(self, rows):
        """What these are, which go together place by place."""
        first, *others = (state._replace(before=self.sizes.now(state.before), after=self.sizes.now(state.after)) for state in rows)
        first = first._replace(is_made=all(state.is_made for state in rows))
        for other in others:
            if other.axis != first.axis:
                raise AllWithAll("all rows with all rows")
            if other.mask != first.mask or (other.before != first.before and other.after != first.after):
                raise Unclear("rows in different orders")
            self.sizes.equate(first.before, other.before)  # so many places are in one dimension of all
            self.sizes.equate(first.after, other.after)
        return first

    def figure_of(self, states, is_linear=False):
        """What is computed from figures and what is fixed.  is_linear: from one figure, and nothing is added to it."""
        figures = [state for state in states if isinstance(state, Figure)]
        if is_linear and len(figures) == 1:
            return figures[0]
        self.note_use(figures, SUM)
        return Figure(False)

    def _figure_of_figures(self, op, states):
        figures = [state for state in states if isinstance(state, Figure)]
        if _is_multiple(op, states) and all(figure.totals for figure in figures):
            return Figure(False, frozenset().union(*(figure.totals for figure in figures)))
        self.note_use(figures, SUM)
        return Figure(_is_affine(op, states) and all(figure.is_mean for figure in figures))

    def _figure_by_count(self, op, states):
        if op.type not in ("RealDiv", "DivNoNan") or not isinstance(states[1], Count) or not states[0].totals:
            raise Unclear("arithmetic with a number of rows")
        self.note_use([states[0]], SUM_BY_COUNT)
        return Figure(True)

    def note_use(self, states, kind):
        """A total becomes that of the batch where it is used as such, and its part by the slice's rows where it is divided by them."""
        for name in {name for state in states if isinstance(state, Figure) for name in state.totals}:
            if self.kinds.setdefault(name, kind) != kind:
                raise Unclear("a sum that is used in two ways")

    def note_reshaped(self, op, rows):
        pass

    def total(self, op, rows):
        """The sum over these rows that the operator takes."""
        if rows.is_made or rows.mask is not None and op.type != "Sum":
            raise Unclear(f"{op.type} over some rows")
        return Figure(False, frozenset([self.name_of(op)]))


def _are_all_same(one, other):
    return one.keys() == other.keys() and all(are_same(one[name], other[name]) for name in one)


def _is_affine(op, states):
    """Is the result a sum of figures and constants, scaled by constants?"""
    if op.type == "Mul":
        return sum(isinstance(state, Figure) for state in states) == 1
    if op.type in ("RealDiv", "DivNoNan"):
        return isinstance(states[1], Fixed)
    if op.type == "Cast":
        return op.outputs[0].dtype.is_floating
    return op.type in AFFINE


def _is_multiple(op, states):
    """The same, with no constant added."""
    is_sum = op.type in ("Add", "AddN", "AddV2", "Sub")
    is_exact = op.inputs[0].dtype.is_floating or op.type == "Cast"
    return _is_affine(op, states) and is_exact and not (is_sum and any(isinstance(state, Fixed) for state in states))
