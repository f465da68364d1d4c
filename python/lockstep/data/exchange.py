# SPDX-License-Identifier: Apache-2.0
"""The ranks' bytes, exchanged by the engine: for readers that agree on rows, and for a seed that all share."""
import ctypes
import itertools

from lockstep import native

UINT8 = 5  # ls_dtype_t
_OUTPUT = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint)
_calls = itertools.count()  # each exchange has a name of its own; ranks make them in the same order


class _Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("num_dims", ctypes.c_uint),
                ("shape", ctypes.c_void_p), ("input", ctypes.c_char_p), ("output", ctypes.c_void_p),
                ("count", ctypes.c_uint64)]


def allgather(mine):
    """The bytes of every rank, as a list in rank order."""
    native.start()
    library = ctypes.CDLL(native.lib_path())
    library.ls_process_get.restype = ctypes.c_void_p
    library.ls_process_put.argtypes = [ctypes.c_void_p]
    library.ls_allgather.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Tensor), _OUTPUT, ctypes.c_void_p]
    library.ls_last_error.restype = ctypes.c_char_p
    room = {}

    @_OUTPUT
    def make_room(_, counts, num_ranks):
        room["counts"] = counts[:num_ranks]
        room["memory"] = ctypes.create_string_buffer(max(1, sum(room["counts"])))
        return ctypes.addressof(room["memory"])

    tensor = _Tensor(name=b"lockstep.data/%d" % next(_calls), dtype=UINT8, input=mine, count=len(mine))
    context = library.ls_process_get()
    try:
        if library.ls_allgather(context, tensor, make_room, None) != 0:
            raise native.LockstepError(library.ls_last_error().decode(errors="replace"))
    finally:
        library.ls_process_put(context)
    ends = list(itertools.accumulate(room["counts"]))
    every = room["memory"].raw  # a copy, once
    return [every[end - count:end] for end, count in zip(ends, room["counts"])]


def in_c():
    """The address of the function that does the same in C, for bytes of equal length."""
    native.start()
    return ctypes.cast(ctypes.CDLL(native.lib_path()).ls_process_allgather, ctypes.c_void_p).value


allgather.in_c = in_c  # a Part knows its allgather only
