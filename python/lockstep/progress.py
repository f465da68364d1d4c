# SPDX-License-Identifier: Apache-2.0
"""How far a rank is, for those who watch: a small file per rank in LOCKSTEP_STATUS_DIR, mapped into memory.

A front end calls update() after each step.  Without LOCKSTEP_STATUS_DIR that is one comparison; with it, the file is
written at most five times a second, and only then is the loss read.  `lockstep run` reads the files with read_all()."""
import math
import mmap
import os
import resource
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from lockstep import world
from lockstep.launch.rank import RANK_VARIABLES, number_of

MAGIC = b"LSTATUS1"
INTERVAL_S = 0.2
# magic, sequence (odd while it is being written), rank, pid, step, steps in all, samples, loss, seconds waited, seconds
# of CPU, bytes of memory, time of writing, host
LAYOUT = struct.Struct("<8sQIIQQQdddQd64s")
_SEQUENCE = struct.Struct("<Q")
_SEQUENCE_AT = len(MAGIC)


@dataclass
class Status:
    """What one rank last said.  num_steps is 0, loss not a number, where the rank does not know."""

    rank: int
    pid: int
    step: int
    num_steps: int
    samples: int
    loss: float
    wait_s: float
    cpu_s: float
    memory: int
    time: float
    host: str


class _Writer:
    def __init__(self, folder):
        self.rank = number_of(RANK_VARIABLES)
        self.host = socket.gethostname().encode()[:64]
        self.sequence = 0
        self.due = 0.0
        # No file of the script, which only rank 0 would write: each rank has its own.
        with world.alone(), open(Path(folder) / f"rank-{self.rank}", "w+b") as file:
            file.truncate(LAYOUT.size)
            self.memory = mmap.mmap(file.fileno(), LAYOUT.size)

    def write(self, step, num_steps, samples, loss, wait_s):
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.sequence += 2
        _SEQUENCE.pack_into(self.memory, _SEQUENCE_AT, self.sequence - 1)
        LAYOUT.pack_into(self.memory, 0, MAGIC, self.sequence - 1, self.rank, os.getpid(), step, num_steps, samples, loss,
                         wait_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, time.time(), self.host)
        _SEQUENCE.pack_into(self.memory, _SEQUENCE_AT, self.sequence)


_folder = os.environ.get("LOCKSTEP_STATUS_DIR")
_writer = None


def update(step, samples=0, loss=None, wait_s=0.0, num_steps=0):
    """`step` is done.  samples: of the whole job, since its start.  loss: a number or a tensor.  wait_s: seconds this rank
    has waited for others, since its start.  num_steps: of the whole run, if known.  What is a function is called only when
    something is written."""
    global _folder, _writer
    if not _folder:
        return
    now = time.monotonic()
    if _writer is None:
        try:
            _writer = _Writer(_folder)
        except OSError:
            _folder = None  # another host, without that folder: nobody watches
            return
    if now < _writer.due and step != num_steps:
        return
    _writer.due = now + INTERVAL_S
    loss, samples, wait_s = (value() if callable(value) else value for value in (loss, samples, wait_s))
    _writer.write(int(step), int(num_steps), int(samples), math.nan if loss is None else float(loss), float(wait_s))


def _read(path):
    for _ in range(3):  # more than once: it may be written just now
        data = path.read_bytes()
        if len(data) != LAYOUT.size or not data.startswith(MAGIC):
            return None
        fields = LAYOUT.unpack(data)
        if fields[1] % 2 == 0:
            return Status(*fields[2:-1], fields[-1].rstrip(b"\0").decode(errors="replace"))
    return None


def read_all(folder):
    """The Status of each rank that has said something, in rank order."""
    found = []
    for path in Path(folder).glob("rank-*"):
        try:
            status = _read(path)
        except OSError:
            continue
        if status is not None:
            found.append(status)
    return sorted(found, key=lambda status: status.rank)
