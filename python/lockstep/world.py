# SPDX-License-Identifier: Apache-2.0
"""Where this process stands while hooks are on.

Hooks ask `world.on()` each time: it becomes false in the child of a rank (os.fork, multiprocessing), which is no rank."""
import os

from lockstep import native

rank, size = 0, 1
_pid = None


def enter():
    """Joins the job; from here on hooks take part in it."""
    global rank, size, _pid
    native.start()
    rank, size = native.rank(), native.size()
    _pid = os.getpid()


def on():
    """Is this process a rank, with hooks that should act?"""
    return _pid is not None and _pid == os.getpid()


def is_root():
    return rank == 0
