# SPDX-License-Identifier: Apache-2.0
"""Hosts: how they are named, and whether they can be reached."""
import os
import re
import shlex
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from lockstep.launch.mpi import own_version
from lockstep.launch.problem import Problem

NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.:-]*$")
REACH_LIMIT_S = 12
SSH = "ssh -o BatchMode=yes -o ConnectTimeout=8"
NEEDED_THERE = ("PYTHONPATH", "LOCKSTEP_LIB", "LD_LIBRARY_PATH")


@dataclass(frozen=True)
class Host:
    """slots: ranks that may run there."""

    name: str
    slots: int


def _host(name, slots, where):
    if not NAME.match(name):
        raise Problem(f"'{name}' in {where} is no name of a host", "write host:slots, as node1:4")
    if not re.fullmatch(r"[1-9]\d*", slots):
        raise Problem(f"'{slots}' slots for host {name} in {where} is not a number from 1 up",
                      "write host:slots, as node1:4")
    return Host(name, int(slots))


def _joined(hosts):
    """A host that is named twice has the slots of both."""
    slots = {}
    for host in hosts:
        slots[host.name] = slots.get(host.name, 0) + host.slots
    return [Host(name, number) for name, number in slots.items()]


def parse_hosts(text):
    """node1:4,node2:4; without a number one slot."""
    hosts = []
    for word in text.split(","):
        name, _, slots = word.strip().partition(":")
        hosts.append(_host(name, slots or "1", f"-H {text}"))
    return _joined(hosts)


def parse_hostfile(path):
    """Open MPI's form (node1 slots=4), MPICH's (node1:4), or a name alone, one per line; # begins a comment."""
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Problem(f"the hostfile {path} cannot be read ({error})", "name a text file with one host per line") from None
    hosts = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#")[0].split()
        if not words:
            continue
        name, _, slots = words[0].partition(":")
        for word in words[1:]:
            key, _, value = word.partition("=")
            if key == "slots":
                slots = value
        hosts.append(_host(name, slots or "1", f"{path}:{number}"))
    if not hosts:
        raise Problem(f"the hostfile {path} names no host", "write one host per line, as node1 slots=4")
    return _joined(hosts)


def is_local(name):
    """Is it this machine?  Its name, or a name whose address this machine has."""
    own = socket.gethostname()
    if name in ("localhost", own, own.split(".")[0]):
        return True
    try:
        addresses = socket.getaddrinfo(name, 0, type=socket.SOCK_DGRAM)
    except OSError:
        return False
    for family, kind, protocol, _, address in addresses:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(address)
            return True
        except OSError:
            continue
    return False


def _ask(host, agent, command):
    """(exit code, output, errors) of a command on a host; None as code when it took too long."""
    try:
        result = subprocess.run([*agent.split(), host.name, command], stdin=subprocess.DEVNULL, text=True,
                                errors="replace", stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=REACH_LIMIT_S)
    except subprocess.TimeoutExpired:
        return None, "", f"no answer within {REACH_LIMIT_S} s"
    except OSError as error:
        raise Problem(f"hosts are reached with '{agent}', which cannot be started ({error})",
                      "install ssh, or name another with --agent") from None
    return result.returncode, result.stdout.strip(), result.stderr.strip()


def _last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no reason given"


def _version_command(python):
    """A shell line that prints the version of another host's Lockstep, found there as it is here."""
    settings = [f"{name}={os.environ[name]}" for name in NEEDED_THERE if name in os.environ]
    code = "from lockstep.launch.mpi import own_version; print(own_version())"
    return shlex.join(["env", *settings, python, "-c", code])


def _check(host, agent, python, version):
    command = _version_command(python)
    code, output, errors = _ask(host, agent, command)
    reason = _last_line(errors)
    if code is None or code == 255:
        if re.search("could not resolve|not known|unknown host|no such host", errors, re.IGNORECASE):
            raise Problem(f"host {host.name} is not known ({reason})", "check its spelling, or add it to /etc/hosts")
        raise Problem(f"host {host.name} cannot be reached ({reason})",
                      f"'{agent} {host.name} true' must work without a password")
    if code in (126, 127):
        raise Problem(f"host {host.name} has no {python}", "install Python and Lockstep at the same path on all hosts")
    if code != 0:
        raise Problem(f"host {host.name} cannot load Lockstep with {python} ({reason})", "install the same Lockstep there")
    other = _last_line(output)
    if other != version:
        raise Problem(f"host {host.name} has Lockstep {other}, this one {version}", "install the same on all hosts")


def check_hosts(hosts, agent, python):
    """Each host answers, and has the same Lockstep; Problem names the first that does not."""
    far = [host for host in hosts if not is_local(host.name)]
    if not far:
        return
    version = own_version()
    with ThreadPoolExecutor(max_workers=32) as pool:
        for done in [pool.submit(_check, host, agent, python, version) for host in far]:
            done.result()
