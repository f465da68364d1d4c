# SPDX-License-Identifier: Apache-2.0
"""lockstep.DataSet, as MaTEx's scripts use it."""
import collections
import inspect

import datafiles
import lockstep
import numpy as np
import pytest
from lockstep.data import order
from lockstep.data.part import Part

RNG = np.random.default_rng(1)


@pytest.fixture
def mnist(tmp_path):
    folder = tmp_path / "MNIST_data"
    folder.mkdir()
    arrays = {}
    for name, rows, pack in (("train", 121, datafiles.gz), ("t10k", 29, lambda data: data)):
        images = RNG.integers(0, 256, (rows, 28, 28)).astype(np.uint8)
        labels = (np.arange(rows) % 10).astype(np.uint8)
        suffix = ".gz" if pack is datafiles.gz else ""
        datafiles.write(folder, f"{name}-images-idx3-ubyte{suffix}", pack(datafiles.idx(images)))
        datafiles.write(folder, f"{name}-labels-idx1-ubyte{suffix}", pack(datafiles.idx(labels)))
        arrays[name] = images, labels
    return folder, arrays


@pytest.fixture
def cifar(tmp_path):
    data = RNG.integers(0, 256, (60, 3072)).astype(np.uint8)
    labels = np.arange(60) % 10
    folder = tmp_path / "CIFAR_data" / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for i in range(5):
        rows = slice(10 * i, 10 * i + 10)
        datafiles.write(folder, f"data_batch_{i + 1}", datafiles.cifar_pickle(data[rows], labels[rows]))
    datafiles.write(folder, "test_batch", datafiles.cifar_pickle(data[50:], labels[50:]))
    folder = tmp_path / "CIFAR_data" / "cifar-100-python"
    folder.mkdir()
    datafiles.write(folder, "train", datafiles.cifar_pickle(data[:50], fine=labels[:50] * 9, coarse=labels[:50]))
    datafiles.write(folder, "test", datafiles.cifar_pickle(data[50:], fine=labels[50:] * 9, coarse=labels[50:]))
    return tmp_path / "CIFAR_data", data, labels


def together_rows(sets, attribute):
    return np.concatenate([np.asarray(getattr(one, attribute)) for one in sets])


def test_the_signature_is_matexs():
    parameters = inspect.signature(lockstep.DataSet.__init__).parameters
    assert [(name, parameter.default) for name, parameter in parameters.items()][2:] == [
        ("train_batch_size", None), ("test_batch_size", None), ("normalize", 1.0), ("train_file", None),
        ("validation_file", None), ("test_file", None), ("valid_pct", 0.0), ("test_pct", 0.0), ("data_directory", None),
        ("delim", ",")]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_mnist(as_ranks, mnist, size):
    folder, arrays = mnist
    sets = as_ranks(size, "mnist", normalize=255.0, data_directory=str(folder))
    images, labels = arrays["train"]
    expected = images.reshape(-1, 28, 28, 1) / 255.0
    np.testing.assert_array_equal(together_rows(sets, "training_data"), expected[:101])
    np.testing.assert_array_equal(together_rows(sets, "validation_data"), expected[101:])
    np.testing.assert_array_equal(together_rows(sets, "testing_data"), arrays["t10k"][0].reshape(-1, 28, 28, 1) / 255.0)
    np.testing.assert_array_equal(together_rows(sets, "training_labels"), np.eye(10)[labels[:101]])
    assert together_rows(sets, "testing_labels").dtype == np.float64
    assert [len(one.training_data) for one in sets] == [Part(rank, size).block(101)[1] for rank in range(size)]
    assert all(lockstep.data.is_partitioned(one.training_data) == (size > 1) for one in sets)


@pytest.mark.parametrize("size", [1, 3])
def test_cifar10(as_ranks, cifar, size):
    folder, data, labels = cifar
    pictures = data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    sets = as_ranks(size, "CIFAR10", data_directory=str(folder), valid_pct=0.2)
    np.testing.assert_array_equal(together_rows(sets, "validation_data"), pictures[:10])
    np.testing.assert_array_equal(together_rows(sets, "training_data"), pictures[10:50])
    np.testing.assert_array_equal(together_rows(sets, "testing_data"), pictures[50:])
    np.testing.assert_array_equal(together_rows(sets, "training_labels"), np.eye(10)[labels[10:50]])
    assert as_ranks(1, "cifar10", data_directory=str(folder))[0].validation_data is None


