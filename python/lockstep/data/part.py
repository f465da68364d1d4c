# SPDX-License-Identifier: Apache-2.0
"""Which part of the data is this process's: the one place that decides it."""
from dataclasses import dataclass
from typing import Callable, Optional


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
    """Has a launcher started more than one rank, and is this one of them?  Only then may the engine be started for data."""
    from lockstep.start import is_rank
    return is_rank()


def current():
    """This process among the ranks of its job; alone, it is rank 0 of 1 and nothing is started."""
    if not is_job():
        return Part()
    from lockstep import native
    from lockstep.data.exchange import allgather
    size = native.size()
    return Part(native.rank(), size, allgather if size > 1 else None)


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
