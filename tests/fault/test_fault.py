# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around the engine: ranks that go away, memory that is not there, settings that are bad.

Each ends in a clear message within seconds, and leaves nothing behind."""
import re
import subprocess
from dataclasses import dataclass

import pytest
from jobs import run_ranks
from patient import PATIENT_ENV, Patient

TOLD_LINE = re.compile(r"^told after ([\d.]+) s: (.*)$", re.MULTILINE)
SECONDS_ALLOWED = 5
FALLBACK = re.compile(r"warn: .*no shared memory.*MPI")


@dataclass(frozen=True)
class Wrapped:
    """An MPI started by a shell command: "$@" in it is the launcher's command line."""

    mpi: object
    script: str

    def command(self, n, program, args=()):
        return ["unshare", "-m", "sh", "-c", self.script, "sh", *self.mpi.command(n, program, args)]


# ---- ranks that go away -----------------------------------------------------------------------------

@pytest.mark.parametrize("settings", [{}, {"LOCKSTEP_NODE_SIZE": "2"}], ids=["one node", "nodes of 2"])
@pytest.mark.parametrize("how", ["exit", "_exit"])
@pytest.mark.parametrize("who", [0, 1])
def test_the_others_are_told_which_rank_is_gone(mpi, how, who, settings, clean_shared_memory):
    """On every node: those who share a node with the lost rank tell the others."""
    job = run_ranks(Patient(mpi), 4, "fault/exit_rank", [how, who], {**PATIENT_ENV, **settings}, timeout=60)
    told = TOLD_LINE.findall(job.stdout)
    assert len(told) == 3, str(job)
    for seconds, message in told:
        assert float(seconds) < SECONDS_ALLOWED, str(job)
        assert message.startswith("a rank is gone: "), str(job)
        assert re.search(rf"\brank {who}\b.* is gone", message), str(job)


@pytest.mark.parametrize("settings", [{}, {"LOCKSTEP_NODE_SIZE": "2"}], ids=["one node", "nodes of 2"])
def test_the_log_says_which_rank_was_killed(mpi, settings, clean_shared_memory):
    """mpirun leaves the others a second; that is time enough to say why."""
    if mpi.name == "mpich":
        pytest.skip("mpiexec kills the others at once when a signal ended a rank")
    job = run_ranks(mpi, 4, "fault/exit_rank", ["kill", 1], settings, timeout=60)
    assert job.code != 0, str(job)
    assert re.search(r"error: rank 1 .* is gone", job.stderr), str(job)


@pytest.mark.parametrize("how", ["exit", "_exit", "kill"])
def test_a_job_with_a_lost_rank_ends_whatever_the_launcher_does(mpi, how, clean_shared_memory):
    job = run_ranks(mpi, 3, "fault/exit_rank", [how, 1], timeout=60)
    assert job.code != 0, str(job)


def test_a_rank_that_disagrees_late_is_an_error_on_every_rank(mpi, clean_shared_memory):
    """The others have begun: the job cannot go on, but each of its ranks says which tensor it was."""
    env = {"LOCKSTEP_STALL_WARN_S": "0.5", "LOCKSTEP_STALL_ABORT_S": "8"}  # which the start has, too, on a busy machine
    job = run_ranks(Patient(mpi), 3, "ranks/collectives", ["late"], {**PATIENT_ENV, **env}, timeout=60)
    if job.code == 0 and "1 passed, 0 failed" in job.stdout:
        return  # seen before the others had begun: the name failed everywhere, as the program checks, and the job went on
    for rank in range(3):
        assert re.search(rf"lockstep rank {rank}: error: tensor 'late/tensor': ranks disagree: rank 0 has .* \[9\]; "
                         r"other ranks have .* \[8\]", job.stderr), str(job)


# ---- shared memory that is not there -----------------------------------------------------------------

def check_whole(job):
    assert job.code == 0, str(job)
    assert "whole" in job.stdout.splitlines(), str(job)
    assert "Bus error" not in job.stderr, str(job)


def test_all_is_well_without_a_fault(mpi, clean_shared_memory):
    job = run_ranks(mpi, 3, "fault/exit_rank", ["none"])
    check_whole(job)
    assert "lockstep" not in job.stderr, f"an unexpected warning\n{job}"


@pytest.mark.parametrize("fault", ["shm-create:1", "shm-map:0"])
def test_a_node_without_shared_memory_warns_once_and_uses_mpi(mpi, fault):
    job = run_ranks(mpi, 3, "ranks/collectives", ["allreduce", "--quick"], {"LOCKSTEP_FAULT": fault})
    assert job.code == 0, str(job)
    assert "1 passed, 0 failed" in job.stdout, str(job)
    assert len(FALLBACK.findall(job.stderr)) == 1, str(job)


def test_a_file_size_limit_is_a_warning_and_not_the_end(mpi):
    """The limit is the ranks' only, and larger than what MPI itself needs."""
    program = mpi.program("fault/exit_rank")
    job = run_ranks(mpi, 3, "/bin/sh", ["-c", 'ulimit -f 131072; exec "$@"', "sh", program, "none"],
                    {"LOCKSTEP_STAGE_BYTES": "256m"})
    check_whole(job)
    assert len(FALLBACK.findall(job.stderr)) == 1, str(job)
    assert "ulimit -f" in job.stderr, str(job)


def can_mount():
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/dev/shm"]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def test_a_tiny_dev_shm_is_no_bus_error(mpi):
    if mpi.name == "mpich":
        pytest.skip("MPICH 5 itself ends with a bus error there, in MPI_Init")
    if not can_mount():
        pytest.skip("no right to mount a small /dev/shm")
    script = 'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec "$@"'
    check_whole(run_ranks(Wrapped(mpi, script), 3, "fault/exit_rank", ["none"]))


# ---- settings ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("name, value", [
    ("LOCKSTEP_SPIN_US", "abc"),
    ("LOCKSTEP_ALGO", "allreduce:0-inf:nonsense"),
    ("LOCKSTEP_ALGO", "allreduce:ring"),
    ("LOCKSTEP_WIRE", "int4"),
    ("LOCKSTEP_TOPOLOGY", "5x7"),
    ("LOCKSTEP_STALL_ABORT_S", "-1"),
    ("LOCKSTEP_FUSION_BYTES", "many"),
    ("LOCKSTEP_SIMD", "mmx"),
])
def test_a_bad_setting_is_an_error_that_names_it(mpi, name, value):
    job = run_ranks(mpi, 2, "ranks/collectives", ["invalid"], {name: value}, timeout=60)
    assert job.code != 0, str(job)
    lines = [line for line in job.stderr.splitlines() if line.startswith("ls_start: bad setting: ")]
    assert lines, str(job)
    assert all(name in line and value in line for line in lines), str(job)
