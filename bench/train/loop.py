# SPDX-License-Identifier: Apache-2.0
"""What hand-written loops have in common: their arguments, and how a step is timed."""
import argparse
import json
import os
import statistics
import time

import models


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", choices=sorted(models.MODELS), required=True)
    parser.add_argument("--batch", type=int, required=True, help="of all processes together")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--out", required=True, help="file for the result; %%p is the process")
    return parser.parse_args()


def time_steps(step, args):
    """Calls step() and writes how long it takes; the first calls trace and warm up."""
    times = []
    for _ in range(args.steps):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    times = times[max(4, args.steps // 5):]
    with open(args.out.replace("%p", str(os.getpid())), "w") as file:
        json.dump({"ms": 1000 * statistics.median(times), "mean_ms": 1000 * statistics.mean(times)}, file)
