# SPDX-License-Identifier: Apache-2.0
"""What a loss is made of: which of its sums and means go over the rows of the batch.

    sqrt(mean((y - p) ** 2))                     y, p: Rows -> mean: a Figure -> sqrt of it
    sum(loss * mask) / sum(mask)                 two Figures, and their quotient

Every tensor of a traced function is one of

  Rows      elements that belong to one row each, in the order of the rows.  The last `inner` dimensions lie within a row, those
            before (`outer`) count the rows, or places in all rows.  A mask leaves some (`mask`): only tensors with the same one go
            together, element by element
  Figure    a figure of the batch: a sum or mean over all outer dimensions, and what is computed from such.  is_mean: nothing
            but means, added and scaled by constants: the mean over ranks of the slices' is that of the batch.  totals: the sums that it
            is a sum or multiple of
  Count     the number of rows, or a multiple of it.  A total divided by it is a mean
  Fixed     depends on no row: constants, weights
  Shape     what rows are reshaped with; counts: its first number is a Count, the others are Fixed
  Indices   where a mask is true
  Unknown   something that depends on rows, nobody knows how; only where that is no reason to give up (looks.py)

An operator that is not in the table, or that brings rows together in another way, ends the search: Unclear."""
import collections

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor

Rows = collections.namedtuple("Rows", "inner mask", defaults=(None,))
Figure = collections.namedtuple("Figure", "is_mean totals", defaults=(frozenset(),))
Count = collections.namedtuple("Count", "")
Fixed = collections.namedtuple("Fixed", "")
Shape = collections.namedtuple("Shape", "counts", defaults=(False,))
Indices = collections.namedtuple("Indices", "mask")
Unknown = collections.namedtuple("Unknown", "")

# How a reduction over the rows becomes that of the batch.
SUM, SUM_BY_COUNT, MEAN, MEAN_OF_SOME = "sum", "sum by count", "mean", "mean of some"


class Unclear(Exception):
    pass


class AllWithAll(Unclear):
    """Rows meet all other rows."""


