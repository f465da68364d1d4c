# SPDX-License-Identifier: Apache-2.0
"""Readers beside each other: each reading in a fresh process on one core, in turn, and what it needed at most.

A side is a function of a path that gives its rows; it returns the function to be timed, so imports are not.  The file is in
the page cache.  Times of a shared machine are noise: look at the ratios, which come from runs next to each other."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))


def memory_mib(name):
    """VmRSS (now) or VmHWM (at most, since the mark was reset); with pages of files that are mapped."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024


def measure(side, arguments):
    """In the child: prints seconds and mebibytes above what was there before."""
    timed = side(*arguments)
    Path("/proc/self/clear_refs").write_text("5")  # the highest mark is now the present
    before = memory_mib("VmRSS")
    start = time.perf_counter()
    rows = timed()
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "mib": memory_mib("VmHWM") - before, "rows": rows}))


def run_child(name, arguments, core):
    cores = sorted(os.sched_getaffinity(0))
    command = [sys.executable, sys.argv[0], "--side", name, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                            preexec_fn=lambda: os.sched_setaffinity(0, {cores[core % len(cores)]}))


def result_of(process):
    out = process.communicate(timeout=600)[0]
    if process.returncode != 0:
        raise SystemExit(f"a reader failed with code {process.returncode}")
    return json.loads(out.splitlines()[-1])


def compare(title, file_bytes, names, arguments, rounds, ours="lockstep"):
    """One table: each name in turn, `rounds` times."""
    results = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            results[name].append(result_of(run_child(name, arguments, 0)))
    print(f"# {title}: {file_bytes / 1e6:.0f} MB, one core, {rounds} rounds in turn, medians")
    print(f"{'reader':14} {'ms':>8} {'MB/s':>8} {'ours is x':>10} {'peak MiB':>9} {'rows':>10}")
    own = [result["seconds"] for result in results[ours]]
    for name in names:
        seconds = [result["seconds"] for result in results[name]]
        ratio = statistics.median(other / mine for other, mine in zip(seconds, own))
        middle = statistics.median(seconds)
        print(f"{name:14} {middle * 1e3:8.1f} {file_bytes / middle / 1e6:8.0f} {ratio:10.2f} "
              f"{statistics.median(result['mib'] for result in results[name]):9.0f} {results[name][0]['rows']:10}")
    sys.stdout.flush()


def exchange(own_end, others_end):
    """allgather between two processes over a pair of pipes: (read, write) of this side."""
    def allgather_of(rank):
        def allgather(mine):
            writer = threading.Thread(target=lambda: _write_all(others_end, mine))
            writer.start()
            theirs = _read_all(own_end, len(mine))
            writer.join()
            return [mine, theirs] if rank == 0 else [theirs, mine]
        return allgather
    return allgather_of


def _write_all(descriptor, data):
    while data:
        data = data[os.write(descriptor, data):]


def _read_all(descriptor, count):
    data = b""
    while len(data) < count:
        piece = os.read(descriptor, count - len(data))
        if not piece:
            raise EOFError("the other process is gone")
        data += piece
    return data


def two_processes(title, work, rounds):
    """work(rank, size, allgather) alone and in two processes on two cores; the time of the later one counts."""
    times = {1: [], 2: []}
    for _ in range(rounds):
        for size in times:
            times[size].append(_time_processes(work, size))
    ratio = statistics.median(one / two for one, two in zip(times[1], times[2]))
    print(f"# {title}: 1 process {statistics.median(times[1]) * 1e3:.1f} ms, 2 processes {statistics.median(times[2]) * 1e3:.1f} ms: "
          f"{ratio:.2f} times as fast")
    sys.stdout.flush()


def _time_processes(work, size):
    cores = sorted(os.sched_getaffinity(0))
    to_first, to_second, reports = os.pipe(), os.pipe(), os.pipe()
    children = []
    for rank in range(size):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.sched_setaffinity(0, {cores[rank % len(cores)]})
                ends = (to_first[0], to_second[1]) if rank == 0 else (to_second[0], to_first[1])
                allgather = exchange(*ends)(rank) if size > 1 else None
                if allgather:
                    allgather(b"ready")
                start = time.perf_counter()
                work(rank, size, allgather)
                os.write(reports[1], f"{time.perf_counter() - start:.6f}\n".encode())
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    codes = [os.waitpid(child, 0)[1] for child in children]
    os.close(reports[1])
    seconds = [float(line) for line in os.read(reports[0], 4096).split()]
    for descriptor in (*to_first, *to_second, reports[0]):
        os.close(descriptor)
    if any(codes):
        raise SystemExit("a process failed")
    return max(seconds)


def main(doc, sides, run):
    """Command line: run(options) by hand, --side in the children."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=128, help="size of the files, about")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--side", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        measure(sides[options.side[0]], options.side[1:])
    else:
        run(options)
