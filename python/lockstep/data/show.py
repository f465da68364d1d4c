# SPDX-License-Identifier: Apache-2.0
"""What is in a file, as text: for people, and for `lockstep read`."""
import numpy as np

from lockstep.data.binding import Source
from lockstep.data.part import Part

SHOWN_RANKS = 16
SHOWN_FIELDS = 64
SHOWN_BYTES = 60


def show(path, ranks=1, first_rows=3, **options):
    """Format, fields, first rows, and which of `ranks` ranks would read what."""
    with Source(path, Part(), **options) as source:
        others = len(source.paths) - 1
        lines = [f"{source.paths[0]}{f' and {others} more' if others else ''}: {source.format}"]
        lines += _limited([_about(field) for field in source.fields], SHOWN_FIELDS, "fields")
        for number, field in enumerate(source.fields[:SHOWN_FIELDS]):
            values = source.read(0, min(first_rows, field.num_rows), [number])[0]
            lines += [f"  {field.name}[{row}] = {_short(value)}" for row, value in enumerate(values)]
        if ranks > 1:
            lines += _limited([_ranks_line(Part(rank, ranks), source.fields) for rank in range(ranks)], SHOWN_RANKS, "ranks")
    return "\n".join(lines)


def _limited(lines, most, what):
    return lines[:most] + ([f"  and {len(lines) - most} more {what}"] if len(lines) > most else [])


def _about(field):
    shape = " x ".join(map(str, field.shape))
    return f"  {field.name}: {field.num_rows} rows of {field.type}{' ' + shape if shape else ''}"


def _ranks_line(part, fields):
    """The block of one rank; by field where they differ in rows."""
    if len({field.num_rows for field in fields}) == 1:
        return f"  rank {part.rank}: {_block(part, fields[0].num_rows)}"
    blocks = [f"{field.name} {_block(part, field.num_rows)}" for field in fields[:SHOWN_FIELDS]]
    return f"  rank {part.rank}: {', '.join(blocks)}"


def _block(part, num_rows):
    first, count = part.block(num_rows)
    return f"rows {first} to {first + count - 1}" if count else "no rows"


def _short(value):
    if isinstance(value, bytes):
        return repr(value[:SHOWN_BYTES]) + (f" and {len(value) - SHOWN_BYTES} bytes more" if len(value) > SHOWN_BYTES else "")
    return np.array2string(np.asarray(value), threshold=8, edgeitems=2, separator=" ").replace("\n", "")
