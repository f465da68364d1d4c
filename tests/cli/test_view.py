# SPDX-License-Identifier: Apache-2.0
"""How far a job is: what ranks write, what the views make of it."""
import os
import pty
import re
import subprocess
import sys
import time

import pytest
from commands import environment, lockstep
from jobs import ROOT, kill_job

sys.path.insert(0, str(ROOT / "python"))
from lockstep import progress  # noqa: E402
from lockstep.cli.view import Progress, line_of, plain_table, rows_of  # noqa: E402

# Steps of 20 ms; the loss is read only when it is written.
SCRIPT = """
import sys, time
from lockstep import progress
num_reads = 0
def loss():
    global num_reads
    num_reads += 1
    return 0.25
begin = time.monotonic()
for step in range(1, 101):
    time.sleep(0.02)
    progress.update(step, samples=32 * step, loss=loss, wait_s=0.005 * step, num_steps=100)
    if step % 25 == 0:
        print("printed", step)
print("reads", num_reads, "in", time.monotonic() - begin, "s")
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def status(rank, step, at, samples=0, wait_s=0.0):
    return progress.Status(rank, 1, step, 200, samples, 0.5, wait_s, at, 1 << 20, at, "host")


def job_of(monkeypatch, *moments):
    """A Progress that has seen these moments, each a list of statuses."""
    job = Progress("folder")
    for moment in moments:
        monkeypatch.setattr(progress, "read_all", lambda folder, moment=moment: moment)
        job.read()
    return job


def test_speeds_are_of_the_last_seconds(monkeypatch):
    job = job_of(monkeypatch, [status(0, 0, 0.0)], [status(0, 100, 100.0, 100)], [status(0, 150, 105.0, 2000, 2.5)])
    assert line_of(job) == "step 150 of 200  380 samples/s  loss 0.5  0:05 left  waiting 50 %"
    assert rows_of(job)[0] == ("0", "host", "150", "100.0", "50", "100", "1")
    assert "ms/step" in plain_table(rows_of(job)).splitlines()[0]


def test_without_a_word_from_the_ranks_there_is_no_line(tmp_path):
    assert line_of(Progress(tmp_path)) is None
    assert line_of(Progress(None)) is None


def test_what_is_no_status_is_left_out(tmp_path):
    (tmp_path / "rank-0").write_bytes(b"short")
    (tmp_path / "rank-1").write_bytes(b"x" * progress.LAYOUT.size)
    assert progress.read_all(tmp_path) == []


def test_a_rank_writes_at_most_five_times_a_second(mpi, script, tmp_path):
    folder = tmp_path / "status"
    folder.mkdir()
    result = subprocess.run([sys.executable, script], env=environment(mpi, {"LOCKSTEP_STATUS_DIR": folder}), text=True,
                            stdout=subprocess.PIPE, check=True)
    reads, seconds = re.search(r"reads (\d+) in ([\d.]+) s", result.stdout).groups()
    assert 2 <= int(reads) <= 5 * float(seconds) + 2, result.stdout
    found = progress.read_all(folder)
    assert [(each.rank, each.step, each.samples, each.loss) for each in found] == [(0, 100, 3200, 0.25)]


@pytest.mark.parametrize("folder", [None, "/no/such/folder"])
def test_without_a_folder_nothing_happens(mpi, script, folder):
    env = {} if folder is None else {"LOCKSTEP_STATUS_DIR": folder}
    result = subprocess.run([sys.executable, script], env=environment(mpi, env), text=True, stdout=subprocess.PIPE,
                            check=True)
    assert "reads 0" in result.stdout


def read_terminal(descriptor, process, limit=60):
    """All that is written to a terminal until its process ends."""
    text, end = b"", time.monotonic() + limit
    while time.monotonic() < end:
        try:
            data = os.read(descriptor, 65536)
        except OSError:
            break
        if not data:
            break
        text += data
    process.wait(timeout=30)
    return text.decode(errors="replace")


@pytest.mark.parametrize("words", [[], ["--ranks-table"]], ids=["line", "table"])
def test_a_terminal_has_a_line_that_is_drawn_anew(mpi, script, words):
    pytest.importorskip("rich")
    ours, theirs = pty.openpty()
    env = environment(mpi, {"TERM": "xterm", "COLUMNS": 120, "LINES": 40, "TEST_JOB_ID": f"view-{os.getpid()}"})
    command = [sys.executable, "-m", "lockstep", "run", "-n", "2", "--oversubscribe", *words, str(script)]
    process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        text = read_terminal(ours, process)
    finally:
        kill_job(f"view-{os.getpid()}")
        os.close(ours)
    assert process.returncode == 0, text
    assert re.search(r"step \d+ of 100 .*samples/s.*loss 0.25", text), text
    assert text.count("printed 50") == 1
    assert "\x1b[2K" in text, "the line was not drawn anew"
    assert ("ms/step" in text) == bool(words)


def test_no_terminal_has_plain_output_only(mpi, script):
    result = lockstep(mpi, "run", "-n", 2, "--oversubscribe", script)
    assert result.code == 0, str(result)
    assert result.out.splitlines()[:4] == ["printed 25", "printed 50", "printed 75", "printed 100"]
    assert "\x1b" not in result.out + result.err


def test_the_status_is_removed_at_the_end(mpi, script, tmp_path):
    (tmp_path / "t").mkdir()
    result = lockstep(mpi, "run", "-n", 2, "--oversubscribe", script, env={"TMPDIR": tmp_path / "t"})
    assert result.code == 0, str(result)
    assert [path.name for path in (tmp_path / "t").iterdir() if path.name.startswith("lockstep-")] == []
