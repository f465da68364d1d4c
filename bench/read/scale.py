#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much faster two ranks read a file than one: runs itself under MPI with 1 and 2 ranks in turn, prints the ratio.

Timed from before the file is opened to when the last rank has its rows; the index of TFRecord and CSV is made together.
What the machine allows is measured beside it: two processes that know nothing of each other read at the same time, each
a file of its own.  Were its cores independent, they would read twice as much per second as one.  On a machine that
others use, look at the processor time."""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).resolve().parent), str(ROOT / "python")]


SECOND = ".second"  # ends the name of a copy of the file


def read_in_batches(path, part, batch):
    import lockstep.data
    with lockstep.data.open(path, part=part) as source:
        first, count = source.part.block(source.num_rows)
        for begin in range(first, first + count, batch):
            source.read(begin, min(batch, first + count - begin))


def rank_main(path, rounds, alone, batch):
    import lockstep
    import lockstep.data
    from lockstep.data.exchange import allgather
    from lockstep.data.part import current
    part = current()
    mine = (0, 1) if alone else None
    path += SECOND if alone and part.rank == 1 else ""
    times, works = [], []
    for _ in range(rounds + 1):
        exchange(part, allgather)
        start, work = time.perf_counter(), time.thread_time()
        if batch == 0:
            lockstep.data.read(path, as_numpy=True, part=mine)
        else:
            read_in_batches(path, mine, batch)
        work = time.thread_time() - work
        works.append(max(map(float, exchange(part, allgather, str(work).encode()))))
        times.append(time.perf_counter() - start)
    if part.rank == 0:
        print("seconds", statistics.median(times[1:]), statistics.median(works[1:]), flush=True)


def exchange(part, allgather, mine=b"x"):
    return allgather(mine) if part.size > 1 else [mine]


def run(ranks, path, rounds, *options):
    settings = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "LOCKSTEP_LIB": str(ROOT / "build" / "openmpi" / "lib")}
    command = [ROOT / "tools" / "ranks", "--bind", "core", "-n", str(ranks), sys.executable, __file__, "--rank", path, "--rounds",
               str(rounds), *options]
    result = subprocess.run(command, text=True, capture_output=True, env=settings, timeout=300)
    if "seconds " not in result.stdout:
        sys.exit(result.stdout + result.stderr)
    return tuple(map(float, result.stdout.split("seconds ")[1].split()[:2]))


def file_of(make, folder):
    """The file, and a copy of it beside; written once."""
    note = folder / "path"
    if not note.exists():
        folder.mkdir(parents=True, exist_ok=True)
        path = make(folder)
        shutil.copy(path, path + SECOND)
        note.write_text(path)
    return note.read_text()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)  # 0: all rows at once
    parser.add_argument("--folder", type=Path, help="keep the files here, and use those that are there (1.7 GB)")
    parser.add_argument("--make", action="store_true", help="only write the files")
    parser.add_argument("--case", help="only files whose name contains this")
    args = parser.parse_args()
    if args.rank:
        return rank_main(args.rank, args.rounds, args.alone, args.batch)
    from cases import make_records
    from tables import full_floats, make_csv
    # Batches as one trains with: of many megabytes, they would measure how the kernel finds memory for them.
    files = {"TFRecord 1000 bytes": (make_records(1000, 300_000_000), 1024),
             "TFRecord 100000 bytes": (make_records(100_000, 300_000_000), 64),
             "CSV 17 digits, to numpy": (make_csv(full_floats, 160), 0),
             "CSV 17 digits, in batches": (make_csv(full_floats, 160), 1024)}
    with tempfile.TemporaryDirectory() as temporary:
        for number, (name, (make, batch)) in enumerate(files.items()):
            if args.case and args.case.lower() not in name.lower():
                continue
            path = file_of(make, (args.folder or Path(temporary)) / str(number))
            if args.make:
                continue
            how = ("--batch", str(batch))
            ways = {"one": (1, *how), "two": (2, *how), "copies": (2, "--alone", *how)}
            times = {way: [] for way in ways}
            for _ in range(3):
                for way, (ranks, *options) in ways.items():
                    times[way].append(run(ranks, path, args.rounds, *options))
            for number, what in enumerate(("time", "processor time of the slowest rank")):
                one, two, copies = (statistics.median(measured[number] for measured in times[way]) for way in ways)
                print(f"{name}, {what}: 1 rank {one * 1e3:.0f} ms, 2 ranks {two * 1e3:.0f} ms, ratio {one / two:.2f} (target 1.8); "
                      f"2 independent readers {copies * 1e3:.0f} ms, so the machine allows {2 * one / copies:.2f}", flush=True)


if __name__ == "__main__":
    main()
