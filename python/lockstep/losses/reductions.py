# SPDX-License-Identifier: Apache-2.0
"""Operators that bring the places of one dimension together: over the rows that gives a figure of the batch, within a row it gives rows."""
from lockstep.losses.states import (MEAN, MEAN_OF_SOME, Count, Figure, Fixed, Rows, Shape, Unclear, constant, means, need_fixed, only, rank_of)


@means("Sum", "Mean", "Max", "Min", "Prod", "Any", "All", "EuclideanNorm", "ArgMax", "ArgMin")
def reduced(anatomy, op, states):
    state, tensor = states[0], op.inputs[0]
    if isinstance(state, Figure):
        return state if op.type in ("Sum", "Mean") else anatomy.figure_of([state])
    if isinstance(state, Shape) and op.type == "Prod":
        return _multiplied(state)
    if not isinstance(state, Rows):
        need_fixed(op, states)
        return Fixed()
    if op.inputs[1].op.type != "BroadcastGradientArgs":
        need_fixed(op, states[1:])
    axes = axes_of(anatomy, op)
    is_kept = op.type not in ("ArgMax", "ArgMin") and op.get_attr("keep_dims")
    anatomy.sizes.note(op.outputs[0], [None if place in axes else size for place, size in enumerate(anatomy.sizes.of(tensor))
                                       if is_kept or place not in axes])
    if state.axis not in axes:
        return state._replace(axis=state.axis - (0 if is_kept else sum(axis < state.axis for axis in axes)))
    if op.type not in ("Sum", "Mean") or (op.type == "Mean" and not tensor.dtype.is_floating):
        return anatomy.over_rows(op)
    if op.type == "Sum":
        return anatomy.total(op, state)
    anatomy.kinds[anatomy.name_of(op)] = MEAN if state.mask is None else MEAN_OF_SOME
    return Figure(state.mask is None)


def axes_of(anatomy, op):
    """Over which dimensions is it taken?"""
    rank, axes = rank_of(op.inputs[0]), op.inputs[1]
    if axes.op.type == "BroadcastGradientArgs":
        return _broadcast_axes(anatomy, axes)
    return {int(axis) % rank for axis in constant(axes).reshape(-1)} if rank else set()


def _broadcast_axes(anatomy, axes):
    """A gradient goes back to a tensor that was spread over these dimensions."""
    own, other = (anatomy.sizes.in_vector(shape) for shape in axes.op.inputs)
    if axes.value_index == 1:
        own, other = other, own
    if own is None or other is None or None in own or None in other:
        raise Unclear("dimensions that are not known")
    rank = max(len(own), len(other))
    own, other = ([None] * (rank - len(sizes)) + sizes for sizes in (own, other))
    differing = {place for place, sizes in enumerate(zip(own, other)) if sizes[0] != sizes[1]}
    if any(own[place] is not None and own[place].names for place in differing):
        raise Unclear("dimensions that are not known")
    return {place for place in differing if own[place] is None or own[place].number == 1}


def _multiplied(shape):
    """The product of the numbers of a shape."""
    counts = [entry for entry in shape.entries if isinstance(entry, Count)]
    return Count(None, None) if len(counts) == 1 and None not in shape.entries else Fixed() if only(shape.entries, Fixed) else Shape((None,))


@means("L2Loss")
def half_of_squares(anatomy, op, states):
    return anatomy.total(op, states[0]) if isinstance(states[0], Rows) else _of_one(anatomy, op, states)


@means("BiasAddGrad")
def bias_gradient(anatomy, op, states):
    place = rank_of(op.inputs[0]) - 1 if op.get_attr("data_format") == b"NHWC" else 1
    if isinstance(states[0], Rows) and states[0].axis != place:
        return anatomy.total(op, states[0])
    return _of_one(anatomy, op, states)


def _of_one(anatomy, op, states):
    if only(states, Figure, Fixed) and isinstance(states[0], Figure):
        return anatomy.figure_of(states)
    need_fixed(op, states)
    return Fixed()


@means("Softmax", "LogSoftmax", "TopKV2", "TopK", "InTopKV2", "CumulativeLogsumexp", "Cumsum", "Cumprod", "ReverseV2", "Roll", "FFT", "IFFT", "RFFT", "IRFFT",
       "RGBToHSV", "HSVToRGB", "MatrixDiag", "MatrixDiagV2", "MatrixDiagV3", "LowerBound", "UpperBound")
def within_rows(anatomy, op, states):
    """What mixes the places of some dimensions, and leaves the others as they are."""
    first, rank = states[0], rank_of(op.inputs[0])
    if isinstance(first, Figure) and only(states[1:], Fixed):
        return [anatomy.figure_of([first])] * len(op.outputs)
    if op.type in ("InTopKV2", "LowerBound", "UpperBound"):
        return _beside(anatomy, op, states)
    need_fixed(op, states[1:])
    if isinstance(first, Rows):
        axes = {rank - 1}
        if op.type in ("CumulativeLogsumexp", "Cumsum", "Cumprod", "ReverseV2", "Roll"):
            axes = {int(axis) % rank for axis in constant(op.inputs[2 if op.type == "Roll" else 1]).reshape(-1)}
        if first.axis in axes:
            raise Unclear(f"{op.type} over rows")
        if op.type in ("Softmax", "LogSoftmax", "Cumsum", "Cumprod", "ReverseV2", "Roll"):
            anatomy.sizes.note_like(op.outputs[0], op.inputs[:1])
    return [first if isinstance(first, Rows) else _fixed(op, first)] * len(op.outputs)


def _fixed(op, state):
    need_fixed(op, [state])
    return Fixed()


def _beside(anatomy, op, states):
    """A row of each of the first two inputs."""
    rows = [state for state in states[:2] if isinstance(state, Rows)]
    if len(rows) == 2 and rows[0] == rows[1] and rows[0].axis == 0 and only(states[2:], Fixed):
        return rows[0]
    raise Unclear(op.type)
