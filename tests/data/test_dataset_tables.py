# SPDX-License-Identifier: Apache-2.0
"""lockstep.DataSet from CSV, HDF5 and NetCDF: MaTEx's arrays, every row on one rank, none lost and none twice."""
import lockstep
import numpy as np
import pytest
from lockstep.data import formats
from lockstep.data.binding import DataError

SIZES = (1, 2, 3, 5)


def write_csv(path, labels):
    """Row i has i in all its columns; 11 rows on 4 ranks were MaTEx's undoing."""
    path.write_text("".join(f"{label},{row},{row}.5\n" for row, label in enumerate(labels)))
    return str(path)


@pytest.mark.parametrize("size", (*SIZES, 4))
@pytest.mark.parametrize("rows", (11, 50))
def test_csv(as_ranks, tmp_path, size, rows):
    labels = np.arange(rows) % 3
    ranks = as_ranks(size, "csv", train_file=write_csv(tmp_path / "train.csv", labels))
    data = np.concatenate([rank.training_data for rank in ranks])
    assert data.dtype == np.float64 and np.array_equal(data, np.stack([np.arange(rows), np.arange(rows) + 0.5], axis=1))
    assert np.array_equal(np.concatenate([rank.training_labels for rank in ranks]), np.eye(3)[labels])
    assert {len(rank.training_data) for rank in ranks} <= {rows // size, rows // size + 1}


def test_csv_with_labels_of_two_signs_and_splits(as_ranks, tmp_path):
    path = write_csv(tmp_path / "train.csv", np.where(np.arange(40) % 2, 1, -1))
    ranks = as_ranks(2, "CSV", train_file=path, valid_pct=0.25, test_pct=0.1)
    for rank in ranks:
        assert (len(rank.training_data), len(rank.validation_data), len(rank.testing_data)) == (13, 5, 2)
        assert rank.training_labels.shape == (13, 2)
    rows = np.concatenate([part[:, 0] for rank in ranks for part in (rank.training_data, rank.validation_data, rank.testing_data)])
    assert sorted(rows) == list(range(40))


def test_csv_of_a_folder(as_ranks, tmp_path):
    (tmp_path / "many").mkdir()
    for number in range(3):
        (tmp_path / "many" / f"{number}.csv").write_text("".join(f"{number};{row}\n" for row in range(5 + number)))
    ranks = as_ranks(3, "CSV", data_directory=str(tmp_path / "many"), delim=";")
    assert np.array_equal(np.concatenate([rank.training_data for rank in ranks])[:, 0], [0] * 5 + [1] * 6 + [2] * 7)
    assert all(rank.training_labels is None for rank in ranks)


def test_csv_whose_labels_are_none(as_ranks, tmp_path):
    with pytest.raises(DataError, match="labels must count from 0"):
        as_ranks(1, "CSV", train_file=write_csv(tmp_path / "bad.csv", [3, 4, 5]))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.skipif(formats()["hdf5"][1] is not None, reason="built without HDF5")
def test_hdf5_has_a_dataset_for_each_class(as_ranks, tmp_path, size):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "train.h5"
    with h5py.File(path, "w") as file:
        for number, (name, rows) in enumerate({"cat": 11, "dog": 7, "emu": 5}.items()):
            file[name] = np.stack([np.full(rows, number), np.arange(rows)], axis=1).astype("f4")
    ranks = as_ranks(size, "hdf5", train_file=str(path))
    data = np.concatenate([rank.training_data for rank in ranks])
    labels = np.concatenate([rank.training_labels for rank in ranks])
    assert data.dtype == np.float32 and np.array_equal(labels, np.eye(3)[data[:, 0].astype(int)])
    assert sorted(map(tuple, data)) == [(float(number), float(row)) for number, rows in enumerate((11, 7, 5))
                                        for row in range(rows)]


@pytest.mark.parametrize("size", SIZES)
def test_pnetcdf(as_ranks, tmp_path, size):
    netcdf_file = pytest.importorskip("scipy.io").netcdf_file
    rng = np.random.default_rng(2)
    expected = {}
    for name, rows in (("train", 23), ("test", 9)):
        expected[name] = rng.integers(0, 256, (rows, 6)).astype("u1"), rng.integers(0, 10, rows).astype("i4")
        with netcdf_file(tmp_path / f"{name}.nc", "w") as file:
            file.createDimension("record", None)
            file.createDimension("width", 6)
            file.createVariable("data", "b", ("record", "width"))[:] = expected[name][0].view("i1")
            file.createVariable("labels", "i", ("record",))[:] = expected[name][1]
    ranks = as_ranks(size, "PNETCDF", train_file=str(tmp_path / "train.nc"), test_file=str(tmp_path / "test.nc"))
    for name, data, labels in (("train", "training_data", "training_labels"), ("test", "testing_data", "testing_labels")):
        got = np.concatenate([getattr(rank, data) for rank in ranks])
        assert got.dtype == np.uint8 and np.array_equal(got, expected[name][0])
        assert np.array_equal(np.concatenate([getattr(rank, labels) for rank in ranks]), expected[name][1])
    assert all(rank.validation_data is None for rank in ranks)
