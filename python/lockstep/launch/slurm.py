# SPDX-License-Identifier: Apache-2.0
"""Slurm's srun, and what an allocation offers."""
import re
import subprocess

from lockstep.launch.problem import Problem

# How srun introduces the ranks to each other: the first that both it and the MPI have.
MPI_TYPES = {"openmpi": ("pmix",), "mpich": ("pmi2",)}


def is_inside(environment):
    """Inside an allocation (salloc, sbatch)."""
    return "SLURM_JOB_ID" in environment and "SLURM_JOB_NUM_NODES" in environment


def _expand(text):
    """4(x2),3 as [4, 4, 3]."""
    numbers = []
    for word in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", word)
        if not match:
            raise Problem(f"Slurm describes the allocation as '{text}', which is not understood", "give -n")
        numbers += [int(match[1])] * int(match[2] or 1)
    return numbers


def tasks_per_node(environment):
    """Ranks per node of the allocation: as it was asked for, otherwise as many as it has cores."""
    text = (environment.get("SLURM_TASKS_PER_NODE") if "SLURM_NTASKS" in environment else
            environment.get("SLURM_JOB_CPUS_PER_NODE")) or "1"
    return _expand(text)


def cpus_per_node(environment):
    return _expand(environment.get("SLURM_JOB_CPUS_PER_NODE") or "1")


def mpi_types(srun):
    """What this srun can introduce ranks with."""
    try:
        result = subprocess.run([srun, "--mpi=list"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                stdin=subprocess.DEVNULL, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return re.findall(r"\b(pmix|pmi2)\b", result.stdout)


def choose_mpi_type(srun, family):
    """None when this srun cannot start ranks of that MPI: its own launcher is used then."""
    offered = mpi_types(srun)
    for name in MPI_TYPES[family]:
        if name in offered:
            return name
    return None


def command(plan, environment, mpi_type):
    """srun passes the environment on by itself, and ends the step when a rank fails if it is told so."""
    words = [plan.launcher, "-n", str(plan.ranks), f"--mpi={mpi_type}", "--kill-on-bad-exit=1"]
    if plan.is_oversubscribed:
        words += ["--overcommit", "--cpu-bind=none"]
    elif plan.cores > 0:
        words += [f"--cpus-per-task={plan.cores}", "--cpu-bind=cores"]
    if plan.hosts:
        words.append("--nodelist=" + ",".join(name for name, _ in plan.ranks_per_host))
    return [*words, *plan.more_args, *plan.program]
