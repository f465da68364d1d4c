# SPDX-License-Identifier: Apache-2.0
"""What lockstep run --restarts starts again, and what not.  Scripts without TensorFlow: quick."""
import pytest
from commands import lockstep

SCRIPT = """
import os, signal, sys, time
rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK")
count = len([name for name in os.listdir(".") if name.startswith("start-")])
if rank == "1":
    open(f"start-{count}", "w").close()
    if sys.argv[1] == "kill" and count < int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[1] == "exit" and count < 5:
        sys.exit(int(sys.argv[2]))
    if sys.argv[1] == "raise":
        raise ValueError("wrong")
else:
    time.sleep(1.5)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def run(mpi, script, *words, options=("--restarts", 3, "--state", "state")):
    result = lockstep(mpi, "run", "-n", 2, "--oversubscribe", "--no-progress", *options, script, *words, cwd=script.parent, timeout=60)
    return result, len(list(script.parent.glob("start-*")))


def test_a_killed_job_is_started_again_as_often_as_asked(mpi, script):
    result, starts = run(mpi, script, "kill", 2)
    assert (result.code, starts) == (0, 3), str(result)
    assert "rank 1 on host" in result.err and "with signal 9" in result.err
    assert result.err.count("starting again with 2 ranks from the beginning: there is no snapshot") == 2, str(result)
    assert "2 restarts left" in result.err and "1 restart left" in result.err


def test_restarts_come_to_an_end(mpi, script):
    result, starts = run(mpi, script, "kill", 9)
    assert (result.code, starts) == (137, 4), str(result)
    assert "no restart is left" in result.err


@pytest.mark.parametrize("words", [("raise", 0), ("exit", 2)])
def test_an_error_of_the_script_before_its_first_step_is_not_tried_again(mpi, script, words):
    result, starts = run(mpi, script, *words)
    assert result.code in (1, 2) and starts == 1, str(result)
    assert "the script failed before its first step" in result.err, str(result)


def test_restarts_need_a_folder(mpi, script):
    result, starts = run(mpi, script, "exit", 0, options=("--restarts", 3))
    assert (result.code, starts) == (2, 0) and "--state" in result.err, str(result)


def test_a_folder_that_cannot_be_made_is_said_at_the_start(mpi, script):
    (script.parent / "file").write_text("")
    result, starts = run(mpi, script, "exit", 0, options=("--state", "file/state"))
    assert (result.code, starts) == (2, 0) and "cannot be made" in result.err, str(result)
