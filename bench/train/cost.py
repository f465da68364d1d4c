#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to cut batches and to agree on metrics, as a share of a training step, one core per process.

Two ranks train by turns with cut batches, loss and accuracy (full), and with batches of their own and no metrics (bare); so
does one process, whose difference is what Keras's metrics themselves take.  What is left of the ranks' difference is
Lockstep's.  Printed are medians over all turns of the difference of a turn, in wall-clock and in processor time."""
import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

import run

CASES = (("mnist", 128), ("mnist", 32))
CLOCKS = ("wall clock", "processor")


def turns_of(words, folder):
    """Turns of the ranks: means over the ranks, which wait for each other."""
    run.wait([run.start(words, run.environment(0), folder)], folder)
    ranks = [json.loads(path.read_text()) for path in Path(folder).glob("*.json")]
    return [{way: [statistics.mean(turn[way][clock] for turn in turns) for clock in range(len(CLOCKS))]
             for way in ("bare", "full")} for turns in zip(*ranks)]


def measure(case, steps, turns, is_ranks):
    with tempfile.TemporaryDirectory() as folder:
        script = [*run.command("cost_script.py", case, steps, folder), "--turns", str(turns)]
        if not is_ranks:
            return turns_of(run.on_core(0, script), folder)
        launcher = [sys.executable, "-m", "lockstep", "run", "-n", "2", "--threads", "1", "--no-progress"]
        return turns_of(launcher + script + ["--share", "2"], folder)


def median(turns, clock, figure):
    return statistics.median(figure(turn["full"][clock], turn["bare"][clock]) for turn in turns)


def report(case, one, ranks):
    row = {"model": case[0], "batch": case[1]}
    for clock, name in enumerate(CLOCKS):
        step = median(ranks, clock, lambda full, bare: full)
        together = median(ranks, clock, lambda full, bare: full - bare)
        alone = median(one, clock, lambda full, bare: full - bare)
        row[name] = {"step_ms": step, "ranks_ms": together, "one_ms": alone, "share": (together - alone) / step}
        print(f"{case[0]:8} {case[1]:5} {name:12} {step:9.2f} {together:9.3f} {alone:9.3f} {100 * row[name]['share']:8.1f} %",
              flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", help="model:batch of a process, as mnist:128; more than once")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each kind")
    parser.add_argument("--turns", type=int, default=15, help="of each way in a process")
    parser.add_argument("--steps", type=int, default=20, help="of each turn")
    parser.add_argument("--json", help="file for the numbers")
    args = parser.parse_args()
    cases = [run.chosen_case(text) for text in args.case] if args.case else CASES

    print(f"{'model':8} {'batch':>5} {'':12} {'step':>9} {'ranks':>9} {'one':>9}    share   ms; full - bare; (ranks - one) / step")
    table = []
    for case in cases:
        one, ranks = [], []
        for _ in range(args.rounds):
            one += measure(case, args.steps, args.turns, is_ranks=False)
            ranks += measure(case, args.steps, args.turns, is_ranks=True)
        table.append(report(case, one, ranks))
    if args.json:
        Path(args.json).write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
