# SPDX-License-Identifier: Apache-2.0
"""LOCKSTEP_BATCH=per-rank: each rank computes whole batches of the script, n of them make one step.

    batches    0 1 2 | 3 4 5 | 6          3 ranks, 7 batches: 3 steps instead of 7
    rank 0     0       3       6
    rank 1       1       4     (6)        computes, but counts nothing
    rank 2         2       5   (6)

Gradients are weighted by the rows of each rank's batch, so the step is that of one process with the batches put together.
All ranks have the same number of steps."""
import tensorflow as tf

from lockstep import native, world
from lockstep.slices import part as parts
from lockstep.slices.batches import element_of


def is_on():
    return world.size > 1 and native.setting("BATCH") == "per-rank" and native.setting("SHARD") != "off"


def steps(number):
    """The number of steps that take so many batches."""
    return None if number is None else -(-number // world.size)


class FewerBatches:
    """A data adapter of Keras, of which one step takes a batch for each rank."""

    def __init__(self, adapter):
        self._adapter = adapter

    @property
    def num_batches(self):
        return steps(self._adapter.num_batches)

    def __getattr__(self, name):
        return getattr(self._adapter, name)


def grouped(dataset, per_epoch=None):
    """A data set of batches with this rank's batch of each group of n, as Rows.

    `per_epoch`: how many batches an epoch has, in a data set that goes on with those of the next one; a group has batches
    of one epoch, as a batch of one process has rows of one."""
    cardinality = int(dataset.cardinality())
    if per_epoch is None:
        per_epoch = cardinality if cardinality > 0 else None
        made = dataset.window(world.size).flat_map(lambda *window: _own_batch(
            tf.data.Dataset.zip(element_of(window, dataset.element_spec))))
    else:
        made = _grouped_by_epoch(dataset, per_epoch)
    if cardinality == tf.data.UNKNOWN_CARDINALITY:
        return made
    number = cardinality if per_epoch is None else cardinality // per_epoch * steps(per_epoch)
    return made.apply(tf.data.experimental.assert_cardinality(number)).prefetch(tf.data.AUTOTUNE)


def _grouped_by_epoch(dataset, per_epoch):
    full, rest = divmod(per_epoch, world.size)
    return dataset.enumerate().group_by_window(
        key_func=lambda index, _: index % per_epoch // world.size,
        reduce_func=lambda _, window: _own_batch(window.map(lambda index, batch: batch)),
        window_size_func=lambda group: tf.where(group < full, tf.constant(world.size, tf.int64), rest))


def _own_batch(batches):
    sizes, spec = batches.map(_rows), batches.element_spec
    total = sizes.reduce(tf.constant(0, tf.int64), tf.add)
    before = sizes.take(world.rank).reduce(tf.constant(0, tf.int64), tf.add)

    def own(*batch):
        return parts.Rows(tf.stack([before, _rows(*batch), total]), element_of(batch, spec))

    def idle(*batch):
        return parts.Rows(tf.stack([tf.zeros_like(total), tf.zeros_like(total), total]), element_of(batch, spec))

    return batches.skip(world.rank).take(1).map(own).concatenate(batches.take(1).map(idle)).take(1)


def _rows(*batch):
    """The number of rows; a batch without any counts as one."""
    items = [item for item in tf.nest.flatten(batch) if parts._is_batched(item)]
    total = parts._total(items) if items else None
    return tf.constant(1, tf.int64) if total is None else tf.cast(total, tf.int64)


def next_group(fetch):
    """The same for a loop in Python; fetch() gives its next batch."""
    group = [fetch()]
    for _ in range(world.size - 1):
        try:
            group.append(fetch())
        except (StopIteration, tf.errors.OutOfRangeError):
            break
    sizes = [int(_rows(batch)) for batch in group]
    if world.rank >= len(group):
        return parts.Rows((0, 0, sum(sizes)), group[0])
    return parts.Rows((sum(sizes[:world.rank]), sizes[world.rank], sum(sizes)), group[world.rank])


def scales_rate():
    return is_on() and native.setting("LR_SCALE") == "on"


def rate_factor(step):
    """What a learning rate is multiplied with at this step (a number, or a tensor of them)."""
    warmup = int(native.setting("LR_WARMUP_STEPS"))
    if warmup == 0:
        return float(world.size)
    reached = tf.minimum((tf.cast(step, tf.float32) + 1) / warmup, 1.0)
    return 1.0 + (world.size - 1) * reached
