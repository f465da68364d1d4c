# SPDX-License-Identifier: Apache-2.0
"""Where this process stands while hooks are on.

Hooks ask `world.on()` each time: it becomes false in the child of a rank (os.fork, multiprocessing), which is no rank."""
import contextlib
import os
import sys
import threading

from lockstep import native, start

rank, size = 0, 1
_pid = None
_said = set()
_local = threading.local()


def enter():
    """Joins the job; from here on hooks take part in it."""
    global rank, size, _pid
    native.start()
    rank, size = native.rank(), native.size()
    if size < start.launched_size():
        raise native.LockstepError(
            f"the launcher started {start.launched_size()} ranks, but MPI sees {size}: the launcher belongs to another MPI "
            f"than the one {native.lib_path()} was built with. Start with that MPI's mpirun, or install lockstep with the "
            "launcher's mpicc; under Slurm, see srun --mpi=list")
    _pid = os.getpid()


def on():
    """Is this process a rank, with hooks that should act?"""
    return _pid is not None and _pid == os.getpid() and not getattr(_local, "is_alone", False)


def is_alone():
    """Does this rank do something for all?"""
    return _pid == os.getpid() and getattr(_local, "is_alone", False)


@contextlib.contextmanager
def alone():
    """What runs here runs on one rank only: hooks do nothing, so nobody is waited for."""
    before = getattr(_local, "is_alone", False)
    _local.is_alone = True
    try:
        yield
    finally:
        _local.is_alone = before


def is_root():
    return rank == 0


def say_once(text):
    """A warning, from rank 0."""
    if is_root() and text not in _said:
        _said.add(text)
        sys.stderr.write(f"lockstep: {text}\n")
