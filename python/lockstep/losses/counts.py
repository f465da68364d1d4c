# SPDX-License-Identifier: Apache-2.0
"""Numbers of rows, the shapes of rows, and what is made with them: ones, noise, a number for each row."""
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops import array_ops

from lockstep import hooks
from lockstep.losses.elementwise import ELEMENTWISE
from lockstep.losses.states import (Count, Figure, Fixed, Positions, Rows, Shape, Unclear, constant, dimension, means, need_fixed, only, rank_of)

ROWS = "rows"  # the name of their number
MOST_STEPS_BACK = 20  # to find out whether all rows of a tensor are alike


def attach():
    """tf.shape and tf.size of what has a known shape are constants; whose they are is noted."""
    for name in ("shape_internal", "size_internal"):
        @hooks.wrap(array_ops, name)
        def measure(original, input, *args, **kwargs):
            return noted(original(input, *args, **kwargs), input)


def noted(measured, tensor):
    if isinstance(measured, tf.Tensor) and not isinstance(measured, EagerTensor) and measured.op.type == "Const" and isinstance(tensor, tf.Tensor):
        measured.graph._lockstep_measured = getattr(measured.graph, "_lockstep_measured", {}) | {measured.name: tensor}
    return measured


def of_measured(measured, tensor, state):
    """What the constant shape, or number of elements, of a tensor is."""
    if measured.shape.rank == 1:
        return _shape_of(tensor, state)
    return Count(None, None) if isinstance(state, Rows) and state.mask is None else Fixed()


def computed(anatomy, op, states):
    """Arithmetic with numbers of rows."""
    if anatomy.has_named_rows and op.outputs[0].dtype.is_integer and only(states, Count, Shape, Fixed):
        size = anatomy.sizes.in_scalar(op.outputs[0])
        if size is not None and ROWS not in size.names:
            return Fixed()  # rows x columns / rows
    if op.type == "Cast" and isinstance(states[0], (Count, Shape)) and not _is_lossy(op.inputs[0].dtype, op.outputs[0].dtype):
        return states[0]
    if only(states, Count, Fixed) and op.type in ("Mul", "RealDiv") and isinstance(states[0], Count) and only(states[1:], Fixed):
        return Count(None, None)
    if op.type == "Mul" and isinstance(states[0], Fixed) and isinstance(states[1], Count):
        return Count(None, None)
    if only(states, Positions, Fixed) and op.type == "Cast":
        return states[0]
    if only(states, Shape, Count, Fixed) and op.outputs[0].dtype.is_integer:
        return Shape((None,) * ((dimension(op.outputs[0], 0) or 1) if op.outputs[0].shape.rank else 1))
    raise Unclear(f"{op.type} of {[type(state).__name__ for state in states]}")


def _is_lossy(before, after):
    return after == tf.bool or (before.is_floating and after.is_integer)


@means("Rank")
def rank(anatomy, op, states):
    return Fixed()


@means("Shape", "ShapeN")
def shape(anatomy, op, states):
    return [_shape_of(tensor, state) for tensor, state in zip(op.inputs, states)]


def _shape_of(tensor, state):
    if not isinstance(state, Rows):
        if not isinstance(state, (Fixed, Figure, Shape, Count)):
            raise Unclear("a shape that depends on rows")
        return Fixed()
    count = Count(state.before, state.after) if state.mask is None else None
    return Shape(tuple(count if place == state.axis else Fixed() for place in range(rank_of(tensor))))


@means("Size")
def size(anatomy, op, states):
    if not isinstance(states[0], Rows):
        return _shape_of(op.inputs[0], states[0])
    if states[0].mask is not None:
        raise Unclear("how many elements a mask leaves")
    return Count(None, None)


