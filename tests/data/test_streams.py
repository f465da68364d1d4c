# SPDX-License-Identifier: Apache-2.0
"""Batches: the same as in one process, dealt to the ranks; every epoch in another order that all agree on."""
import threading

import datafiles
import lockstep.data
import numpy as np
import pytest
from lockstep.data import order
from lockstep.data.part import Part, current, given
from ranks import all_well, together

tf = pytest.importorskip("tensorflow")


@pytest.fixture
def numbers(tmp_path):
    return datafiles.write(tmp_path, "numbers.npy", datafiles.npy(np.arange(103)))


@pytest.fixture
def chunked(tmp_path):
    """Compressed, so rows are cheap in runs only: several runs of 1 MiB."""
    rows = np.zeros((40, 200_000), np.uint8)
    rows[:, 0] = np.arange(40)
    return datafiles.write(tmp_path, "chunked-idx.gz", datafiles.gz(datafiles.idx(rows), level=1))


def epochs(dataset, count):
    return [[batch.numpy() for batch in dataset] for _ in range(count)]


def read_epochs(path, size, count=2, first_column=False, **options):
    def work(part):
        dataset = lockstep.data.read(path, "data", part=part, **options)
        return [[batch[:, 0] if first_column else batch for batch in epoch] for epoch in epochs(dataset, count)]
    return all_well(together(size, work))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_ranks_batches_together_are_those_of_one_process(numbers, size, shuffle):
    alone, = read_epochs(numbers, 1, batch=10, shuffle=shuffle, seed=3)
    ranks = read_epochs(numbers, size, batch=10, shuffle=shuffle, seed=3)
    for epoch in range(2):
        assert [len(batch) for batch in alone[epoch]] == [10] * 10 + [3]
        for step, whole in enumerate(alone[epoch]):
            np.testing.assert_array_equal(np.concatenate([rank[epoch][step] for rank in ranks]), whole)
        assert sorted(np.concatenate(alone[epoch])) == list(range(103))
    for rank, one in enumerate(ranks):
        assert sum(map(len, one[0])) == Part(rank, size).block(103)[1]
        assert max(map(len, one[0])) - min(map(len, one[0][:-1])) <= 1
    if shuffle:
        assert [batch.tolist() for batch in alone[0]] != [batch.tolist() for batch in alone[1]]


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("shuffle", [False, True])
def test_rows_that_come_in_chunks_come_once_each(chunked, size, shuffle):
    ranks = read_epochs(chunked, size, batch=8, shuffle=shuffle, seed=1, first_column=True)
    for epoch in range(2):
        assert all(len(rank[epoch]) == 5 for rank in ranks)
        for step in range(5):
            assert sum(len(rank[epoch][step]) for rank in ranks) == 8
        got = np.concatenate([batch for rank in ranks for batch in rank[epoch]])
        assert sorted(got) == list(range(40))
        assert (got.tolist() != list(range(40))) == shuffle


def test_a_batch_smaller_than_the_job_is_empty_on_some_ranks(numbers):
    ranks = read_epochs(numbers, 5, count=1, batch=2)
    assert {len(batch) for rank in ranks for batch in rank[0]} == {0, 1}
    assert sorted(np.concatenate([batch for rank in ranks for batch in rank[0]])) == list(range(103))


def test_without_batch_the_rows_come_one_by_one(numbers):
    for size in (1, 3):
        parts = all_well(together(size, lambda part: [int(row) for row in lockstep.data.read(numbers, "data", part=part)]))
        assert sorted(row for part in parts for row in part) == list(range(103))


def test_the_last_batch_can_be_dropped(numbers):
    ranks = read_epochs(numbers, 2, count=1, batch=10, drop_remainder=True)
    assert all(len(rank[0]) == 10 for rank in ranks)


def test_a_dataset_knows_its_length_and_its_types(numbers):
    dataset = lockstep.data.read(numbers, "data", batch=10)
    assert len(dataset) == 11
    assert dataset.element_spec == tf.TensorSpec((None,), tf.int64)
    assert isinstance(lockstep.data.read(numbers, batch=10).element_spec, dict)
    assert isinstance(lockstep.data.read(numbers, ["data"], batch=10).element_spec, tuple)


def test_marked_data_is_recognised(numbers):
    dataset = lockstep.data.read(numbers, "data", batch=10)
    assert dataset._lockstep_partitioned
    assert lockstep.data.is_partitioned(dataset.map(lambda x: x + 1).repeat(2).prefetch(1))
    assert not lockstep.data.is_partitioned(tf.data.Dataset.range(3))
    array = lockstep.data.read(numbers, "data", as_numpy=True, part=(0, 2))
    assert lockstep.data.is_partitioned(array) and lockstep.data.is_partitioned(array[3:] / 2.0)
    assert not lockstep.data.is_partitioned(np.arange(3))


def test_who_stops_early_stops_the_reader(numbers):
    for _ in lockstep.data.read(numbers, "data", batch=1).take(2):
        pass
    iterator = iter(lockstep.data.read(numbers, "data", batch=1))
    next(iterator)
    del iterator
    deadline = threading.Event()
    for _ in range(50):
        if not [thread for thread in threading.enumerate() if thread.name == "ls-reader"]:
            return
        deadline.wait(0.1)
    pytest.fail("a reader thread is left")


def test_an_agreed_seed_is_drawn_when_none_is_given(numbers):
    ranks = read_epochs(numbers, 3, count=1, batch=103, shuffle=True)
    assert sorted(np.concatenate([rank[0][0] for rank in ranks])) == list(range(103))
    with pytest.raises(ValueError, match="needs a seed"):
        lockstep.data.read(numbers, batch=5, shuffle=True, part=(0, 2))


def test_shares_of_batches_are_fair():
    for size in range(1, 7):
        for batch in range(1, 9):
            totals = [0] * size
            for done in range(0, 200, batch):
                shares = [order.share(done, batch, Part(rank, size)) for rank in range(size)]
                assert [first for first, _ in shares] == [sum(n for _, n in shares[:rank]) for rank in range(size)]
                assert sum(count for _, count in shares) == batch
                totals = [total + count for total, (_, count) in zip(totals, shares)]
                assert max(totals) - min(totals) <= 1


def test_a_process_without_launcher_is_alone_and_starts_nothing(monkeypatch):
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("lockstep.native.start", lambda: pytest.fail("the engine was started"))
    assert current() == Part(0, 1, None)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("TF_MPI_ENABLE", "0")
    assert current() == Part(0, 1, None)
    assert given((1, 4)) == Part(1, 4, None)
    with pytest.raises(ValueError, match="0 <= rank < size"):
        given((4, 4))


def test_keras_trains_from_it(tmp_path):
    x = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    path = datafiles.write(tmp_path, "xy.npz", datafiles.npz(x=x, y=x @ np.array([[1.0], [2], [3], [4]], np.float32)))
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    history = model.fit(lockstep.data.read(path, ("x", "y"), batch=20, shuffle=True, seed=0), epochs=5, verbose=0)
    assert history.history["loss"][-1] < 0.01 < history.history["loss"][0]
