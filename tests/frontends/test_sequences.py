# SPDX-License-Identifier: Apache-2.0
"""tf_keras's Sequence with several workers: what a thread does ahead of time does not depend on the rank."""
import sys
from pathlib import Path

import pytest
from jobs import ROOT, run_ranks

FOLDER = Path(__file__).resolve().parent
RANKS = 2


@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
def test_ranks_shuffle_a_sequence_equally_often(mpi, tmp_path):
    env = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'site'}", "LOCKSTEP_LIB": mpi.folder / "lib",
           "TF_CPP_MIN_LOG_LEVEL": "3", "LOCKSTEP_STALL_ABORT_S": 60, "LOCKSTEP_LOG_DIR": "-"}
    job = run_ranks(mpi, RANKS, sys.executable, [FOLDER / "sequence_ranks.py"], env, timeout=200, cwd=tmp_path)
    assert job.code == 0, str(job)
    for rank in range(RANKS):
        assert f"rank {rank} of {RANKS} is right" in job.stdout, str(job)
