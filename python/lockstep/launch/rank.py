# SPDX-License-Identifier: Apache-2.0
"""Stands beside one rank: started by the launcher, it starts the script's process and tells how that ended.

Launchers differ in the exit code they hand back (MPICH adds the bits of all ranks) and in whether a failed rank ends
the others; so each rank reports for itself, in a line on standard error that `lockstep run` takes out again.

Runs as a file with `python -I -S`: no package is imported and no hook wakes here; the script's process is an ordinary
`python script.py`."""
import ctypes
import os
import signal
import socket
import sys
import tempfile

RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
LOCAL_RANK_VARIABLES = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
PR_SET_PDEATHSIG = 1
ENDED_BY_LAUNCHER = (128 + signal.SIGKILL, 128 + signal.SIGTERM)
TAIL_BYTES = 6000
GPU_FOLDER = "/proc/driver/nvidia/gpus"


def number_of(variables):
    for name in variables:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def die_with_parent(signal_number):
    """A launcher that is killed leaves nothing behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0)


def choose_gpu(local_rank):
    """One GPU per rank of a host, from those the user allows."""
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if allowed is None:
        try:
            allowed = ",".join(str(number) for number in range(len(os.listdir(GPU_FOLDER))))
        except OSError:
            return
    names = [name for name in allowed.split(",") if name]
    if len(names) > 1:
        os.environ["CUDA_VISIBLE_DEVICES"] = names[local_rank % len(names)]


def open_log(rank, folder):
    """The file for a rank's output: in `folder`, or one without a name that is only shown on failure."""
    if not folder:
        return tempfile.TemporaryFile()
    os.makedirs(folder, exist_ok=True)
    return open(os.path.join(folder, f"rank-{rank}.log"), "w+b")


def start(command, output):
    """Starts the script's process with `output` (None: ours) as standard output and error; returns its id."""
    pid = os.fork()
    if pid != 0:
        return pid
    try:
        for number in FORWARDED:
            signal.signal(number, signal.SIG_DFL)
        die_with_parent(signal.SIGKILL)
        if output is not None:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error}\n".encode())
    os._exit(127)


def forward(pid):
    """Signals of the launcher are for the script."""
    def send(number, _frame):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass  # it has just ended

    for number in FORWARDED:
        signal.signal(number, send)


def wait(pid):
    """The exit code as a shell gives it."""
    while True:
        try:
            _, status = os.waitpid(pid, 0)
        except InterruptedError:
            continue
        return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def tail_of(output):
    """The last lines that a rank wrote."""
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - TAIL_BYTES))
    text = output.read()
    return text if size <= TAIL_BYTES else text.split(b"\n", 1)[-1]


def report(token, rank, code, output):
    """To the launcher's standard error: the report between two separators, then what the rank wrote last."""
    line = f"\x1elockstep {token} {rank} {socket.gethostname()} {code}\x1e".encode()
    if output is not None and code != 0 and code not in ENDED_BY_LAUNCHER:
        tail = tail_of(output).rstrip(b"\n")
        if tail:
            prefix = f"[rank {rank}] ".encode()
            line += b"".join(prefix + part + b"\n" for part in tail.split(b"\n"))
    try:
        os.write(2, line)
    except OSError:
        pass  # the launcher is gone


def main():
    rank = number_of(RANK_VARIABLES)
    die_with_parent(signal.SIGTERM)
    choose_gpu(number_of(LOCAL_RANK_VARIABLES))
    # Between lockstep run and here; not for the script.
    token, shown, folder = (os.environ.pop(f"LOCKSTEP_RUN_{name}", "") for name in ("TOKEN", "OUTPUT", "LOG_DIR"))
    output = open_log(rank, folder) if rank != 0 and shown == "first" else None
    pid = start(sys.argv[1:], output)
    forward(pid)
    code = wait(pid)
    for number in FORWARDED:
        signal.signal(number, signal.SIG_IGN)
    if token:
        report(token, rank, code, output)
    return code


if __name__ == "__main__":
    sys.exit(main())
