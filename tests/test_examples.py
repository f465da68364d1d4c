# SPDX-License-Identifier: Apache-2.0
"""Each program of examples/ prints what its head says it prints."""
import re
from pathlib import Path

import pytest
from jobs import run_ranks

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.c"))


def expected_output(source):
    head = source.read_text().split("*/")[1]
    lines = head.split("Expected output:\n")[1].rstrip().splitlines()
    return [re.sub(r"^ \* {5}", "", line) for line in lines]


@pytest.mark.parametrize("source", EXAMPLES, ids=lambda source: source.stem)
def test_example_prints_what_it_says(mpi, source):
    job = run_ranks(mpi, 2, f"examples/{source.stem}", timeout=60)
    assert job.code == 0, job.stderr
    assert job.stdout.splitlines() == expected_output(source)
