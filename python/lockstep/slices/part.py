# SPDX-License-Identifier: Apache-2.0
"""A rank's part of a batch.

    batch of 7 rows, 3 ranks          batch of 2 rows, 3 ranks
    rank 0  | 0 1 2 |      count 3    rank 0  | 0 |   count 1
    rank 1        | 3 4 |        2    rank 1    | 1 |       1
    rank 2            | 5 6 |    2    rank 2  | 0 |         0: a row to compute on, which counts nothing

A part of WHOLE stands for rows that every rank has: the mean over ranks of what is equal is that.

Numbers of a part are Python's where the batch size is known while the function is traced, and int64 tensors otherwise.
Every rank has the same batch before it is cut, so all ranks take the same of the two ways."""
import collections
import functools

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.ops import gen_array_ops

from lockstep import native, ops, world

_NUMBERS = (int, np.integer, np.bool_)

# A batch that was cut already: numbers are its offset, count and total.
Rows = collections.namedtuple("Rows", "numbers rows")


class Part:
    """Rows [offset, offset + count) of `total`; is_whole: all ranks have all rows."""

    def __init__(self, offset, count, total, is_whole=False):
        self.offset, self.count, self.total, self.is_whole = offset, count, total, is_whole

    @property
    def is_static(self):
        """Asked in each step of a loop: tf.is_tensor() takes 20 us to say no."""
        return all(isinstance(value, _NUMBERS) for value in (self.count, self.total, self.is_whole))

    def reduction(self):
        """How ranks' losses and gradients become those of the batch: keyword arguments of ops.allreduce."""
        return self._sum_reduction() if native.setting("LOSS") == "sum" else self.mean()

    def mean(self):
        """How ranks' means become the mean of the batch."""
        if self.is_static and (self.is_whole or self.total % world.size == 0):
            return {"op": ops.MEAN}
        return {"op": ops.WEIGHTED_MEAN, "weight": self.weight()}

    def _sum_reduction(self):
        return {"op": ops.MEAN if self.is_static and self.is_whole else ops.SUM}

    def given(self, value):
        """What this rank gives to reduction().  In the sum of a loss that is a sum, what was computed on a row that was lent does
        not count, and what every rank has counts once."""
        if native.setting("LOSS") != "sum" or (self.is_static and (self.is_whole or self.count > 0)):
            return value
        factor = tf.cast(tf.cast(self.count, tf.int64) > 0, tf.float64)
        if not self.is_static:
            factor = tf.where(self.is_whole, tf.constant(1 / world.size, tf.float64), factor)
        return tf.math.multiply_no_nan(value, tf.cast(factor, value.dtype))

    def weight(self):
        """This rank's weight in a mean over the samples of the batch."""
        if self.is_static:
            return 1.0 if self.is_whole else float(self.count)
        return tf.where(self.is_whole, tf.constant(1.0, tf.float64), tf.cast(self.count, tf.float64))

    def counts(self):
        """Do this rank's rows count in a sum over ranks?  Of rows that all ranks have, only rank 0's do."""
        if self.is_static:
            return _share_of_whole() > 0 if self.is_whole else self.count > 0
        return tf.where(self.is_whole, _share_of_whole() > 0, self.count > 0)

    def share(self):
        """The part of the batch that counts here; the shares of all ranks add up to 1."""
        if self.is_static:
            return _share_of_whole() if self.is_whole else self.count / self.total
        share = tf.math.divide_no_nan(tf.cast(self.count, tf.float64), tf.cast(self.total, tf.float64))
        return tf.where(self.is_whole, tf.constant(_share_of_whole(), tf.float64), share)

    def share_in_mean(self):
        """The part that this rank's rows have in a mean over the batch."""
        if self.is_static:
            return 1.0 if self.is_whole else self.count / self.total
        return tf.where(self.is_whole, tf.constant(1.0, tf.float64), self.share())

    def share_of_gradient(self):
        """By which rows of gradients are multiplied before they are put together."""
        if native.setting("LOSS") != "sum":
            return self.share()
        if self.is_static:
            return _share_of_whole() if self.is_whole else 1.0
        return tf.where(self.is_whole, tf.constant(_share_of_whole(), tf.float64), tf.constant(1.0, tf.float64))


