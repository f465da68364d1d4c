# SPDX-License-Identifier: Apache-2.0
"""Sizes of dimensions, of which some are not known when a graph is traced: products of numbers and names.

    [None, 5, 3] -> [None, 15]       Size(15) has the same elements in a row as Size(5) * Size(3)
    [None, None, 3] -> [None, 3]     the name of the second dimension is in the rows' elements before, and must be afterwards

A name stands for the same number wherever it is seen.  What a tensor will be reshaped to is read from the graph: [-1, tf.shape(y)[2]]."""
import collections

import numpy as np
import tensorflow as tf

Size = collections.namedtuple("Size", "number names", defaults=((),))
ONE, ZERO = Size(1), Size(0)


class Unclear(Exception):
    pass


def product(sizes):
    """None: one of them is not known."""
    number, names = 1, ()
    for size in sizes:
        if size is None:
            return None
        number, names = number * size.number, tuple(sorted(names + size.names))
    return Size(number, names)


def quotient(size, divisor):
    """None: it is no whole number, as far as is known."""
    if size is None or divisor is None or divisor.number == 0 or size.number % divisor.number:
        return None
    names = list(size.names)
    for name in divisor.names:
        if name not in names:
            return None
        names.remove(name)
    return Size(size.number // divisor.number, tuple(names))


class Sizes:
    """The sizes of the dimensions of tensors."""

    def __init__(self, around=None, place=""):
        """Of a function that is called at this place of the graph that `around` is for."""
        self._known, self._place = {}, place  # of tensors with a dimension that has no number: {name: list of Size}
        self._others = {} if around is None else around._others  # {a name: another one for the same number}

    def of(self, tensor):
        if tensor.name in self._known:
            return [self.now(size) for size in self._known[tensor.name]]
        return [Size(1, (f"{self._place}/{tensor.name}[{place}]",)) if number is None else Size(number) for place, number in enumerate(tensor.shape.as_list())]

    def now(self, size):
        """The same, by the names that were found to be those of other sizes, too."""
        if not size.names or not self._others:
            return size
        return Size(size.number, tuple(sorted(self._name_now(name) for name in size.names)))

    def _name_now(self, name):
        while name in self._others:
            name = self._others[name]
        return name

    def equate(self, one, other):
        """These must be equal where the graph is run."""
        one, other = self.now(one), self.now(other)
        if one != other and one.number == other.number and len(one.names) == len(other.names) == 1:
            self._others[max(one.names)] = min(other.names)

    def note(self, tensor, sizes):
        """These are its sizes, where it has no numbers itself; None: not known."""
        if tensor.shape.rank is None or tensor.shape.is_fully_defined() or len(sizes) != tensor.shape.rank:
            return
        self._known[tensor.name] = [own if own.names == () or size is None else size for own, size in zip(self.of(tensor), sizes)]

    def note_like(self, tensor, sources):
        """The sizes of what is computed element by element from these."""
        if tensor.shape.rank is None or tensor.shape.is_fully_defined():
            return
        rank, found = tensor.shape.rank, [None] * tensor.shape.rank
        for source in sources:
            sizes = [] if source.shape.rank is None or source.shape.rank > rank else self.of(source)
            for place, size in enumerate(sizes, rank - len(sizes)):
                if size != ONE and found[place] is not None:
                    self.equate(found[place], size)
                found[place] = size if size != ONE else found[place]
        self.note(tensor, found)

    def in_vector(self, tensor):
        """The numbers in a vector that says a shape, as sizes; None for one that is not known, and for -1.  None: nothing is known."""
        op = tensor.op
        if op.type in ("Identity", "Cast"):
            return self.in_vector(op.inputs[0])
        if op.type in ("Shape", "ShapeN"):
            source = op.inputs[tensor.value_index]
            return None if source.shape.rank is None else self.of(source)
        if op.type == "Pack" and op.get_attr("axis") == 0:
            return [self.in_scalar(number) for number in op.inputs]
        if op.type == "ConcatV2":
            parts = [self.in_vector(part) for part in op.inputs[:-1]]
            return None if None in parts else sum(parts, [])
        if op.type in ("StridedSlice", "Slice"):
            return self._in_part(op)
        if op.type == "GatherV2":
            vector, places = self.in_vector(op.inputs[0]), known(op.inputs[1])
            return None if vector is None or places is None or places.ndim > 1 else [vector[place] for place in places.reshape(-1)]
        if op.type == "Reshape" and tensor.shape.rank == 1:
            return self.in_vector(op.inputs[0])
        if op.type == "Sub":
            return self._difference(*(self.in_vector(part) for part in op.inputs))
        if op.type == "ConcatOffset":
            return self._offset(op, tensor.value_index)
        if op.type == "DynamicStitch":
            return self._stitched(op)
        value = known(tensor)
        if value is None or np.ndim(value) > 1:
            return None
        value = np.reshape(value, -1)
        return [None if number < 0 else Size(int(number)) for number in value]

    def in_scalar(self, tensor):
        op = tensor.op
        if op.type in ("Identity", "Cast"):
            return self.in_scalar(op.inputs[0])
        if op.type == "StridedSlice" and op.get_attr("shrink_axis_mask") == 1 and op.inputs[0].shape.rank == 1:
            vector, place = self.in_vector(op.inputs[0]), known(op.inputs[1])
            return None if vector is None or place is None or not -len(vector) <= place[0] < len(vector) else vector[int(place[0])]
        if op.type == "Maximum" and known(op.inputs[1]) == 1:
            return self.in_scalar(op.inputs[0])
        if op.type == "Mul":
            return product(self.in_scalar(part) for part in op.inputs)
        if op.type in ("FloorDiv", "RealDiv"):
            return quotient(*(self.in_scalar(part) for part in op.inputs))
        if op.type == "Prod" and op.inputs[0].shape.rank == 1:
            vector = self.in_vector(op.inputs[0])
            return None if vector is None else product(vector)
        value = known(tensor)
        return None if value is None or np.ndim(value) != 0 or value < 0 or value != int(value) else Size(int(value))

    def _stitched(self, op):
        """A shape in which some numbers are replaced by others."""
        half, entries = len(op.inputs) // 2, {}
        for places, numbers in zip(op.inputs[:half], op.inputs[half:]):
            where, sizes = known(places), self.in_vector(numbers)
            if where is None or sizes is None or where.size != len(sizes):
                return None
            entries.update(zip(where.reshape(-1).tolist(), sizes))
        return [entries.get(place) for place in range(len(entries))]

    def _difference(self, one, other):
        """As far as numbers are equal or 0."""
        if one is None or other is None or len(one) != len(other):
            return None
        return [None if a is None or b is None else ZERO if a == b else a if b == ZERO else None for a, b in zip(one, other)]

    def in_paddings(self, tensor):
        """For each dimension, what is put (before it, behind it)."""
        op = tensor.op
        if op.type == "ConcatV2" and len(op.inputs) == 3 and known(op.inputs[2]) in (1, -1) and all(
                part.op.type == "Reshape" and dimension_is_one(part, 1) for part in op.inputs[:-1]):
            columns = [self.in_vector(part.op.inputs[0]) for part in op.inputs[:-1]]
            if None not in columns:
                return list(zip(*columns))
        return [(Size(int(before)), Size(int(behind))) for before, behind in constant(tensor)]

    def _offset(self, op, number):
        """Where this one of the tensors that are put beside each other begins."""
        place, shape = known(op.inputs[0]), self.in_vector(op.inputs[1])
        if place is None or shape is None:
            return None
        return [ZERO if i != int(place) % len(shape) or number == 0 else None for i in range(len(shape))]

    def _in_part(self, op):
        vector, (first, last) = self.in_vector(op.inputs[0]), (known(part) for part in op.inputs[1:3])
        if vector is None or first is None or last is None:
            return None
        if op.type == "Slice":
            return vector[int(first[0]):None if last[0] < 0 else int(first[0] + last[0])]
        steps = known(op.inputs[3])
        if len(first) != 1 or steps is None or steps[0] != 1 or op.get_attr("new_axis_mask") or op.get_attr("shrink_axis_mask"):
            return None
        return vector[None if op.get_attr("begin_mask") else int(first[0]):None if op.get_attr("end_mask") else int(last[0])]


def constant(tensor):
    """Its value, which may have been computed from other constants."""
    value, op = tf.get_static_value(tensor), tensor.op
    if value is None and op.type in ("Add", "AddV2", "Sub"):
        one, other = (constant(part) for part in op.inputs)
        value = one - other if op.type == "Sub" else one + other
    elif value is None and op.type == "Mul":
        one, other = (constant(part) for part in op.inputs)
        value = one * other
    elif value is None and op.type == "FloorMod":
        one, other = (constant(part) for part in op.inputs)
        value = one % other
    elif value is None and op.type == "Range":
        value = np.arange(*(constant(part) for part in op.inputs))
    elif value is None and op.type == "InvertPermutation":
        value = np.argsort(constant(op.inputs[0]))
    elif value is None and op.type in ("Pack", "ConcatV2"):
        value = _put_together(op)
    if value is None:
        raise Unclear("a number that is not known")
    return value


def _put_together(op):
    if op.type == "Pack":
        return np.stack([constant(part) for part in op.inputs])
    return np.concatenate([constant(part) for part in op.inputs[:-1]])


def dimension_is_one(tensor, place):
    return tensor.shape.rank == place + 1 and tf.compat.dimension_value(tensor.shape[place]) == 1


def known(tensor):
    """The same, or None."""
    try:
        return constant(tensor)
    except Unclear:
        return None
