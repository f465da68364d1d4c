# SPDX-License-Identifier: Apache-2.0
"""Makes what a run on slices fetched into figures of the whole batch.

  a float             the mean over ranks, weighted by their rows; a sum over rows (the op is a Sum) is summed
  a whole number      summed: it counts something
  rows of the slice   all ranks' rows, in the order of the batch
  a summary           its scalars as the floats above; its histograms are of rank 0's slice
  anything else       as it is on this rank

Only what was computed from the slice is changed; what came through a reduced gradient is global already."""

import numpy as np
import tensorflow as tf

from lockstep import host

_SUMMARIES = ("ScalarSummary", "HistogramSummary", "MergeSummary", "ImageSummary", "AudioSummary", "TensorSummaryV2")
_SAME_VALUE = ("Identity", "Cast", "Squeeze", "Reshape")


def whole(plan, effects, results, part):
    results = list(results)
    weight = float(part.count)
    numbers = _Numbers()
    rows = []
    for i in effects.fetches:
        tensor, value = plan.fetches[i], results[i]
        if _is_summary(tensor):
            results[i] = numbers.add_summary(value, i)
        elif np.ndim(value) > 0:
            rows.append(i)
        elif np.asarray(value).dtype.kind == "f":
            numbers.add(value, i, _is_sum(tensor))
        elif np.asarray(value).dtype.kind in "iu":
            numbers.add(value, i, True)
    numbers.agree(results, weight)
    _gather(plan, results, rows, part)
    return results


class _Numbers:
    """Numbers that travel together: means and sums, each a vector."""

    def __init__(self):
        self.means, self.sums = [], []      # (value, what to do with the agreed value)
        self.summaries = []

    def add(self, value, position, is_sum):
        def put(results, agreed):
            results[position] = np.asarray(value).dtype.type(agreed)

        (self.sums if is_sum else self.means).append((float(value), put))

    def add_summary(self, value, position):
        summary = tf.compat.v1.Summary.FromString(value)
        for item in summary.value:
            if item.HasField("simple_value"):
                def put(_, agreed, item=item):
                    item.simple_value = agreed

                self.means.append((item.simple_value, put))
        self.summaries.append((position, summary))
        return value

    def agree(self, results, weight):
        for numbers, name, how in ((self.means, "mean", {"op": "mean", "weight": weight}), (self.sums, "sum", {"op": "sum"})):
            if numbers:
                own = np.array([value for value, _ in numbers], np.float64)
                agreed = host.allreduce(own, f"fetch/{name}/{len(own)}", **how)
                for (_, put), value in zip(numbers, agreed):
                    put(results, value)
        for position, summary in self.summaries:
            results[position] = summary.SerializeToString()


def _is_summary(tensor):
    return tensor.dtype == tf.string and tensor.op.type in _SUMMARIES


def _is_sum(tensor):
    """Is it a sum over rows?"""
    op = tensor.op
    while op.type in _SAME_VALUE:
        op = op.inputs[0].op
    if op.type != "Sum":
        return False
    shape = op.inputs[0].shape
    return shape.rank is not None and shape.rank > 0 and tf.compat.dimension_value(shape[0]) is None


def _gather(plan, results, candidates, part):
    """Gathers what has the slice's rows on every rank: one rank's rows may be as many as something else by chance."""
    if not candidates:
        return
    matches = np.array([len(results[i]) == part.count and _has_open_rows(plan.fetches[i]) for i in candidates], np.int32)
    matches = host.allreduce(matches, f"fetch/rows/{len(matches)}", op="min")
    for i in np.array(candidates)[matches > 0]:
        results[i] = _all_rows(results[i], f"fetch/{plan.fetches[i].name}")


def _has_open_rows(tensor):
    return tensor.shape.rank is None or tf.compat.dimension_value(tensor.shape[0]) is None


def _all_rows(rows, name):
    if rows.dtype.hasobject:
        return _all_texts(rows, name)
    if rows.dtype.name in host.DTYPES:
        return host.allgather(rows, name)[0]
    as_bytes = np.frombuffer(np.ascontiguousarray(rows).tobytes(), np.uint8).reshape(len(rows), -1)
    together, _ = host.allgather(as_bytes, name)
    return np.frombuffer(together.tobytes(), rows.dtype).reshape(-1, *rows.shape[1:])


def _all_texts(rows, name):
    """A fetched string tensor is an array of bytes objects."""
    lengths, _ = host.allgather(np.vectorize(len, otypes=[np.int64])(rows), f"{name}/lengths")
    together = b"".join(host.allgather_bytes(b"".join(rows.flat), f"{name}/bytes"))
    ends = np.cumsum(lengths)
    texts = np.empty(lengths.size, object)
    texts[:] = [together[end - length:end] for end, length in zip(ends.tolist(), lengths.flat)]
    return texts.reshape(lengths.shape)
