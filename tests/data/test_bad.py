# SPDX-License-Identifier: Apache-2.0
"""Each bad file ends in an error that names the file, the place and the reason: on every rank, and in C under ASan and UBSan."""
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import datafiles
import lockstep.data
import numpy as np
import pytest
from jobs import ROOT
from lockstep.data.binding import DataError
from ranks import together

sys.path.insert(0, str(ROOT / "tests" / "badfiles"))

from cases import CASES, ROWS  # noqa: E402

PROGRAM = ROOT / "build" / "asan" / "badfiles" / "read_all"
LIMIT = 60


def skip_if_root_may_read(case):
    if case.name == "forbidden" and os.geteuid() == 0:
        pytest.skip("root may read everything")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_error_names_file_place_and_reason(case, tmp_path):
    skip_if_root_may_read(case)
    path = case.write(tmp_path)

    def read(part):
        with lockstep.data.open(path, part=part, format=case.format) as source:
            for number, field in enumerate(source.fields):
                for row in range(0, field.num_rows, 7):
                    source.read(row, min(7, field.num_rows - row), [number])

    for result in together(case.ranks, read):
        assert isinstance(result, DataError), f"no error but {result!r}"
        text = str(result)
        assert text.startswith(f"{path}: "), text
        assert re.search("^" + case.error, text[len(f"{path}: "):]), text


