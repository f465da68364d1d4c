# SPDX-License-Identifier: Apache-2.0
"""The helper that starts jobs: it hands back what they did, and leaves nothing of them behind."""
import os
import signal
import time

import jobs
import pytest
from jobs import run_ranks


def test_output_and_code_of_all_ranks_come_back(mpi):
    job = run_ranks(mpi, 2, "/bin/sh", ["-c", "echo out-$WORD; echo err >&2; exit 0"], {"WORD": 7}, timeout=30)
    assert job.code == 0
    assert job.stdout.count("out-7") == 2
    assert job.stderr.count("err") == 2


def test_a_failed_rank_is_a_failed_job(mpi):
    assert run_ranks(mpi, 2, "/bin/sh", ["-c", "exit 3"], timeout=30).code != 0


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().rstrip("\n")
    except OSError:
        return None  # helpers of a launcher come and go


def wait_for_sleeps(pids):
    """Both ranks run `sleep`."""
    end = time.monotonic() + 30
    while len(sleeps := [pid for pid in pids() if name_of(pid) == "sleep"]) < 2:
        assert time.monotonic() < end, "the ranks did not start"
        time.sleep(0.05)
    return sleeps


def test_a_job_that_hangs_is_killed_and_shown(mpi, monkeypatch):
    job_ids = []
    kill_job = jobs.kill_job
    monkeypatch.setattr(jobs, "kill_job", lambda job_id: (job_ids.append(job_id), kill_job(job_id)))
    with pytest.raises(pytest.fail.Exception, match="(?s)not done after 2 s.*hello"):
        run_ranks(mpi, 2, "/bin/sh", ["-c", "trap '' TERM INT; echo hello; sleep 100; sleep 100"], timeout=2, during=wait_for_sleeps)
    assert jobs.processes_left(job_ids[0]) == ()


def test_a_job_can_be_disturbed_while_it_runs(mpi):
    job = run_ranks(mpi, 2, "/bin/sleep", ["50"], timeout=30, during=lambda pids: os.kill(wait_for_sleeps(pids)[0], signal.SIGKILL))
    assert job.code != 0