class Anatomy:
    """kinds: {name of a reduction's operation: SUM, ...}; feeds_rows: a figure is used row by row; result:
    what the function gives"""

    def __init__(self, graph, rows, result):
        """`rows` are the tensors that the function was given."""
        self.kinds, self.feeds_rows = {}, False
        [self.result] = self._follow(graph, {tensor.name: Rows(tensor.shape.rank - 1) for tensor in rows}, [result])
        self._note_use([self.result], SUM)

    def _follow(self, graph, given, results):
        """What the results are, if the tensors with these names are what is given."""
        self._states = dict(given)
        self._eager = {inner.name for outer, inner in getattr(graph, "captures", ()) if isinstance(outer, EagerTensor) or outer.dtype == tf.resource}
        operations, self._used = _operations_before(graph, results, given)
        for op in operations:
            self._pass(op)
        return [self._states[tensor.name] for tensor in results]

    def _pass(self, op):
        if op.type == "Placeholder":
            if op.outputs[0].name not in self._eager:
                raise Unclear("a tensor of another function")
            states = [Fixed()]
        elif op.type in _FIXED:
            states = [Fixed()]
        else:
            states = self._compute(op, [self._states[tensor.name] for tensor in op.inputs])
        for tensor, state in zip(op.outputs, states):
            if isinstance(state, Rows) and not (tensor.shape.rank and 0 <= state.inner < tensor.shape.rank):
                raise Unclear(f"{op.type}: rows of unknown shape")
            self._states[tensor.name] = state

    def _compute(self, op, states):
        if any(isinstance(state, Indices) for state in states) and op.type not in ("Squeeze", "Identity", "GatherV2"):
            raise Unclear(f"{op.type} of indices")
        if op.type == "Identity":
            return states
        if op.type in _TABLE:
            return _TABLE[op.type](self, op, states)
        if op.type in _ELEMENTWISE or op.type in _AFFINE:
            return [self._elementwise(op, states)]
        raise Unclear(op.type)

    def _name_of(self, op):
        """Of a reduction, in `kinds`."""
        return op.name

    # ---- element by element ------------------------------------------------------------------------------------

    def _elementwise(self, op, states):
        kinds = {type(state) for state in states}
        if kinds == {Fixed}:
            return Fixed()
        if Rows in kinds and kinds <= {Rows, Figure, Fixed}:
            return self._rows_by_rows([pair for pair in zip(op.inputs, states) if isinstance(pair[1], Rows)],
                                      [pair for pair in zip(op.inputs, states) if not isinstance(pair[1], Rows)])
        if Figure in kinds and kinds <= {Figure, Fixed}:
            return self._figure_of_figures(op, states)
        if Figure in kinds and Count in kinds:
            return self._figure_by_count(op, states)
        if Count in kinds and kinds <= {Count, Fixed} and op.type in ("Cast", "Identity", "Mul", "RealDiv"):
            if len([state for state in states if isinstance(state, Count)]) == 1 and isinstance(states[0], Count):
                return Count()
        if kinds <= {Shape, Count, Fixed} and op.outputs[0].dtype.is_integer:
            return Shape()
        raise Unclear(f"{op.type} of {[type(state).__name__ for state in states]}")

    def _figure_of_figures(self, op, states):
        figures = [state for state in states if isinstance(state, Figure)]
        if _is_multiple(op, states) and all(figure.totals for figure in figures):
            return Figure(False, frozenset().union(*(figure.totals for figure in figures)))
        self._note_use(figures, SUM)
        return Figure(_is_affine(op, states) and all(figure.is_mean for figure in figures))

    def _figure_by_count(self, op, states):
        if op.type not in ("RealDiv", "DivNoNan") or not isinstance(states[1], Count) or not states[0].totals:
            raise Unclear("arithmetic with a number of rows")
        self._note_use([states[0]], SUM_BY_COUNT)
        return Figure(True)

    def _note_use(self, states, kind):
        """A total becomes that of the batch where it is used as such, and its part by the slice's rows where it is divided by them."""
        for name in {name for state in states if isinstance(state, Figure) for name in state.totals}:
            if self.kinds.setdefault(name, kind) != kind:
                raise Unclear("a sum that is used in two ways")

    def _rows_by_rows(self, rows, others):
        rank = rows[0][0].shape.rank
        inner = min(state.inner for _, state in rows)
        if any(tensor.shape.rank != rank for tensor, _ in rows) or len({state.mask for _, state in rows}) > 1:
            raise Unclear("rows of different shapes")
        is_row = False  # the first place where there is more than one is that of the rows
        for place in range(rank - inner):
            are_one = {size(tensor, place) == 1 for tensor, _ in rows}
            if len(are_one) > 1:
                raise Unclear("all of a row with all of it") if is_row else AllWithAll("all rows with all rows")
            is_row = is_row or are_one == {False}
        for tensor, state in others:
            if tensor.shape.rank is None or tensor.shape.rank > rank:
                raise Unclear("more dimensions than rows have")
            if any(size(tensor, place) != 1 for place in range(tensor.shape.rank - inner)):
                raise Unclear("something for each row that is not made from rows")
            self.feeds_rows = self.feeds_rows or isinstance(state, Figure)
        self._note_use([state for _, state in others], SUM)
        return Rows(inner, rows[0][1].mask)

    # ---- reductions --------------------------------------------------------------------------------------------

    def reduced(self, op, states):
        """Sum, Mean, and others that are only understood within a row."""
        state, tensor = states[0], op.inputs[0]
        if isinstance(state, Fixed):
            return [Fixed()]
        if isinstance(state, Figure):
            if op.type in ("Sum", "Mean"):
                return [state]
            self._note_use([state], SUM)
            return [Figure(False)]
        if isinstance(state, Shape) and op.type == "Prod":
            return [Count() if state.counts else Shape()]
        if not isinstance(state, Rows):
            raise Unclear(op.type)
        axes = _axes(op)
        outer = set(range(tensor.shape.rank - state.inner))
        if not axes & outer:
            is_kept = op.type not in ("ArgMax", "ArgMin") and op.get_attr("keep_dims")
            return [Rows(state.inner - (0 if is_kept else len(axes)), state.mask)]
        if not outer <= axes or op.type not in ("Sum", "Mean") or (op.type == "Mean" and not tensor.dtype.is_floating):
            raise Unclear(f"{op.type} over some rows")
        if op.type == "Sum":
            return [Figure(False, frozenset([self._name_of(op)]))]
        self.kinds[self._name_of(op)] = MEAN if state.mask is None else MEAN_OF_SOME
        return [Figure(state.mask is None)]

    # ---- shapes ------------------------------------------------------------------------------------------------

    def shape(self, op, states):
        if not isinstance(states[0], Rows):
            return [Fixed()]
        return [Shape(counts=states[0].mask is None and op.inputs[0].shape.rank - states[0].inner == 1)]

    def of_fixed(self, op, states):
        if not all(isinstance(state, Fixed) for state in states):
            raise Unclear(op.type)
        return [Fixed()]

    def slice(self, op, states):
        if isinstance(states[0], Shape):
            return [Shape()]
        if not isinstance(states[0], Fixed):
            raise Unclear("rows by their position")
        return self.of_fixed(op, states)  # table[:number of rows] is not the same on all ranks

    def size(self, op, states):
        if not isinstance(states[0], Rows):
            return [Fixed()]
        if states[0].mask is not None:
            raise Unclear("how many elements a mask leaves")
        return [Count()]

    def reshape(self, op, states):
        state, before, after = states[0], op.inputs[0].shape, op.outputs[0].shape
        if not isinstance(state, Rows):
            if not isinstance(states[1], Fixed):
                raise Unclear("a shape that depends on rows")
            return [state]
        if not after.rank:
            raise Unclear("a shape that is not known")
        before, after = _sizes(op.inputs[0]), _sizes_of_shape(op.inputs[1]) or after
        inner = 0
        while inner < min(state.inner, len(after) - 1) and before[-1 - inner] is not None and before[-1 - inner] == after[-1 - inner]:
            inner += 1
        return [Rows(inner, state.mask)]

    def squeeze(self, op, states):
        if not isinstance(states[0], Rows):
            return [states[0]]
        rank = op.inputs[0].shape.rank
        places = {place % rank for place in op.get_attr("squeeze_dims")}
        if not places or min(places) < rank - states[0].inner:
            raise Unclear("a dimension of rows is taken away")
        return [Rows(states[0].inner - len(places), states[0].mask)]

    def expand_dims(self, op, states):
        if not isinstance(states[0], Rows):
            return [states[0]]
        place, rank = int(_constant(op.inputs[1])), op.inputs[0].shape.rank
        place += rank + 1 if place < 0 else 0
        return [Rows(states[0].inner + (place >= rank - states[0].inner), states[0].mask)]

    def strided_slice(self, op, states):
        if isinstance(states[0], Shape):
            return [_part_of_shape(op, states[0])]
        if not isinstance(states[0], Rows):
            self.of_fixed(op, states[1:])
            return [states[0]]
        return [Rows(_inner_after_slice(op, states[0]), states[0].mask)]

    def pack(self, op, states):
        if not any(isinstance(state, Rows) for state in states):
            return [self._elementwise_of_joined(op, states)]
        joined = self._rows_by_rows(list(zip(op.inputs, states)), []) if _all_rows(states) else None
        rank = op.inputs[0].shape.rank
        if joined is None or op.get_attr("axis") % (rank + 1) < rank - joined.inner:
            raise Unclear("rows are put beside others")
        return [Rows(joined.inner + 1, joined.mask)]

    def concat(self, op, states):
        *states, _ = states
        if not any(isinstance(state, Rows) for state in states):
            return [self._elementwise_of_joined(op, states)]
        rank = op.inputs[0].shape.rank
        inner = min(state.inner for state in states) if _all_rows(states) else -1
        if inner < 0 or len({state.mask for state in states}) > 1 or int(_constant(op.inputs[-1])) % rank < rank - inner:
            raise Unclear("rows are put beside others")
        return [Rows(inner, states[0].mask)]

    def _elementwise_of_joined(self, op, states):
        if any(isinstance(state, (Shape, Count)) for state in states):
            if any(isinstance(state, Figure) for state in states):
                raise Unclear("figures beside numbers of rows")
            return Shape(counts=[type(state) for state in states] == [Count] + [Fixed] * (len(states) - 1))
        figures = [state for state in states if isinstance(state, Figure)]
        self._note_use(figures, SUM)
        return Figure(all(figure.is_mean for figure in figures)) if figures else Fixed()

    def unpack(self, op, states):
        if not isinstance(states[0], Rows):
            return [states[0]] * len(op.outputs)
        rank = op.inputs[0].shape.rank
        if op.get_attr("axis") % rank < rank - states[0].inner:
            raise Unclear("rows are taken apart")
        return [Rows(states[0].inner - 1, states[0].mask)] * len(op.outputs)

    # ---- operators with a meaning of their own -------------------------------------------------------------------

    def one_hot(self, op, states):
        if not isinstance(states[0], Rows) or op.get_attr("axis") != -1 or not all(isinstance(state, Fixed) for state in states[1:]):
            raise Unclear(op.type)
        return [Rows(states[0].inner + 1, states[0].mask)]

    def along_last(self, op, states):
        """Softmax"""
        if isinstance(states[0], Rows) and states[0].inner == 0:
            raise Unclear(f"{op.type} over rows")
        self._note_use(states, SUM)
        return [Figure(False) if isinstance(states[0], Figure) else states[0]]

    def cross_entropy(self, op, states):
        logits, labels = states
        if not _all_rows(states) or logits.inner == 0 or logits.mask != labels.mask:
            raise Unclear(op.type)
        if op.type == "SoftmaxCrossEntropyWithLogits" and labels.inner == 0:
            raise Unclear(op.type)
        return [Rows(0, logits.mask), Rows(1, logits.mask)]

    def where(self, op, states):
        if not isinstance(states[0], Rows) or op.inputs[0].shape.rank != 1 or states[0].mask is not None:
            raise Unclear("places of a mask")
        return [Indices(_origin(op.inputs[0]).name)]

    def gather(self, op, states):
        rows, indices, _ = states
        is_plain = op.get_attr("batch_dims") == 0 and int(_constant(op.inputs[2])) == 0
        if isinstance(rows, Fixed) and isinstance(indices, Rows) and is_plain and op.inputs[0].shape.rank is not None:
            return [Rows(indices.inner + op.inputs[0].shape.rank - 1, indices.mask)]  # a table, by classes
        if not isinstance(rows, Rows) or not isinstance(indices, Indices) or not is_plain or rows.mask is not None:
            raise Unclear("rows are picked")
        if op.inputs[0].shape.rank - rows.inner != 1:
            raise Unclear("rows are picked")
        return [Rows(rows.inner, indices.mask)]


