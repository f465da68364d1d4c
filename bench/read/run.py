#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads each file with Lockstep and with what a user would take instead, in turn, and prints the ratio of their speeds.

Each side is a process of its own on the same core, started once; the file is in the page cache.  Speed is that of the
median round, memory what a read adds at its peak.  On a machine that others use look at the ratio by CPU, of processor time.
2 ranks: bench/read/scale.py."""
import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
sys.path.insert(0, str(FOLDER))

from cases import CASES  # noqa: E402


def memory(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key)) * 1024


def work(number, side, path, core):
    """A worker: for each line on standard input one read, answered with seconds, bytes and peak memory."""
    os.sched_setaffinity(0, {core})
    read = getattr(CASES[number], side)
    read(path)  # imports, page cache, first-time costs
    print("ready", flush=True)
    for _ in sys.stdin:
        Path("/proc/self/clear_refs").write_text("5")
        before = memory("VmRSS")
        start, work_before = time.perf_counter(), time.process_time()
        count = read(path)
        seconds, worked = time.perf_counter() - start, time.process_time() - work_before
        print(seconds, worked, count, max(0, memory("VmHWM") - before), flush=True)


class Worker:
    def __init__(self, number, side, path, core):
        self.process = subprocess.Popen([sys.executable, __file__, "--worker", str(number), side, path, str(core)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env={**os.environ, **settings(), "TF_CPP_MIN_LOG_LEVEL": "3"})
        if self.process.stdout.readline().strip() != "ready":
            sys.exit(f"bench: {side} cannot read {path}")

    def measure(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        seconds, worked, count, peak = self.process.stdout.readline().split()
        return float(seconds), float(worked), int(count), int(peak)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def settings():
    """For a checkout: its package and its build.  An installed package finds both by itself."""
    if not (ROOT / "python" / "lockstep").is_dir():
        return {}
    found = os.environ.get("LOCKSTEP_LIB") or next((str(ROOT / "build" / name / "lib") for name in ("openmpi", "mpich")
                                                    if (ROOT / "build" / name / "lib").is_dir()), None)
    if found is None:
        sys.exit("bench: nothing is built; run make build")
    return {"PYTHONPATH": str(ROOT / "python"), "LOCKSTEP_LIB": found}


def file_of(case, folder):
    """The file that the case reads; it is written once for all cases of this name."""
    own = folder / case.name.replace(" ", "-").replace(",", "")
    note = own / "path"
    if not note.exists():
        own.mkdir(parents=True, exist_ok=True)
        note.write_text(case.make(own))
    return note.read_text()


def compare(number, folder, rounds, core):
    """One row of the table: what was measured of a case."""
    case = CASES[number]
    path = file_of(case, folder)
    workers = {side: Worker(number, side, path, core) for side in ("ours", "peer")}
    results = {side: [] for side in workers}
    for _ in range(rounds):
        for side, worker in workers.items():
            results[side].append(worker.measure())
    for worker in workers.values():
        worker.end()
    assert results["ours"][0][2] == results["peer"][0][2], "the two sides read different bytes"
    speeds = {side: measured[0][2] / median(measured, 0) / 1e6 for side, measured in results.items()}
    return {"file": case.name, "peer": case.peer_name, "target": case.target, "speed": speeds,
            "ratio": speeds["ours"] / speeds["peer"], "ratio_by_cpu": median(results["peer"], 1) / median(results["ours"], 1),
            "peak": {side: max(peak for *_, peak in measured) / 1e6 for side, measured in results.items()}}


def line_of(row):
    return (f"{row['file']:26} {row['peer']:16} {row['speed']['ours']:9.0f} {row['speed']['peer']:7.0f} {row['ratio']:7.2f} "
            f"{row['ratio_by_cpu']:7.2f} {row['target']:7.2f} {'ok' if row['ratio'] >= row['target'] else 'LESS':>5} "
            f"{row['peak']['ours']:8.0f} {row['peak']['peer']:8.0f}")


def lacking(case):
    """A module that the case needs and that is not there."""
    return next((name for name in case.needs if importlib.util.find_spec(name) is None), None)


def median(measured, number):
    return statistics.median(one[number] for one in measured)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="reads of each side")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="the core that both sides run on")
    parser.add_argument("--case", action="append", default=[], help="only cases whose name contains this; more than once")
    parser.add_argument("--folder", type=Path, help="keep the files here, and use those that are there (2.4 GB)")
    parser.add_argument("--make", action="store_true", help="only write the files")
    parser.add_argument("--json", help="write the numbers into this file")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        number, side, path, core = args.worker
        return work(int(number), side, path, int(core))
    chosen = [number for number, case in enumerate(CASES)
              if not args.case or any(text.lower() in case.name.lower() for text in args.case)]
    if not chosen:
        sys.exit(f"bench: no case is called {' or '.join(args.case)}; there are: {', '.join(case.name for case in CASES)}")
    print(f"# python {sys.version.split()[0]}, core {args.core}, {args.rounds} rounds, warm page cache")
    print(f"{'# file':26} {'peer':16} {'ours MB/s':>9} {'peer':>7} {'ratio':>7} {'by CPU':>7} {'target':>7} {'':5} {'ours MB':>8} "
          f"{'peer MB':>8}")
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        for number in chosen:
            if lacking(CASES[number]):
                print(f"{CASES[number].name:26} {CASES[number].peer_name:16} left out: {lacking(CASES[number])} is not installed")
            elif args.make:
                print(file_of(CASES[number], folder), flush=True)
            else:
                rows.append(compare(number, folder, args.rounds, args.core))
                print(line_of(rows[-1]), flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