def part_of_shape(op, shape):
    """shape[0], shape[1:]"""
    places = np.arange(len(shape.entries))
    if op.type == "Slice":
        first, number = (int(constant(part)[0]) for part in op.inputs[1:3])
        return _entries(shape, places[first:None if number < 0 else first + number])
    first, last, step = (int(constant(part)[0]) for part in op.inputs[1:4])
    if op.get_attr("new_axis_mask") or op.get_attr("ellipsis_mask") or dimension(op.inputs[1], 0) != 1:
        raise Unclear("a part of a shape")
    if op.get_attr("shrink_axis_mask"):
        entry = shape.entries[first] if -len(places) <= first < len(places) else None
        return Shape((None,)) if entry is None else entry
    return _entries(shape, places[None if op.get_attr("begin_mask") else first:None if op.get_attr("end_mask") else last:step])


def picked(op, shape):
    """Some numbers of a shape, by their places."""
    places = np.asarray(constant(op.inputs[1]))
    if places.ndim > 1 or any(not 0 <= place < len(shape.entries) for place in places.reshape(-1)):
        raise Unclear("a part of a shape")
    found = _entries(shape, places.reshape(-1))
    return found if places.ndim or isinstance(found, Fixed) else Shape((None,)) if found.entries[0] is None else found.entries[0]


