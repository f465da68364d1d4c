# SPDX-License-Identifier: Apache-2.0
"""Which part of the data is this process's: the one place that decides it."""
import os
from dataclasses import dataclass
from typing import Callable, Optional

# What launchers tell a process about the size of its job.
SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MPI_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")


@dataclass(frozen=True)
class Part:
    """`allgather(bytes)` gives the bytes of all ranks as a list; None: ranks do not talk about their data."""

    rank: int = 0
    size: int = 1
    allgather: Optional[Callable] = None

    def block(self, count):
        """(first, number) of this rank's rows: contiguous, the first (count mod size) ranks have one more."""
        each, more = divmod(count, self.size)
        return self.rank * each + min(self.rank, more), each + (self.rank < more)


def is_job():
    """Has a launcher started more than one rank?  Then, and only then, may the engine be started for the data."""
    if os.environ.get("TF_MPI_ENABLE") == "0":
        return False
    return any(os.environ.get(name, "").isdigit() and int(os.environ[name]) > 1 for name in SIZE_VARIABLES)


def current():
    """This process among the ranks of its job; alone, it is rank 0 of 1 and nothing is started."""
    if not is_job():
        return Part()
    import lockstep
    from lockstep.data.exchange import allgather
    size = lockstep.size()
    return Part(lockstep.rank(), size, allgather if size > 1 else None)


def given(part):
    """None: current(); (rank, size): that, without a word to other ranks."""
    if part is None:
        return current()
    if isinstance(part, Part):
        return part
    rank, size = part
    if not 0 <= rank < size:
        raise ValueError(f"part must be (rank, size) with 0 <= rank < size, not {part!r}")
    return Part(rank, size)
