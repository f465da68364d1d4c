# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements: in which dimension the rows are afterwards, and which of them.

A reshape leaves elements in their order.  `before` elements that do not count rows come first, then for each row as many as it has:

    [rows, 5, 3] -> [-1, 3]      15 elements in a row, 3 of which the last dimension has: rows x 5 in the first
    [-1, 3] -> [-1, 5, 3]        all 15 are in dimensions of their own again"""
from lockstep.losses import counts
from lockstep.losses.sizes import ONE, ZERO, Size, product, quotient
from lockstep.losses.states import (Count, Figure, Fixed, Indices, Positions, Rows, Shape, Unclear, all_rows, constant, dimension, means,
                                    need_fixed, only, rank_of)


# ---- the same elements in other dimensions -------------------------------------------------------------------

@means("Reshape")
def reshape(anatomy, op, states):
    state, shape = states
    if isinstance(state, Indices) or not isinstance(shape, (Fixed, Shape)):
        raise Unclear(op.type)
    if isinstance(state, Shape):
        return Shape((None,) * len(state.entries))
    if isinstance(state, Fixed) and isinstance(shape, Shape):
        if not counts.is_alike(op.inputs[0]):
            raise Unclear("a shape that depends on rows")
        return counts.filled(shape)
    if isinstance(state, Count) and rank_of(op.outputs[0]) == 1:
        return Shape((state,))
    if not isinstance(state, Rows):
        return _no_count(op, state)
    found = reshaped(anatomy, state, anatomy.sizes.of(op.inputs[0]), _sizes_after(anatomy, op), op.outputs[0])
    anatomy.note_reshaped(op, found)
    return found


def _need_all(state):
    """Of each part before the rows a mask leaves other rows."""
    if state.mask is not None and state.before != ONE:
        raise Unclear("some rows, more than once")


def _sizes_after(anatomy, op):
    """None for one that is not known."""
    tensor = op.outputs[0]
    after = [None if number is None else Size(number) for number in tensor.shape.as_list()] if tensor.shape.rank is not None else None
    said = anatomy.sizes.in_vector(op.inputs[1])
    if after is None or (said is not None and len(said) != len(after)):
        raise Unclear("a shape that is not known")
    return [own or other for own, other in zip(after, said or after)]


def reshaped(anatomy, state, before, after, tensor):
    state = anatomy.one_kind([state])
    _need_all(state)
    after = [size and anatomy.sizes.now(size) for size in after]
    in_front, in_row = product(before[:state.axis] + [state.before]), product(before[state.axis + 1:] + [state.after])
    total = product(before)
    if after.count(None) == 1:
        after = [quotient(total, product(size for size in after if size is not None)) if size is None else size for size in after]
    found = None
    for axis in range(len(after)):
        first, last = quotient(in_front, product(after[:axis])), quotient(in_row, product(after[axis + 1:]))
        if first is not None and last is not None and (found is None or (first, last) == (ONE, ONE)) and after[axis] != ONE:
            found = state._replace(axis=axis, before=first, after=last)
    if found is None:
        raise Unclear("a shape that brings rows together")
    anatomy.sizes.note(tensor, after)
    return found


@means("Squeeze")
def squeeze(anatomy, op, states):
    state, rank = states[0], rank_of(op.inputs[0])
    places = {place % rank for place in op.get_attr("squeeze_dims")} if rank else set()
    if isinstance(state, Rows):
        places = places or {place for place in range(rank) if dimension(op.inputs[0], place) == 1 and place != state.axis}
        if state.axis in places or len(places) != rank - rank_of(op.outputs[0]):
            raise Unclear("a dimension of rows is taken away")
        state = state._replace(axis=state.axis - sum(place < state.axis for place in places))
    anatomy.sizes.note(op.outputs[0], [size for place, size in enumerate(anatomy.sizes.of(op.inputs[0])) if place not in places])
    return state


@means("ExpandDims")
def expand_dims(anatomy, op, states):
    state, rank = states[0], rank_of(op.inputs[0])
    place = int(constant(op.inputs[1]).reshape(-1)[0])
    place += rank + 1 if place < 0 else 0
    sizes = anatomy.sizes.of(op.inputs[0])
    anatomy.sizes.note(op.outputs[0], sizes[:place] + [ONE] + sizes[place:])
    if isinstance(state, Rows):
        return state._replace(axis=state.axis + (place <= state.axis))
    return state if isinstance(state, Positions) and place > 0 else _no_count(op, state)


@means("Transpose", "ConjugateTranspose")
def transpose(anatomy, op, states):
    state = states[0]
    need_fixed(op, states[1:])
    if not isinstance(state, Rows):
        return _no_count(op, state)
    order = [int(place) for place in constant(op.inputs[1])]
    sizes = anatomy.sizes.of(op.inputs[0])
    anatomy.sizes.note(op.outputs[0], [sizes[place] for place in order])
    return state._replace(axis=order.index(state.axis))


def _no_count(op, state):
    """What depends on no row, or on all of them."""
    if not isinstance(state, (Fixed, Figure)):
        raise Unclear(op.type)
    return state


# ---- a part of the elements ----------------------------------------------------------------------------------

@means("StridedSlice")
def strided_slice(anatomy, op, states):
    state = states[0]
    if isinstance(state, Shape):
        return counts.part_of_shape(op, state)
    need_fixed(op, states[1:])
    if isinstance(state, Rows):
        axis, sizes = _axis_after_slice(op, state.axis, anatomy.sizes.of(op.inputs[0]))
        anatomy.sizes.note(op.outputs[0], sizes)
        return state._replace(axis=axis)
    return _no_count(op, state)


def _axis_after_slice(op, axis, sizes):
    """(where the dimension of the rows is after x[..., first:last, None, place]; sizes, None where not known)"""
    rank, count = len(sizes), dimension(op.inputs[1], 0)
    masks = {name: op.get_attr(f"{name}_mask") for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    has = lambda name, i: bool(masks[name] >> i & 1)  # noqa: E731
    if count is None:
        raise Unclear("a slice of unknown dimensions")
    used = sum(not has("ellipsis", i) and not has("new_axis", i) for i in range(count))
    place, after, found = 0, [], None
    for i in [*range(count), None]:
        if i is None or (has("ellipsis", i) and not has("new_axis", i)):
            number = rank - place if i is None else rank - used
            found = len(after) + axis - place if place <= axis < place + number else found
            after += sizes[place:place + number]
            place += number
        elif has("new_axis", i):
            after.append(ONE)
        else:
            is_all = has("begin", i) and has("end", i) and not has("shrink_axis", i) and constant(op.inputs[3])[i] == 1
            if place == axis:
                if not is_all:
                    raise Unclear("rows by their position")
                found = len(after)
            if not has("shrink_axis", i):
                after.append(sizes[place] if is_all else None)
            place += 1
    return found, after


@means("StridedSliceGrad")
def strided_slice_gradient(anatomy, op, states):
    """Zeros around what was sliced: rows are where they came from."""
    shape, *limits, state = states
    need_fixed(op, limits)
    if not isinstance(state, Rows):
        need_fixed(op, [shape])
        return _no_count(op, state)
    for axis in range(rank_of(op.outputs[0])):
        sizes = anatomy.sizes.in_vector(op.inputs[0]) or anatomy.sizes.of(op.outputs[0])
        try:
            after, _ = _axis_after_slice(op, axis, sizes)
        except Unclear:
            continue
        if after == state.axis:
            anatomy.sizes.note(op.outputs[0], sizes)
            return state._replace(axis=axis)
    raise Unclear("rows by their position")


@means("Slice")
def slice(anatomy, op, states):
    state = states[0]
    if isinstance(state, Shape):
        return counts.part_of_shape(op, state)
    if isinstance(state, Rows):
        _need_fixed_beside(states[1:], state.axis)
        first, number = (anatomy.sizes.in_vector(tensor) for tensor in op.inputs[1:3])
        if first is None or number is None or first[state.axis] != ZERO:
            raise Unclear("rows by their position")
        if number[state.axis] != anatomy.sizes.of(op.inputs[0])[state.axis] and (number[state.axis] or constant(op.inputs[2])[state.axis] != -1):
            raise Unclear("rows by their position")
        anatomy.sizes.note(op.outputs[0], number)
        return state
    need_fixed(op, states[1:])  # table[:number of rows] is not the same on all ranks
    return _no_count(op, state)


def _need_fixed_beside(states, axis):
    """Numbers for other dimensions than that of the rows must not depend on them."""
    for state in states:
        entries = state.entries if isinstance(state, Shape) else [state]
        if not isinstance(state, (Shape, Fixed)) or (isinstance(state, Shape) and axis is not None and len(entries) <= axis) or \
                any(not isinstance(entry, Fixed) for place, entry in enumerate(entries) if place != axis):
            raise Unclear("a number that depends on the rows")


@means("Unpack")
def unpack(anatomy, op, states):
    state, rank = states[0], rank_of(op.inputs[0])
    if not isinstance(state, Rows):
        return [_no_count(op, state) if not isinstance(state, Shape) else entry
                for entry in (state.entries if isinstance(state, Shape) else [state] * len(op.outputs))]
    place = op.get_attr("axis") % rank
    if place == state.axis:
        raise Unclear("rows are taken apart")
    sizes = anatomy.sizes.of(op.inputs[0])
    for tensor in op.outputs:
        anatomy.sizes.note(tensor, sizes[:place] + sizes[place + 1:])
    return [state._replace(axis=state.axis - (place < state.axis))] * len(op.outputs)


@means("Split", "SplitV")
def split(anatomy, op, states):
    state, place, number = (states[1], op.inputs[0], len(op.outputs)) if op.type == "Split" else (states[0], op.inputs[2], 0)
    tensor = op.inputs[1 if op.type == "Split" else 0]
    need_fixed(op, [other for other in states if other is not state])
    if isinstance(state, Shape):
        return counts.split(op, state)
    if not isinstance(state, Rows):
        return [_no_count(op, state)] * len(op.outputs)
    place = int(constant(place)) % rank_of(tensor)
    if place == state.axis:
        _need_all(state)
        state = state._replace(before=quotient(state.before, Size(number)) if number else None)
        if state.before is None:
            raise Unclear("rows are taken apart")
    for part in op.outputs:
        anatomy.sizes.note(part, [None if i == place else size for i, size in enumerate(anatomy.sizes.of(tensor))])
    return [state] * len(op.outputs)


# ---- more elements -------------------------------------------------------------------------------------------

@means("Pack")
def pack(anatomy, op, states):
    tensors, rank = list(op.inputs), rank_of(op.inputs[0])
    place = op.get_attr("axis") % (rank + 1)
    if any(isinstance(state, (Shape, Count)) for state in states):
        return counts.shape_together(op, tensors, states)
    if any(isinstance(state, Positions) for state in states):
        return _with_positions(op, states, place)
    if not any(isinstance(state, Rows) for state in states):
        return _of_figures(anatomy, op, states)
    if not only(states, Rows, Fixed):
        raise Unclear("rows are put beside others")
    joined = anatomy.rows_by_rows(tensors, states, rank)
    sizes = anatomy.sizes.of(tensors[0])
    anatomy.sizes.note(op.outputs[0], sizes[:place] + [Size(len(tensors))] + sizes[place:])
    return joined._replace(axis=joined.axis + (place <= joined.axis))


def _with_positions(op, states, place):
    """The number of each row, and an index within it."""
    if place == 0 or not isinstance(states[0], Positions) or not all(isinstance(state, Rows) and state == Rows() for state in states[1:]):
        raise Unclear("numbers of rows among others")
    return Positions(others=True)


def _of_figures(anatomy, op, states):
    if not only(states, Figure, Fixed):
        raise Unclear(op.type)
    figures = [state for state in states if isinstance(state, Figure)]
    anatomy.note_use(figures, "sum")
    return Figure(all(figure.is_mean for figure in figures)) if figures else Fixed()


@means("ConcatV2")
def concat(anatomy, op, states):
    need_fixed(op, states[-1:])
    states, tensors = states[:-1], list(op.inputs[:-1])
    if any(isinstance(state, (Shape, Count)) for state in states):
        return counts.shape_together(op, tensors, states)
    if any(isinstance(state, Positions) for state in states):
        return _with_positions(op, states, 1)
    if not any(isinstance(state, Rows) for state in states):
        return _of_figures(anatomy, op, states)
    rank = rank_of(tensors[0])
    place = int(constant(op.inputs[-1])) % rank
    if not only(states, Rows, Fixed) or any(rank_of(tensor) != rank for tensor in tensors):
        raise Unclear("rows are put beside others")
    joined = anatomy.rows_by_rows(tensors, states, rank)
    if place != joined.axis:
        anatomy.sizes.note(op.outputs[0], [None if i == place else size for i, size in enumerate(anatomy.sizes.of(tensors[0]))])
        return joined
    if not all_rows(states) or joined.mask is not None or len({(state.before, state.after) for state in states}) > 1:
        raise Unclear("rows above others")
    sizes = [product([Size(len(states)), size]) if i == place else size for i, size in enumerate(anatomy.sizes.of(tensors[0]))]
    anatomy.sizes.note(op.outputs[0], sizes)
    return joined._replace(before=product([Size(len(states)), joined.before]))


@means("Tile", "BroadcastTo")
def spread(anatomy, op, states):
    state, shape = states
    sizes = anatomy.sizes.in_vector(op.inputs[1])
    if isinstance(state, Fixed) and isinstance(shape, Shape):
        return _spread_over_rows(op, shape)
    if not isinstance(state, Rows) or not isinstance(shape, (Fixed, Shape)):
        need_fixed(op, [shape])
        return _no_count(op, state)
    shift = rank_of(op.outputs[0]) - rank_of(op.inputs[0])
    _need_fixed_beside([shape], state.axis + shift if op.type == "BroadcastTo" else None)
    if op.type == "BroadcastTo":
        anatomy.sizes.note(op.outputs[0], sizes or [None] * rank_of(op.outputs[0]))
        return state._replace(axis=state.axis + shift)
    _need_all(state)
    if sizes is None or sizes[state.axis] is None:
        raise Unclear("rows are repeated")
    return state._replace(before=product([sizes[state.axis], state.before]))


def _spread_over_rows(op, shape):
    """What is fixed, once for each row."""
    axis, count = counts.axis_with_rows(shape)
    place = axis - (len(shape.entries) - rank_of(op.inputs[0]))
    if place >= 0 and dimension(op.inputs[0], place) != 1 and not counts.is_alike(op.inputs[0]):
        raise Unclear("something for each row that is not made from rows")
    return Rows(axis, count.before, count.after)


@means("Pad", "PadV2", "MirrorPad")
def pad(anatomy, op, states):
    need_fixed(op, states[2:])
    if not isinstance(states[0], Rows):
        need_fixed(op, states[1:])
        return anatomy.figure_of(states) if isinstance(states[0], Figure) and op.type != "Pad" else _no_count(op, states[0])
    if not only(states[1:2], Fixed, Shape):
        raise Unclear("paddings that depend on the rows")
    if anatomy.sizes.in_paddings(op.inputs[1])[states[0].axis] != (ZERO, ZERO):
        raise Unclear("rows are put beside others")
    return states[0]


@means("SpaceToBatchND", "BatchToSpaceND")
def blocks(anatomy, op, states):
    need_fixed(op, states[1:])
    if not isinstance(states[0], Rows):
        return _no_count(op, states[0])
    _need_all(states[0])
    number = Size(int(constant(op.inputs[1]).prod()))
    before = product([states[0].before, number]) if op.type == "SpaceToBatchND" else quotient(states[0].before, number)
    if before is None or states[0].axis != 0:
        raise Unclear("blocks of rows")
    return states[0]._replace(before=before)


@means("OneHot")
def one_hot(anatomy, op, states):
    need_fixed(op, states[1:])
    if not isinstance(states[0], Rows):
        return _no_count(op, states[0])
    place = op.get_attr("axis") % (rank_of(op.inputs[0]) + 1)
    return states[0]._replace(axis=states[0].axis + (place <= states[0].axis))


@means("Select")
def select(anatomy, op, states):
    """TensorFlow 1: a condition may be a vector, for rows of any rank."""
    if rank_of(op.inputs[0]) == 1 and rank_of(op.inputs[1]) > 1:
        if not all_rows(states) or len(set(states)) != 1 or states[0].axis != 0:
            raise Unclear(op.type)
        return states[0]
    return anatomy.elementwise(op, states)


# ---- picked by an index --------------------------------------------------------------------------------------

@means("Where")
def where(anatomy, op, states):
    if not isinstance(states[0], Rows) or op.inputs[0].shape.rank != 1 or states[0].mask is not None:
        raise Unclear("places of a mask")
    origin = _origin(op.inputs[0])
    return Indices(f"{anatomy.name_of(origin.op)}:{origin.value_index}", states[0].before, states[0].after)


def _origin(tensor):
    """Where a mask comes from, before it was reshaped."""
    while tensor.op.type in ("Reshape", "Identity"):
        tensor = tensor.op.inputs[0]
    return tensor


@means("GatherV2", "Gather", "ResourceGather")
def gather(anatomy, op, states):
    params, indices = states[:2]
    batch = op.get_attr("batch_dims") if op.type != "Gather" else 0
    axis = 0
    if op.type == "GatherV2":
        need_fixed(op, states[2:])
        axis = int(constant(op.inputs[2]))
    rank = 1 if op.type == "ResourceGather" else rank_of(op.inputs[0])
    axis += rank if axis < 0 else 0
    if isinstance(params, Shape):
        return counts.picked(op, params)
    if isinstance(params, Rows) and isinstance(indices, Indices):
        is_same = (params.axis, params.before, params.after, params.mask) == (0, indices.before, indices.after, None)
        if axis != 0 or batch != 0 or not is_same:
            raise Unclear("rows are picked")
        return params._replace(mask=indices.mask)
    if batch:
        return _gather_in_rows(params, indices, batch)
    if isinstance(params, (Fixed, Figure)) and isinstance(indices, Rows):  # a table, by classes
        anatomy.feeds_rows = anatomy.feeds_rows or isinstance(params, Figure)
        anatomy.note_use([params], "sum")
        return indices._replace(axis=indices.axis + axis)
    if isinstance(params, Rows) and isinstance(indices, Fixed) and axis != params.axis:
        return params._replace(axis=params.axis + (rank_of(op.inputs[1]) - 1 if axis < params.axis else 0))
    if not isinstance(indices, Fixed):
        raise Unclear("rows are picked")
    return _no_count(op, params)


def _gather_in_rows(params, indices, batch):
    if only([params, indices], Fixed):
        return Fixed()
    if all_rows([params, indices]) and params == indices and params.axis < batch:
        return params
    raise Unclear("rows are picked")


@means("GatherNd")
def gather_nd(anatomy, op, states):
    params, indices = states
    if isinstance(params, Rows) and isinstance(indices, Positions) and indices.others and params == Rows():
        return params
    if isinstance(params, Fixed) and isinstance(indices, Rows) and indices.axis < rank_of(op.inputs[1]) - 1:
        return indices
    need_fixed(op, states)
    return Fixed()
