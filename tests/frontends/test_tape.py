# SPDX-License-Identifier: Apache-2.0
"""tf.GradientTape: what stays local, what is only looked at, and that reducing begins before the backward pass is over."""
import json
import sys
from pathlib import Path

import pytest
from jobs import ROOT, run_ranks

FOLDER = Path(__file__).resolve().parent
RANKS = 2
STEPS = 6  # as in the script


def last_gradients(path, layer):
    """(begin, end) in microseconds of the last requests to reduce gradients of the layer's variables."""
    found = {}
    for span in json.loads(path.read_text()):
        if span.get("tid") == "request" and span["name"].startswith("gradient/") and layer in span["name"]:
            found.setdefault(span["name"], []).append((span["ts"], span["ts"] + span["dur"]))
    assert found, f"{path}: no gradient of {layer}"
    assert all(len(times) == STEPS for times in found.values()), f"{path}: {found}"
    return [times[-1] for times in found.values()]


@pytest.mark.parametrize("mpi", ["openmpi"], indirect=True)
def test_gradients_are_local_or_reduced_and_reducing_overlaps_the_backward_pass(mpi, tmp_path):
    env = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'site'}", "LOCKSTEP_LIB": mpi.folder / "lib",
           "TF_CPP_MIN_LOG_LEVEL": "3", "LOCKSTEP_STALL_ABORT_S": 60, "LOCKSTEP_LOG_DIR": "-",
           "LOCKSTEP_TRACE": tmp_path / "trace", "TF_NUM_INTEROP_THREADS": 4}  # one of them sleeps
    job = run_ranks(mpi, RANKS, sys.executable, [FOLDER / "tape_ranks.py"], env, timeout=200, cwd=tmp_path)
    assert job.code == 0, str(job)
    for rank in range(RANKS):
        assert f"rank {rank} of {RANKS} is right" in job.stdout, str(job)
        trace = tmp_path / "trace" / f"rank-{rank}.json"
        for way in ("function", "keras"):
            # The backward pass pauses between the two: the last layer's gradient is back before the first one's is there.
            back = max(end for _, end in last_gradients(trace, f"{way}_last"))
            handed_over = min(begin for begin, _ in last_gradients(trace, f"{way}_first"))
            assert back < handed_over, f"rank {rank}, {way}: reduced at {back}, the last gradient came at {handed_over}"
