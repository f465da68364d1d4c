# SPDX-License-Identifier: Apache-2.0
"""What each rank computes in a loop inside a tf.function; that the numbers are right is shown in tests/scripts/loops."""
import sys
from pathlib import Path

import pytest
from jobs import ROOT, run_ranks

FOLDER = Path(__file__).resolve().parent


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
def test_a_rank_computes_its_rows_of_what_a_function_is_given(mpi, n, tmp_path):
    env = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'site'}", "LOCKSTEP_LIB": mpi.folder / "lib",
           "TF_CPP_MIN_LOG_LEVEL": "3", "LOCKSTEP_STALL_ABORT_S": 60, "LOCKSTEP_LOG_DIR": "-"}
    job = run_ranks(mpi, n, sys.executable, [FOLDER / "loop_rows.py"], env, timeout=200, cwd=tmp_path)
    assert job.code == 0, str(job)
    for rank in range(n):
        assert f"rank {rank} of {n} is right" in job.stdout, str(job)
