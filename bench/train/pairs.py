#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training step of ranks beside that of independent copies, by turns in the same processes, one core per process.

run.py times each way in processes of its own, minutes apart; where others use the machine, or it changes its speed, only
this comparison holds still.  The processes are launched anew several times, and every second time the ranks' model is made
before the copies', since the place of a model in memory changes its speed, too.  Two ranks: what training together costs.  One
rank (alone): what hooks cost where they have nothing to do.  Printed are medians over all turns, and the mean over the launches
of the median ratio of a turn, with the lowest and the highest launch, in wall-clock and in processor time.

Ranks wait for each other in every step, and do the same at the same time; copies never.  `paced` are copies that wait for each
other after every step: what a step would take if that were all that ranks did.  paced / ranks is what exchanging gradients costs by
itself."""
import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

import run


def measure(case, steps, turns, num_ranks, is_ranks_first):
    with tempfile.TemporaryDirectory() as folder:
        words = [*run.command("pairs_script.py", case, steps, folder), "--turns", str(turns), *["--ranks-first"] * is_ranks_first]
        words[words.index("--out") + 1] = f"{folder}/turns.json"
        if num_ranks == 1:
            process = run.start(run.on_core(0, words), run.environment(0, TF_MPI_ENABLE="1"), folder)
        else:
            launcher = [sys.executable, "-m", "lockstep", "run", "-n", str(num_ranks), "--threads", "1", "--no-progress"]
            process = run.start(launcher + words, run.environment(0), folder)
        run.wait([process], folder)
        return json.loads((Path(folder) / "turns.json").read_text())


def ratios(launches, clock, way):
    """How fast ranks are beside this way: (mean over the launches, the lowest of them, the highest)"""
    medians = [statistics.median(turn[clock][way] / turn[clock]["ranks"] for turn in turns) for turns in launches]
    return statistics.geometric_mean(medians), min(medians), max(medians)


def report(case, num_ranks, launches):
    row = {"model": case[0], "batch": case[1], "ranks": num_ranks}
    turns = [turn for launch in launches for turn in launch]
    for clock in turns[0]:
        ms = {way: statistics.median(turn[clock][way] for turn in turns) for way in turns[0][clock]}
        share, low, high = ratios(launches, clock, "copies")
        row[clock] = {"ms": ms, "share": share, "launches": [low, high]}
        words = [f"{case[0]:8} {case[1]:5} {num_ranks:5} {clock:11} {ms['copies']:9.2f} {ms['ranks']:9.2f}",
                 f"{100 * share:7.1f} % ({100 * low:.1f} to {100 * high:.1f})"]
        if num_ranks > 1:
            share, low, high = ratios(launches, clock, "paced")
            row[clock] |= {"share_of_paced": share, "launches_of_paced": [low, high]}
            words.append(f"{ms['paced']:9.2f} {100 * share:7.1f} % ({100 * low:.1f} to {100 * high:.1f})")
        print(" ".join(words), flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", help="model:batch of a process, as mnist:128; more than once; default: all")
    parser.add_argument("--ranks", type=int, action="append", choices=(1, 2), help="1: alone; 2; default: both")
    parser.add_argument("--turns", type=int, default=20, help="of each way in a launch; few of them tell little where the machine's speed varies")
    parser.add_argument("--launches", type=int, default=4, help="even: in every second one the ranks' model is made first")
    parser.add_argument("--steps", type=int, default=10, help="of each turn")
    parser.add_argument("--json", help="file for the numbers")
    args = parser.parse_args()
    cases = [run.chosen_case(text) for text in args.case] if args.case else run.CASES

    print(f"{'model':8} {'batch':>5} ranks {'ms per step':11} {'copies':>9} {'ranks':>9}   copies / ranks (launches)"
          f" {'paced':>9}   paced / ranks")
    table = [report(case, num_ranks, [measure(case, args.steps, args.turns, num_ranks, launch % 2 == 1) for launch in range(args.launches)])
             for case in cases for num_ranks in args.ranks or (2, 1)]
    if args.json:
        Path(args.json).write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
