# SPDX-License-Identifier: Apache-2.0
"""LOCKSTEP_BATCH=per-rank: n ranks with batches of B are one process with batches of n B."""
import re

import pytest
from compare import compare_folders, compare_text
from test_scripts import HERE, Case, _run

TOLERANCE = 2e-5


def run(folder, n, arguments, **env):
    case = Case(HERE / "weak", f"train.py {arguments}")
    case.env = {name: str(value) for name, value in env.items()}
    return _run(case, folder, n)


@pytest.mark.parametrize("n, batch", [(2, 8), (3, 6)])
def test_ranks_with_their_own_batches_are_one_process_with_a_larger_one(n, batch, tmp_path):
    together = run(tmp_path / "one", None, f"{n * batch} {batch} 4 0.1")
    ranks = run(tmp_path / "ranks", n, f"{batch} {batch} {4 * n} 0.1", LOCKSTEP_BATCH="per-rank")
    compare_text(together, ranks, TOLERANCE, "standard output")
    compare_folders(tmp_path / "one", tmp_path / "ranks", TOLERANCE)


@pytest.mark.long
def test_the_learning_rate_grows_with_the_ranks_when_told_to(tmp_path):
    together = run(tmp_path / "one", None, "16 8 4 0.1")
    scaled = run(tmp_path / "ranks", 2, "8 8 8 0.05", LOCKSTEP_BATCH="per-rank", LOCKSTEP_LR_SCALE="on")
    compare_text(together, scaled, TOLERANCE, "standard output")
    warm = run(tmp_path / "warm", 2, "8 8 8 0.05", LOCKSTEP_BATCH="per-rank", LOCKSTEP_LR_SCALE="on",
               LOCKSTEP_LR_WARMUP_STEPS=6)
    losses = [float(re.search(r"^arrays loss \S+ loss (\S+)", text, re.MULTILINE)[1]) for text in (scaled, warm)]
    assert losses[1] != pytest.approx(losses[0], rel=1e-3), "the first steps should be smaller"


@pytest.mark.long
def test_data_that_the_script_partitions_is_left_alone(tmp_path):
    case = Case(HERE / "weak", "partitioned.py")
    together = _run(case, tmp_path / "one", None)
    case.env = {"LOCKSTEP_SHARD": "off"}
    compare_text(together, _run(case, tmp_path / "ranks", 2), TOLERANCE, "standard output")
    compare_folders(tmp_path / "one", tmp_path / "ranks", TOLERANCE)
