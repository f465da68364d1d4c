# SPDX-License-Identifier: Apache-2.0
"""LOCKSTEP_BATCH=per-rank: n ranks with batches of B are one process with batches of n B."""
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from compare import compare_folders, compare_text
from test_scripts import HERE, Case, _run

TOLERANCE = 2e-5


def run(folder, n, line, **env):
    case = Case(HERE / "weak", line)
    case.env = {name: str(value) for name, value in env.items()}
    return _run(case, folder, n)


@pytest.mark.parametrize("n, batch, script", [
    (3, 6, "train.py"), (2, 8, "legacy.py"),
    *(pytest.param(*long, marks=pytest.mark.long) for long in ((2, 8, "train.py"), (3, 6, "legacy.py")))])
def test_ranks_with_their_own_batches_are_one_process_with_a_larger_one(n, batch, script, tmp_path):
    with ThreadPoolExecutor() as pool:
        together = pool.submit(run, tmp_path / "one", None, f"{script} {n * batch} {batch} 4 0.1")
        ranks = pool.submit(run, tmp_path / "ranks", n, f"{script} {batch} {batch} {4 * n} 0.1", LOCKSTEP_BATCH="per-rank")
    compare_text(together.result(), ranks.result(), TOLERANCE, "standard output")
    compare_folders(tmp_path / "one", tmp_path / "ranks", TOLERANCE)


@pytest.mark.long
@pytest.mark.parametrize("script", ["train.py", "legacy.py"])
def test_the_learning_rate_grows_with_the_ranks_when_told_to(script, tmp_path):
    together = run(tmp_path / "one", None, f"{script} 16 8 4 0.1")
    scaled = run(tmp_path / "ranks", 2, f"{script} 8 8 8 0.05", LOCKSTEP_BATCH="per-rank", LOCKSTEP_LR_SCALE="on")
    compare_text(together, scaled, TOLERANCE, "standard output")
    warm = run(tmp_path / "warm", 2, f"{script} 8 8 8 0.05", LOCKSTEP_BATCH="per-rank", LOCKSTEP_LR_SCALE="on",
               LOCKSTEP_LR_WARMUP_STEPS=6)
    for fit in ("arrays", "data set"):
        losses = [float(re.search(rf"^{fit} loss \S+ loss (\S+)", text, re.MULTILINE)[1]) for text in (scaled, warm)]
        assert losses[1] != pytest.approx(losses[0], rel=1e-3), f"{fit}: the first steps should be smaller"


@pytest.mark.long
def test_data_that_the_script_partitions_is_left_alone(tmp_path):
    case = Case(HERE / "weak", "partitioned.py")
    together = _run(case, tmp_path / "one", None)
    case.env = {"LOCKSTEP_SHARD": "off"}
    compare_text(together, _run(case, tmp_path / "ranks", 2), TOLERANCE, "standard output")
    compare_folders(tmp_path / "one", tmp_path / "ranks", TOLERANCE)
