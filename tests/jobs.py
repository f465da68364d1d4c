# SPDX-License-Identifier: Apache-2.0
"""Starts programs under mpirun, and makes sure that none of their processes stays."""
import os
import signal
import subprocess
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
JOB_VARIABLE = "TEST_JOB_ID"
OUTPUT_SHOWN = 20000  # characters of each stream in a failure


@dataclass(frozen=True)
class Mpi:
    """One of the MPIs that the library was built with."""

    name: str

    @property
    def folder(self):
        return ROOT / "build" / self.name

    def program(self, name):
        return self.folder / name

    def command(self, n, program, args=()):
        """tools/ranks knows the flags that each MPI needs."""
        return [str(ROOT / "tools" / "ranks"), "--mpi", self.name, "-n", str(n), str(program), *map(str, args)]


@dataclass
class Job:
    """How a job ended: the code of mpirun (None: it was killed at the limit) and what the ranks wrote."""

    command: list
    code: int
    stdout: str
    stderr: str
    ended: float = 0  # when the launcher had ended, of time.monotonic()
    left: tuple = ()  # processes that were still there some seconds later

    def __str__(self):
        return (f"{' '.join(self.command)}\nexit code: {self.code}\n"
                f"-- stdout\n{self.stdout[-OUTPUT_SHOWN:]}\n-- stderr\n{self.stderr[-OUTPUT_SHOWN:]}")


def job_processes(job_id):
    """The processes of a job, by a mark in their environment: MPICH gives each rank a session of its own, so
    neither process group nor session finds them."""
    mark = f"{JOB_VARIABLE}={job_id}".encode()
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                pids.append(int(folder.name))
        except OSError:
            continue  # it has ended, or it is not ours
    return pids


def kill_job(job_id):
    for pid in job_processes(job_id):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def processes_left(job_id, patience=5):
    """The processes of the job that do not end within `patience` seconds."""
    deadline = time.monotonic() + patience
    while (pids := job_processes(job_id)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return tuple(pids)


def run_ranks(mpi, n, program, args=(), env=None, timeout=60, during=None, cwd=ROOT):
    """Runs `program` (a path below the build folder, as "ranks/collectives") with n ranks and returns its Job."""
    return run_process(mpi.command(n, program, args), env, timeout, during, cwd)


def run_process(command, env=None, timeout=60, during=None, cwd=ROOT):
    """Runs a command, which may start others, and returns its Job.

    `during(pids)` is called with a function that tells the processes of the job, once it has started: to
    disturb it.  A job that is not done after `timeout` seconds is killed and fails the test, with what it
    wrote."""
    command = [str(word) for word in command]
    job_id = uuid.uuid4().hex
    # Files of the flight recorder only where a test asks for them.
    full_env = {**os.environ, "LOCKSTEP_FLIGHT_DIR": "off",
                **{name: str(value) for name, value in (env or {}).items()}, JOB_VARIABLE: job_id}
    # Files, not pipes: a rank that stays behind would keep a pipe open.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, cwd=cwd, env=full_env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   start_new_session=True)
        try:
            if during is not None:
                during(lambda: job_processes(job_id))
            code = process.wait(timeout=timeout)
            ended = time.monotonic()
            left = processes_left(job_id)
        except subprocess.TimeoutExpired:
            code, ended, left = None, time.monotonic(), ()
        finally:
            kill_job(job_id)
            process.wait()
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    job = Job(command, code, *texts, ended, left)
    if code is None:
        pytest.fail(f"not done after {timeout} s\n{job}", pytrace=False)
    return job
