# SPDX-License-Identifier: Apache-2.0
"""A job that was killed, frozen or asked to end goes on, and ends with the bits of one that was left alone."""
import os
import random
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from jobs import ROOT, job_processes, kill_job

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
from commands import lockstep, start, wait_until  # noqa: E402


def each_mpi(quick=None):
    """Each MPI; all but the quick one only in the long tests."""
    return pytest.mark.parametrize("mpi", [pytest.param(name, marks=[] if name == quick else [pytest.mark.long])
                                           for name in ("openmpi", "mpich")], indirect=True)


SCRIPT = HERE / "digits.py"
END_CODE = 75


def environment(**more):
    return {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests/site'}", "TF_CPP_MIN_LOG_LEVEL": "3", "LOCKSTEP_FLIGHT_DIR": "off", "LOCKSTEP_HEARTBEAT_S": "2",
            "LOCKSTEP_GRACE_S": "1", **more}


def run(mpi, folder, *options, ranks=2, timeout=150, script=SCRIPT, **env):
    return lockstep(mpi, "run", "-n", ranks, "--oversubscribe", "--no-progress", *options, script, "out.npz", cwd=folder,
                    env=environment(**env), timeout=timeout)


def content(path):
    with np.load(path, allow_pickle=False) as data:
        return {name: data[name] for name in data.files}


def assert_equal_bits(found, expected):
    assert found.keys() == expected.keys()
    for name in expected:
        assert found[name].dtype == expected[name].dtype and found[name].tobytes() == expected[name].tobytes(), \
            f"{name}: {found[name]} is not {expected[name]}"


@pytest.fixture(scope="session")
def undisturbed(mpi, tmp_path_factory):
    """What the script gives when it is left alone, by its settings; the pace does not matter."""
    known = {}

    def give(**env):
        env["PACE_S"] = "0"
        key = tuple(sorted(env.items()))
        if key not in known:
            folder = tmp_path_factory.mktemp("undisturbed")
            result = run(mpi, folder, **env)
            assert result.code == 0, str(result)
            known[key] = content(folder / "out.npz")
        return known[key]

    return give


def check_killed(mpi, tmp_path, expected, kills, **env):
    result = run(mpi, tmp_path, "--restarts", len(kills), "--state", "state", "--snapshot-every", "0.05", timeout=500,
                 KILLS=",".join(kills), **env)
    assert result.code == 0, str(result)
    assert result.err.count("starting again") == len(kills), str(result)
    assert result.err.count("goes on from snapshot") >= 1, str(result)
    assert_equal_bits(content(tmp_path / "out.npz"), expected)
    assert list((tmp_path / "state").glob("*.manifest")) == [], "the snapshots of a job that has ended stay"


@each_mpi(quick="openmpi")
def test_a_killed_job_ends_with_the_bits_of_an_undisturbed_one(mpi, tmp_path, undisturbed):
    check_killed(mpi, tmp_path, undisturbed(), ["1:1:2:4"], PACE_S="0.05")


@pytest.mark.long
def test_a_fit_that_had_ended_is_not_computed_again(mpi, tmp_path, undisturbed):
    check_killed(mpi, tmp_path, undisturbed(), ["1:1:0:6", "0:2:1:3"], PACE_S="0.05")


@pytest.mark.long
@pytest.mark.parametrize("library", ["keras", "tf_keras"])
@pytest.mark.parametrize("data", ["arrays", "dataset", "generator"])
def test_any_data_is_drawn_again_to_where_it_was(mpi, tmp_path, undisturbed, data, library):
    env = {"PACE_S": "0.05", "DATA": data, "LIBRARY": library}
    check_killed(mpi, tmp_path, undisturbed(**env), ["1:1:3:2", "0:2:2:6"], **env)


