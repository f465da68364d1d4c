# SPDX-License-Identifier: Apache-2.0
"""A Slurm of two nodes: hosts with addresses, names and memory of their own, a slurmd on each."""
import json
import os
import subprocess
import sys
import tempfile
import uuid

import cluster
import promise
import pytest
from commands import environment
from fleet import make_hosts, remove_hosts
from jobs import JOB_VARIABLE, ROOT, kill_job

MPI_TYPES = {"openmpi": "pmix", "mpich": "pmi2"}
LIMIT = 90
LOCKSTEP = f"{sys.executable} -m lockstep"

SCRIPT = """
import json
from lockstep.cli.engine import Engine
engine = Engine()
own = {"rank": engine.rank, "host": engine.host, "nodes": engine.num_nodes, "local": engine.local_rank}
ranks = [json.loads(part) for part in engine.allgather("all", json.dumps(own).encode())]
if engine.rank == 0:
    print(json.dumps(ranks))
engine.stop()
"""


@pytest.fixture(scope="module")
def slurm():
    reason = cluster.missing()
    if reason:
        pytest.skip(reason)
    hosts = make_hosts(2)
    try:
        with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
            nodes = [cluster.Node(f"host{number}", f"10.77.0.{number}", hosts.enter_host(number)) for number in (1, 2)]
            made = cluster.Cluster(folder, nodes)
            yield made
            made.stop()
    finally:
        remove_hosts(hosts)


def run(slurm, mpi, *command, env=None, cwd=ROOT, limit=LIMIT):
    job_id = uuid.uuid4().hex
    full_env = {**environment(mpi, env), **slurm.environment, JOB_VARIABLE: job_id}
    try:
        return subprocess.run([str(word) for word in [*slurm.nodes[0].enter, *command]], env=full_env, cwd=cwd, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=limit)
    finally:
        kill_job(job_id)


def hosts_of(text):
    lines = [line for line in text.splitlines() if line.startswith("[{")]
    assert len(lines) == 1, text
    ranks = json.loads(lines[0])
    assert {rank["nodes"] for rank in ranks} == {2}
    return [rank["host"] for rank in ranks]


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.mark.parametrize("each", [1, 2])
def test_srun_starts_a_script_on_two_nodes(slurm, mpi, script, each):
    if each > len(os.sched_getaffinity(0)):
        pytest.skip("needs as many cores as ranks per node")
    result = run(slurm, mpi, "srun", f"--mpi={MPI_TYPES[mpi.name]}", "-N2", f"--ntasks-per-node={each}", sys.executable, script)
    assert result.returncode == 0, result.stdout + result.stderr
    assert hosts_of(result.stdout) == ["host1"] * each + ["host2"] * each


@pytest.mark.parametrize("launcher", ["srun", "mpi"])
def test_lockstep_run_uses_both_nodes_of_an_allocation(slurm, mpi, script, launcher):
    result = run(slurm, mpi, "salloc", "-Q", "-N2", "--ntasks-per-node=1", *LOCKSTEP.split(), "run", "--launcher", launcher,
                 script)
    assert result.returncode == 0, result.stdout + result.stderr
    assert hosts_of(result.stdout) == ["host1", "host2"]


def test_sbatch_runs_a_script_on_two_nodes(slurm, mpi, script, tmp_path):
    batch = tmp_path / "job.sh"
    batch.write_text(f"#!/bin/sh\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --output={tmp_path}/out\n"
                     f"{LOCKSTEP} run {script}\n")
    result = run(slurm, mpi, "sbatch", "--wait", batch)
    text = (tmp_path / "out").read_text()
    assert result.returncode == 0, result.stderr + text
    assert hosts_of(text) == ["host1", "host2"]


@pytest.mark.parametrize("mpi", ["openmpi", pytest.param("mpich", marks=pytest.mark.long)], indirect=True)
def test_srun_of_an_unmodified_keras_script_has_the_numbers_of_one_process(slurm, mpi, tmp_path):
    one = promise.one_process(mpi)
    (tmp_path / "two").mkdir()
    result = run(slurm, mpi, "srun", f"--mpi={MPI_TYPES[mpi.name]}", "-N2", "--ntasks-per-node=1", sys.executable,
                 promise.SCRIPT, env=promise.SETTINGS, cwd=tmp_path / "two", limit=promise.LIMIT)
    assert result.returncode == 0, result.stdout + result.stderr
    promise.check_same(one, result.stdout, "standard output of srun on two nodes")


@pytest.mark.long
def test_sbatch_of_an_unmodified_keras_script_has_the_numbers_of_one_process(slurm, mpi, tmp_path):
    one = promise.one_process(mpi)
    batch = tmp_path / "job.sh"
    batch.write_text(f"#!/bin/sh\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --output={tmp_path}/out\n"
                     f"#SBATCH --error={tmp_path}/err\n{LOCKSTEP} run {promise.SCRIPT}\n")
    (tmp_path / "two").mkdir()
    result = run(slurm, mpi, "sbatch", "--wait", batch, env=promise.SETTINGS, cwd=tmp_path / "two", limit=promise.LIMIT)
    assert result.returncode == 0, (tmp_path / "out").read_text() + (tmp_path / "err").read_text()
    promise.check_same(one, (tmp_path / "out").read_text(), "standard output of sbatch on two nodes")
