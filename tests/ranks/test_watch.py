# SPDX-License-Identifier: Apache-2.0
"""What a person can see of a running engine: the trace, the state on SIGUSR1, the time it takes while it waits."""
import json
import os
import re
import signal
import time

from jobs import run_ranks

WAIT_LINE = re.compile(r"^rank (\d+) waited ([\d.]+) s and took ([\d.]+) % of a core$", re.MULTILINE)
MOST_PERCENT = 5


def rank_processes(pids, program):
    """Those of the job's processes that run the program itself, not a launcher."""
    found = []
    for pid in pids():
        try:
            if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(program):
                found.append(pid)
        except OSError:
            continue  # it has ended
    return found


def catches(pid, number):
    """Has the process a handler for this signal?"""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            caught = next(line for line in file if line.startswith("SigCgt:")).split()[1]
    except (OSError, StopIteration):
        return False  # it has ended
    return bool(int(caught, 16) >> (number - 1) & 1)


def test_trace_is_json_that_shows_buckets_and_requests(mpi, tmp_path):
    folder = tmp_path / "trace"
    job = run_ranks(mpi, 2, "ranks/watch", ["steps"], env={"LOCKSTEP_TRACE": folder})
    assert job.code == 0, job
    assert sorted(path.name for path in folder.iterdir()) == ["rank-0.json", "rank-1.json"]
    for rank in (0, 1):
        events = json.loads((folder / f"rank-{rank}.json").read_text())
        spans = [event for event in events if event["ph"] == "X"]
        requests = [span for span in spans if span["tid"] == "request"]
        buckets = [span for span in spans if span["tid"] == "bucket"]
        assert len(requests) == 4 * 5  # steps x tensors
        assert {span["name"] for span in requests} == {f'watched "{i}"' for i in range(5)}
        assert all(span["args"]["bytes"] == 20000 and span["dur"] > 0 for span in requests)
        assert any("replayed" in span["args"]["detail"] for span in buckets)
        assert any("negotiated" in span["args"]["detail"] for span in buckets)
        assert all(span["pid"] == rank for span in spans)


def test_unwritable_trace_folder_is_a_warning(mpi):
    job = run_ranks(mpi, 2, "ranks/watch", ["steps"], env={"LOCKSTEP_TRACE": "/proc/no/such"})
    assert job.code == 0, job
    assert "LOCKSTEP_TRACE" in job.stderr


def test_signal_shows_what_waits_for_whom(mpi):
    program = mpi.program("ranks/watch")

    def ask(pids):
        deadline = time.monotonic() + 30
        while len(ready := [pid for pid in rank_processes(pids, program) if catches(pid, signal.SIGUSR1)]) < 2:
            assert time.monotonic() < deadline, "the ranks did not start"
            time.sleep(0.05)
        time.sleep(1.5)  # they have begun to wait for rank 0
        for pid in ready:
            os.kill(pid, signal.SIGUSR1)

    job = run_ranks(mpi, 2, "ranks/watch", ["wait", "4"], during=ask)
    assert job.code == 0, job
    assert "lockstep rank 0 of 2" in job.stderr and "lockstep rank 1 of 2" in job.stderr
    assert re.search(r"bucket \d+ round \d+: allreduce \w+, 5 tensors, 100000 bytes", job.stderr), job
    assert 'watched "3"' in job.stderr
    assert "buckets_replayed" in job.stderr


def _waits_lightly(mpi, env):
    job = run_ranks(mpi, 2, "ranks/watch", ["wait", "1"], env=env)
    assert job.code == 0, job
    took = {int(rank): float(percent) for rank, _, percent in WAIT_LINE.findall(job.stdout)}
    return took[1] < MOST_PERCENT


def test_waiting_leaves_the_core_to_others(mpi):
    """Others on the machine can only add to what waiting takes: one of three looks has to be good."""
    for env in ({}, {"LOCKSTEP_NODE_SIZE": 1}):
        assert any(_waits_lightly(mpi, env) for _ in range(3)), env
