# SPDX-License-Identifier: Apache-2.0
"""Are the elements of a data set batches?

Only where the pipeline says so: a loop over single samples, or over sequences, must not have them cut.  Every class of
tensorflow/python/data/ops (TensorFlow 2.16 to 2.21) is of one of these kinds:

  makes batches    Batch, PaddedBatch, ...
  keeps elements   Prefetch, Repeat, Shuffle, ...: batches if those of its input are
  changes them     Map, Scan: batches if those of its input are, and the rows are still there as far as shapes tell
  combines         Zip (enumerate is one), Concatenate, DirectedInterleave (sample_from_datasets)
  stands for one   Variant: the argument of a function, as its trace sees it: batches if those are that it was called with
  unknown          sources, from_generator, FlatMap, Interleave, Window, Unbatch: no batches"""
import tensorflow as tf

from lockstep.data import mark
from lockstep.slices import current

_MAKE = {"Batch", "ParallelBatch", "PaddedBatch", "Rebatch", "LegacyRebatch", "MapAndBatch", "DenseToSparseBatch"}
_KEEP = {"Prefetch", "Options", "Take", "Skip", "Repeat", "Cache", "Shuffle", "ShuffleAndRepeat", "GlobalShuffle", "Filter",
         "IgnoreErrors", "Shard", "TakeWhile", "Snapshot", "LegacySnapshot", "Save", "Unique", "AssertCardinality",
         "AssertNext", "AssertPrev", "NonSerializable", "Sleep", "CopyToDevice", "AutoShard", "Restructured",
         "MaxIntraOpParallelism", "PrivateThreadPool", "Concatenate"}
_CHANGE = {"Map", "ParallelMap", "Scan", "ParseExample", "MapOnGpu"}


def is_batched(dataset, calls=None):
    """`calls`: those that a function's argument may come from; all that are being made, if not told."""
    if mark.is_partitioned(dataset):
        return False
    dataset = unwrapped(dataset)
    kind = kind_of(dataset)
    if kind in _MAKE:
        return True
    if kind == "Variant":
        given = list(current.given(tf.data.Dataset, dataset.element_spec, calls))
        return bool(given) and all(is_batched(item, earlier) for item, earlier in given)
    if kind == "Zip":
        return _is_zip_of_batches(dataset._inputs(), calls)
    if kind == "DirectedInterleave":
        return all(is_batched(item, calls) for item in dataset._inputs()[1:])  # the first says which of the others is next
    if kind == "GroupByWindow":
        return _adds_rows(dataset.element_spec, dataset._inputs()[0].element_spec)
    if kind not in _KEEP | _CHANGE:
        return False
    inputs = dataset._inputs()
    if not inputs or not all(is_batched(item, calls) for item in inputs):
        return False
    return kind in _KEEP or _keeps_rows(dataset.element_spec, inputs[0].element_spec)


def unwrapped(dataset):
    """What a data set of TensorFlow 1's style contains."""
    while hasattr(dataset, "_dataset") and type(dataset).__name__.startswith("DatasetV1"):
        dataset = dataset._dataset
    return dataset


def kind_of(dataset):
    """_ParallelMapDataset is a ParallelMap."""
    return type(dataset).__name__.strip("_").removesuffix("V2").removesuffix("Dataset")


def element_of(arguments, spec):
    """The element that tf.data gave a function as arguments: it takes tuples apart, also those of one, and nothing else."""
    return arguments if type(spec) is tuple else arguments[0]


def _is_zip_of_batches(inputs, calls):
    """Batches beside batches, or beside numbers."""
    others = [dataset for dataset in inputs if not is_batched(dataset, calls)]
    return len(others) < len(inputs) and all(
        _rank(spec) == 0 for dataset in others for spec in tf.nest.flatten(dataset.element_spec))


def _rank(spec):
    shape = getattr(spec, "shape", None)
    return None if shape is None else shape.rank


def _rows(specs):
    """The numbers of rows that shapes tell; None among them: not known."""
    return {spec.shape[0] for spec in tf.nest.flatten(specs) if _rank(spec)}


def _keeps_rows(after, before):
    """A map may turn a batch into something else: its statistics, or its transpose."""
    rows = _rows(after)
    return bool(rows) and len(rows) == 1 and rows <= _rows(before) | {None}


def _adds_rows(after, before):
    """bucket_by_sequence_length, group_by_window with a batch: every tensor has one dimension more."""
    after, before = tf.nest.flatten(after), tf.nest.flatten(before)
    return len(after) == len(before) and all(
        _rank(one) is not None and _rank(other) is not None and _rank(one) == _rank(other) + 1
        for one, other in zip(after, before))
