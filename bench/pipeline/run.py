#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times an epoch whose tf.data pipeline has a heavy map, one core per process:

  one     one process
  copies  two independent copies of it at once: what the machine gives two processes
  ranks   two ranks, the same script: each maps only the rows that it computes on

The ways take turns; medians over the rounds are printed, in wall-clock time and in time of the processor."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIMIT_S = 600
WAYS = ("one", "copies", "ranks")
CLOCKS = {"wall": "wall clock", "processor": "processor"}


def environment(**more):
    env = {**os.environ, "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1", "OMP_NUM_THREADS": "1",
           "TF_CPP_MIN_LOG_LEVEL": "3", "LOCKSTEP_SUMMARY": "off", "LOCKSTEP_LOG_DIR": "-", **more}
    if "LOCKSTEP_LIB" not in env and (ROOT / "build" / "openmpi").is_dir():  # a checkout; otherwise the installed package
        env["PYTHONPATH"] = f"{ROOT / 'python'}:{ROOT / 'tests' / 'site'}"
        env["LOCKSTEP_LIB"] = str(ROOT / "build" / "openmpi" / "lib")
    return env


def epoch(way, folder):
    """Seconds of an epoch by each clock: of the slowest process."""
    script = [sys.executable, str(HERE / "script.py"), "--out", f"{folder}/%p.json"]
    if way == "ranks":
        commands = [[sys.executable, "-m", "lockstep", "run", "-n", "2", "--threads", "1", "--no-progress", *script]]
    else:
        commands = [["taskset", "-c", str(core), *script] for core in range(2 if way == "copies" else 1)]
    running = [subprocess.Popen(words, env=environment(), stderr=subprocess.DEVNULL) for words in commands]
    codes = [process.wait(timeout=LIMIT_S) for process in running]
    if any(codes):
        raise RuntimeError(f"{way}: exit codes {codes}")
    found = [json.loads(path.read_text()) for path in Path(folder).glob("*.json")]
    return {clock: max(one[clock] for one in found) for clock in CLOCKS}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    times = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, taken in times.items():
            with tempfile.TemporaryDirectory() as folder:
                taken.append(epoch(way, folder))
    for clock, name in CLOCKS.items():
        one, copies, ranks = (statistics.median(taken[clock] for taken in times[way]) for way in WAYS)
        print(f"{name:12} one {one:.2f} s, copies {copies:.2f} s, ranks {ranks:.2f} s: 2 ranks are {one / ranks:.2f} times as "
              f"fast as one process; 2 copies do {2 * one / copies:.2f} times its work")


main()
