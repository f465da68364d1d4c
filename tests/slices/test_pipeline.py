# SPDX-License-Identifier: Apache-2.0
"""A pipeline rebuilt for a rank gives the rows that would be cut from the batches of the script's pipeline."""
import collections
import os
import sys

import numpy as np
import pytest
from jobs import ROOT, Mpi

tf = pytest.importorskip("tensorflow")
sys.path.insert(0, str(ROOT / "python"))
if Mpi("openmpi").folder.is_dir():
    os.environ.setdefault("LOCKSTEP_LIB", str(Mpi("openmpi").folder / "lib"))
else:
    os.environ.setdefault("LOCKSTEP_LIB", str(Mpi("mpich").folder / "lib"))

from lockstep import world  # noqa: E402
from lockstep.slices import batches, part as parts, pipeline, untuned, weak  # noqa: E402

X = np.arange(42, dtype="float32").reshape(21, 2)
Y = np.arange(21)


def source():
    return tf.data.Dataset.from_tensor_slices((X, Y))


def double(rows, label):
    return rows * 2, label


def choose(rows, label):
    return (rows, label) if label > 3 else (rows * 0, label)


def named(rows, label):
    return {"rows": rows, "label": label}


def only_rows(row):
    return row["rows"]


def with_number(number):
    return number, tf.cast(number, tf.float32)


def with_default(rows, label, factor=3, *, plus=1):
    return rows * factor + plus, label


def reverse(*columns):
    return columns[::-1]


def with_nothing(pair):
    return {"first": (pair[0] * 2,)}, None, pair[1]


def uneven(rows, label):
    return tf.RaggedTensor.from_row_lengths(tf.range(label), [label]), tf.sparse.from_dense(rows)


def noisy(rows, label):
    return rows + tf.random.uniform(()), label


REBUILT = {
    "shuffled": lambda: source().shuffle(10, seed=1).map(double).batch(8).prefetch(1),
    "two maps, repeated": lambda: source().map(named, num_parallel_calls=2).map(only_rows).repeat(2).batch(
        8, drop_remainder=True),
    "batches repeated": lambda: tf.data.Dataset.range(10).map(with_number, tf.data.AUTOTUNE).batch(
        4, num_parallel_calls=2).take(2).repeat(2),
    "after a filter": lambda: source().filter(lambda _, label: label > 2).map(choose).prefetch(2).batch(8),
}
Pair = collections.namedtuple("Pair", "rows label")
One = collections.namedtuple("One", "rows")
OF_ANY_STRUCTURE = {  # elements, what is mapped
    "a tensor": (X, lambda rows: rows * 2),
    "a tuple of one": ((X,), lambda rows: (rows * 2,)),
    "a tuple of a tuple": (((X, Y),), lambda pair: (pair,)),
    "a tuple of a tuple of one": (((X,),), lambda one: ((one,),)),
    "a tuple of a dictionary": (({"rows": X, "label": Y},), lambda row: (row,)),
    "a tuple of a named tuple": ((Pair(X, Y),), Pair._asdict),
    "a tuple and a tensor": (((X,), Y), lambda one, label: [label, one]),
    "a dictionary": ({"rows": X, "label": (Y,)}, lambda row: {"b": row["label"], "a": row}),
    "a named tuple": (Pair(X, Y), lambda pair: Pair(pair.label, pair.rows)),
    "a named tuple of one": (One(X), lambda one: One(one.rows * 2)),
    "nothing beside tensors": (((X, Y),), with_nothing),
    "a function with defaults": ((X, Y), with_default),
    "a function of any number": ((X, Y), reverse),
    "a function of any number, given one": ((X,), reverse),
    "ragged and sparse": ((X, Y), uneven),
}
CUT_LATER = {
    "random": lambda: source().map(noisy).batch(8),
    "shuffled after the map": lambda: source().map(double).shuffle(5, seed=1).batch(8),
    "no map": lambda: source().batch(8),
    "map of batches": lambda: source().map(double).batch(8).map(double),
    "padded": lambda: source().map(double).padded_batch(8),
    "no batch": lambda: source().map(double),
}


@pytest.fixture
def as_rank(monkeypatch):
    def become(rank, size):
        monkeypatch.setattr(world, "rank", rank)
        monkeypatch.setattr(world, "size", size)
    return become


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("name", REBUILT)
def test_a_rebuilt_pipeline_gives_the_rows_of_each_batch(name, size, as_rank):
    for rank in range(size):
        as_rank(rank, size)
        whole, own = REBUILT[name](), pipeline.sliced(REBUILT[name]())
        assert int(own.cardinality()) == int(whole.cardinality())
        for _ in range(2):  # epochs
            pairs = list(zip(whole, own, strict=True))
            assert pairs
            for batch, rows in pairs:
                expected, expected_rows = parts.cut(batch)
                part, rows = parts.of_rows(rows)
                assert (part.offset, part.count, part.total) == (expected.offset, expected.count, expected.total)
                tf.nest.map_structure(np.testing.assert_array_equal, rows, expected_rows)