def test_cifar100_is_flat_and_has_fine_labels(as_ranks, cifar):
    folder, data, labels = cifar
    one, = as_ranks(1, "Cifar100", data_directory=str(folder))
    np.testing.assert_array_equal(one.training_data, data[:50])
    np.testing.assert_array_equal(one.testing_labels, np.eye(100)[labels[50:] * 9])


def test_the_usual_folders_are_found(as_ranks, mnist, cifar, monkeypatch):
    monkeypatch.chdir(mnist[0].parent)
    assert as_ranks(1, "MNIST")[0].training_data.shape == (101, 28, 28, 1)
    assert as_ranks(1, "CIFAR10")[0].training_data.shape == (50, 32, 32, 3)


def test_batches_go_round_and_are_shared_by_the_ranks(as_ranks, mnist):
    folder, arrays = mnist
    alone, = as_ranks(1, "MNIST", 40, 10, data_directory=str(folder))
    first = alone.next_train_batch()
    assert isinstance(first, list) and len(first[0]) == len(first[1]) == 40
    rest = [alone.next_train_batch() for _ in range(2)]
    np.testing.assert_array_equal(rest[1][0][-19:], first[0][:19])  # 120 rows of 101: round again
    sets = as_ranks(3, "MNIST", 40, 10, data_directory=str(folder))
    for _ in range(4):
        assert sum(len(one.next_train_batch()[0]) for one in sets) == 40
        assert sum(len(one.next_test_batch()[1]) for one in sets) == 10
        assert sum(len(one.next_validation_batch()[1]) for one in sets) == 10


def test_each_round_gives_every_row_once(as_ranks, mnist):
    """101 rows do not divide by 3, nor 303 by 20; a batch may hold the end of a round and the beginning of the next."""
    sets = as_ranks(3, "MNIST", 20, 10, data_directory=str(mnist[0]))
    came = collections.Counter()
    for _ in range(16):
        came.update(row.tobytes() for one in sets for row in one.next_train_batch()[0])
    assert len(came) == 101 and set(came.values()) == {3, 4} and sum(came.values()) == 320


def test_ranks_that_hold_different_numbers_of_rows_take_turns_until_theirs_are_out():
    held = [5, 0, 2]
    assert [order.given(total, held) for total in range(8)] == [
        [0, 0, 0], [1, 0, 0], [1, 0, 1], [2, 0, 1], [2, 0, 2], [3, 0, 2], [4, 0, 2], [5, 0, 2]]
    assert order.given(7 + 3, held) == [5 + 2, 0, 2 + 1]
    for held in ([11, 10, 10], [1, 9, 3, 3], [4]):
        for total in range(3 * sum(held)):
            before, after = order.given(total, held), order.given(total + 1, held)
            assert sum(before) == total and sum(after) == total + 1
            assert all(b <= a <= b + 1 for b, a in zip(before, after))


def test_no_batch_size_is_matexs_warning(as_ranks, mnist):
    one, = as_ranks(1, "MNIST", data_directory=str(mnist[0]))
    with pytest.raises(UserWarning, match="No Training Batch Size Specified"):
        one.next_train_batch()
    with pytest.raises(UserWarning, match="No Testing Batch Size Specified"):
        one.next_test_batch()


def test_what_is_wrong_is_said(as_ranks, mnist, tmp_path):
    with pytest.raises(ValueError, match="there is no data set 'IMAGENET'; there are MNIST, CIFAR10"):
        lockstep.DataSet("IMAGENET")
    with pytest.raises(ValueError, match="valid_pct must be a fraction"):
        lockstep.DataSet("CIFAR10", valid_pct=20)
    with pytest.raises(lockstep.data.DataError, match="nothing is downloaded"):
        lockstep.DataSet("MNIST", data_directory=str(tmp_path / "nowhere"))
    (mnist[0] / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(lockstep.data.DataError, match="there is no t10k-labels-idx1-ubyte.gz and no t10k-labels-idx1-ubyte"):
        as_ranks(1, "MNIST", data_directory=str(mnist[0]))
