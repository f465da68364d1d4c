# SPDX-License-Identifier: Apache-2.0
"""Rows that come while a data set is opened (ls_data_ahead_t): a text table is then passed over once, not twice."""
import ctypes

from lockstep.data.binding import OK, Column, FieldStructure, empty_arrays, field_of, make_objects

NO_MEMORY = -5
ROOM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(FieldStructure), ctypes.c_uint, ctypes.c_uint64,
                        ctypes.POINTER(Column))
TEXTS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.POINTER(Column))


class _Callbacks(ctypes.Structure):
    _fields_ = [("room", ROOM), ("texts", TEXTS), ("arg", ctypes.c_void_p)]


class Ahead:
    """The arrays that the rows go to.  A block of rows is not quite what a rank finds in its bytes, so with several ranks
    there is free space before and behind.

    It and its callbacks hold each other, and the arrays: set `callbacks` to None when the data set is open, or they stay
    until the garbage collector comes by."""

    def __init__(self, part):
        self._part = part
        self._arrays = []
        self._spare = 0  # rows of free space on each side
        self._room = 0  # rows between
        self.callbacks = _Callbacks(ROOM(self._make_room), TEXTS(self._take_texts))

    def _make_room(self, _, fields, count, rows, columns):
        """Called by C: an exception may not pass through it.  Without memory the rows are read later, in the usual way."""
        try:
            spare = 1024 + rows // 64 if self._part.size > 1 else 0
            arrays = empty_arrays([field_of(fields[i]) for i in range(count)], rows + 2 * spare)
            for new, old in zip(arrays, self._arrays):
                new[spare:spare + self._room] = old[self._spare:self._spare + self._room]
            self._arrays, self._spare, self._room = arrays, spare, rows
            for i, array in enumerate(arrays):
                if array.dtype != object:
                    columns[i].data = array.ctypes.data + spare * array.itemsize
            return OK
        except MemoryError:
            return NO_MEMORY

    def _take_texts(self, _, first, count, columns):
        try:
            for i, array in enumerate(self._arrays):
                if array.dtype == object:
                    make_objects(columns[i], array[self._spare + first:self._spare + first + count])
            return OK
        except MemoryError:
            return NO_MEMORY

    def block(self, source):
        """This rank's block of rows; those that did not come ahead are read now."""
        first, count = self._part.block(source.num_rows)
        at, num = source.ahead_rows()
        begin, end = max(first, at), min(first + count, at + num)
        place = self._spare + begin - at  # of row `begin` in the arrays
        before, behind = begin - first, first + count - end
        if not self._arrays or begin >= end or before > place or behind > len(self._arrays[0]) - place - (end - begin):
            return source.read(first, count)
        rows = [array[place - before:place - before + count] for array in self._arrays]
        for row, missing in ((first, before), (end, behind)):
            if missing > 0:
                for array, some in zip(rows, source.read(row, missing)):
                    array[row - first:row - first + missing] = some
        return rows
