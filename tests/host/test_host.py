# SPDX-License-Identifier: Apache-2.0
"""Collectives on numpy arrays and bytes, under mpirun."""
import sys
from pathlib import Path

import pytest
from jobs import ROOT, run_ranks

SCRIPT = Path(__file__).resolve().parent / "collectives.py"


@pytest.mark.parametrize("n", [2, 3])
def test_arrays_and_bytes(mpi, n):
    env = {"PYTHONPATH": ROOT / "python", "LOCKSTEP_LIB": mpi.folder / "lib", "LOCKSTEP_STALL_ABORT_S": 30}
    job = run_ranks(mpi, n, sys.executable, [SCRIPT], env, timeout=60)
    assert job.code == 0, str(job)
    for rank in range(n):
        assert f"rank {rank} of {n} is right" in job.stdout, str(job)