@pytest.mark.parametrize("name", OF_ANY_STRUCTURE)
def test_elements_keep_their_structure(name, as_rank):
    as_rank(1, 2)
    elements, function = OF_ANY_STRUCTURE[name]
    whole = tf.data.Dataset.from_tensor_slices(elements).map(function).map(lambda *element: element).batch(8)
    own = pipeline.sliced(whole)
    assert own.element_spec.rows == whole.element_spec
    for batch, rows in zip(whole, own, strict=True):
        tensors, expected = (tf.nest.flatten(element, expand_composites=True) for element in (rows.rows, parts.cut(batch)[1]))
        for tensor, other in zip(tensors, expected, strict=True):
            np.testing.assert_array_equal(tensor, other)


def test_a_pipeline_goes_on_where_the_scripts_own_was(as_rank):
    """The order of the second epoch is the same whichever of the two pipelines gave the first."""
    as_rank(0, 2)
    alone, mixed = REBUILT["shuffled"](), REBUILT["shuffled"]()
    list(alone), list(mixed)
    for batch, rows in zip(alone, pipeline.sliced(mixed), strict=True):
        np.testing.assert_array_equal(parts.cut(batch)[1][1], rows.rows[1])


@pytest.mark.parametrize("name", CUT_LATER)
def test_what_is_not_certain_is_left_alone(name, as_rank):
    as_rank(0, 2)
    assert pipeline.sliced(CUT_LATER[name]()) is None


def test_a_step_of_ranks_with_their_own_batches_takes_those_of_one_epoch(as_rank):
    """10 rows, batches of 2, three ranks, two epochs in one data set: the last step of each has two batches."""
    whole = tf.data.Dataset.range(10).repeat(2).batch(2)
    for rank, rows, last in ((0, [0, 1], ([0, 2, 4], [6, 7])), (1, [2, 3], ([2, 2, 4], [8, 9])), (2, [4, 5], ([0, 0, 4], [6, 7]))):
        as_rank(rank, 3)
        grouped = weak.grouped(whole, per_epoch=5)
        given = [(step.numbers.numpy().tolist(), step.rows.numpy().tolist()) for step in grouped]
        assert given == 2 * [([2 * rank, 2, 6], rows), last]
        assert int(grouped.cardinality()) == len(given)


@pytest.mark.parametrize("per_epoch", [None, 3])
@pytest.mark.parametrize("elements", [X, (X,), ((X, Y),), ({"rows": X},), {"rows": X}, One(X)],
                         ids=["tensor", "one", "pair in one", "dictionary in one", "dictionary", "named"])
def test_a_step_of_ranks_with_their_own_batches_keeps_the_structure(elements, per_epoch, as_rank):
    as_rank(1, 2)
    whole = tf.data.Dataset.from_tensor_slices(elements).batch(8)  # of 8, 8 and 5 rows
    grouped = weak.grouped(whole, per_epoch)
    assert grouped.element_spec.rows == whole.element_spec
    for batch, step in zip(list(whole)[1::2], grouped):
        tf.nest.map_structure(np.testing.assert_array_equal, step.rows, batch)


def test_the_map_runs_for_own_rows_only(as_rank):
    as_rank(1, 2)
    calls = []

    def counted(number):
        return tf.numpy_function(lambda n: calls.append(int(n)) or n, [number], tf.int64)

    whole = tf.data.Dataset.range(16).map(counted).batch(8)
    pipeline._READING.add("PyFunc")
    try:
        list(pipeline.sliced(whole))
    finally:
        pipeline._READING.discard("PyFunc")
    assert calls == [4, 5, 6, 7, 12, 13, 14, 15]


@pytest.mark.parametrize("make, expected", [
    (lambda: source().batch(4), True),
    (lambda: source().padded_batch(4).prefetch(2).repeat().cache(), True),
    (lambda: source().ragged_batch(4), True),
    (lambda: source().batch(4).enumerate(), True),
    (lambda: tf.data.Dataset.zip((source().batch(4), source().batch(4))), True),
    (lambda: source().batch(4).map(lambda a, b: (a + 1, b)), True),
    (lambda: source().group_by_window(lambda a, b: b % 2, lambda _, window: window.batch(4), 4), True),
    (lambda: tf.data.Dataset.sample_from_datasets([source().batch(4), source().batch(2)], seed=1), True),
    (lambda: source().batch(4).concatenate(source().batch(2)), True),
    (lambda: source().batch(4).unbatch(), False),
    (lambda: source(), False),
    (lambda: source().batch(4).map(lambda a, b: tf.reduce_mean(a, 0)), False),
    (lambda: source().batch(4, drop_remainder=True).map(lambda a, b: tf.transpose(a)), False),
    (lambda: source().map(lambda a, b: a).window(3).flat_map(lambda window: window.batch(3)), False),
    (lambda: tf.data.Dataset.zip((source().batch(4), source())), False),
    (lambda: tf.data.Dataset.from_generator(lambda: [X], output_signature=tf.TensorSpec((None, 2))), False),
])
def test_which_data_sets_give_batches(make, expected):
    assert batches.is_batched(make()) is expected


def test_pipelines_of_a_rank_with_one_core_are_not_tuned_unless_the_script_says_so():
    options = tf.data.Options()
    options.autotune.enabled = True
    assert untuned.untuned(source().with_options(options)).options().autotune.enabled is True
    quiet = untuned.untuned(source().map(double).batch(8))
    assert quiet.options().autotune.enabled is False
    assert [label.tolist() for _, label in quiet.as_numpy_iterator()] == [label.tolist() for _, label in
                                                                          source().batch(8).as_numpy_iterator()]
