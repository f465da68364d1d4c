# SPDX-License-Identifier: Apache-2.0
"""Collectives on numpy arrays and bytes, without TensorFlow: each call blocks until every rank has made it.

All ranks call with the same name, type and shape (rows may differ in allgather).  Types that the engine does not know
travel as bytes where they are only moved."""
import ctypes

import numpy as np

from lockstep import native

DTYPES = {"float16": 0, "bfloat16": 1, "float32": 2, "float64": 3, "int8": 4, "uint8": 5, "int32": 6, "int64": 7, "bool": 8}
_OPERATIONS = {"sum": 0, "mean": 1, "weighted_mean": 2, "min": 3, "max": 4, "product": 5}


class _Tensor(ctypes.Structure):
    """ls_tensor_t"""
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("num_dims", ctypes.c_uint),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("input", ctypes.c_void_p), ("output", ctypes.c_void_p),
                ("count", ctypes.c_uint64)]


class _Reduce(ctypes.Structure):
    """ls_reduce_t"""
    _fields_ = [("op", ctypes.c_int), ("weight", ctypes.c_double), ("prescale", ctypes.c_double),
                ("postscale", ctypes.c_double)]


_OUTPUT_FN = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint)


def _call(function, *args):
    """Calls a blocking function of the library with the context of this process."""
    native.start()
    library = native._library()
    context = library.ls_process_get()
    if context is None:
        raise native.LockstepError("the engine has stopped, or this process is the child of a rank")
    try:
        status = getattr(library, function)(ctypes.c_void_p(context), *args)
        message = library.ls_last_error().decode(errors="replace") if status != 0 else ""
    finally:
        library.ls_process_put(context)
    if status != 0:
        raise native.LockstepError(message)


def _tensor(array, name, output=None):
    """The array as the library wants it; it lives as long as the array does."""
    if array.dtype.name not in DTYPES:
        raise TypeError(f"'{name}': no collective for {array.dtype} arrays; there are {', '.join(DTYPES)}")
    shape = (ctypes.c_int64 * max(array.ndim, 1))(*(array.shape or (1,)))
    return _Tensor(name=name.encode(), dtype=DTYPES[array.dtype.name], num_dims=len(shape), shape=shape,
                   input=array.ctypes.data, output=None if output is None else output.ctypes.data, count=array.size)


def _contiguous(array):
    array = np.asarray(array)
    return np.ascontiguousarray(array).reshape(array.shape)  # which makes a number a vector otherwise


def allreduce(array, name, op="mean", weight=None):
    """The reduction of all ranks' arrays; with a weight per rank the mean is sum(weight * x) / sum(weight)."""
    array = _contiguous(array)
    output = np.empty_like(array)
    if weight is not None and op != "mean":
        raise ValueError(f"a weight goes with a mean, not with op='{op}'")
    reduce = _Reduce(op=_OPERATIONS[op if weight is None else "weighted_mean"], weight=weight or 0.0)
    _call("ls_allreduce", ctypes.byref(_tensor(array, name, output)), ctypes.byref(reduce))
    return output


def broadcast(array, name, root=0):
    """The array of rank `root`; others give one of the same type and shape."""
    array = _contiguous(array)
    output = np.empty_like(array)
    moved, room = array, output
    if array.dtype.name not in DTYPES:
        if array.dtype.hasobject:
            raise TypeError(f"'{name}': arrays of Python objects cannot be broadcast")
        moved, room = (np.frombuffer(item.data.cast("B") if item.size else b"", np.uint8) for item in (array, output))
    _call("ls_broadcast", ctypes.byref(_tensor(moved, name, room)), ctypes.c_uint(root))
    return output


def allgather(array, name):
    """The rows of all ranks, one after another, and how many came from each; their number may differ."""
    array = _contiguous(array)
    if array.ndim == 0:
        raise ValueError(f"'{name}': a number has no rows; reshape it to (1,)")
    row_size = int(np.prod(array.shape[1:]))
    found = {}

    @_OUTPUT_FN
    def make_room(_, counts, num_ranks):
        rows = [counts[i] // max(row_size, 1) for i in range(num_ranks)]
        found["rows"] = rows
        found["output"] = np.empty((sum(rows), *array.shape[1:]), array.dtype)
        # An address is needed even where nothing comes: NULL means that there is no memory.
        found["room"] = found["output"] if found["output"].size else np.empty(1, array.dtype)
        return found["room"].ctypes.data

    _call("ls_allgather", ctypes.byref(_tensor(array, name)), make_room, None)
    return found["output"], found["rows"]


def broadcast_bytes(data, name, root=0):
    """The bytes of rank `root`; those of the others are ignored."""
    is_root = native.rank() == root
    length = int(broadcast(np.array([len(data) if is_root else 0], np.int64), f"{name}/length", root)[0])
    if length == 0:
        return b""
    own = np.frombuffer(data, np.uint8) if is_root else np.empty(length, np.uint8)
    return broadcast(own, f"{name}/bytes", root).tobytes()


def allgather_bytes(data, name):
    """The bytes of every rank, as a list."""
    together, lengths = allgather(np.frombuffer(data, np.uint8), name)
    ends = np.cumsum([0, *lengths])
    return [together[begin:end].tobytes() for begin, end in zip(ends[:-1], ends[1:])]


def barrier(name="host/barrier"):
    """Returns when every rank has called it."""
    _call("ls_barrier", ctypes.c_char_p(name.encode()))
