# SPDX-License-Identifier: Apache-2.0
"""Scripts that train outside of fit(): said at their first step; with checkpoints of their own they go on under --restarts."""
from pathlib import Path

import numpy as np
import pytest
from test_restart import content, each_mpi, run

HERE = Path(__file__).resolve().parent


def check(mpi, folder, script, kill, begins):
    (folder / "alone").mkdir()
    alone = run(mpi, folder / "alone", script=script)
    assert alone.code == 0, str(alone)
    result = run(mpi, folder, "--restarts", 1, "--state", "state", script=script, KILL=kill)
    assert result.code == 0, str(result)
    assert result.err.count("starting again") == 1, str(result)
    assert [line for line in result.out.splitlines() if line.startswith("begins")] == begins, str(result)
    expected = content(folder / "alone" / "out.npz")
    for name, found in content(folder / "out.npz").items():  # the first step of a loop may add in another order
        np.testing.assert_allclose(found, expected[name], rtol=1e-5, atol=1e-7, err_msg=name)
    return result


@pytest.mark.long
def test_a_loop_of_the_script_goes_on_from_its_own_checkpoint(mpi, tmp_path):
    result = check(mpi, tmp_path, HERE / "loop.py", "1:3", ["begins with epoch 0", "begins with epoch 3"])
    assert "this script trains in a loop of its own" in result.err, str(result)


@each_mpi()
def test_a_session_goes_on_from_its_own_checkpoint(mpi, tmp_path):
    result = check(mpi, tmp_path, HERE / "session.py", "1:18", ["begins with step 0", "begins with step 15"])
    assert "this script trains in a Session" in result.err, str(result)
