# SPDX-License-Identifier: Apache-2.0
"""Faults, one by one: a rank that is killed, freezes, crashes, leaves, is slow, or differs.

After each: the job has ended in seconds with a code that is not 0, every message names the rank that it was, no process
and no memory is left.  fault_job.c does most faults itself; LOCKSTEP_FAULT brings those inside the engine."""
import os
import re
import signal
import time

import pytest
from jobs import run_ranks
from patient import PATIENT_ENV, Patient

NUM_RANKS = 4
MOST_SECONDS = 10
FAULT_LINE = re.compile(r"\bfault at ([\d.]+)$", re.MULTILINE)
TOLD_LINE = re.compile(r"^told at ([\d.]+): (.*)$", re.MULTILINE)
ERROR_LINE = re.compile(r"^lockstep rank (\d+): error: (.*)$", re.MULTILINE)
QUICK = {"LOCKSTEP_HEARTBEAT_S": "2", "LOCKSTEP_GRACE_S": "1"}

LAYOUTS = {
    "one node": {},
    "nodes of 2": {"LOCKSTEP_NODE_SIZE": "2"},
    "no shared memory": {"LOCKSTEP_SHM": "off"},
    "nodes of 1": {"LOCKSTEP_NODE_SIZE": "1"},
}
# Each MPI and each layout once; all pairs are in the long tests.
PAIRS = [("openmpi", "one node"), ("mpich", "nodes of 2")]
OTHER_PAIRS = [pytest.param("openmpi", "nodes of 2", marks=pytest.mark.long), pytest.param("mpich", "one node", marks=pytest.mark.long)]


def run_fault(mpi, args, env, timeout=40, during=None):
    return run_ranks(mpi, NUM_RANKS, "fault/fault_job", args, {**QUICK, **env}, timeout=timeout, during=during)


def check_end(job, name, time_table, has_code=True):
    """It ended, badly, soon, and alone."""
    assert job.code != 0 or not has_code, str(job)
    assert not job.left, f"processes left: {job.left}\n{job}"
    fault = FAULT_LINE.search(job.stdout) or FAULT_LINE.search(job.stderr)
    assert fault, str(job)
    seconds = job.ended - float(fault[1])
    time_table(name, seconds)
    assert seconds < MOST_SECONDS, str(job)


def check_blame(job, who, pattern):
    """No rank says more than one thing, and all say that it was rank `who`."""
    errors = ERROR_LINE.findall(job.stderr)
    ranks = [rank for rank, _ in errors]
    assert len(ranks) == len(set(ranks)), f"a rank has said more than one thing\n{job}"
    for _, text in errors:
        assert re.search(rf"rank {who} \(process \d+ on [^)]+\)", text), str(job)
        assert re.search(pattern, text), str(job)
    return errors


# ---- dead ------------------------------------------------------------------------------------------------

DEAD = {
    "train-kill": "is gone: its process has ended",
    "train-segv": "is gone: its process has ended",
    "train-abort": "is gone: its process has ended",
    "train-exit": "is gone: it exited without stopping",
    "train-exit0": "is gone: it exited without stopping",
}


def run_alone(mpi, how, args, env):
    """Under a launcher that leaves the other ranks alone: they must end by themselves.  Where a signal ends a rank there is
    none: Open MPI's ends the others a moment later (told to be patient it hangs itself), MPICH's at once."""
    if mpi.name == "openmpi" and not how.startswith(("train-exit", "compute-exit")):
        return run_fault(mpi, [how, *args], env)
    return run_fault(Patient(mpi), [how, *args], {**PATIENT_ENV, **env})


def run_dead(mpi, how, who, layout, time_table):
    job = run_alone(mpi, how, [who], LAYOUTS[layout])
    check_end(job, how, time_table, has_code=mpi.name != "openmpi")  # a patient mpirun of Open MPI may end with 0
    pattern = f"({DEAD[how]}|does not respond); .*last step|what it did last" if layout == "nodes of 1" else DEAD[how]
    errors = check_blame(job, who, pattern)
    if how.startswith("train-exit"):
        assert len(errors) == NUM_RANKS - 1, str(job)
    elif mpi.name == "openmpi" and layout != "nodes of 1":
        assert errors, str(job)
    for _, text in TOLD_LINE.findall(job.stdout):
        assert text.startswith("a rank is gone: "), str(job)


