# SPDX-License-Identifier: Apache-2.0
"""LockstepReadRows: rows as tensors, without Python between file and TensorFlow."""
import gc

import datafiles
import lockstep.data
import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from lockstep.data import operator  # noqa: E402

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]

pytestmark = pytest.mark.skipif(not operator.is_available(), reason="the TensorFlow operators are not built")


@pytest.fixture
def every_type(tmp_path):
    arrays = {name: (np.arange(60).reshape(20, 3) % 2 if name == "bool" else np.arange(60).reshape(20, 3)).astype(name)
              for name in TYPES}
    return datafiles.write(tmp_path, "types.npz", datafiles.npz(**arrays)), arrays


def test_every_type_arrives(every_type):
    path, arrays = every_type
    with lockstep.data.open(path) as source:
        tensors = operator.read(operator.share(source), source.fields, tf.constant([7, 0, 19], tf.int64))
    for field, tensor in zip(source.fields, tensors):
        assert tensor.dtype == tf.as_dtype(field.dtype)
        np.testing.assert_array_equal(tensor.numpy(), arrays[field.name][[7, 0, 19]])


def test_strings_arrive_whatever_their_length(tmp_path):
    records = [b"", b"short", bytes(range(256)), b"x" * 22, b"y" * 23, b"z" * 100_000]
    path = datafiles.write(tmp_path, "a.tfrecord", datafiles.tfrecord(records))
    with lockstep.data.open(path) as source:
        number = operator.share(source)
        for _ in range(2):  # the second read uses the first one's memory
            tensor, = operator.read(number, source.fields, tf.constant([5, 0, 1, 2, 3, 4], tf.int64))
            assert tensor.numpy().tolist() == [records[5], *records[:5]]
        nothing, = operator.read(number, source.fields, tf.constant([], tf.int64))
        assert nothing.shape == (0,)


def test_errors_of_the_file_and_of_rows_come_through(tmp_path):
    path = datafiles.write(tmp_path, "a.npy", datafiles.npy(np.arange(10)))
    with lockstep.data.open(path) as source:
        number = operator.share(source)
        with pytest.raises(tf.errors.InvalidArgumentError, match="a.npy: rows 10 to 11 are asked for"):
            operator.read(number, source.fields, tf.constant([10], tf.int64))
        with pytest.raises(tf.errors.InvalidArgumentError, match="rows"):
            operator.read(number, source.fields, tf.constant([-1], tf.int64))
    for wrong in (number, -1, 10_000):
        with pytest.raises(tf.errors.FailedPreconditionError, match="the data set has been closed"):
            operator.read(wrong, source.fields, tf.constant([0], tf.int64))


@pytest.mark.parametrize("bounds, step", [([0, 3], 1), ([0, 3], -1), ([0, 4], 0), ([2, 1], 0), ([-1, 2], 0), ([0], 0), ([], 0)])
def test_a_step_that_is_not_there_is_refused(tmp_path, bounds, step):
    path = datafiles.write(tmp_path, "a.npy", datafiles.npy(np.arange(10)))
    with lockstep.data.open(path) as source:
        with pytest.raises(tf.errors.InvalidArgumentError, match="no such step"):
            operator.read(operator.share(source), source.fields, tf.constant([0, 1, 2], tf.int64), tf.constant(bounds, tf.int64), step)


def test_a_wrong_number_or_type_of_outputs_is_refused(tmp_path):
    path = datafiles.write(tmp_path, "a.npz", datafiles.npz(x=np.arange(10), y=np.arange(10.0)))
    operators = operator._library()[0]
    with lockstep.data.open(path) as source:
        number = operator.share(source)
        for types in ([tf.int64], [tf.int64, tf.float64, tf.float64], [tf.float64, tf.int64]):
            with pytest.raises(tf.errors.InvalidArgumentError, match="lockstep: "):
                operators.lockstep_read_rows(number, tf.constant([0], tf.int64), [0, 1], 0, types=types)


def test_files_are_closed_with_the_last_data_set(tmp_path):
    path = datafiles.write(tmp_path, "a.npy", datafiles.npy(np.arange(10)))
    dataset = lockstep.data.read(path, "data", batch=3).map(lambda x: x + 1)
    assert [len(batch) for batch in dataset] == [3, 3, 3, 1]  # the data set it was made from is alive
    iterator = iter(lockstep.data.read(path, "data", batch=3))
    gc.collect()
    assert len(list(iterator)) == 4


@pytest.mark.parametrize("size", [1, 3])
def test_python_and_the_operator_give_the_same(tmp_path, size, monkeypatch):
    path = datafiles.write(tmp_path, "a.npy", datafiles.npy(np.arange(50)))

    def epochs():
        dataset = lockstep.data.read(path, "data", batch=7, shuffle=True, seed=9, part=(size - 1, size))
        return [[batch.numpy().tolist() for batch in dataset] for _ in range(3)]

    by_operator = epochs()
    monkeypatch.setattr(operator, "is_available", lambda: False)
    assert epochs() == by_operator
