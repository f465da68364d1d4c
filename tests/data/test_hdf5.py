# SPDX-License-Identifier: Apache-2.0
"""HDF5: what the reader gives is what h5py gives; each row once, whatever the parts."""
import threading

import numpy as np
import pytest
from lockstep.data import formats
from reading import Data, DataError, read_in_parts, together

h5py = pytest.importorskip("h5py")

PARTS = (1, 2, 3, 5)
ROWS = 1003
LAYOUTS = {
    "contiguous": {}, "chunked": {"chunks": True}, "gzip": {"chunks": (64, 2, 3), "compression": "gzip"},
    "shuffle and checksum": {"chunks": (100, 4, 3), "shuffle": True, "compression": "gzip", "fletcher32": True},
    "one chunk": {"chunks": (ROWS, 4, 3), "compression": "gzip"}, "growing": {"chunks": (10, 4, 3), "maxshape": (None, 4, 3)},
    "odd chunks": {"chunks": (7, 3, 2)}}
TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
         ">i2", ">i4", ">u8", ">f4", ">f8")


pytestmark = pytest.mark.skipif(formats()["hdf5"][1] is not None, reason="built without HDF5")


def values(shape, dtype="float64"):
    return (np.random.default_rng(3).normal(size=shape) * 50).astype(dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_parts_together_are_what_h5py_reads(tmp_path, layout):
    path = tmp_path / "data.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values((ROWS, 4, 3)), **LAYOUTS[layout])
    with h5py.File(path) as file:
        for parts in PARTS:
            assert np.array_equal(read_in_parts(path, parts)["x"], file["x"][:]), f"{parts} parts"


@pytest.mark.parametrize("dtype", TYPES)
def test_types(tmp_path, dtype):
    with h5py.File(tmp_path / "types.h5", "w") as file:
        file["x"] = values((50, 3), dtype)
    got = read_in_parts(tmp_path / "types.h5", 3)["x"]
    assert got.dtype == np.dtype(dtype).newbyteorder("=") and np.array_equal(got, values((50, 3), dtype))


def test_groups_and_datasets_of_different_length(tmp_path):
    path = tmp_path / "groups.h5"
    with h5py.File(path, "w") as file:
        file["z"], file["a/b/deep"], file["a/label"] = values(20), values((30, 2)), np.arange(10)
        file["text"], file["one"], file["names"] = "hello", 3.5, [b"x", b"y"]
    with Data(path) as data:
        assert data.names == ["a/b/deep", "a/label", "z"]
        assert [data.field(name).num_rows for name in data.names] == [30, 10, 20]
    got = read_in_parts(path, 3)
    with h5py.File(path) as file:
        assert all(np.array_equal(got[name], file[name][:]) for name in got)
    assert Data(path, columns=["z"]).names == ["z"]


def test_who_asks_for_text_is_told_why_not(tmp_path):
    with h5py.File(tmp_path / "text.h5", "w") as file:
        file["names"], file["x"] = [b"x", b"y"], [1, 2]
    with pytest.raises(DataError, match="dataset 'names' cannot be read: its elements are no numbers"):
        Data(tmp_path / "text.h5", columns=["names"])


def test_files_with_the_same_datasets_are_one_data_set(tmp_path):
    for number in range(3):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file["x"], file["y"] = values((10 + number, 2)), np.full(10 + number, number)
    got = read_in_parts(tmp_path, 3)
    assert np.array_equal(got["y"], [0] * 10 + [1] * 11 + [2] * 12) and got["x"].shape == (33, 2)


def test_any_rows_in_any_order(tmp_path):
    path, expected, rng = tmp_path / "rows.h5", values((500, 6)), np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=expected, chunks=(33, 4), compression="gzip")
    with Data(path) as data:
        assert data.chunk_rows == 33
        for _ in range(40):
            first = int(rng.integers(0, 500))
            count = int(rng.integers(0, 500 - first + 1))
            assert np.array_equal(data.read(first, count)["x"], expected[first:first + count])


def test_contiguous_data_is_mapped_without_a_copy(tmp_path):
    path = tmp_path / "map.h5"
    with h5py.File(path, "w") as file:
        file["plain"] = values((100, 4), "float32")
        file.create_dataset("packed", data=values((100, 4)), chunks=True, compression="gzip")
        file["big"] = values(100, ">f8")
    with Data(path) as data, h5py.File(path) as file:
        assert np.array_equal(data.map("plain"), file["plain"][:])
        for name in ("packed", "big"):
            with pytest.raises(DataError, match=f"'{name}'"):
                data.map(name)


def test_data_that_was_never_written_is_its_fill_value(tmp_path):
    with h5py.File(tmp_path / "fill.h5", "w") as file:
        file.create_dataset("x", (40, 2), "f4", fillvalue=2.5)
        file.create_dataset("chunked", (40, 2), "f4", fillvalue=1.5, chunks=(8, 2))[10:12] = 7
    got = read_in_parts(tmp_path / "fill.h5", 3)
    assert np.all(got["x"] == 2.5) and got["chunked"].sum() == 36 * 2 * 1.5 + 7 * 4 + 2 * 2 * 1.5


def test_threads_read_several_files_at_once(tmp_path):
    for number in range(4):
        with h5py.File(tmp_path / f"{number}.h5", "w") as file:
            file.create_dataset("x", data=values((400, 5)) + number, chunks=(16, 5), compression="gzip")
    failures = []

    def read(number):
        with Data(tmp_path / f"{number % 4}.h5") as data:
            for first in range(0, 400, 50):
                if not np.array_equal(data.read(first, 50)["x"], (values((400, 5)) + number % 4)[first:first + 50]):
                    failures.append(number)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures


def test_our_libhdf5_and_h5pys_live_in_one_process(tmp_path):
    with h5py.File(tmp_path / "both.h5", "w") as file:
        file.create_dataset("x", data=values(100), chunks=(10,), compression="gzip")
    with Data(tmp_path / "both.h5") as data, h5py.File(tmp_path / "both.h5") as file:
        assert np.array_equal(data.read()["x"], file["x"][:])


def test_an_error_is_the_error_of_all_ranks(tmp_path):
    path = tmp_path / "cut.h5"
    with h5py.File(path, "w") as file:
        file["x"] = values((1000, 4))
    path.write_bytes(path.read_bytes()[:20000])
    outcomes = together(3, lambda part: Data(path, part=part))
    assert all(isinstance(outcome, DataError) and "cut.h5" in str(outcome) for outcome in outcomes)
