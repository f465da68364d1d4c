# SPDX-License-Identifier: Apache-2.0
"""Two runs with the same ranks give the same bits: collectives prints a hash of every result."""
import re

import pytest
from jobs import run_ranks

RESULTS_LINE = re.compile(r"^results ([0-9a-f]{16})$", re.MULTILINE)


def results_of(mpi, ranks, args, env):
    job = run_ranks(mpi, ranks, "ranks/collectives", args, {"LOCKSTEP_PATIENCE_MS": "20", **env})
    assert job.code == 0, str(job)
    found = RESULTS_LINE.findall(job.stdout)
    assert len(found) == 1, str(job)
    return found[0]


@pytest.mark.parametrize("ranks, body, env", [
    (3, "allreduce", {}),
    (4, "random", {}),
    (4, "random", {"LOCKSTEP_NODE_SIZE": "2"}),
    (4, "others", {"LOCKSTEP_NODE_SIZE": "2"}),
    (3, "allreduce", {"LOCKSTEP_WIRE": "bfloat16"}),
], ids=str)
def test_two_runs_give_the_same_bits(mpi, ranks, body, env):
    first = results_of(mpi, ranks, [body], env)
    assert results_of(mpi, ranks, [body], env) == first


def test_another_seed_gives_other_bits(mpi):
    assert results_of(mpi, 2, ["random", "--seed", "1"], {}) != results_of(mpi, 2, ["random", "--seed", "2"], {})
