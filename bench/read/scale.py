#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much faster two ranks read a file than one: runs itself under MPI with 1 and 2 ranks in turn, prints the ratio.

Timed from before the file is opened to when the last rank has its rows; the index of TFRecord and CSV is made together.
On a machine that others use, look at the processor time."""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).resolve().parent), str(ROOT / "python")]


def rank_main(path, rounds):
    import lockstep
    import lockstep.data
    from lockstep.data.exchange import allgather
    from lockstep.data.part import current
    part = current()
    times, works = [], []
    for _ in range(rounds + 1):
        exchange(part, allgather)
        start, work = time.perf_counter(), time.thread_time()
        with lockstep.data.open(path) as source:
            first, count = part.block(source.num_rows)
            for begin in range(first, first + count, 1024):
                source.read(begin, min(1024, first + count - begin))
        work = time.thread_time() - work
        works.append(max(map(float, exchange(part, allgather, str(work).encode()))))
        times.append(time.perf_counter() - start)
    if part.rank == 0:
        print("seconds", statistics.median(times[1:]), statistics.median(works[1:]), flush=True)


def exchange(part, allgather, mine=b"x"):
    return allgather(mine) if part.size > 1 else [mine]


def run(ranks, path, rounds):
    settings = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "LOCKSTEP_LIB": str(ROOT / "build" / "openmpi" / "lib")}
    command = [ROOT / "tools" / "ranks", "--bind", "core", "-n", str(ranks), sys.executable, __file__, "--rank", path, "--rounds",
               str(rounds)]
    result = subprocess.run(command, text=True, capture_output=True, env=settings, timeout=300)
    if "seconds " not in result.stdout:
        sys.exit(result.stdout + result.stderr)
    return tuple(map(float, result.stdout.split("seconds ")[1].split()[:2]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rank:
        return rank_main(args.rank, args.rounds)
    from cases import make_records
    from tables import full_floats, make_csv
    files = {"TFRecord 1000 bytes": make_records(1000, 300_000_000), "TFRecord 100000 bytes": make_records(100_000, 300_000_000),
             "CSV 17 digits": make_csv(full_floats, 160)}
    with tempfile.TemporaryDirectory() as folder:
        for name, make in files.items():
            path = make(Path(folder))
            times = {1: [], 2: []}
            for _ in range(3):
                for ranks, measured in times.items():
                    measured.append(run(ranks, path, args.rounds))
            for number, what in enumerate(("time", "processor time of the slowest rank")):
                one, two = (statistics.median(measured[number] for measured in times[ranks]) for ranks in (1, 2))
                print(f"{name}, {what}: 1 rank {one * 1e3:.0f} ms, 2 ranks {two * 1e3:.0f} ms, "
                      f"ratio {one / two:.2f} (target 1.8)", flush=True)
            os.unlink(path)


if __name__ == "__main__":
    main()