# ---- helpers -------------------------------------------------------------------------------------------------

def _operations_before(graph, results, given):
    """(those that the results are computed from, inputs first; names of the tensors used).  They may have been made in another order:
    a branch of TensorFlow 1 gets its inputs afterwards."""
    ordered, begun, done, used = [], set(), set(), set()
    waiting = list(results)
    while waiting:
        tensor = waiting[-1]
        op = tensor.op
        if tensor.graph is not graph:
            raise Unclear("a tensor of another function")
        used.add(tensor.name)
        if tensor.name in given or op.name in done:
            waiting.pop()
        elif op.name not in begun:
            begun.add(op.name)
            waiting.extend(op.inputs)
        else:
            if any(source.op.name not in done and source.name not in given for source in op.inputs):
                raise Unclear("a loop of TensorFlow 1")
            waiting.pop()
            done.add(op.name)
            ordered.append(op)
    return ordered, used


def _constant(tensor):
    """Its value, which may have been computed from other constants."""
    value, op = tf.get_static_value(tensor), tensor.op
    if value is None and op.type in ("Add", "AddV2", "Sub"):
        one, other = (_constant(part) for part in op.inputs)
        value = one - other if op.type == "Sub" else one + other
    elif value is None and op.type == "Pack":
        value = np.stack([_constant(part) for part in op.inputs])
    if value is None:
        raise Unclear("an axis that is not known")
    return np.asarray(value)


