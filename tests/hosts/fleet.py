# SPDX-License-Identifier: Apache-2.0
"""Makes the hosts of tests/hosts/hosts for a test; skips it, by name, where the rights are lacking."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parent / "hosts"


class Hosts:
    """host1 ... hostN; commands are given on host1."""

    def __init__(self, folder, number):
        self.folder, self.number = folder, number
        self.agent = folder / "agent"
        self.enter = self.enter_host(1)

    def enter_host(self, number):
        """The words that run a command on a host."""
        return [sys.executable, str(TOOL), "exec", str(self.folder), f"host{number}"]

    def cut(self, number):
        """Pulls the cable of a host."""
        subprocess.run([sys.executable, TOOL, "cut", self.folder, f"host{number}"], check=True, timeout=20)

    def slots(self, each):
        return ",".join(f"host{number}:{each}" for number in range(1, self.number + 1))


def make_hosts(number, *options):
    if os.geteuid() != 0:
        pytest.skip("needs root: making network namespaces")
    for program in ("ip", "nsenter", "mount"):
        if subprocess.run(["which", program], stdout=subprocess.DEVNULL).returncode != 0:
            pytest.skip(f"needs {program}")
    folder = Path(tempfile.mkdtemp(prefix="hosts-"))
    made = subprocess.run([sys.executable, TOOL, "make", folder, str(number), *options], text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if made.returncode != 0:
        if "no right" in made.stderr or "not permitted" in made.stderr or "denied" in made.stderr:
            pytest.skip(f"needs the right to make network namespaces: {made.stderr.strip()}")
        pytest.fail(made.stderr)
    return Hosts(folder, number)


def remove_hosts(hosts):
    subprocess.run([sys.executable, TOOL, "remove", hosts.folder], check=True, timeout=60)
    subprocess.run(["rm", "-rf", hosts.folder], check=True)
