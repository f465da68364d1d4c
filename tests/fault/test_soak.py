# SPDX-License-Identifier: Apache-2.0
"""Half an hour of random delays, stragglers and changing schedules: nothing grows, the weights stay equal.

Four ranks; then two, for half as long: only a pair answers a message in the stage in which it came.
SOAK_SECONDS chooses another duration; SOAK_SEED other random numbers."""
import os
import re

import pytest
from jobs import run_ranks


@pytest.mark.long
@pytest.mark.parametrize("num_ranks, part", [(4, 1), (2, 0.5)])
def test_nothing_grows_and_the_weights_stay_equal(mpi, num_ranks, part, clean):
    seconds = part * float(os.environ.get("SOAK_SECONDS", "1800"))
    if mpi.name != "openmpi":
        seconds = min(seconds, 120)
    job = run_ranks(mpi, num_ranks, mpi.program("fault/soak_job"), [seconds, os.environ.get("SOAK_SEED", "1")],
                    timeout=seconds * 1.5 + 60, env={"LOCKSTEP_LOG": "error"})
    print(job.stdout)
    assert job.code == 0 and job.stdout.count(": flat: ") == num_ranks, str(job)
    assert not job.left, f"processes stayed behind: {job.left}"
    answers = [int(number) for number in re.findall(r", (\d+) answers;", job.stdout)]
    assert len(answers) == num_ranks and all((number > 0) == (num_ranks == 2) for number in answers), str(job)