@pytest.mark.parametrize("mpi, layout", PAIRS, indirect=["mpi"])
@pytest.mark.parametrize("how", ["train-kill", "train-exit0"])
def test_a_rank_that_dies_ends_the_job(mpi, how, layout, time_table, clean):
    run_dead(mpi, how, 1, layout, time_table)


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("who", [0, 2])
@pytest.mark.parametrize("how", DEAD)
def test_a_rank_that_dies_ends_the_job_in_every_way(mpi, how, who, layout, time_table, clean):
    run_dead(mpi, how, who, layout, time_table)


@pytest.mark.parametrize("how", ["compute-kill", "compute-exit0"])
def test_a_death_is_noticed_while_all_compute(mpi, how, time_table, clean):
    job = run_alone(mpi, how, [1, 60], {})
    check_end(job, how, time_table, has_code=mpi.name != "openmpi" or how != "compute-exit0")
    check_blame(job, 1, "is gone")


@pytest.mark.parametrize("how", ["train-exit0", "compute-exit0"])
def test_a_rank_that_leaves_with_code_0_is_a_failure(mpi, how, time_table, clean):
    """Under the launcher as it is: MPICH's ends the others at once, and takes the code of the one that left."""
    job = run_fault(mpi, [how, 1, 60], {})
    check_end(job, how, time_table)
    assert "rank 1 exits without having stopped" in job.stderr, str(job)
    check_blame(job, 1, "is gone")


def test_a_rank_that_dies_before_mpi_starts_ends_the_job(mpi, time_table, clean):
    job = run_fault(mpi, ["init-kill", 1], {})
    check_end(job, "init-kill", time_table)


def test_a_rank_that_freezes_before_mpi_starts_ends_the_job(mpi, time_table, clean):
    """Nobody is watched yet, so the stall time has to do."""
    job = run_fault(mpi, ["init-freeze", 1], {"LOCKSTEP_STALL_WARN_S": "1", "LOCKSTEP_STALL_ABORT_S": "2"})
    check_end(job, "init-freeze, stall time 2 s", time_table)
    assert "not all ranks have started within 2 s" in job.stderr, str(job)


# ---- frozen ----------------------------------------------------------------------------------------------

def run_frozen(mpi, how, who, layout, time_table, env=None):
    job = run_fault(mpi, [how, who, 60], {**LAYOUTS[layout], **(env or {})})
    check_end(job, how, time_table)
    errors = check_blame(job, who, r"does not respond: no heartbeat for [\d.]+ s|given up this one")
    assert errors, str(job)  # launchers end all ranks when the first of them has ended, perhaps before it could say why
    if layout == "one node":
        assert all("last step 19, last tensor 'layer_5/kernel'" in text for _, text in errors), str(job)


@pytest.mark.parametrize("how, layout", [("train-freeze", "one node"), ("compute-freeze", "nodes of 2")])
def test_a_frozen_rank_ends_the_job(mpi, how, layout, time_table, clean):
    run_frozen(mpi, how, 1, layout, time_table)


def test_a_frozen_rank_is_found_with_the_default_settings(mpi, time_table, clean):
    job = run_ranks(mpi, NUM_RANKS, "fault/fault_job", ["compute-freeze", 2, 60], timeout=40)
    check_end(job, "compute-freeze, default settings", time_table)
    check_blame(job, 2, "does not respond|given up this one")


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("who", [0, 2])
@pytest.mark.parametrize("how", ["train-freeze", "compute-freeze"])
def test_a_frozen_rank_ends_the_job_in_every_layout(mpi, how, who, layout, time_table, clean):
    run_frozen(mpi, how, who, layout, time_table)


