# SPDX-License-Identifier: Apache-2.0
"""LOCKSTEP_NAN: which variable, which rank, and what all ranks do about it."""
from pathlib import Path

import pytest
from jobs import ROOT, run_ranks

HERE = Path(__file__).resolve().parent


def run(mpi, tmp_path, mode, how):
    env = {"PYTHONPATH": f"{ROOT / 'python'}:{HERE.parent / 'site'}", "LOCKSTEP_LIB": mpi.folder / "lib", "TF_CPP_MIN_LOG_LEVEL": "3",
           "LOCKSTEP_LOG_DIR": tmp_path / "logs", "LOCKSTEP_SUMMARY": "off", "LOCKSTEP_NAN": how}
    return run_ranks(mpi, 2, ROOT / ".venv/bin/python", [HERE / "bad_row.py", mode], env=env, cwd=tmp_path, timeout=100)


def test_a_bad_step_is_left_out_on_all_ranks_and_said_where_it_came_from(mpi, tmp_path):
    job = run(mpi, tmp_path, "nan", "skip")  # row 30 is in the half of the fourth batch that rank 1 has
    assert job.code == 0 and "steps 5 finite True" in job.stdout, str(job)
    assert "gradient of 'sequential/line/kernel" in job.stderr and "on rank 1" in job.stderr and "is NaN" in job.stderr, str(job)
    assert "on rank 0" not in job.stderr, str(job)


@pytest.mark.long
def test_the_default_warns_and_goes_on(mpi, tmp_path):
    job = run(mpi, tmp_path, "nan", "warn")
    assert job.code == 0 and "steps 6 finite False" in job.stdout, str(job)
    assert "gradient of 'sequential/line/kernel" in job.stderr and "on rank 1" in job.stderr, str(job)


@pytest.mark.long
def test_stop_ends_every_rank_with_the_name_of_the_variable(mpi, tmp_path):
    job = run(mpi, tmp_path, "large", "stop")
    assert job.code != 0 and "steps" not in job.stdout, str(job)
    assert "LOCKSTEP_NAN=stop: the gradient of 'sequential/line/kernel' is not finite" in job.stderr, str(job)
    assert "on rank 1" in job.stderr and "is infinite" in job.stderr, str(job)


@pytest.mark.long
@pytest.mark.parametrize("how", ["warn", "stop", "skip"])
def test_who_scales_the_loss_expects_infinite_gradients(mpi, tmp_path, how):
    job = run(mpi, tmp_path, "scaled", how)
    assert job.code == 0 and "finite True" in job.stdout, str(job)
    assert "not finite" not in job.stderr, str(job)
