# SPDX-License-Identifier: Apache-2.0
"""Batches that are this rank's part already: what lockstep.data reads.

Nothing is cut from them.  Ranks may have different numbers of rows, and some none: they count as in slices."""
import functools

import tensorflow as tf

from lockstep import ops, world
from lockstep.data import mark
from lockstep.slices import current, part as parts
from lockstep.slices.batches import kind_of


class OwnPart(parts.Part):
    """`count` rows are here; how many there are on all ranks is asked only when somebody wants to know."""

    is_static = False

    def __init__(self, count):
        self.offset, self.count, self.is_whole = tf.constant(0, tf.int64), count, tf.constant(False)

    @functools.cached_property
    def total(self):
        if not hasattr(self.count, "numpy"):  # in the function that is being traced
            return ops.allreduce(self.count, "lockstep.data/rows", op=ops.SUM)
        with tf.init_scope():  # a number; whoever asks may be tracing
            return ops.allreduce(self.count, "lockstep.data/rows", op=ops.SUM)


def is_own(iterated, calls=None):
    """Does this iterator, or data set, give this rank's part?  `calls`: those that a function's argument may come from."""
    if world.size == 1 or not isinstance(iterated, (tf.data.Dataset, tf.data.Iterator)):  # train_on_batch() makes a generator
        return False
    if hasattr(iterated, "_lockstep_own"):
        return iterated._lockstep_own
    is_dataset = isinstance(iterated, tf.data.Dataset)
    if is_dataset and kind_of(iterated) != "Variant":
        return mark.is_partitioned(iterated) or any(is_own(item, calls) for item in iterated._inputs())
    given = current.given(tf.data.Dataset if is_dataset else tf.data.Iterator, iterated.element_spec, calls)
    return any(is_own(item, earlier) for item, earlier in given)


def note(iterator, dataset):
    """An iterator of this data set was made."""
    iterator._lockstep_own = is_own(dataset)


def part_of(batch):
    """The part that a batch is; WHOLE if it has no rows, or different numbers of them."""
    flat = [item for item in tf.nest.flatten(batch) if item is not None and parts._is_batched(item)]
    total = parts._total(flat) if flat else None
    return parts.WHOLE if total is None else OwnPart(tf.convert_to_tensor(total, tf.int64))


def with_a_row(batch, part):
    """At least one row to compute on, of zeros, which counts nothing."""
    if part.is_static:
        return batch
    missing = tf.maximum(1 - part.count, 0)

    def pad(item):
        if item is None or not parts._is_batched(item):
            return item
        rows = tf.zeros(tf.concat([[missing], tf.shape(item, tf.int64)[1:]], 0), item.dtype)
        return tf.ensure_shape(tf.concat([item, rows], 0), [None, *item.shape[1:]])

    return tf.nest.map_structure(pad, batch)
