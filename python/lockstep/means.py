# SPDX-License-Identifier: Apache-2.0
"""Means that a training loop of the script makes by hand, eagerly, after its step:

    accuracy = tf.reduce_mean(tf.cast(tf.equal(predicted, labels), tf.float32))

A mean over the rows of the slice becomes that over the rows of the batch.  Rows are recognised by their number, on all ranks or
on none: a mask may leave a rank fewer.  The mean of what all ranks have alike stays what it is, so a tensor that happens
to have as many rows does no harm.  Under a tape, and while a tape goes back, means stay the slice's: gradients flow
through them, and those are reduced.

Sums stay the slice's: a script may divide them by the rows that it sees.

Seam: gen_math_ops.mean, below tf.reduce_mean and keras.ops.mean; the front ends call of_batch() for Keras's losses."""
import contextlib
import sys
import threading

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.ops import gen_math_ops

from lockstep import hooks, host, ops, world
from lockstep.slices import current, weak

_local = threading.local()


def attach():
    if world.size == 1:
        return

    @hooks.wrap(gen_math_ops, "mean")
    def mean(original, input, axis, *args, **kwargs):
        value = original(input, axis, *args, **kwargs)
        if not _is_in_loop(input) or not _is_over_rows(input, axis) or not _is_called_by_script():
            return value
        return of_batch(value) if _all_have_rows(input) else value


@contextlib.contextmanager
def off():
    """While a tape goes back, functions of the script may be called that compute a part of a gradient."""
    before, _local.is_off = getattr(_local, "is_off", False), True
    try:
        yield
    finally:
        _local.is_off = before


def is_by_hand(rows):
    """Are these the rows of a slice, in a loop of the script, where no gradient is taken?  All ranks ask together."""
    return _is_in_loop(rows) and _all_have_rows(rows)


def _is_in_loop(rows):
    """Could they be?  All ranks answer alike.  Of batches that were not cut by us (lockstep.data, LOCKSTEP_BATCH=per-rank)
    nobody knows how many rows they have."""
    if not current.is_delivering_slices() or not current.is_delivered_here():
        return False
    if record.could_possibly_record() or getattr(_local, "is_off", False):
        return False
    shape = getattr(rows, "shape", None)
    return shape is not None and len(shape) > 0 and current.now().is_static and not weak.is_on()


def _all_have_rows(rows):
    own = rows.shape[0] in _slice_sizes(current.now())
    return bool(host.allreduce(np.array([own], np.int32), "mean/rows", "min")[0])


def _slice_sizes(part):
    """The numbers of rows that slices of this batch have on some rank."""
    base, extra = divmod(part.total, world.size)
    return {1} if base == 0 else {base, base + 1} if extra else {base}


def of_batch(mean):
    """The mean over the batch, where every rank has that of its slice."""
    if not mean.dtype.is_floating:
        return mean
    return tf.reshape(ops.allreduce(mean, "mean", op=ops.WEIGHTED_MEAN, weight=current.now().weight()), mean.shape)


def _is_over_rows(input, axis):
    axes = np.asarray(axis).reshape(-1)
    return bool(np.any((axes == 0) | (axes == -len(input.shape))))


def _is_called_by_script():
    """Keras's own layers and metrics look after themselves."""
    frame = sys._getframe(3)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(("tensorflow.", "keras.src.ops", "keras.src.backend")):
            return name.split(".")[0] not in ("keras", "tf_keras", "lockstep")
        frame = frame.f_back
    return False
