# SPDX-License-Identifier: Apache-2.0
"""Ranks that take different branches end with the names of what each waits for, and do not hang."""
from pathlib import Path

from jobs import ROOT, run_ranks

HERE = Path(__file__).resolve().parent


def test_ranks_on_different_branches_end_with_a_clear_error(mpi, tmp_path):
    env = {"PYTHONPATH": f"{ROOT / 'python'}:{HERE.parent / 'site'}", "LOCKSTEP_LIB": mpi.folder / "lib",
           "TF_CPP_MIN_LOG_LEVEL": "3", "LOCKSTEP_STALL_WARN_S": "2", "LOCKSTEP_STALL_ABORT_S": "5",
           "LOCKSTEP_LOG_DIR": tmp_path / "logs", "LOCKSTEP_SUMMARY": "off"}
    job = run_ranks(mpi, 2, ROOT / ".venv/bin/python", [HERE / "branches.py"], env=env, cwd=tmp_path, timeout=180)
    assert job.code != 0, str(job)
    assert "done" not in job.stdout, str(job)
    assert "gradient/first" in job.stderr and "rank 1 did not" in job.stderr, str(job)
