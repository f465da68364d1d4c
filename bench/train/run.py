#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a training step, one core per process:

  one     one process
  copies  two independent copies of it at once: what the machine gives two processes, the limit
  ranks   two ranks, each with the same rows per step as one process; the script's batch is twice as large
  peer    tf.distribute's MultiWorkerMirroredStrategy, two workers over gRPC, a hand-written loop
  alone   one rank with Lockstep switched on: what it costs where it has nothing to do
  whole   one process with the batch of ranks and peer: the speed-up at the same global batch is against this one
  cores   the same with both cores: what TensorFlow's own threads make of them
  horovod Horovod, two processes, a hand-written loop; only where it is installed

The ways take turns in rounds, so that drift of the machine meets all of them; medians over the rounds are printed.
Efficiency is copies / ranks: 100 % means that training together costs nothing.  The script is Keras's fit on a tf.data pipeline, or, with
--script arrays.py, a hand-written loop on NumPy arrays."""
import argparse
import importlib.util
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CASES = (("resnet", 32), ("mnist", 128), ("mnist", 32), ("alexnet", 32))
SCRIPTS = ("script.py", "arrays.py")
WAYS = ("one", "copies", "ranks", "peer", "alone", "whole", "cores", "horovod")
# The ways whose steps take the same batch, and what they are called beside each other.
SAME_BATCH = {"whole": "1 process, 1 core", "cores": "1 process, 2 cores", "ranks": "Lockstep", "peer": "tf.distribute",
              "horovod": "Horovod"}
LIMIT_S = 600


def environment(core, **more):
    env = {**os.environ, "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1", "OMP_NUM_THREADS": "1",
           "TF_CPP_MIN_LOG_LEVEL": "3", "LOCKSTEP_SUMMARY": "off", "LOCKSTEP_LOG_DIR": "-", **more}
    if "LOCKSTEP_LIB" not in env and (ROOT / "build" / "openmpi").is_dir():  # a checkout; otherwise the installed package
        env["PYTHONPATH"] = f"{ROOT / 'python'}:{ROOT / 'tests' / 'site'}"
        env["LOCKSTEP_LIB"] = str(ROOT / "build" / "openmpi" / "lib")
    return env


def command(script, case, steps, folder, factor=1):
    model, batch = case
    return [sys.executable, str(HERE / script), "--model", model, "--batch", str(batch * factor), "--steps", str(steps),
            "--out", f"{folder}/%p.json"]


def on_core(core, words):
    return ["taskset", "-c", str(core), *words]


def results(folder):
    found = [json.loads(path.read_text()) for path in Path(folder).glob("*.json")]
    return statistics.mean(result["ms"] for result in found)


def start(words, env, folder):
    """What it writes to standard error is shown only if it fails: TensorFlow always says something."""
    with open(Path(folder) / f"{len(list(Path(folder).glob('*.err')))}.err", "wb") as errors:
        return subprocess.Popen(words, env=env, stderr=errors)


def wait(processes, folder):
    codes = [process.wait(timeout=LIMIT_S) for process in processes]
    if any(codes):
        said = [path.read_text(errors="replace").splitlines()[-15:] for path in sorted(Path(folder).glob("*.err"))]
        sys.exit(f"exit codes {codes}\n" + "\n".join(line for lines in said for line in lines))


def free_ports(number):
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def time_one(script, case, steps, folder, **env):
    wait([start(on_core(0, command(script, case, steps, folder)), environment(0, **env), folder)], folder)


def time_copies(script, case, steps, folder):
    wait([start(on_core(core, command(script, case, steps, folder)), environment(core), folder) for core in (0, 1)], folder)


def time_ranks(script, case, steps, folder):
    launcher = [sys.executable, "-m", "lockstep", "run", "-n", "2", "--threads", "1", "--no-progress"]
    wait([start(launcher + command(script, case, steps, folder, factor=2), environment(0), folder)], folder)


def time_peer(_, case, steps, folder):
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    wait([start(on_core(core, command("peer.py", case, steps, folder, factor=2)), environment(
        core, TF_CONFIG=json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": core}})), folder)
        for core in (0, 1)], folder)


def time_whole(script, case, steps, folder):
    wait([start(on_core(0, command(script, case, steps, folder, factor=2)), environment(0), folder)], folder)


def time_cores(script, case, steps, folder):
    threads = {"TF_NUM_INTRAOP_THREADS": "2", "TF_NUM_INTEROP_THREADS": "2", "OMP_NUM_THREADS": "2"}
    wait([start(on_core("0,1", command(script, case, steps, folder, factor=2)), environment(0, **threads), folder)], folder)


def time_horovod(_, case, steps, folder):
    launcher = [sys.executable, "-m", "horovod.runner.launch", "-np", "2", "-H", "localhost:2"]
    wait([start(launcher + command("peer_horovod.py", case, steps, folder, factor=2), environment(0, TF_MPI_ENABLE="0"), folder)],
         folder)


def time_way(way, script, case, steps):
    with tempfile.TemporaryDirectory() as folder:
        if way == "alone":
            time_one(script, case, steps, folder, TF_MPI_ENABLE="1")
        else:
            {"one": time_one, "copies": time_copies, "ranks": time_ranks, "peer": time_peer, "whole": time_whole,
             "cores": time_cores, "horovod": time_horovod}[way](script, case, steps, folder)
        return results(folder)


def print_same_batch(table):
    """Strong scaling: the steps of all columns take the same batch; how many times as fast as one process on one core."""
    ways = [way for way in SAME_BATCH if all(way in row["ms"] for row in table)]
    if "whole" not in ways:
        return
    print("\nthe same global batch: ms per step, and how many times as fast as one process on one core")
    print(f"{'model':8} {'batch':>5} " + " ".join(f"{SAME_BATCH[way]:>18}" for way in ways))
    for row in table:
        words = [f"{row['ms'][way]:9.2f} {row['ms']['whole'] / row['ms'][way]:6.2f} x" for way in ways]
        print(f"{row['model']:8} {2 * row['batch']:5} " + " ".join(f"{word:>18}" for word in words), flush=True)


def chosen_case(text):
    model, _, batch = text.partition(":")
    names = sorted({name for name, _ in CASES})
    if model not in names or not batch.isdigit() or int(batch) < 1:
        sys.exit(f"'{text}' is no case: write MODEL:BATCH, as mnist:128; the models are {', '.join(names)}")
    return model, int(batch)


def chosen_ways(text):
    """Those asked for, without a peer that is not installed."""
    ways = text.split(",") if text else list(WAYS)
    unknown = set(ways) - set(WAYS)
    if unknown:
        sys.exit(f"there is no way {', '.join(sorted(unknown))}; there are {', '.join(WAYS)}")
    if "horovod" in ways and importlib.util.find_spec("horovod") is None:
        print("horovod: not installed")
        ways.remove("horovod")
    return ways


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", help="model:batch, as mnist:128; more than once; default: all")
    parser.add_argument("--ways", help="which of them, with commas (default: all)")
    parser.add_argument("--script", choices=SCRIPTS, default=SCRIPTS[0], help="of all ways but the peers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--json", help="file for the numbers")
    args = parser.parse_args()
    cases = [chosen_case(text) for text in args.case] if args.case else CASES
    ways = chosen_ways(args.ways)

    print(f"{'model':8} {'batch':>5} " + " ".join(f"{way:>9}" for way in ways) + "  ms per step; efficiency = copies / ranks")
    table = []
    for case in cases:
        rounds = {way: [] for way in ways}
        for _ in range(args.rounds):
            for way in ways:
                rounds[way].append(time_way(way, args.script, case, args.steps))
        ms = {way: statistics.median(values) for way, values in rounds.items()}
        notes = []
        if {"copies", "ranks"} <= set(ways):
            notes.append(f"efficiency {100 * ms['copies'] / ms['ranks']:.0f} %")
        if {"peer", "ranks"} <= set(ways):
            notes.append(f"tf.distribute {ms['peer'] / ms['ranks']:.2f}x as long")
        if {"one", "alone"} <= set(ways):
            notes.append(f"alone {100 * (ms['alone'] / ms['one'] - 1):+.1f} %")
        print(f"{case[0]:8} {case[1]:5} " + " ".join(f"{ms[way]:9.2f}" for way in ways) + "  " + ", ".join(notes), flush=True)
        table.append({"model": case[0], "batch": case[1], "ms": ms, "rounds": rounds})
    print_same_batch(table)
    if args.json:
        Path(args.json).write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
