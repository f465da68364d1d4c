# SPDX-License-Identifier: Apache-2.0
"""What `lockstep doctor` runs on every rank: tells what this rank sees, measures, and rank 0 prints it all as JSON."""
import ctypes
import json
import os
import platform
import resource
import subprocess
import sys
import time

from lockstep.cli.engine import Engine
from lockstep.cli.run import tensorflow_version
from lockstep.launch import machine
from lockstep.launch.mpi import library_mpi, own_version

SMALL_ROUNDS, LARGE_ROUNDS, WARM_UP = 100, 5, 3
LARGE_BYTES = 8 << 20
TENSORFLOW_LIMIT_S = 180
SYS_ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA = 158, 0x1023, 18


def memory():
    """(all, available) bytes."""
    found = {}
    with open("/proc/meminfo") as file:
        for line in file:
            name, _, value = line.partition(":")
            found[name] = int(value.split()[0]) * 1024
    return found["MemTotal"], found["MemAvailable"]


def has_forbidden_amx():
    """Some virtual machines announce AMX and do not allow it."""
    if platform.machine() != "x86_64":
        return False
    with open("/proc/cpuinfo") as file:
        if " amx_tile" not in file.read():
            return False
    return ctypes.CDLL(None).syscall(SYS_ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) != 0


def facts(engine):
    total, available = memory()
    shm = os.statvfs("/dev/shm")
    return {"rank": engine.rank, "host": engine.host, "local_rank": engine.local_rank, "num_nodes": engine.num_nodes,
            "lockstep": own_version(), "python": platform.python_version(), "mpi": str(library_mpi()),
            "tensorflow": tensorflow_version(), "cpus": sorted(os.sched_getaffinity(0)), "cores": machine.cores(),
            "memory": total, "memory_free": available, "shm": shm.f_frsize * shm.f_blocks,
            "shm_free": shm.f_frsize * shm.f_bavail, "open_files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            "forbidden_amx": has_forbidden_amx()}


def median_seconds(call, rounds):
    times = []
    for number in range(WARM_UP + rounds):
        begin = time.perf_counter()
        call()
        if number >= WARM_UP:
            times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2]


def measure_job(engine):
    """An all-reduce over all ranks: seconds of 8 bytes, and of 8 MiB."""
    buffer = (ctypes.c_float * (LARGE_BYTES // 4))()
    engine.barrier("doctor/begin")
    small = median_seconds(lambda: engine.allreduce("doctor/small", buffer, 2), SMALL_ROUNDS)
    large = median_seconds(lambda: engine.allreduce("doctor/large", buffer, LARGE_BYTES // 4), LARGE_ROUNDS)
    return {"ranks": engine.size, "small_s": small, "large_s": large, "large_bytes": LARGE_BYTES}


def measure_pair(engine, first, second):
    """From one rank to another while the others send nothing."""
    buffer = ctypes.create_string_buffer(LARGE_BYTES)
    receiver = second if engine.rank == first else None
    label = f"doctor/{first}-{second}"
    engine.barrier(label)
    small = median_seconds(lambda: engine.send_to(label + "/small", receiver, buffer, 8), SMALL_ROUNDS // 2)
    large = median_seconds(lambda: engine.send_to(label + "/large", receiver, buffer, LARGE_BYTES), LARGE_ROUNDS)
    return {"from": first, "to": second, "small_s": small, "large_s": large, "large_bytes": LARGE_BYTES}


def pairs(ranks):
    """Rank 0 with another of its host, and with the first of each other host."""
    hosts, found = {ranks[0]["host"]}, []
    local = [rank for rank in ranks[1:] if rank["host"] == ranks[0]["host"]]
    found += [(0, local[0]["rank"])] if local else []
    for rank in ranks:
        if rank["host"] not in hosts:
            hosts.add(rank["host"])
            found.append((0, rank["rank"]))
    return found


def load_tensorflow():
    """Seconds that TensorFlow with Lockstep's operators takes to load in a process of its own, or what it said."""
    begin = time.monotonic()
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMI", "SLURM_"))}
    try:
        result = subprocess.run([sys.executable, "-c", "import lockstep.ops"], env={**environment, "TF_MPI_ENABLE": "0"},
                                text=True, errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=TENSORFLOW_LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"error": f"not loaded after {TENSORFLOW_LIMIT_S} s"}
    if result.returncode != 0:
        lines = result.stdout.strip().splitlines()
        return {"error": lines[-1] if lines else f"code {result.returncode}"}
    return {"seconds": time.monotonic() - begin}


def main(with_tensorflow):
    engine = Engine()
    engine.barrier("doctor/clock")
    own = {**facts(engine), "clock": time.time()}
    ranks = [json.loads(part) for part in engine.allgather("doctor/facts", json.dumps(own).encode())]
    report = {"ranks": ranks, "job": measure_job(engine), "pairs": [measure_pair(engine, *pair) for pair in pairs(ranks)]}
    loads = load_tensorflow() if with_tensorflow and engine.local_rank == 0 and own["tensorflow"] else {}
    report["loads"] = [json.loads(part) for part in engine.allgather("doctor/loads", json.dumps(loads).encode())]
    if engine.rank == 0:
        print("\nPROBE " + json.dumps(report), flush=True)
    engine.stop()


if __name__ == "__main__":
    main(with_tensorflow=sys.argv[1:] != ["--no-tensorflow"])
