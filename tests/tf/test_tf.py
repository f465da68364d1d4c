# SPDX-License-Identifier: Apache-2.0
"""The TensorFlow operators under mpirun.  Importing TensorFlow is slow, so a script holds many checks."""
import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest
from jobs import ROOT, run_ranks

FOLDER = Path(__file__).resolve().parent
CLOSING_LINE = re.compile(r"rank (\d+): (\d+) checks passed")  # launchers may join the lines of two ranks
LIMIT = 200

pytestmark = pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed")


def run_script(mpi, n, name, args=(), env=None):
    library = mpi.folder / "lib" / "liblockstep_tf.so"
    assert library.exists(), f"{library} is not built"
    settings = {"PYTHONPATH": ROOT / "python", "LOCKSTEP_LIB": library.parent, "TF_CPP_MIN_LOG_LEVEL": "3",
                "LOCKSTEP_STALL_ABORT_S": 60, **(env or {})}
    return run_ranks(mpi, n, sys.executable, [FOLDER / f"{name}.py", *args], settings, timeout=LIMIT)


def assert_passed(job, n):
    assert job.code == 0, str(job)
    assert sorted(int(rank) for rank, _ in CLOSING_LINE.findall(job.stdout)) == list(range(n)), str(job)


def ranks(quick, slow):
    """Numbers of ranks; slow: only in the long tests.  The operators do not know the MPI: one number will do for the second."""
    chosen = [*(pytest.param("openmpi", n) for n in quick), pytest.param("mpich", 2),
              *(pytest.param("openmpi", n, marks=pytest.mark.long) for n in slow)]
    return pytest.mark.parametrize("mpi, n", chosen, indirect=["mpi"])


@ranks(quick=[1, 3], slow=[2])
def test_values(mpi, n):
    assert_passed(run_script(mpi, n, "values"), n)


@ranks(quick=[3], slow=[1, 2])
def test_gradients_and_xla(mpi, n):
    assert_passed(run_script(mpi, n, "gradients"), n)


def spans(path, name):
    """(begin, end) in milliseconds of each request of that name."""
    return [(span["ts"] / 1e3, (span["ts"] + span["dur"]) / 1e3) for span in json.loads(path.read_text())
            if span.get("name") == name and span.get("tid") == "request"]


@ranks(quick=[3], slow=[2])
def test_behaviour_and_overlap(mpi, n, tmp_path):
    assert_passed(run_script(mpi, n, "behaviour", env={"LOCKSTEP_TRACE": tmp_path}), n)
    first, second = (spans(tmp_path / "rank-1.json", f"overlap/{i}")[-1] for i in range(2))
    overlap = min(first[1], second[1]) - max(first[0], second[0])
    assert overlap > 150, f"both wait a second for rank 0, {overlap:.0f} ms of it together: {first}, {second}"


def test_a_rank_that_raises_ends_the_others_operators(mpi):
    # Open MPI can be told to let the others live on, and then they must have been told by us.
    job = run_script(mpi, 2, "behaviour", ["die"], {"OMPI_MCA_orte_abort_on_non_zero_status": "0"})
    assert job.code != 0 or mpi.name == "openmpi", str(job)  # which, told that, may end with 0 whatever its ranks say
    assert "rank 1 has had enough" in job.stderr, str(job)
    assert mpi.name != "openmpi" or "rank 0: saw the loss" in job.stdout, str(job)
