# SPDX-License-Identifier: Apache-2.0
"""Two hosts on one machine, as network namespaces joined by a cable that can be cut.  Needs root, iproute2 and Open MPI."""
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from jobs import Mpi, run_process

NETWORK = "10.77.3"
AGENT = """#!/bin/sh
host=$1
shift
exec ip netns exec "$host" unshare --uts sh -c "hostname $host; $*"
"""

pytestmark = pytest.mark.long


def ip(*words):
    return subprocess.run(["ip", *words], text=True, capture_output=True, timeout=20, check=False)


class Hosts:
    """Namespaces a and b; names end in the process id, so that two test runs do not meet."""

    def __init__(self, folder):
        self.names = [f"ls{letter}{os.getpid()}" for letter in "ab"]
        self.agent = folder / "agent"
        self.agent.write_text(AGENT)
        self.agent.chmod(0o755)

    def up(self):
        for name in self.names:
            result = ip("netns", "add", name)
            if result.returncode != 0:
                pytest.skip(f"no right to make network namespaces: {result.stderr.strip()}")
        ip("link", "add", "cable-a", "netns", self.names[0], "type", "veth", "peer", "name", "cable-b", "netns", self.names[1])
        for number, name in enumerate(self.names, start=1):
            folder = Path("/etc/netns") / name  # what `ip netns exec` shows as /etc
            folder.mkdir(parents=True)
            (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(
                f"{NETWORK}.{n} {host}\n" for n, host in enumerate(self.names, start=1)))
            device = f"cable-{'ab'[number - 1]}"
            ip("-n", name, "addr", "add", f"{NETWORK}.{number}/24", "dev", device)
            ip("-n", name, "link", "set", "lo", "up")
            assert ip("-n", name, "link", "set", device, "up").returncode == 0

    def cut(self):
        assert ip("-n", self.names[0], "link", "set", "cable-a", "down").returncode == 0

    def pids(self):
        return [int(pid) for name in self.names for pid in ip("netns", "pids", name).stdout.split()]

    def kill(self):
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def down(self):
        self.kill()
        for name in self.names:
            ip("netns", "del", name)
            shutil.rmtree(Path("/etc/netns") / name, ignore_errors=True)

    def command(self, program, *args):
        network = f"{NETWORK}.0/24"
        mpirun = ["mpirun.openmpi", "--allow-run-as-root", "--host", ",".join(f"{name}:2" for name in self.names), "-n", "4",
                  "--bind-to", "none", "--mca", "plm_rsh_agent", self.agent, "--mca", "btl_tcp_if_include", network,
                  "--mca", "oob_tcp_if_include", network, "-x", "LOCKSTEP_FLIGHT_DIR", "-x", "TEST_JOB_ID", program, *args]
        return ["ip", "netns", "exec", self.names[0], "unshare", "--uts", "sh", "-c",
                f"hostname {self.names[0]}; exec {' '.join(map(str, mpirun))}"]


@pytest.fixture
def hosts(tmp_path):
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    if shutil.which("mpirun.openmpi") is None or not Mpi("openmpi").folder.is_dir():
        pytest.skip("the library is not built with Open MPI")
    both = Hosts(tmp_path)
    try:
        both.up()
        yield both
    finally:
        both.down()


def ranks_of(pids, program):
    found = []
    for pid in pids:
        try:
            if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(program):
                found.append(pid)
        except OSError:
            continue  # it has ended
    return found


def wait_for(condition, seconds):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def test_all_is_well_between_two_hosts(hosts, clean):
    job = run_process(hosts.command(Mpi("openmpi").program("fault/fault_job"), "train", 1, 1))
    assert job.code == 0 and "whole" in job.stdout and "lockstep" not in job.stderr, str(job)


def test_the_heartbeat_listens_on_the_cable_only(hosts, clean):
    program = Mpi("openmpi").program("fault/fault_job")
    seen = []

    def listening():
        lines = [subprocess.run(["ss", "-N", name, "-Hlun"], text=True, capture_output=True, timeout=20, check=True).stdout
                 for name in hosts.names]
        return [line.split()[3] for line in "".join(lines).splitlines()]

    def look(_):
        wait_for(lambda: len(listening()) >= 2, 20)
        seen.extend(listening())

    if shutil.which("ss") is None:
        pytest.skip("no ss")
    job = run_process(hosts.command(program, "train", 1, 4), during=look)
    assert job.code == 0, str(job)
    assert sorted(address.rpartition(":")[0] for address in seen) == [f"{NETWORK}.1", f"{NETWORK}.2"], seen


def test_a_cable_that_is_cut_ends_the_ranks_on_both_sides(hosts, time_table, clean):
    """The launcher does not get over it: its own messages are lost.  What matters is that the ranks do."""
    program = Mpi("openmpi").program("fault/fault_job")

    def cut(_):
        wait_for(lambda: len(ranks_of(hosts.pids(), program)) == 4, 20)
        time.sleep(3)
        hosts.cut()
        begin = time.monotonic()
        wait_for(lambda: not ranks_of(hosts.pids(), program), 10)
        time_table("cable cut, default settings", time.monotonic() - begin)
        time.sleep(0.5)
        hosts.kill()

    job = run_process(hosts.command(program, "train", 1, 60), during=cut)
    other = hosts.names[1]
    assert re.search(rf"lockstep rank [01]: error: rank 2 \(process \d+ on {other}\), which speaks for 1 more of its node, does not "
                     r"respond: no heartbeat for [\d.]+ s .*; last step \d+, last tensor 'layer_\d/kernel'", job.stderr), str(job)
