# SPDX-License-Identifier: Apache-2.0
"""In which order the rows of an epoch come, and which rank takes which of a batch.

Every rank computes the same order from seed and epoch, so none has to be told."""
import numpy as np

WINDOW_CHUNKS = 16  # chunks whose rows are mixed with each other


def generator(seed, epoch):
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, epoch])))


def rows(num_rows, seed, epoch):
    """All rows, shuffled if there is a seed."""
    return np.arange(num_rows) if seed is None else generator(seed, epoch).permutation(num_rows)


def chunk_runs(num_rows, chunk_rows, first, count, seed, epoch):
    """Runs (first row, number) of a rank's part [first, first + count) of the epoch, whole chunks where possible: for
    formats in which a single row costs as much as its chunk.  The chunks are shuffled if there is a seed."""
    starts = np.arange(0, num_rows, chunk_rows)
    if seed is not None:
        starts = generator(seed, epoch).permutation(starts)
    lengths = np.minimum(chunk_rows, num_rows - starts)
    ends = np.cumsum(lengths)  # in the order of the epoch
    for start, length, end in zip(starts.tolist(), lengths.tolist(), ends.tolist()):
        low, high = max(first, end - length), min(first + count, end)
        if low < high:
            yield start + low - (end - length), high - low


def share(done, batch, part):
    """(first, number) of a batch of `batch` rows that this rank takes, after `done` rows of the epoch were dealt.

    Dealt like cards, round and round, so that after any number of batches no rank has two rows more than another."""
    sizes = [_dealt(done + batch, part.size, rank) - _dealt(done, part.size, rank) for rank in range(part.size)]
    return sum(sizes[:part.rank]), sizes[part.rank]


def _dealt(total, size, rank):
    """How many of `total` cards rank gets when they are dealt one by one."""
    return total // size + (rank < total % size)


def given(total, held):
    """How many rows each rank has given after `total`, dealt like cards: ranks hold rows of their own, and begin again
    together when all of them were given."""
    rounds, rest = divmod(total, sum(held))
    turns = _whole_turns(rest, held)
    counts = [min(turns, rows) for rows in held]
    left = rest - sum(counts)
    for rank, rows in enumerate(held):
        if left > 0 and rows > turns:
            counts[rank] += 1
            left -= 1
    return [rounds * rows + count for rows, count in zip(held, counts)]


def _whole_turns(total, held):
    """How often everybody who still had a row gave one."""
    turns, players = 0, len(held)
    for rows in sorted(held):
        until_next_is_out = (rows - turns) * players
        if total < until_next_is_out:
            return turns + total // players
        total -= until_next_is_out
        turns, players = rows, players - 1
    return turns
