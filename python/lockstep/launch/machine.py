# SPDX-License-Identifier: Apache-2.0
"""What this machine has: cores, GPUs, network interfaces."""
import os
import re
from pathlib import Path

# Interfaces that lead to no other machine: containers, bridges, virtual machines of this one.
INNER_INTERFACES = re.compile(r"^(lo|docker\d*|podman\d*|br-.*|virbr.*|veth.*|cni\d*|flannel.*|cali.*|lxcbr\d*|lxdbr\d*|"
                              r"vmnet.*|vboxnet.*|tun\d*|tap\d*|kube-.*)$")
CORES_PER_RANK = 4


def cores(allowed=None, sysfs=Path("/sys/devices/system/cpu")):
    """The number of physical cores that this process may use."""
    allowed = os.sched_getaffinity(0) if allowed is None else allowed
    seen = set()
    for cpu in allowed:
        try:
            topology = sysfs / f"cpu{cpu}" / "topology"
            seen.add(tuple((topology / name).read_text().strip() for name in ("physical_package_id", "core_id")))
        except OSError:
            seen.add((cpu,))
    return len(seen)


def gpus(proc=Path("/proc/driver/nvidia/gpus")):
    """The number of NVIDIA GPUs, without asking their driver."""
    try:
        return len(list(proc.iterdir()))
    except OSError:
        return 0


def inner_interfaces(sysfs=Path("/sys/class/net")):
    try:
        return sorted(path.name for path in sysfs.iterdir() if INNER_INTERFACES.match(path.name))
    except OSError:
        return ["lo"]


def default_ranks(num_cores, num_gpus):
    """One rank per GPU; otherwise about four cores each, and two ranks where there are two cores."""
    if num_gpus > 0:
        return num_gpus
    return max(min(num_cores, 2), num_cores // CORES_PER_RANK)