@pytest.fixture(scope="module")
def read_all():
    """The program, with sanitizers; one that is there is brought up to date."""
    subprocess.run([ROOT / "tools" / "build", "--target", "badfiles_read_all", "asan"], check=True, timeout=600,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(path, format=None, ranks=1, rank=0):
        command = [PROGRAM, format or "-", str(ranks), str(rank), path]
        return subprocess.run(command, text=True, capture_output=True, timeout=LIMIT, errors="replace")
    return run


def test_sanitizers_find_nothing_in_bad_files(read_all, tmp_path):
    for case in CASES:
        if case.name == "forbidden" and os.geteuid() == 0:
            continue
        path = case.write(tmp_path)
        for rank in range(case.ranks):
            result = read_all(path, case.format, case.ranks, rank)
            assert result.returncode == 1 and "Sanitizer" not in result.stderr and "runtime error" not in result.stderr, \
                f"{case.name}: {result}"
            assert str(path) in result.stderr, f"{case.name}: {result.stderr}"


def test_sanitizers_find_nothing_in_good_files(read_all, tmp_path):
    good = {"a-idx": datafiles.idx(ROWS), "b.gz": datafiles.gz(datafiles.idx(ROWS)), "c.npy": datafiles.npy(ROWS),
            "d.npz": datafiles.npz(True, x=ROWS, y=np.arange(60)), "e.tfrecord": datafiles.tfrecord([b"x" * i for i in range(99)]),
            "f": datafiles.cifar_pickle(np.zeros((20, 3072), np.uint8), [1] * 20)}
    for name, content in good.items():
        result = read_all(datafiles.write(tmp_path, name, content))
        assert result.returncode == 0 and not result.stderr, f"{name}: {result}"


UNREADABLE = """
import os, sys
import lockstep.data
lockstep.data.formats()  # the library is loaded while all may be read
if os.geteuid() == 0:
    os.seteuid(65534)
for path in sys.argv[1:]:
    try:
        lockstep.data.open(path)
        print("no error", path)
    except lockstep.data.DataError as error:
        print(error)
"""


def test_a_file_and_a_folder_that_one_may_not_read(tmp_path):
    """By a process that is not root, whoever runs the tests."""
    file, folder = datafiles.write(tmp_path, "rows.npy", datafiles.npy(ROWS)), tmp_path / "folder"
    folder.mkdir()
    for path in (file, folder):
        path.chmod(0)
    try:
        result = subprocess.run([sys.executable, "-c", UNREADABLE, file, folder], text=True, capture_output=True, timeout=LIMIT,
                                env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    finally:
        folder.chmod(0o700)
    lines = result.stdout.splitlines()
    assert len(lines) == 2, result
    for path, line in zip((file, folder), lines):
        assert re.search(rf"^{path}: .*Permission denied", line), line


def cut_everywhere(content, step):
    return [content[:length] for length in range(0, len(content), step)]


@pytest.mark.parametrize("name,content", [
    ("idx", datafiles.idx(ROWS[:2])), ("idx.gz", datafiles.gz(datafiles.idx(ROWS[:20]))), ("npy", datafiles.npy(ROWS[:2])),
    ("npz", datafiles.npz(True, x=ROWS[:3])), ("tfrecord", datafiles.tfrecord([b"some", b"records", b"of text"])),
    ("cifar", datafiles.cifar_pickle(np.zeros((3, 3072), np.uint8), [1, 2, 3]))])
def test_a_file_cut_anywhere_is_an_error(tmp_path, name, content):
    kind = {"idx.gz": "idx"}.get(name, name)
    for number, cut in enumerate(cut_everywhere(content, max(1, len(content) // 200))):
        path = datafiles.write(tmp_path, f"cut-{number}", cut)
        if name == "tfrecord" and len(cut) in (20, 43):
            continue  # whole records
        with pytest.raises(DataError, match=re.escape(str(path))):
            with lockstep.data.open(path, format=kind) as source:
                source.read(0, source.num_rows)


def test_a_file_that_grows_is_noticed(tmp_path):
    path = datafiles.write(tmp_path, "rows-idx", datafiles.idx(ROWS))
    with lockstep.data.open(path) as source:
        source.read(0, 10)
        with path.open("ab") as file:
            file.write(b"more")
        with pytest.raises(DataError, match="changed while it was read: it had 47056 bytes, now 47060"):
            source.read(10, 10)


def test_a_file_that_is_cut_while_it_is_read_is_noticed(tmp_path):
    for name, content in (("rows-idx", datafiles.idx(ROWS)), ("rows.npy", datafiles.npy(ROWS)),
                          ("rows.npz", datafiles.npz(x=ROWS)), ("rows.tfrecord", datafiles.tfrecord([b"x" * 50] * 100))):
        path = datafiles.write(tmp_path, name, content)
        with lockstep.data.open(path) as source:
            source.read(0, 3)
            os.truncate(path, 200)
            with pytest.raises(DataError, match=f"{name}: the file has changed while it was read"):
                source.read(30, 20)


def test_a_file_that_is_written_anew_is_noticed(tmp_path):
    path = datafiles.write(tmp_path, "rows.npy", datafiles.npy(ROWS))
    with lockstep.data.open(path) as source:
        os.utime(path, ns=(1, 1))
        with pytest.raises(DataError, match="it was written to after it was opened"):
            source.read(0, 1)


def test_an_error_in_the_middle_reaches_who_iterates(tmp_path):
    tf = pytest.importorskip("tensorflow")
    content = bytearray(datafiles.tfrecord([b"record"] * 50))
    content[40 * 22 + 13] ^= 1
    path = datafiles.write(tmp_path, "bad.tfrecord", bytes(content))
    with pytest.raises(tf.errors.OpError, match="record 40, byte 892: the record's data has a wrong checksum"):
        for _ in lockstep.data.read(path, "record", batch=8):
            pass
    assert not [thread for thread in threading.enumerate() if thread.name == "ls-reader"]


def test_checksums_can_be_skipped(tmp_path):
    content = bytearray(datafiles.tfrecord([b"record"] * 50))
    content[40 * 22 + 13] ^= 1
    path = datafiles.write(tmp_path, "bad.tfrecord", bytes(content))
    assert len(lockstep.data.read(path, "record", as_numpy=True, skip_checksums=True)) == 50


def test_a_missing_library_is_named():
    """Formats that this build lacks are in the table, with the library's name."""
    for name, (_, library) in lockstep.data.formats().items():
        if library is not None:
            with pytest.raises(DataError, match=f"lacks the library {library}"):
                lockstep.data.open(Path(__file__), format=name)
