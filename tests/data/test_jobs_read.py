# SPDX-License-Identifier: Apache-2.0
"""Ranks of a real MPI job read together, and fail together."""
import json
import sys
from pathlib import Path

import datafiles
import numpy as np
import pytest
from jobs import ROOT, run_ranks
from lockstep.data import formats

h5py = pytest.importorskip("h5py")
netcdf_file = pytest.importorskip("scipy.io").netcdf_file
HAS_HDF5 = formats()["hdf5"][1] is None

SCRIPT = Path(__file__).resolve().parent / "job.py"
ROWS = 101


def write_tables(folder, numbers):
    table = 'data,text\n' + "".join(f'{number},"line\nbreak"\n' for number in numbers)
    datafiles.write(folder, "numbers.csv", table.encode())
    datafiles.write(folder, "bad.csv", table.encode()[:-3])
    if HAS_HDF5:
        with h5py.File(folder / "numbers.h5", "w") as file:
            file.create_dataset("data", data=numbers, chunks=(8,), compression="gzip")
    with netcdf_file(folder / "numbers.nc", "w") as file:
        file.createDimension("row", None)
        file.createVariable("data", "i2", ("row",))[:] = numbers


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    numbers = np.arange(ROWS, dtype=np.uint8)
    records = datafiles.tfrecord([b"%d" % number for number in numbers])
    datafiles.write(folder, "numbers.npy", datafiles.npy(numbers))
    datafiles.write(folder, "numbers-idx.gz", datafiles.gz(datafiles.idx(numbers)))
    datafiles.write(folder, "numbers.tfrecord", records)
    write_tables(folder, numbers)
    datafiles.write(folder, "bad.tfrecord", records[:-9])
    datafiles.write(folder, "few.npy", datafiles.npy(numbers[:1]))
    for name in ("train", "t10k"):
        datafiles.write(folder, f"{name}-images-idx3-ubyte", datafiles.idx(np.zeros((60, 28, 28), np.uint8)))
        datafiles.write(folder, f"{name}-labels-idx1-ubyte", datafiles.idx((np.arange(60) // 10).astype(np.uint8)))
    return folder


def objects(text):
    """The JSON objects in it; launchers may join the lines of two ranks."""
    at = text.find("{")
    while at >= 0:
        one, end = json.JSONDecoder().raw_decode(text, at)
        yield one
        at = text.find("{", end)


@pytest.mark.parametrize("n", [2, 3])
def test_ranks_read_together_and_fail_together(mpi, n, folder):
    settings = {"PYTHONPATH": ROOT / "python", "LOCKSTEP_LIB": mpi.folder / "lib", "LOCKSTEP_STALL_ABORT_S": 30}
    job = run_ranks(mpi, n, sys.executable, [SCRIPT, folder], settings, timeout=90)
    assert job.code == 0, str(job)
    said = {}
    for one in objects(job.stdout):
        said.setdefault(one["what"], {})[one["rank"]] = one["value"]
    for what, values in said.items():
        assert sorted(values) == list(range(n)), f"{what}: {values}"
    for name in ("numbers.npy", "numbers-idx.gz", "numbers.tfrecord", "numbers.csv", "numbers.nc", *["numbers.h5"] * HAS_HDF5):
        assert [row for rank in range(n) for row in said[name][rank]] == list(range(ROWS))
    every = "".join(f"{rank:02d}" for rank in range(n))
    assert all(value == [0, every, True] for value in said["exchanged"].values()), said["exchanged"]
    shuffled = [row for rank in range(n) for row in said["shuffled"][rank]]
    assert sorted(shuffled) == list(range(ROWS)) != shuffled
    for what, text in (("bad", "bad.tfrecord: record 100, byte "), ("bad table", "bad.csv: row 100, byte "), ("only on one rank", "missing.npy: it cannot be opened"),
                       ("few", "has 1 rows, fewer than the")):
        assert all(text in value for value in said[what].values()), said[what]
        assert len(set(said[what].values())) == 1
    assert sum(len(labels) for labels in said["mnist"].values()) == 10
