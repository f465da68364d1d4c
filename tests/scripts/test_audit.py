# SPDX-License-Identifier: Apache-2.0
"""Weights that drift apart are found, and the job says which, where and when; and it says what it is and was."""
import re

import pytest
from jobs import Mpi, run_ranks
from test_scripts import HERE, PYTHON, ROOT, TIME_LIMIT

SCRIPT = HERE / "drift" / "drift.py"


def _run(folder, *args, **settings):
    if not Mpi("openmpi").folder.is_dir():
        pytest.skip("the library is not built with openmpi")
    env = {"PYTHONPATH": f"{ROOT / 'python'}:{HERE.parent / 'site'}", "TF_CPP_MIN_LOG_LEVEL": "3", "LOCKSTEP_LIB": ROOT / "build/openmpi/lib",
           "LOCKSTEP_STALL_ABORT_S": "60", "TF_NUM_INTRAOP_THREADS": "1", **settings}
    return run_ranks(Mpi("openmpi"), 2, PYTHON, [SCRIPT, *args], env=env, cwd=folder, timeout=TIME_LIMIT)


@pytest.mark.parametrize("way", ["fit", "loop"])
def test_drift_is_found_at_the_next_audit(way, tmp_path):
    job = _run(tmp_path, way, LOCKSTEP_AUDIT_STEPS="2")
    assert job.code != 0 and "not noticed" not in job.stdout, str(job)
    assert "second/bias: rank 1 differs" in job.stderr, str(job)
    assert re.search(r"after step (8|10) the ranks do not have the same weights", job.stderr), str(job)


def test_drift_is_found_at_the_end(tmp_path):
    job = _run(tmp_path, "fit")  # shorter than the steps between two audits
    assert job.code != 0 and "second/bias: rank 1 differs" in job.stderr, str(job)


def test_without_audit_nothing_is_said(tmp_path):
    job = _run(tmp_path, "fit", LOCKSTEP_AUDIT_STEPS="0", LOCKSTEP_SUMMARY="off")
    assert job.code == 0 and "lockstep" not in job.stderr, str(job)


def test_summary_names_the_job_and_its_speed(tmp_path):
    job = _run(tmp_path, "fit", LOCKSTEP_AUDIT_STEPS="0")
    lines = [line for line in job.stderr.splitlines() if line.startswith("lockstep: ")]
    assert len(lines) == 2, str(job)
    assert re.search(r"2 ranks on 1 node, TensorFlow 2\.\d+\.\d+, .*shared memory.*the script's batch is cut", lines[0]), str(job)
    assert re.search(r"12 steps, \d+ samples/s, communication [\d.]+% of the time: [\d.]+% hidden, [\d.]+% exposed", lines[1]), str(job)
