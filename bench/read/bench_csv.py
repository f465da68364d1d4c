# SPDX-License-Identifier: Apache-2.0
"""CSV beside pandas.read_csv (C engine) and pyarrow.csv on one thread; then the same file by two processes.

    LOCKSTEP_LIB=build/openmpi/lib .venv/bin/python bench/read/bench_csv.py [--mb 128] [--rounds 5]"""
import tempfile
from pathlib import Path

import beside
import numpy as np


def lockstep(path):
    import lockstep.data

    def read():
        with lockstep.data.open(path) as source:
            rows = source.num_rows
            columns = source.read(0, rows)
            return len(columns[0])
    return read


def pandas(path):
    import pandas as pd
    return lambda: len(pd.read_csv(path, engine="c"))


def pyarrow(path):
    import pyarrow
    import pyarrow.csv
    pyarrow.set_cpu_count(1)
    return lambda: pyarrow.csv.read_csv(path, read_options=pyarrow.csv.ReadOptions(use_threads=False)).num_rows


SIDES = {"lockstep": lockstep, "pandas": pandas, "pyarrow": pyarrow}


def tables(num_bytes):
    """Of kinds that people have: 17 digits, few digits, whole numbers, text among numbers."""
    import pandas as pd
    rng = np.random.default_rng(0)

    def make(row_bytes, columns):
        count = num_bytes // row_bytes
        return pd.DataFrame({name: column(count) for name, column in columns.items()})

    yield "floats", make(160, {f"x{i}": lambda count: rng.normal(size=count) for i in range(8)})
    yield "measured", make(80, {"label": lambda count: rng.integers(0, 10, count), **{
        f"x{i}": lambda count: np.round(rng.uniform(0, 1000, count), 3) for i in range(10)}})
    yield "pixels", make(230, {f"p{i}": lambda count: rng.integers(0, 256, count) for i in range(64)})
    yield "with text", make(60, {"name": lambda count: rng.choice(["alpha", "beta, gamma", 'say "x"', "delta"], count),
                                 "x": lambda count: rng.normal(size=count), "k": lambda count: rng.integers(0, 10**9, count),
                                 "y": lambda count: np.round(rng.normal(size=count), 4)})


def half(path):
    """What a rank does: open together, read the own block."""
    from lockstep.data.binding import Source, formats
    from lockstep.data.part import Part
    formats()  # loads the library before there are two processes

    def work(rank, size, allgather):
        part = Part(rank, size, allgather)
        with Source(str(path), part) as source:
            first, count = part.block(source.num_rows)
            source.read(first, count)
    return work


def run(options):
    with tempfile.TemporaryDirectory() as folder:
        for title, table in tables(options.mb * 10**6):
            path = Path(folder) / "table.csv"
            table.to_csv(path, index=False)
            beside.compare(f"CSV, {title}", path.stat().st_size, SIDES, [path], options.rounds)
            beside.two_processes(f"CSV, {title}", half(path), options.rounds)


if __name__ == "__main__":
    beside.main(__doc__, SIDES, run)
