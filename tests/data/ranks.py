# SPDX-License-Identifier: Apache-2.0
"""Ranks that are threads: they open data together, as ranks of a job do."""
import threading

from lockstep.data.part import Part

LIMIT = 30


class Exchange:
    """allgather between threads."""

    def __init__(self, size):
        self.barrier = threading.Barrier(size, timeout=LIMIT)
        self.parts = [None] * size
        self.calls = 0

    def of_rank(self, rank):
        def allgather(mine):
            self.parts[rank] = mine
            self.barrier.wait()
            every = list(self.parts)
            if self.barrier.wait() == 0:
                self.calls += 1
            return every
        return allgather


def together(size, work):
    """work(part) on each of `size` ranks; their results in rank order, an exception as the result of its rank."""
    exchange, results = Exchange(size), [None] * size

    def run(rank):
        try:
            results[rank] = work(Part(rank, size, exchange.of_rank(rank) if size > 1 else None))
        except Exception as error:  # noqa: BLE001
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive(), "a rank waits for ever"
    return results


def all_well(results):
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results
