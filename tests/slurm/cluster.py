# SPDX-License-Identifier: Apache-2.0
"""A Slurm of one node on the loopback interface: munged, slurmctld and slurmd with a configuration of their own in a
folder of their own.  Needs root and Debian's slurm-wlm and munge."""
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

START_LIMIT_S = 30
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "sinfo")

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/affinity
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} Sockets=1 CoresPerSocket={cpus} ThreadsPerCore=1 State=UNKNOWN
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


class Cluster:
    """Started when it is made; stop() ends its jobs and its daemons."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.daemons = []
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        for name in ("state", "spool", "key"):
            (self.folder / name).mkdir()
        self.folder.chmod(0o755)
        (self.folder / "key").chmod(0o700)
        (self.folder / "key" / "munge.key").write_bytes(os.urandom(1024))
        (self.folder / "key" / "munge.key").chmod(0o400)
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=socket.gethostname(), folder=self.folder, ports=free_ports(2), cpus=len(os.sched_getaffinity(0))))
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self):
        files = {name: self.folder / name for name in ("munge.socket", "munged.pid", "munged.log")}
        self._daemon("munged", "--foreground", f"--socket={files['munge.socket']}", f"--pid-file={files['munged.pid']}",
                     f"--key-file={self.folder}/key/munge.key", f"--seed-file={self.folder}/key/munge.seed",
                     f"--log-file={files['munged.log']}", "--num-threads=10")
        self._wait("munged", files["munge.socket"].exists)
        self._daemon("slurmctld", "-D", "-f", self.folder / "slurm.conf")
        self._daemon("slurmd", "-D", "-f", self.folder / "slurm.conf", "-N", socket.gethostname())
        self._wait("the node", lambda: "idle" in self.ask("sinfo", "--noheader", "--format=%T"))

    def _daemon(self, name, *words):
        path = shutil.which(name) or f"/usr/sbin/{name}"
        self.daemons.append(subprocess.Popen([path, *map(str, words)], env={**os.environ, **self.environment},
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
        return subprocess.run(command, env={**os.environ, **self.environment}, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20).stdout

    def stop(self):
        if len(self.daemons) == 3:
            self.ask("scancel", "--user=root")
            self._wait("an empty queue", lambda: self.ask("squeue", "--noheader").strip() == "")
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
