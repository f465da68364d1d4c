# SPDX-License-Identifier: Apache-2.0
"""Slurm's warning before the end of a job: a snapshot, code 75, and the next job goes on."""
import re
import subprocess
import sys
import time

import pytest
from commands import environment as plain_environment
from commands import lockstep
from jobs import ROOT
from test_slurm import LOCKSTEP, MPI_TYPES, slurm  # noqa: F401 (a fixture)

sys.path.insert(0, str(ROOT / "tests" / "restart"))

from test_restart import END_CODE, SCRIPT, assert_equal_bits, content, environment  # noqa: E402

LIMIT = 150
ENV = {"PACE_S": "0.2"}
BATCH = """#!/bin/sh
#SBATCH --ntasks=2
#SBATCH --output={folder}/out
#SBATCH {options}
cd {folder}
{command}
"""


class Batch:
    """Jobs with the same command in the same folder."""

    def __init__(self, slurm, mpi, folder, command):  # noqa: F811
        self.slurm, self.folder, self.command = slurm, folder, command
        self.env = {**plain_environment(mpi, environment(**ENV)), **slurm.environment, "LOCKSTEP_STATE": str(folder / "state")}

    def submit(self, options="--time=10"):
        path = self.folder / "job.sh"
        path.write_text(BATCH.format(folder=self.folder, options=options, command=self.command))
        said = subprocess.run(["sbatch", path], env=self.env, text=True, stdout=subprocess.PIPE, check=True, timeout=30).stdout
        return re.search(r"\d+", said)[0]

    def is_training(self):
        """log.csv has a row: the second epoch has begun."""
        path = self.folder / "log.csv"
        return path.exists() and path.stat().st_size > 60

    def output(self):
        path = self.folder / "out"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait(self, is_true):
        end = time.monotonic() + LIMIT
        while not is_true():
            assert time.monotonic() < end, f"it took too long\n{self.output()}"
            time.sleep(0.2)

    def code(self, job):
        """Waits for the end."""
        def about(name):
            return re.search(rf"\b{name}=([^\s:]+)", self.slurm.ask("scontrol", "show", "job", job))[1]

        self.wait(lambda: about("JobState") not in ("PENDING", "RUNNING", "COMPLETING"))
        return int(about("ExitCode"))


@pytest.fixture
def undisturbed(mpi, tmp_path):
    folder = tmp_path / "undisturbed"
    folder.mkdir()
    result = lockstep(mpi, "run", "-n", 2, "--oversubscribe", "--no-progress", SCRIPT, "out.npz", cwd=folder, timeout=LIMIT,
                      env=environment(PACE_S="0"))
    assert result.code == 0, str(result)
    return content(folder / "out.npz")


def check_goes_on(batch, undisturbed):
    assert "ended as asked" in batch.output(), batch.output()
    (batch.folder / "out").unlink()
    batch.env["PACE_S"] = "0"
    job = batch.submit()
    assert batch.code(job) == 0, batch.output()
    assert "goes on from snapshot" in batch.output(), batch.output()
    assert_equal_bits(content(batch.folder / "out.npz"), undisturbed)


def command_of(mpi, how):
    return {"srun": f"srun --mpi={MPI_TYPES[mpi.name]} {sys.executable} {SCRIPT} out.npz",
            "lockstep run": f"{LOCKSTEP} run --no-progress --state state {SCRIPT} out.npz",
            "exec": f"exec {LOCKSTEP} run --launcher mpi --no-progress --state state {SCRIPT} out.npz"}[how]


@pytest.mark.parametrize("mpi, how", [("openmpi", "srun"), pytest.param("mpich", "srun", marks=pytest.mark.long),
                                      pytest.param("openmpi", "lockstep run", marks=pytest.mark.long),
                                      pytest.param("mpich", "lockstep run", marks=pytest.mark.long)], indirect=["mpi"])
def test_a_signal_to_the_step_ends_it_with_a_snapshot_and_the_next_job_goes_on(slurm, mpi, tmp_path, undisturbed, how):  # noqa: F811
    batch = Batch(slurm, mpi, tmp_path, command_of(mpi, how))
    job = batch.submit()
    batch.wait(batch.is_training)
    slurm.ask("scancel", "--signal=USR2", job)
    assert batch.code(job) == END_CODE, batch.output()
    check_goes_on(batch, undisturbed)


@pytest.mark.long
def test_a_signal_to_the_batch_script_reaches_a_lockstep_run_in_its_place(slurm, mpi, tmp_path, undisturbed):  # noqa: F811
    """As --signal=B:USR2@120 sends it."""
    batch = Batch(slurm, mpi, tmp_path, command_of(mpi, "exec"))
    job = batch.submit()
    batch.wait(batch.is_training)
    slurm.ask("scancel", "--batch", "--signal=USR2", job)
    assert batch.code(job) == END_CODE, batch.output()
    check_goes_on(batch, undisturbed)


@pytest.mark.long
def test_the_warning_before_the_time_limit(slurm, mpi, tmp_path, undisturbed):  # noqa: F811
    """A minute is the shortest limit, and the warning may come any time before: before the first fit() too."""
    batch = Batch(slurm, mpi, tmp_path, command_of(mpi, "srun"))
    batch.env["PACE_S"] = "1.0"
    job = batch.submit("--time=1 --signal=USR2@30")
    assert batch.code(job) == END_CODE, batch.output()
    if list((tmp_path / "state").glob("snapshot-*.manifest")):
        check_goes_on(batch, undisturbed)