def split(op, shape):
    """A shape in pieces."""
    numbers = constant(op.inputs[1]) if op.type == "SplitV" else [len(shape.entries) // len(op.outputs)] * len(op.outputs)
    ends = np.cumsum(numbers)
    return [_entries(shape, range(end - number, end)) for number, end in zip(numbers, ends)]


def _entries(shape, places):
    entries = tuple(shape.entries[place] for place in places)
    return Shape(entries) if any(not isinstance(entry, Fixed) for entry in entries) else Fixed()


def shape_together(op, tensors, states):
    """Numbers and shapes, one after the other, are a shape."""
    entries = []
    for tensor, state in zip(tensors, states):
        if isinstance(state, Shape):
            entries += state.entries
        elif isinstance(state, Count) or op.type == "Pack":
            entries.append(state)
        else:
            entries += [state] * (dimension(tensor, 0) or 0)
        if tensor.shape.rank != (0 if op.type == "Pack" else 1):
            return Shape((None,))
    return Shape(tuple(entries))


def axis_with_rows(shape):
    """(the place of the number of rows, that) in a shape that is to be filled"""
    found = [(place, entry) for place, entry in enumerate(shape.entries) if not isinstance(entry, Fixed)]
    if len(found) != 1 or found[0][1] is None or found[0][1].before is None:
        raise Unclear("a shape that depends on rows")
    return found[0]


def filled(shape):
    """Rows that are all alike, as many as this shape says."""
    if isinstance(shape, Fixed):
        return Fixed()
    if not isinstance(shape, Shape):
        raise Unclear("a shape that depends on rows")
    axis, count = axis_with_rows(shape)
    return Rows(axis, count.before, count.after)


_RANDOM = ("RandomStandardNormal", "RandomUniform", "RandomUniformInt", "TruncatedNormal", "StatelessRandomNormal", "StatelessRandomNormalV2",
           "StatelessRandomUniform", "StatelessRandomUniformV2", "StatelessRandomUniformInt", "StatelessRandomUniformIntV2",
           "StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2", "StatelessTruncatedNormal", "StatelessTruncatedNormalV2")
_OF_A_GENERATOR = ("StatefulStandardNormalV2", "StatefulUniform", "StatefulTruncatedNormal", "StatefulUniformInt", "StatefulUniformFullInt")


@means("Fill", *_RANDOM)
def made(anatomy, op, states):
    shape, *others = states
    need_fixed(op, others)
    if op.type != "Fill" and not anatomy.follows_noise:
        raise Unclear(op.type)
    return filled(shape)


@means(*_OF_A_GENERATOR)
def drawn(anatomy, op, states):
    need_fixed(op, [states[0], states[1], *states[3:]])
    if not anatomy.follows_noise:
        raise Unclear(op.type)
    return filled(states[2])


@means("Multinomial", "StatelessMultinomial")
def chosen(anatomy, op, states):
    need_fixed(op, states[1:])
    if isinstance(states[0], Rows) and states[0].axis == 0:
        return states[0]
    need_fixed(op, states)
    return Fixed()


@means("BroadcastGradientArgs", "ConcatOffset")
def places_of_gradients(anatomy, op, states):
    """What they are is read from the sizes, where they are used."""
    if not only(states, Shape, Fixed):
        raise Unclear(op.type)
    if op.type == "BroadcastGradientArgs":
        return [Shape((None,)) for _ in op.outputs]
    place = int(constant(op.inputs[0]))
    is_fixed = all(isinstance(state, Fixed) or isinstance(state.entries[place], Fixed) for state in states[1:])
    return [Fixed() if is_fixed else Shape((None,)) for _ in op.outputs]


@means("DynamicStitch")
def stitched(anatomy, op, states):
    """A shape in which some numbers are replaced by others."""
    half = len(states) // 2
    entries = {}
    for places, state in zip(op.inputs[:half], states[half:]):
        where = constant(places).reshape(-1).tolist()
        given = state.entries if isinstance(state, Shape) else [state] * len(where)
        if len(given) != len(where) or not only([state], Shape, Fixed, Count):
            raise Unclear(op.type)
        entries.update(zip(where, given))
    return _entries(Shape(tuple(entries[place] for place in sorted(entries))), range(len(entries)))


@means("Range")
def numbered(anatomy, op, states):
    """0, 1, 2 ... up to the number of rows: that of each row."""
    if only(states, Fixed):
        return Fixed()
    first, count, step = states
    if isinstance(first, Fixed) and count == Count() and isinstance(count, Count) and isinstance(step, Fixed):
        if int(constant(op.inputs[0])) == 0 and int(constant(op.inputs[2])) == 1:
            return Positions()
    raise Unclear(op.type)


@means("Const", "ReadVariableOp", "VarHandleOp", "Variable", "VariableV2", "VarIsInitializedOp", "IsVariableInitialized", "AssignVariableOp", "HashTableV2", "RngReadAndSkip",
       "StatelessRandomGetKeyCounter", "StatelessRandomGetAlg", "StatelessRandomGetKeyCounterAlg")
def fixed(anatomy, op, states):
    need_fixed(op, states)
    return [Fixed()] * len(op.outputs)


def of_size(tensor, place):
    """What is made from no row, and is larger where there are more rows: in this dimension; None: in another way."""
    value = tf.get_static_value(tensor)
    if place is not None and value is not None and value.ndim == 1 and np.array_equal(value, np.arange(len(value))):
        return Positions()
    if place is None or not is_alike(tensor):
        raise Unclear("made with the number of rows")
    return Rows(place, is_made=not _is_noise(tensor))


def _is_noise(tensor):
    return tensor.op.type in (*_RANDOM, *_OF_A_GENERATOR)


def is_alike(tensor, steps=MOST_STEPS_BACK, found=None):
    """Are all its elements equal, or drawn alike?  It may have any number of rows then."""
    found = {} if found is None else found
    if tensor.name not in found:
        found[tensor.name] = _is_alike(tensor, steps, found)
    return found[tensor.name]


def _is_alike(tensor, steps, found):
    op = tensor.op
    if op.type in ("Fill", "ZerosLike", "OnesLike") or _is_noise(tensor):
        return True
    if op.type == "Const":
        value = tf.get_static_value(tensor)
        return value is not None and value.size > 0 and bool(np.all(value == value.flat[0]))
    is_passed = op.type in ELEMENTWISE or op.type in ("Identity", "Reshape", "ExpandDims", "Squeeze", "StopGradient", "Tile", "BroadcastTo", "Sum", "Mean")
    sources = op.inputs[:1] if op.type in ("Reshape", "ExpandDims", "Tile", "BroadcastTo", "Sum", "Mean") else op.inputs
    return steps > 0 and is_passed and all(source.shape.rank == 0 or is_alike(source, steps - 1, found) for source in sources)
