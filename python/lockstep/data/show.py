# SPDX-License-Identifier: Apache-2.0
"""What is in a file, as text: for people, and for `lockstep read`."""
import numpy as np

from lockstep.data.binding import Source
from lockstep.data.part import Part

SHOWN_RANKS = 16
SHOWN_BYTES = 60


def show(path, ranks=1, first_rows=3, **options):
    """Format, fields, first rows, and which of `ranks` ranks would read what."""
    with Source(path, Part(), **options) as source:
        lines = [f"{source.paths[0]}: {source.format}"]
        for field in source.fields:
            shape = " x ".join(map(str, field.shape))
            lines.append(f"  {field.name}: {field.num_rows} rows of {field.type}{' ' + shape if shape else ''}")
        for number, field in enumerate(source.fields):
            values = source.read(0, min(first_rows, field.num_rows), [number])[0]
            lines += [f"  {field.name}[{row}] = {_short(value)}" for row, value in enumerate(values)]
        if ranks > 1:
            num_rows = source.num_rows
            for rank in range(min(ranks, SHOWN_RANKS)):
                first, count = Part(rank, ranks).block(num_rows)
                lines.append(f"  rank {rank}: rows {first} to {first + count - 1}" if count else f"  rank {rank}: no rows")
            if ranks > SHOWN_RANKS:
                lines.append(f"  and {ranks - SHOWN_RANKS} more ranks")
    return "\n".join(lines)


def _short(value):
    if isinstance(value, bytes):
        return repr(value[:SHOWN_BYTES]) + (f" and {len(value) - SHOWN_BYTES} bytes more" if len(value) > SHOWN_BYTES else "")
    return np.array2string(np.asarray(value), threshold=8, edgeitems=2, separator=" ").replace("\n", "")
