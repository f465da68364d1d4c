# SPDX-License-Identifier: Apache-2.0
"""Long reads say how far they are: rank 0, after some seconds, or the user's own function."""
import os
import sys

import datafiles
import lockstep.data
import numpy as np
import pytest
from lockstep.data import binding, progress


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """A file that takes ten steps to read, which counts as long at once."""
    monkeypatch.setattr(binding, "STEP_BYTES", 8000)
    monkeypatch.setattr(progress, "FIRST_AFTER_S", 0.0)
    return datafiles.write(tmp_path, "rows.npy", datafiles.npy(np.arange(10_000)))


def test_a_line_is_written_where_there_is_no_terminal(rows, capsys):
    np.testing.assert_array_equal(lockstep.data.read(rows, "data", as_numpy=True), np.arange(10_000))
    assert capsys.readouterr().err == "lockstep: reading rows.npy: 10 % after 0 s\n"


def _read_to_the_end(master):
    """A terminal hands over in pieces what was written; its end, when the other side is closed, is an error."""
    pieces = []
    with os.fdopen(master, "rb", buffering=0) as file:
        try:
            while piece := file.read(100_000):
                pieces.append(piece)
        except OSError:
            pass
    return b"".join(pieces).decode()


def test_the_line_of_a_terminal_is_written_over_and_taken_off(rows, monkeypatch):
    master, slave = os.openpty()
    monkeypatch.setattr(progress, "TERMINAL_EVERY_S", 0.0)
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        lockstep.data.read(rows, as_numpy=True)
    shown = _read_to_the_end(master)
    *lines, blank, end = shown.split("\r")[1:]
    assert [line.split(":")[-1].split("%")[0].strip() for line in lines] == [str(10 * step) for step in range(1, 10)]
    assert blank.strip() == "" and len(blank) == len(lines[-1]) and end == ""


def test_only_rank_0_says_it_and_it_can_be_turned_off(rows, capsys):
    lockstep.data.read(rows, as_numpy=True, part=(1, 2))
    lockstep.data.read(rows, as_numpy=True, progress=False)
    assert capsys.readouterr().err == ""


def test_a_short_read_is_silent(rows, monkeypatch, capsys):
    monkeypatch.setattr(progress, "FIRST_AFTER_S", 60.0)
    lockstep.data.read(rows, as_numpy=True)
    assert capsys.readouterr().err == ""


def test_a_function_is_told_each_step_and_can_stop_the_read(rows):
    told = []
    with lockstep.data.open(rows, progress=lambda path, done, total: told.append((path, done, total))) as source:
        source.read(0, 10_000)
    assert told == [(str(rows), done, 10_000) for done in range(1000, 10_000, 1000)]
    with lockstep.data.open(rows, progress=lambda path, done, total: done >= 3000) as source:
        with pytest.raises(lockstep.data.DataError, match="rows.npy: stopped on request after 3000 of 10000 rows"):
            source.read(0, 10_000)