def size(tensor, place):
    """Of a dimension; None: not known.  After disable_v2_behavior() the numbers of a shape are objects."""
    return tf.compat.dimension_value(tensor.shape[place])


def _sizes(tensor):
    """Sizes of the dimensions: numbers, or names for those that are not known."""
    return [f"{tensor.name}[{i}]" if size is None else size for i, size in enumerate(tensor.shape.as_list())]


def _sizes_of_shape(shape):
    """The same of a tensor that will have this shape: [-1, tf.shape(logits)[2]], or tf.shape(labels)."""
    op = shape.op
    if op.type == "Pack":
        return [_size(number) for number in op.inputs]
    if op.type == "ConcatV2":
        parts = [_sizes_of_shape(part) for part in op.inputs[:-1]]
        return None if None in parts else sum(parts, [])
    if op.type == "Slice" and op.inputs[0].op.type == "Shape":
        first, number = (int(_constant(part)[0]) for part in op.inputs[1:])
        return _sizes(op.inputs[0].op.inputs[0])[first:first + number]
    if op.type == "Shape":
        return _sizes(op.inputs[0])
    value = tf.get_static_value(shape)
    return None if value is None else [int(number) for number in value]


def _size(number):
    op = number.op
    if op.type == "StridedSlice" and op.inputs[0].op.type == "Shape" and op.get_attr("shrink_axis_mask") == 1:
        return _sizes(op.inputs[0].op.inputs[0])[int(_constant(op.inputs[1])[0])]
    value = tf.get_static_value(number)
    return None if value is None else int(value)


def _axes(op):
    rank = op.inputs[0].shape.rank
    return {int(axis) % rank for axis in _constant(op.inputs[1]).reshape(-1)}


def goes_over_all(op, rows):
    """Is this a reduction over all rows?"""
    return set(range(op.inputs[0].shape.rank - rows.inner)) <= _axes(op)


def _all_rows(states):
    return all(isinstance(state, Rows) for state in states)


