# SPDX-License-Identifier: Apache-2.0
"""From what the ranks saw to findings: each a sentence, and what to do where something is not as it should be."""
from collections import Counter
from dataclasses import dataclass

MIB = 1 << 20
STAGE_MIB = 16        # LOCKSTEP_STAGE_BYTES: shared memory of a rank at start
LITTLE_MEMORY = 1024 * MIB
CLOCK_S = 1.0
SLOW_NETWORK = 110e6  # bytes per second: a network of 1 Gbit/s


@dataclass
class Finding:
    """level: ok, warn or FAIL."""

    level: str
    text: str
    todo: str = ""

    def __str__(self):
        return f"{self.level:4}  {self.text}" + (f"\n      -> {self.todo}" if self.todo else "")


def by_host(ranks):
    hosts = {}
    for rank in ranks:
        hosts.setdefault(rank["host"], []).append(rank)
    return hosts


def check_versions(ranks, needs_tensorflow):
    """lockstep, MPI, Python and TensorFlow: equal on all hosts."""
    for key, name, level in (("lockstep", "Lockstep", "FAIL"), ("mpi", "MPI", "FAIL"), ("python", "Python", "warn"),
                             ("tensorflow", "TensorFlow", "FAIL")):
        seen = {}
        for rank in ranks:
            seen.setdefault(rank[key], set()).add(rank["host"])
        if len(seen) > 1:
            text = "; ".join(f"{value or 'none'} on {', '.join(sorted(hosts))}" for value, hosts in seen.items())
            yield Finding(level, f"{name} differs: {text}", "install the same version on all hosts")
        elif key == "tensorflow" and ranks[0][key] is None:
            yield Finding("FAIL" if needs_tensorflow else "warn", "TensorFlow is not installed",
                          "pip install tensorflow (2.16 or newer)")
        else:
            yield Finding("ok", f"{name}: {ranks[0][key]} on all ranks")


def check_nodes(ranks, expected):
    hosts, seen = by_host(ranks), ranks[0]["num_nodes"]
    if expected and seen != expected:
        yield Finding("FAIL", f"{seen} nodes are seen where {expected} hosts were named",
                      "give each host a name of its own (hostname), and check the hostfile")
    else:
        yield Finding("ok", f"{len(ranks)} ranks on {seen} node{'s' if seen != 1 else ''}: "
                      + ", ".join(f"{host} ({len(here)})" for host, here in hosts.items()))


def check_shared_memory(ranks):
    for host, here in by_host(ranks).items():
        needed, free = len(here) * STAGE_MIB * MIB, min(rank["shm_free"] for rank in here)
        if len(here) > 1 and free < needed:
            yield Finding("FAIL", f"{host}: /dev/shm has {free // MIB} MiB free, {len(here)} ranks need {needed // MIB}",
                          "make it larger (docker run --shm-size=1g; mount -o remount,size=2g /dev/shm)")
        else:
            yield Finding("ok", f"{host}: /dev/shm has {free // MIB:,} MiB free")


def check_cores(ranks):
    for host, here in by_host(ranks).items():
        count = Counter(cpu for rank in here for cpu in rank["cpus"])
        shared = [cpu for cpu, number in count.items() if number > 1]
        if len(here) > len(count):
            yield Finding("warn", f"{host}: {len(here)} ranks share {len(count)} processors",
                          "use fewer ranks there, or accept that they take turns")
        elif shared and len(here) > 1:
            yield Finding("warn", f"{host}: ranks are not bound to cores of their own",
                          "leave --bind away, or let the launcher bind (mpirun --bind-to core)")
        else:
            yield Finding("ok", f"{host}: each rank has its own {here[0]['cores']} core{'s' if here[0]['cores'] > 1 else ''}")


def check_memory(ranks):
    for host, here in by_host(ranks).items():
        each = min(rank["memory_free"] for rank in here) / len(here)
        if each < LITTLE_MEMORY:
            yield Finding("warn", f"{host}: {each / MIB:.0f} MiB of memory are free per rank", "use fewer ranks per host")
        else:
            yield Finding("ok", f"{host}: {each / MIB:,.0f} MiB of memory are free per rank")


def check_limits(ranks):
    for host, here in by_host(ranks).items():
        if here[0]["open_files"] < 1024:
            yield Finding("warn", f"{host}: only {here[0]['open_files']} files may be open at once", "ulimit -n 4096")
        if here[0]["forbidden_amx"]:
            yield Finding("warn", f"{host}: the processor announces AMX and does not allow it: bfloat16 ends with SIGILL",
                          "set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16")


def check_clocks(ranks):
    times = [rank["clock"] for rank in ranks]
    spread = max(times) - min(times)
    if spread > CLOCK_S:
        late = max(ranks, key=lambda rank: rank["clock"])["host"]
        yield Finding("warn", f"the clocks of the hosts differ by {spread:.1f} s (ahead: {late})",
                      "let NTP set them; logs and checkpoints would seem out of order")
    else:
        yield Finding("ok", f"clocks agree within {max(spread, 0.001):.3f} s")


def check_speed(report):
    job = report["job"]
    if job["ranks"] > 1:
        yield Finding("ok", f"all-reduce over {job['ranks']} ranks: {job['small_s'] * 1e6:.0f} us for 8 bytes, "
                      f"{job['large_bytes'] / job['large_s'] / 1e9:.2f} GB/s for {job['large_bytes'] // MIB} MiB")
    hosts = {rank["rank"]: rank["host"] for rank in report["ranks"]}
    for pair in report["pairs"]:
        first, second = hosts[pair["from"]], hosts[pair["to"]]
        speed = pair["large_bytes"] / pair["large_s"]
        where = f"inside {first}" if first == second else f"{first} to {second}"
        text = f"{where}: {pair['small_s'] * 1e6:.0f} us, {speed / 1e9:.2f} GB/s"
        if first != second and speed < SLOW_NETWORK:
            yield Finding("warn", f"{text}: slower than 1 Gbit/s",
                          "name the fast network with --interface; LOCKSTEP_WIRE=bfloat16 halves the traffic")
        else:
            yield Finding("ok", text)


def check_loads(report):
    for rank, load in zip(report["ranks"], report["loads"]):
        if "error" in load:
            yield Finding("FAIL", f"{rank['host']}: TensorFlow with Lockstep's operators does not load: {load['error']}",
                          "python -c 'import lockstep.ops' shows all of it")
        elif "seconds" in load:
            yield Finding("ok", f"{rank['host']}: TensorFlow with Lockstep's operators loads in {load['seconds']:.1f} s")


def findings_of(report, expected_hosts, needs_tensorflow=True):
    ranks = report["ranks"]
    yield from check_versions(ranks, needs_tensorflow)
    for check in (check_shared_memory, check_cores, check_memory, check_limits, check_clocks):
        yield from check(ranks)
    yield from check_nodes(ranks, expected_hosts)
    yield from check_speed(report)
    yield from check_loads(report)
