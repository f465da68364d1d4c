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


def test_a_job_that_hangs_is_killed_and_shown(mpi, monkeypatch):
    job_ids = []
    kill_job = jobs.kill_job
    monkeypatch.setattr(jobs, "kill_job", lambda job_id: (job_ids.append(job_id), kill_job(job_id)))
    with pytest.raises(pytest.fail.Exception, match="(?s)not done after 2 s.*hello"):
        run_ranks(mpi, 2, "/bin/sh", ["-c", "trap '' TERM INT; echo hello; sleep 100; sleep 100"], timeout=2)
    time.sleep(0.2)
    assert jobs.job_processes(job_ids[0]) == []


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().rstrip("\n")
    except FileNotFoundError:
        return None  # helpers of a launcher come and go


def test_a_job_can_be_disturbed_while_it_runs(mpi):
    def kill_one_sleep(pids):
        for _ in range(100):
            sleeps = [pid for pid in pids() if name_of(pid) == "sleep"]
            if len(sleeps) == 2:
                os.kill(sleeps[0], signal.SIGKILL)
                return
            time.sleep(0.1)

    start = time.monotonic()
    job = run_ranks(mpi, 2, "/bin/sleep", ["50"], timeout=30, during=kill_one_sleep)
    assert job.code != 0
    assert time.monotonic() - start < 25
