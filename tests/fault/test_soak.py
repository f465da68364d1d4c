# SPDX-License-Identifier: Apache-2.0
"""Half an hour of random delays, stragglers and changing schedules: nothing grows, the weights stay equal.

SOAK_SECONDS chooses another duration; SOAK_SEED other random numbers."""
import os

import pytest
from jobs import run_ranks


@pytest.mark.long
def test_nothing_grows_and_the_weights_stay_equal(mpi, clean):
    seconds = float(os.environ.get("SOAK_SECONDS", "1800"))
    if mpi.name != "openmpi":
        seconds = min(seconds, 120)
    job = run_ranks(mpi, 4, mpi.program("fault/soak_job"), [seconds, os.environ.get("SOAK_SEED", "1")], timeout=seconds * 1.5 + 60,
                    env={"LOCKSTEP_LOG": "error"})
    print(job.stdout)
    assert job.code == 0 and job.stdout.count(": flat: ") == 4, str(job)
    assert not job.left, f"processes stayed behind: {job.left}"
