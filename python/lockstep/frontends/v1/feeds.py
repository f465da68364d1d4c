# SPDX-License-Identifier: Apache-2.0
"""Cuts what is fed to a run that trains.

Arrays fed to placeholders whose first dimension is unknown, and which all have the same number of rows, are the batch.  What
has a fixed size (class weights, a learning rate) stays.  If the script counts on the number of rows elsewhere, nothing is
cut: every rank computes the whole batch, and the mean of equal gradients is that gradient."""
import numpy as np
import tensorflow as tf

from lockstep import host, native, say, world
from lockstep.data import mark
from lockstep.slices import part as parts


def is_own(feed_dict):
    """Is one of the values this rank's part already, as lockstep.data gives it?"""
    return bool(feed_dict) and world.size > 1 and native.setting("SHARD") != "off" and any(
        map(mark.is_partitioned, feed_dict.values()))


def own(feed):
    """(part, feed with at least one row, the tensors that are fed rows) where the rows are this rank's own; ranks may have
    different numbers of them, and one without any computes on a row of zeros, which counts nothing."""
    found = batch(feed)
    rows = {len(feed[ref]) for ref in found}
    if len(rows) != 1:
        raise native.LockstepError(f"a step is fed rows of lockstep.data together with arrays of {sorted(rows)} rows: take all of "
                                   "them from one data set")
    count = rows.pop()
    counts, _ = host.allgather(np.array([count], np.int64), "feed/rows")
    if counts.sum() == 0:
        return None, feed, []
    part = parts.Part(int(counts[:world.rank].sum()), count, int(counts.sum()))
    if count == 0:
        feed = {**feed, **{ref: np.zeros((1, *feed[ref].shape[1:]), feed[ref].dtype) for ref in found}}
    return part, feed, [ref.deref() for ref in found]


def cut(plan, feed):
    """(part, the feed with this rank's rows, the tensors that were cut); nothing to cut: (None, feed, [])"""
    found = batch(feed)
    if not found:
        _note_fixed(feed)
        return None, feed, []
    rows = {len(feed[ref]) for ref in found}
    if max(rows) < world.size:
        return None, feed, []
    problem = _problem(plan, feed, found, rows)
    if problem:
        say.once(f"{problem}; every rank computes the whole batch, which is right but not faster")
        return None, feed, []
    total = rows.pop()
    part, first, count = parts.static_part(total)
    feed = dict(feed)
    for ref in found:
        feed[ref] = feed[ref][first:first + count]
    return part, feed, [ref.deref() for ref in found]


def batch(feed):
    """Refs of the tensors that are fed rows; of those with an unknown rank only where no other says what a row is, or where
    they agree."""
    sure, perhaps = [], []
    for ref, value in feed.items():
        shape = ref.deref().shape
        if not isinstance(value, np.ndarray) or value.ndim == 0:
            continue
        if shape.rank is None:
            perhaps.append(ref)
        elif shape.rank > 0 and tf.compat.dimension_value(shape[0]) is None:
            sure.append(ref)
    if not sure:
        return perhaps
    rows = {len(feed[ref]) for ref in sure}
    return sure + [ref for ref in perhaps if len(feed[ref]) in rows]


def _composite(feed):
    """The name of a sparse or ragged tensor that is fed: its parts have rows of their own kind."""
    names = {ref.deref().op.name for ref in feed}
    for name in names:
        scope, _, last = name.rpartition("/")
        if (last == "indices" and f"{scope}/values" in names) or last.startswith("row_splits_"):
            return scope
    return None


def _problem(plan, feed, found, rows):
    composite = _composite(feed)
    if composite is not None:
        return f"{composite} is fed a sparse or ragged value"
    if len(rows) > 1:
        numbers = ", ".join(f"{ref.deref().name} {len(feed[ref])}" for ref in found)
        return f"the arrays fed have different numbers of rows ({numbers})"
    total = next(iter(rows))
    for ref, value in feed.items():
        tensor = ref.deref()
        if ref in found or not isinstance(value, np.ndarray):
            continue
        if value.ndim > 0 and len(value) == total:
            return f"{tensor.name} has the fixed size {tuple(tensor.shape.as_list())} and is fed {total} rows"
        if value.ndim == 0 and value.dtype.kind in "iu" and int(value) == total:
            return f"{tensor.name} is fed {total}, the number of rows of the batch"
    if total in plan.fixed_rows:
        return f"the graph has the batch size {total} written into it"
    return None


def _note_fixed(feed):
    for ref, value in feed.items():
        tensor = ref.deref()
        if isinstance(value, np.ndarray) and value.ndim > 1:
            say.once(f"{tensor.name} has the fixed size {tuple(tensor.shape.as_list())}, so that its batch cannot be cut; every rank computes "
                     "the whole batch, which is right but not faster")
