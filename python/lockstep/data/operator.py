# SPDX-License-Identifier: Apache-2.0
"""Rows as tensors without Python: the operator LockstepReadRows, for formats in which any row costs the same."""
import ctypes
import functools

import tensorflow as tf

from lockstep import native


@functools.lru_cache(maxsize=None)
def _library():
    """(operators, C functions); None where they were not built or this TensorFlow lacks what they need."""
    try:
        path = native.ops_path()
    except FileNotFoundError:
        return None
    operators = tf.load_op_library(path)
    library = ctypes.CDLL(path)
    library.lockstep_tf_share.argtypes = [ctypes.c_void_p]
    library.lockstep_tf_share.restype = ctypes.c_int64
    library.lockstep_tf_unshare.argtypes = [ctypes.c_int64]
    return (operators, library) if library.lockstep_tf_reads() else None


def is_available():
    return _library() is not None


def share(source):
    """A number by which the operator knows the source, until `source` is no longer used."""
    number = _library()[1].lockstep_tf_share(source._open_handle())
    if number < 0:
        raise MemoryError("no memory to share a data set with TensorFlow")
    source.on_close(functools.partial(_library()[1].lockstep_tf_unshare, number))
    return number


def read(number, fields, rows, bounds=None, step=0):
    """Tensors of the fields, of these rows; with bounds, those of them that belong to a step."""
    types = [tf.string if field.dtype is None else tf.as_dtype(field.dtype) for field in fields]
    bounds = [0, len(rows)] if bounds is None else bounds
    tensors = _library()[0].lockstep_read_rows(tf.constant(number, tf.int64), rows, bounds, step, types=types)
    return [tf.ensure_shape(tensor, (None, *field.shape)) for tensor, field in zip(tensors, fields)]


def read_dataset(batches, structure):
    """A data set of elements, read by TensorFlow's own threads; each iteration of it is the next epoch.

    Where they are shuffled, Python is asked once an epoch for the rows of this rank; where each batch begins in them is always
    the same.  The fewer operators there are, the sooner an epoch begins."""
    numbers = [share(source) for source in batches.sources]
    bounds = tf.constant(batches.bounds(), tf.int64)

    def read_step(rows, step):
        return structure([tensor for number, source in zip(numbers, batches.sources)
                          for tensor in read(number, source.fields, rows, bounds, step)])

    def read_epoch(rows):
        steps = tf.data.Dataset.range(batches.steps())
        return steps.map(lambda step: read_step(rows, step), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)

    if batches.seed is None:
        return read_epoch(tf.constant(batches.next_rows(), tf.int64))
    epochs = tf.data.Dataset.from_tensors(0).map(
        lambda _: tf.ensure_shape(tf.numpy_function(batches.next_rows, [], tf.int64), (None,)))
    return epochs.flat_map(read_epoch)
