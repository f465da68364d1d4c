# SPDX-License-Identifier: Apache-2.0
"""lockstep read: what is in a file, and one sentence about a file that cannot be read."""
import datafiles
import numpy as np
import pytest
from commands import lockstep


def test_fields_first_rows_and_ranks_are_shown(mpi, tmp_path):
    path = datafiles.write(tmp_path, "rows.npy", datafiles.npy(np.arange(10.0).reshape(5, 2)))
    result = lockstep(mpi, "read", "-n", 2, "--rows", 1, path)
    assert result.code == 0, str(result)
    assert result.out.splitlines() == [f"{path}: npy", "  data: 5 rows of float64 2", "  data[0] = [0. 1.]",
                                       "  rank 0: rows 0 to 2", "  rank 1: rows 3 to 4"]


def test_a_table_is_read_as_it_is_said_to_be(mpi, tmp_path):
    path = datafiles.write(tmp_path, "table.txt", b"1\tone\n2\ttwo\n")
    result = lockstep(mpi, "read", "--delimiter", "tab", "--no-header", "--columns", "1", path)
    assert result.code == 0, str(result)
    assert result.out.splitlines()[1:] == ["  1: 2 rows of bytes", "  1[0] = b'one'", "  1[1] = b'two'"]


def test_several_files_are_one_data_set(mpi, tmp_path):
    for name in ("a.npy", "b.npy"):
        datafiles.write(tmp_path, name, datafiles.npy(np.arange(3)))
    result = lockstep(mpi, "read", "--rows", 0, tmp_path / "a.npy", tmp_path / "b.npy")
    assert result.out.splitlines() == [f"{tmp_path / 'a.npy'} and 1 more: npy", "  data: 6 rows of int64"]


def test_fields_of_different_length_have_ranks_of_their_own(mpi, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"], file["b"] = np.zeros(4), np.zeros(6)
    result = lockstep(mpi, "read", "-n", 2, "--rows", 0, tmp_path / "x.h5")
    assert result.code == 0, str(result)
    assert result.out.splitlines()[-1] == "  rank 1: a rows 2 to 3, b rows 3 to 5"


@pytest.mark.parametrize("content, words, complaint", [
    (None, [], "x.npy: it cannot be opened: No such file"), (b"\x93NUMPY\x01\x00", [], "x.npy: byte"), (b"", [], "x.npy: "),
    (b"a,b\n1,2\n3\n", ["--format", "csv"], "x.npy: row 1, byte 8: this row has 1 field"),
    (b"a,b\n1,2\n", ["--format", "nothing"], "nothing"), (b"a,b\n1,2\n", ["--format", "csv", "--columns", "z"], "z"),
    (b"a,b\n1,2\n", ["--format", "csv", "--delimiter", "::"], "one ASCII character"),
    (b"a,b\n1,2\n", ["--rows", "some"], "'some' is not a number"),
])
def test_a_bad_file_is_one_sentence(mpi, tmp_path, content, words, complaint):
    if content is not None:
        datafiles.write(tmp_path, "x.npy", content)
    result = lockstep(mpi, "read", *words, tmp_path / "x.npy")
    assert result.code == 2, str(result)
    assert complaint in result.err and "Traceback" not in result.err and not result.out
    if not result.err.startswith("usage:"):
        assert len(result.err.splitlines()) == 1