@each_mpi(quick="mpich")
def test_a_signal_ends_the_job_with_a_snapshot_and_the_next_start_goes_on(mpi, tmp_path, undisturbed):
    env = {"PACE_S": "0.05"}
    words = ["run", "-n", 2, "--oversubscribe", "--no-progress", "--state", "state", SCRIPT, "out.npz"]
    process, job_id = start(mpi, *words, env=environment(**env), cwd=tmp_path)
    try:
        # log.csv has a row: the second epoch has begun
        assert wait_until(lambda: (tmp_path / "log.csv").exists() and (tmp_path / "log.csv").stat().st_size > 60, 100)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        assert process.returncode == END_CODE, err
        assert "ended as asked, with a snapshot" in err
        assert wait_until(lambda: job_processes(job_id) == []), "processes stayed behind"
    finally:
        kill_job(job_id)
    assert len(list((tmp_path / "state").glob("snapshot-*.manifest"))) >= 1
    result = lockstep(mpi, *words, env=environment(**env), cwd=tmp_path, timeout=100)
    assert result.code == 0, str(result)
    assert "goes on from snapshot" in result.err, str(result)
    assert_equal_bits(content(tmp_path / "out.npz"), undisturbed(**env))


def test_a_rank_that_freezes_at_the_start_is_no_error_of_the_script(mpi, tmp_path):
    """While the hooks are put in place; at each start, so that it is given up in the end."""
    (tmp_path / "imports.py").write_text("import tensorflow\n")
    result = run(mpi, tmp_path, "--restarts", 1, "--state", "state", script="imports.py", LOCKSTEP_FAULT="request:0:0:stop")
    assert result.code != 0 and "rank 0 (process" in result.err, str(result)
    assert result.err.count("starting again") == 1 and "no restart is left" in result.err, str(result)


@pytest.mark.long
def test_without_a_seed_the_job_goes_on_with_its_own_random_numbers(mpi, tmp_path):
    """There is nothing to compare with, but the data is drawn from the same numbers: the loss goes on, not up."""
    result = run(mpi, tmp_path, "--restarts", 1, "--state", "state", "--snapshot-every", "0.05", SEEDED="0", PACE_S="0.05",
                 KILLS="1:2:1:2")
    assert result.code == 0 and "goes on from snapshot" in result.err, str(result)


@pytest.mark.long
def test_two_dozen_kills_and_freezes_at_random_moments(mpi, tmp_path, undisturbed):
    """Most of them while it trains: some time after a snapshot that is newer than the last kill.  The others at any time."""
    chosen = random.Random(os.environ.get("RESTART_SEED", "1"))
    wanted = int(os.environ.get("RESTART_KILLS", "24"))  # some hit a job that is ending already
    words = ["run", "-n", 2, "--oversubscribe", "--no-progress", "--restarts", 60, "--state", "state", "--snapshot-every", "0.5",
             SCRIPT, "out.npz"]
    process, job_id = start(mpi, *words, env=environment(PACE_S="1.0"), cwd=tmp_path)
    reader = ThreadPoolExecutor(1)
    output = reader.submit(process.communicate)  # tracebacks of many starts do not fit into a pipe
    done, seen = 0, set()
    try:
        while process.poll() is None:
            if chosen.random() < 0.25:
                time.sleep(chosen.uniform(0, 14))
            else:
                wait_until(lambda: snapshots(tmp_path) - seen or process.poll() is not None, 100)
                time.sleep(chosen.uniform(0, 2))
            ranks = [pid for pid in job_processes(job_id) if is_script(pid)]
            if done < wanted and len(ranks) >= 2:
                os.kill(chosen.choice(ranks), chosen.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP]))
                done += 1
                seen |= snapshots(tmp_path)
        _, err = output.result(timeout=10)
    finally:
        kill_job(job_id)
        reader.shutdown()
    restarts = err.count("starting again")
    print(f"{done} kills, {restarts} restarts, {err.count('goes on from snapshot')} from a snapshot")
    assert process.returncode == 0, err
    assert done == wanted and restarts >= wanted * 5 // 6, f"{restarts} restarts: the training was over too soon"
    assert_equal_bits(content(tmp_path / "out.npz"), undisturbed())


def snapshots(folder):
    return {path.name for path in (folder / "state").glob("*.manifest")}


def is_script(pid):
    """A rank's Python, not what stands beside it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return len(words) > 1 and words[1].endswith(b"digits.py")
