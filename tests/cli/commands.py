# SPDX-License-Identifier: Apache-2.0
"""Runs the command `lockstep` of this checkout, with the library of one build."""
import os
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass

from jobs import JOB_VARIABLE, ROOT, job_processes, kill_job

LEFT_OUT = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")


@dataclass
class Result:
    code: int
    out: str
    err: str

    def __str__(self):
        return f"exit code {self.code}\n-- stdout\n{self.out}\n-- stderr\n{self.err}"


def environment(mpi, env=None):
    """As a user has it: no settings, this checkout's package, the library of `mpi`."""
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("LOCKSTEP_", "SLURM_")) and name not in LEFT_OUT}
    return {**clean, "PYTHONPATH": str(ROOT / "python"), "LOCKSTEP_LIB": str(mpi.folder / "lib"),
            **{name: str(value) for name, value in (env or {}).items()}}


def start(mpi, *words, env=None, cwd=None, before=()):
    """The running command, and the mark of its processes.  `before`: words that enter another host."""
    job_id = uuid.uuid4().hex
    command = [*map(str, before), sys.executable, "-m", "lockstep", *map(str, words)]
    process = subprocess.Popen(command, cwd=cwd or ROOT, env={**environment(mpi, env), JOB_VARIABLE: job_id}, text=True,
                               errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return process, job_id


def lockstep(mpi, *words, env=None, cwd=None, timeout=60, before=()):
    """Runs `lockstep words...` and returns its Result; nothing of it stays."""
    process, job_id = start(mpi, *words, env=env, cwd=cwd, before=before)
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        kill_job(job_id)
        process.kill()
    return Result(process.returncode, out, err)


def wait_until(is_true, limit=20.0):
    """Whether it became true in time."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        if is_true():
            return True
        time.sleep(0.05)
    return False


def end_with(process, job_id, number=signal.SIGTERM, limit=30):
    """Sends a signal; returns the exit code, once no process of the job is left."""
    process.send_signal(number)
    try:
        process.communicate(timeout=limit)
        assert wait_until(lambda: job_processes(job_id) == []), "processes stayed behind"
    finally:
        kill_job(job_id)
        process.kill()
    return process.returncode