def _origin(tensor):
    """Where a mask comes from, before it was reshaped."""
    while tensor.op.type in ("Reshape", "Identity"):
        tensor = tensor.op.inputs[0]
    return tensor


def _is_affine(op, states):
    """Is the result a sum of figures and constants, scaled by constants?"""
    if op.type == "Mul":
        return sum(isinstance(state, Figure) for state in states) == 1
    if op.type in ("RealDiv", "DivNoNan"):
        return isinstance(states[1], Fixed)
    if op.type == "Cast":
        return op.outputs[0].dtype.is_floating
    return op.type in _AFFINE


def _is_multiple(op, states):
    """The same, with no constant added."""
    is_sum = op.type in ("Add", "AddN", "AddV2", "Sub")
    return _is_affine(op, states) and op.inputs[0].dtype.is_floating and not (is_sum and any(isinstance(state, Fixed) for state in states))


def _part_of_shape(op, shape):
    """shape[0] is the number of rows, shape[1] that of columns."""
    if not shape.counts or op.get_attr("shrink_axis_mask") != 1:
        return Shape()
    rank = size(op.inputs[0], 0)
    return Count() if rank and int(_constant(op.inputs[1])[0]) % rank == 0 else Fixed()


def _inner_after_slice(op, state):
    """How many dimensions within a row are left by rows[..., begin:end, index]; the others must be untouched."""
    rank = op.inputs[0].shape.rank
    begin, end, strides = (_constant(tensor) for tensor in op.inputs[1:4])
    masks = {name: op.get_attr(f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    has = lambda name, i: bool(masks[name] >> i & 1)  # noqa: E731
    used = sum(not has("ellipsis", i) and not has("new_axis", i) for i in range(len(begin)))
    place, inner = 0, state.inner
    for i in range(len(begin)):
        if has("ellipsis", i):
            place += rank - used
            continue
        is_outer = place < rank - state.inner
        if has("new_axis", i):
            if is_outer:
                raise Unclear("a dimension before the rows")
            inner += 1
            continue
        is_all = has("begin", i) and has("end", i) and strides[i] == 1 and not has("shrink_axis", i)
        if is_outer and not is_all:
            raise Unclear("rows by their position")
        inner -= has("shrink_axis", i)
        place += 1
    return inner


_FIXED = ("Const", "ReadVariableOp", "VarHandleOp")
_AFFINE = ("Add", "AddN", "AddV2", "Cast", "Identity", "Mul", "Neg", "RealDiv", "StopGradient", "Sub")
_ELEMENTWISE = frozenset("""
    Abs Acos Acosh Asin Asinh Atan Atan2 Atanh Ceil CheckNumerics ClipByValue Cos Cosh Digamma DivNoNan Elu Equal Erf Erfc Exp Expm1 Floor
    FloorDiv FloorMod Greater GreaterEqual IsFinite IsInf IsNan LeakyRelu Less LessEqual Lgamma Log Log1p LogicalAnd LogicalNot LogicalOr
    Maximum Minimum MulNoNan NotEqual OnesLike Pow PreventGradient Reciprocal Relu Relu6 Rint Round Rsqrt Select SelectV2 Selu Sigmoid Sign
    Sin Sinh Softplus Softsign Sqrt Square SquaredDifference Tan Tanh Xdivy Xlog1py Xlogy ZerosLike""".split())
LABELLED = ("SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits")
_TABLE = {
    **dict.fromkeys(("Sum", "Mean", "Max", "Min", "Prod", "Any", "All", "EuclideanNorm", "ArgMax", "ArgMin"), Anatomy.reduced),
    **dict.fromkeys(("Softmax", "LogSoftmax"), Anatomy.along_last),
    **dict.fromkeys(LABELLED, Anatomy.cross_entropy),
    "Rank": lambda anatomy, op, states: [Fixed()], "Range": Anatomy.of_fixed, "Shape": Anatomy.shape, "Size": Anatomy.size, "Slice": Anatomy.slice, "Reshape": Anatomy.reshape, "Squeeze": Anatomy.squeeze, "ExpandDims": Anatomy.expand_dims,
    "StridedSlice": Anatomy.strided_slice, "Pack": Anatomy.pack, "ConcatV2": Anatomy.concat, "Unpack": Anatomy.unpack,
    "OneHot": Anatomy.one_hot, "Where": Anatomy.where, "GatherV2": Anatomy.gather,
}
ROW_BY_ROW = {*_AFFINE, *_ELEMENTWISE, *LABELLED, "ConcatV2", "Pack"}
KNOWN = {*_FIXED, *_AFFINE, *_ELEMENTWISE, *_TABLE, "Placeholder"}
