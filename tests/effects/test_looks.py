# SPDX-License-Identifier: Apache-2.0
"""Ranks ahead of rank 0 where TensorFlow reads files in C++"""
import sys
from pathlib import Path

import pytest
from jobs import ROOT, run_ranks

FOLDER = Path(__file__).resolve().parent
RANKS = 3


@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
def test_ranks_wait_for_what_rank_0_writes_and_no_longer(mpi, tmp_path):
    env = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'site'}", "LOCKSTEP_LIB": mpi.folder / "lib",
           "TF_CPP_MIN_LOG_LEVEL": "3", "LOCKSTEP_STALL_ABORT_S": 30, "LOCKSTEP_LOG_DIR": "-", "LOCKSTEP_SUMMARY": "off"}
    job = run_ranks(mpi, RANKS, sys.executable, [FOLDER / "looks.py"], env, timeout=100, cwd=tmp_path)
    assert job.code == 0, str(job)
    for rank in range(RANKS):
        assert f"rank {rank} of {RANKS} is right" in job.stdout, str(job)
    assert (tmp_path / "log.txt").read_text() == "x\n" * 3