def is_left_alone():
    """Does the script give each rank its own data?"""
    return native.setting("SHARD") == "off"


def _share_of_whole():
    """What counts here of a batch that was not cut: rank 0's, since all have the same; or everybody's own."""
    return 1 / world.size if is_left_alone() else float(world.is_root())


WHOLE = Part(0, 1, 1, is_whole=True)
ALL_ROWS = tf.int64.max  # slices end where the rows do
cuts = set()  # (rows of the slice, rows of the batch) that were seen


def _static_rows(tensor):
    """The number of rows as far as it is known; 0 dimensions: None, and no part of the batch."""
    shape = tensor.shape
    return None if shape.rank is None else tf.compat.dimension_value(shape[0])


def _is_batched(item):
    if not (tf.is_tensor(item) or isinstance(item, (tf.RaggedTensor, tf.SparseTensor))):
        return hasattr(item, "shape") and len(item.shape) > 0
    return item.shape.rank is None or item.shape.rank > 0


def _total(items):
    """The number of rows of a batch: an int, a tensor, or None where the items have different numbers, or are those of a graph."""
    known = {rows for rows in map(_static_rows, items) if rows is not None}
    if len(known) > 1 or any(_is_of_graph(item) is True for item in items):
        return None
    return known.pop() if known else _rows_of(items[0])


def _is_of_graph(item):
    """Is it the sparse matrix of a graph, with a row and a column for each node?  A slice of the nodes would miss their neighbours.
    True, False, or a tensor that tells, where shapes leave both open."""
    if not isinstance(item, tf.SparseTensor) or item.shape.rank != 2:
        return False
    rows, columns = item.shape.as_list()
    return tf.equal(*tf.unstack(item.dense_shape)) if rows is None and columns is None else rows == columns


def _rows_of(item):
    if isinstance(item, tf.RaggedTensor):
        return item.nrows(out_type=tf.int64)
    if isinstance(item, tf.SparseTensor):
        return item.dense_shape[0]
    return tf.shape(item, out_type=tf.int64)[0]


def have_as_many(items, total):
    """Have all of them `total` rows?  True, or a tensor that tells, where shapes leave it open: nodes and edges of a graph, or rows
    with labels beside others without, are given together, and have different numbers of rows.  The matrix of a graph is no batch."""
    open_ones = [item for item in items if _static_rows(item) is None]
    unsure = open_ones[1:] if tf.is_tensor(total) else open_ones  # a tensor is the number of the first one's rows
    answers = [tf.equal(_rows_of(item), tf.cast(total, tf.int64)) for item in unsure]
    answers += [~is_of_graph for is_of_graph in map(_is_of_graph, items) if tf.is_tensor(is_of_graph)]
    return tf.reduce_all(tf.stack(answers)) if answers else True


def static_part(total):
    """(part, first row, number of rows to compute on)"""
    base, extra = divmod(total, world.size)
    count = base + (world.rank < extra)
    offset = world.rank * base + min(world.rank, extra)
    if count < total:
        cuts.add((max(count, 1), total))
    if count == 0:
        return Part(0, 0, total), 0, 1
    return Part(offset, count, total), offset, count


def dynamic_part(total):
    """The same for a tensor."""
    base, extra = total // world.size, total % world.size
    count = base + tf.cast(world.rank < extra, tf.int64)
    offset = tf.where(count > 0, world.rank * base + tf.minimum(tf.constant(world.rank, tf.int64), extra), 0)
    return Part(offset, count, total, tf.constant(False)), offset, tf.maximum(count, 1)


def take_rows(item, first, rows):
    """item[first:first + rows]"""
    if isinstance(item, tf.SparseTensor):
        shape = item.dense_shape
        start = tf.concat([[tf.cast(first, tf.int64)], tf.zeros_like(shape[1:])], 0)
        return tf.sparse.slice(item, start, tf.concat([[tf.cast(rows, tf.int64)], shape[1:]], 0))
    if isinstance(item, EagerTensor) and isinstance(first, int) and tf.executing_eagerly():
        return gen_array_ops._slice(item, *_constants(first, rows, item.shape.rank))
    return item[first:first + rows]


