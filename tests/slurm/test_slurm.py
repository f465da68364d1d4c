# SPDX-License-Identifier: Apache-2.0
"""Under a real Slurm: programs and scripts started by srun and sbatch, and lockstep run inside an allocation."""
import json
import os
import subprocess
import sys
import tempfile
import uuid

import cluster
import pytest
from commands import environment
from jobs import JOB_VARIABLE, ROOT, kill_job

MPI_TYPES = {"openmpi": "pmix", "mpich": "pmi2"}
LIMIT = 60
LOCKSTEP = f"{sys.executable} -m lockstep"

SCRIPT = """
import json, os, sys
from lockstep.cli.engine import Engine
engine = Engine()
own = {"rank": engine.rank, "size": engine.size, "cpus": sorted(os.sched_getaffinity(0)), "args": sys.argv[1:],
       "launcher": "srun" if os.environ.get("SLURM_STEP_NUM_TASKS") == "2" else "mpi"}
ranks = [json.loads(part) for part in engine.allgather("all", json.dumps(own).encode())]
if engine.rank == 0:
    print(json.dumps(ranks))
engine.stop()
if sys.argv[1:] == ["fail"] and engine.rank == 1:
    sys.exit(5)
"""


@pytest.fixture(scope="module")
def slurm():
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    reason = cluster.missing()
    if reason:
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:  # not pytest's: munge wants a path open to all
        made = cluster.Cluster(folder)
        yield made
        made.stop()


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def run(slurm, mpi, *command, cwd=None):
    job_id = uuid.uuid4().hex
    env = {**environment(mpi), **slurm.environment, JOB_VARIABLE: job_id}
    try:
        return subprocess.run([str(word) for word in command], env=env, cwd=cwd or ROOT, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT)
    finally:
        kill_job(job_id)


def ranks_of(text):
    lines = [line for line in text.splitlines() if line.startswith("[{")]
    assert len(lines) == 1, text
    return json.loads(lines[0])


def test_srun_starts_a_program(slurm, mpi):
    result = run(slurm, mpi, "srun", f"--mpi={MPI_TYPES[mpi.name]}", "-n", 2, mpi.program("examples/mean"))
    assert result.returncode == 0, result.stderr
    assert "2 ranks" in result.stdout


def test_srun_starts_a_script(slurm, mpi, script):
    result = run(slurm, mpi, "srun", f"--mpi={MPI_TYPES[mpi.name]}", "-n", 2, sys.executable, script)
    assert result.returncode == 0, result.stderr
    assert [rank["size"] for rank in ranks_of(result.stdout)] == [2, 2]


def test_sbatch_runs_a_script_with_lockstep_run(slurm, mpi, script, tmp_path):
    batch = tmp_path / "job.sh"
    batch.write_text(f"#!/bin/sh\n#SBATCH --ntasks=2\n#SBATCH --output={tmp_path}/out\n{LOCKSTEP} run {script} word\n")
    result = run(slurm, mpi, "sbatch", "--wait", batch)
    text = (tmp_path / "out").read_text()
    assert result.returncode == 0, result.stderr + text
    ranks = ranks_of(text)
    assert [rank["args"] for rank in ranks] == [["word"], ["word"]]
    assert not set(ranks[0]["cpus"]) & set(ranks[1]["cpus"])


@pytest.mark.parametrize("launcher", ["srun", "mpi"])
def test_lockstep_run_uses_the_slots_of_the_allocation(slurm, mpi, script, launcher):
    result = run(slurm, mpi, "salloc", "-Q", "-n2", *LOCKSTEP.split(), "run", "--launcher", launcher, script)
    assert result.returncode == 0, result.stderr
    ranks = ranks_of(result.stdout)
    assert [rank["size"] for rank in ranks] == [2, 2]
    assert {rank["launcher"] for rank in ranks} == {launcher}


def test_the_exit_code_of_a_rank_comes_back(slurm, mpi, script):
    result = run(slurm, mpi, "salloc", "-Q", "-n2", *LOCKSTEP.split(), "run", script, "fail")
    assert result.returncode == 5, result.stderr
    assert "rank 1 on host" in result.stderr


def test_more_ranks_than_the_allocation_has_is_one_sentence(slurm, mpi, script):
    result = run(slurm, mpi, "salloc", "-Q", "-n1", *LOCKSTEP.split(), "run", "-n", 2, script)
    assert result.returncode == 2
    assert "2 ranks are more than the 1 slots of the Slurm allocation" in result.stderr


def test_lockstep_run_as_a_rank_of_srun_is_one_sentence(slurm, mpi, script):
    result = run(slurm, mpi, "srun", "-n", 2, *LOCKSTEP.split(), "run", script)
    assert result.returncode == 2
    assert "already one of 2 ranks" in result.stderr


def test_doctor_works_inside_an_allocation(slurm, mpi):
    result = run(slurm, mpi, "salloc", "-Q", "-n2", *LOCKSTEP.split(), "doctor", "--no-tensorflow")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 ranks on 1 node" in result.stdout and "srun" in result.stdout
