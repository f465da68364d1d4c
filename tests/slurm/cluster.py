# SPDX-License-Identifier: Apache-2.0
"""A Slurm on this machine: munged, slurmctld and slurmd with a configuration of their own in a folder of their own.

One node on the loopback interface, or a node on each host of tests/hosts.  Needs root and Debian's slurm-wlm and munge."""
import os
import random
import shutil
import socket
import subprocess
import time
from pathlib import Path

START_LIMIT_S = 90
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "sinfo")

# MPICH names its shared memory by the job's number, and a job that is killed leaves it: a later cluster must not begin with 1 again.
JOB_NUMBERS = range(1_000, 60_000_000)

CONFIGURATION = """
ClusterName=test
SlurmctldHost={control}
SlurmctldPort={ports[0]}
FirstJobId={first_job}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
TmpFS={folder}/tmp-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/affinity
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP
"""


def missing():
    """Why it cannot run here; None when it can."""
    if os.geteuid() != 0:
        return "needs root: starting a Slurm"
    for name in PROGRAMS:
        if shutil.which(name) is None and not Path("/usr/sbin", name).exists():
            return f"needs Slurm: there is no {name} (Debian: slurm-wlm, munge)"
    return None


def free_ports(number):
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class Node:
    """A host of the cluster; `enter` are the words that run a command there."""

    def __init__(self, name, address, enter=()):
        self.name, self.address, self.enter = name, address, [str(word) for word in enter]

    def line(self, cpus):
        return (f"NodeName={self.name} NodeAddr={self.address} CPUs={cpus} Sockets=1 CoresPerSocket={cpus} ThreadsPerCore=1 "
                "State=UNKNOWN")


class Cluster:
    """Started when it is made; stop() ends its jobs and its daemons.  The first node has the controller too."""

    def __init__(self, folder, nodes=None):
        self.folder = Path(folder)
        self.nodes = nodes or [Node(socket.gethostname(), "127.0.0.1")]
        self.daemons, self.is_up = [], False
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        # Nodes here share /tmp, where Slurm's PMIx plugin would make the same folder on each.
        own = [f"{kind}-{node.name}" for node in self.nodes for kind in ("spool", "tmp")]
        for name in ("state", "key", *own):
            (self.folder / name).mkdir()
        self.folder.chmod(0o755)
        (self.folder / "key").chmod(0o700)
        (self.folder / "key" / "munge.key").write_bytes(os.urandom(1024))
        (self.folder / "key" / "munge.key").chmod(0o400)
        first, cpus = self.nodes[0], len(os.sched_getaffinity(0))
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(first_job=random.SystemRandom().choice(JOB_NUMBERS),
            control=f"{first.name}({first.address})", folder=self.folder, ports=free_ports(2),
            nodes="\n".join(node.line(cpus) for node in self.nodes)))
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self):
        files = {name: self.folder / name for name in ("munge.socket", "munged.pid", "munged.log")}
        self._daemon([], "munged", "--foreground", f"--socket={files['munge.socket']}", f"--pid-file={files['munged.pid']}",
                     f"--key-file={self.folder}/key/munge.key", f"--seed-file={self.folder}/key/munge.seed",
                     f"--log-file={files['munged.log']}", "--num-threads=10")
        self._wait("munged", files["munge.socket"].exists)
        self._daemon(self.nodes[0].enter, "slurmctld", "-D", "-f", self.folder / "slurm.conf")
        for node in self.nodes:
            self._daemon(node.enter, "slurmd", "-D", "-f", self.folder / "slurm.conf", "-N", node.name)
        self._wait("each node", lambda: self.ask("sinfo", "--noheader", "--Node", "--format=%T").split()
                   == ["idle"] * len(self.nodes))
        self.is_up = True

    def _daemon(self, enter, name, *words):
        path = shutil.which(name) or f"/usr/sbin/{name}"
        self.daemons.append(subprocess.Popen([*enter, path, *map(str, words)], env={**os.environ, **self.environment},
                                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                             stderr=subprocess.DEVNULL, start_new_session=True))

    def _wait(self, what, is_up):
        end = time.monotonic() + START_LIMIT_S
        while time.monotonic() < end:
            if is_up():
                return
            time.sleep(0.2)
        logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.log"))
        raise RuntimeError(f"{what} is not up after {START_LIMIT_S} s\n{logs}")

    def ask(self, *command):
        return subprocess.run([*self.nodes[0].enter, *command], env={**os.environ, **self.environment}, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60).stdout

    def stop(self):
        if self.is_up:
            self.ask("scancel", "--user=root")
            self._wait("an empty queue", lambda: self.ask("squeue", "--noheader").strip() == "")
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(timeout=30)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