@functools.lru_cache(maxsize=256)
def _constants(first, rows, dimensions):
    """Begin and size of a slice: to make them takes ten times as long as to cut."""
    return tf.constant([first] + [0] * (dimensions - 1)), tf.constant([rows] + [-1] * (dimensions - 1))


def cut(batch):
    """This rank's rows of a batch, and which part of it they are.

    The batch is any nest of tensors; what has no rows (numbers, None) stays.  A batch whose tensors have different
    numbers of rows, or none, is nothing we can cut: it stays whole."""
    if is_left_alone() or world.size == 1:
        return WHOLE, batch
    if isinstance(batch, Rows):
        return of_rows(batch)
    flat = tf.nest.flatten(batch)
    batched = [tf.convert_to_tensor(item) if not hasattr(item.shape, "rank") else item
               for item in flat if item is not None and _is_batched(item)]
    total = _total(batched) if batched else None
    if total is None or (not tf.is_tensor(total) and total == 0):
        return WHOLE, batch
    part, first, rows = _part_of(batched, total)
    flat = [take_rows(item, first, rows) if item is not None and _is_batched(item) else item for item in flat]
    return part, tf.nest.pack_sequence_as(batch, flat)


def _part_of(items, total):
    """(part, first row, number of rows to take) of these tensors; where it turns out that they have different numbers of rows,
    all of all of them."""
    is_batch = have_as_many(items, total)
    if is_batch is True:
        return dynamic_part(total) if tf.is_tensor(total) else static_part(total)
    part, first, rows = dynamic_part(tf.cast(total, tf.int64))
    part.is_whole = ~is_batch
    return part, tf.where(is_batch, first, 0), tf.where(is_batch, rows, ALL_ROWS)


def cut_dynamic(batch):
    """The same for a batch of plain tensors whose size is known only when the function runs."""
    flat = tf.nest.flatten(batch)
    part, first, rows = dynamic_part(tf.shape(flat[0], out_type=tf.int64)[0])
    return part, tf.nest.pack_sequence_as(batch, [item[first:first + rows] for item in flat])


def of_rows(batch):
    """The part that was cut earlier, and its rows."""
    offset, count, total = tf.unstack(batch.numbers)
    if tf.executing_eagerly():
        return Part(int(offset), int(count), int(total)), batch.rows
    return Part(offset, count, total, tf.constant(False)), batch.rows


def gather(rows, part, name):
    """The rows of all ranks, in the order of the batch.  There may be several for each sample, or fewer (a mask); those made from
    a row that was lent do not count."""
    if isinstance(rows, tf.RaggedTensor):
        raise NotImplementedError(f"lockstep: '{name}': ragged rows of several ranks are not put together; TF_MPI_ENABLE=0 "
                                  "runs the script in one process")
    if part.is_static and part.is_whole:
        return rows
    if ops.is_in_xla():
        return _gather_in_xla(rows, part, name)
    if part.is_static:
        return ops.allgather(rows if part.counts() else rows[:0], name)
    return ops.allgather(rows[:tf.where(part.counts(), tf.shape(rows, out_type=tf.int64)[0], 0)], name)


def whole(batch):
    """The whole batch, also of one that was cut earlier."""
    if not isinstance(batch, Rows):
        return batch
    part, rows = of_rows(batch)
    flat = tf.nest.flatten(rows)
    return tf.nest.pack_sequence_as(rows, [gather(item, part, f"batch/{i}") for i, item in enumerate(flat)])


def _gather_in_xla(rows, part, name):
    """XLA has no all-gather of ours: each rank puts its rows where they belong among zeros, and all are added up."""
    if not part.is_static:
        raise native.LockstepError(f"'{name}': with jit_compile=True the rows of all ranks are only put together where the "
                                   "batch size is known; use drop_remainder=True, or jit_compile=False")
    of_sample = rows.shape[0] // max(part.count, 1)
    rows = rows[:of_sample * part.count]
    after = part.total - part.offset - part.count
    around = [[of_sample * part.offset, of_sample * after]] + [[0, 0]] * (rows.shape.rank - 1)
    return ops.allreduce(tf.pad(rows, around), name, op=ops.SUM)