def state_of(pid, program):
    """The letter of its state; None when it has ended, or is not the program."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            state = file.read().rpartition(")")[2].split()[0]
        return state if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(program) and state != "Z" else None
    except OSError:
        return None


def ranks_of(pids, program):
    """{process: state} of those that run."""
    states = {pid: state_of(pid, program) for pid in pids()}
    return {pid: state for pid, state in states.items() if state is not None}


def wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("mpi, layout", PAIRS + OTHER_PAIRS, indirect=["mpi"])
def test_a_frozen_rank_that_wakes_up_too_late_ends_itself(mpi, layout, clean):
    """The others have gone on without it, and have ended; the launcher is patient."""
    program = mpi.program("fault/fault_job")

    def wake(pids):
        def is_alone():
            return list(ranks_of(pids, program).values()) == ["T"]
        assert wait_until(lambda: len(ranks_of(pids, program)) == NUM_RANKS)
        assert wait_until(is_alone)
        os.kill(next(iter(ranks_of(pids, program))), signal.SIGCONT)

    job = run_fault(Patient(mpi), ["train-freeze", 1], {**PATIENT_ENV, **LAYOUTS[layout]}, during=wake)
    assert not job.left, str(job)  # a patient mpirun of Open MPI always ends with 0
    assert re.search("lockstep rank 1: error: .*rank 1 .*does not respond", job.stderr), str(job)


def test_a_rank_that_freezes_for_a_moment_is_forgiven(mpi, clean):
    program = mpi.program("fault/fault_job")

    def pause(pids):
        assert wait_until(lambda: len(ranks_of(pids, program)) == NUM_RANKS)
        time.sleep(0.5)
        pid = next(iter(ranks_of(pids, program)))
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.7)
        os.kill(pid, signal.SIGCONT)

    job = run_fault(mpi, ["train", 1, 4], {}, during=pause)
    assert job.code == 0 and "whole" in job.stdout, str(job)


# ---- slow ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("layout", ["nodes of 2"])
def test_a_slow_rank_is_reported_and_survives(mpi, layout, clean):
    """Slower than a frozen rank may be, and it holds the processor all the time."""
    job = run_fault(mpi, ["train-slow", 1, 3], {**LAYOUTS[layout], "LOCKSTEP_STALL_WARN_S": "1"})
    assert job.code == 0 and "whole" in job.stdout, str(job)
    assert not ERROR_LINE.findall(job.stderr), str(job)
    assert re.search(r"warn: tensor 'layer_0/kernel'.* rank 1\b", job.stderr), str(job)


# ---- ranks that stop in order ----------------------------------------------------------------------------

@pytest.mark.parametrize("how, who, layout", [("train-return", 0, "nodes of 2"), ("train-return", 1, "one node"),
                                              ("early-stop", 0, "one node"), ("early-stop", 1, "nodes of 2")])
def test_a_rank_that_stops_early_is_an_error_for_the_others(mpi, how, who, layout, time_table, clean):
    job = run_fault(mpi, [how, who], LAYOUTS[layout])
    check_end(job, how, time_table)
    told = [text for _, text in TOLD_LINE.findall(job.stdout)]
    assert told, str(job)
    for text in told:
        assert re.search(rf"tensor 'layer_\d/kernel'.* rank {who} \(process \d+ on \S+\) has stopped", text), str(job)


def test_ranks_that_end_at_different_times_end_well(mpi, clean):
    job = run_fault(mpi, ["done-first", 1, 2], {})
    assert job.code == 0 and "whole" in job.stdout, str(job)
    assert "lockstep rank" not in job.stderr, str(job)


# ---- ranks that differ -----------------------------------------------------------------------------------

def test_a_tensor_that_one_rank_leaves_out_is_an_error_that_names_it(mpi, clean):
    env = {"LOCKSTEP_STALL_WARN_S": "1", "LOCKSTEP_STALL_ABORT_S": "3"}
    job = run_fault(mpi, ["missing", 1], env)
    assert job.code != 0 and not job.left, str(job)
    assert re.search(r"warn: tensor 'layer_5/kernel' waits .*rank 1 did not", job.stderr), str(job)
    assert re.search(r"told at .*tensor 'layer_\d/kernel': ranks? .* did not", job.stdout), str(job)


def test_another_shape_on_one_rank_is_refused_at_the_first_step(mpi, clean):
    job = run_fault(mpi, ["shape", 1], {})
    assert job.code != 0 and not job.left, str(job)
    assert re.search(r"told at .*tensor 'layer_2/kernel': ranks disagree: .*\[5003\].*\[2501\]|"
                     r"told at .*tensor 'layer_2/kernel': ranks disagree: .*\[2501\].*\[5003\]", job.stdout), str(job)


# ---- LOCKSTEP_FAULT --------------------------------------------------------------------------------------

@pytest.mark.parametrize("mpi, fault, pattern", [
    ("openmpi", "start:1:0:kill", "is gone"),
    ("mpich", "start:1:0:kill", "is gone"),
    ("openmpi", "request:1:10:segv", "is gone"),
    ("mpich", "send:1:10:stop", "does not respond|given up"),
    ("mpich", "stop:1:0:kill", "is gone"),
    ("openmpi", "stop:1:0:stop", "does not respond|given up"),
], indirect=["mpi"])
def test_a_fault_inside_the_engine(mpi, fault, pattern, time_table, clean):
    job = run_fault(mpi, ["train", 1, 1], {"LOCKSTEP_FAULT": fault})
    check_end(job, f"LOCKSTEP_FAULT={fault}", time_table)
    check_blame(job, 1, pattern)


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("site", ["request", "send", "receive", "reduce", "callback"])
@pytest.mark.parametrize("action", ["kill", "segv", "abort", "exit", "exit0", "stop"])
def test_every_fault_inside_the_engine(mpi, site, action, layout, time_table, clean):
    job = run_fault(mpi, ["train", 1, 1], {**LAYOUTS[layout], "LOCKSTEP_FAULT": f"{site}:1:10:{action}"})
    check_end(job, f"LOCKSTEP_FAULT={site}:1:10:{action}", time_table)
    check_blame(job, 1, "is gone|does not respond|given up")


def test_a_rank_that_sleeps_inside_the_engine_survives(mpi, clean):
    job = run_fault(mpi, ["train", 1, 1], {"LOCKSTEP_FAULT": "reduce:1:10:sleep 3"})
    assert job.code == 0 and "whole" in job.stdout, str(job)


def test_a_lost_message_ends_the_job_after_the_stall_time(mpi, clean):
    env = {"LOCKSTEP_FAULT": "send:1:10:drop", "LOCKSTEP_STALL_WARN_S": "1", "LOCKSTEP_STALL_ABORT_S": "2"}
    job = run_fault(mpi, ["train", 1, 1], env)
    assert job.code != 0 and not job.left, str(job)
    assert re.search(r"error: tensor 'layer_\d/kernel'", job.stderr), str(job)


def test_a_changed_byte_arrives_changed(mpi, clean):
    """So that whoever compares weights can be tested."""
    job = run_ranks(mpi, 2, "fault/exit_rank", ["none"], {"LOCKSTEP_FAULT": "send:1:2:corrupt"})
    assert job.code != 0, str(job)
    assert re.search(r"element \d+ is", job.stderr), str(job)


@pytest.mark.parametrize("fault", ["nowhere:1:2:kill", "send:1:2:sleep"])
def test_a_fault_that_does_not_exist_is_refused(mpi, fault):
    job = run_fault(mpi, ["train", 1, 1], {"LOCKSTEP_FAULT": fault})
    assert job.code != 0, str(job)
    assert "LOCKSTEP_FAULT is '" in job.stderr, str(job)


# ---- the flight recorder ---------------------------------------------------------------------------------

def test_the_flight_recorder_tells_what_each_rank_did_last(mpi, tmp_path, clean):
    """Also the rank that was killed: the survivors of its node have it in shared memory."""
    folder = tmp_path / "flight"
    job = run_fault(Patient(mpi), ["train-exit", 1], {**PATIENT_ENV, "LOCKSTEP_FLIGHT_DIR": folder})
    names = {path.name for path in folder.iterdir()}
    assert names == {f"rank-{rank}.txt" for rank in range(NUM_RANKS)} | {"summary-0.txt"}, str(job)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.iterdir())
    lost = (folder / "rank-1.txt").read_text()
    assert re.search(r"step 19; \d+ events", lost) and "is gone: it exited without stopping" in lost, lost
    assert re.search(r"-\d+\.\d+  done +\d+  'layer_5/kernel'  bytes 20012", lost), lost
    assert len([line for line in lost.splitlines() if re.match(r" +-\d", line)]) > 100
    summary = (folder / "summary-0.txt").read_text()
    assert all(f"rank {rank} (process" in summary for rank in range(NUM_RANKS)), summary


def test_a_job_that_ends_well_leaves_no_recorder(mpi, tmp_path, clean):
    folder = tmp_path / "flight"
    job = run_fault(mpi, ["train", 1, 0.5], {"LOCKSTEP_FLIGHT_DIR": folder})
    assert job.code == 0 and not folder.exists(), str(job)
