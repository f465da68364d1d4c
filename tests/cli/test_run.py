# SPDX-License-Identifier: Apache-2.0
"""lockstep run: ranks started as they should be, their output, their exit codes, their end."""
import os
import re
import shlex
import signal
import sys

import pytest
from commands import end_with, lockstep, start, wait_until
from jobs import ROOT, job_processes, kill_job

SCRIPT = """
import json, os, sys, time
rank = int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK"))
mode = sys.argv[1] if len(sys.argv) > 1 else "show"
if mode == "show":
    names = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "LOCKSTEP_BATCH", "WORD",
             "LOCKSTEP_RUN_TOKEN", "CUDA_VISIBLE_DEVICES")
    text = json.dumps({"rank": rank, "args": sys.argv[1:], "file": __file__, "cpus": sorted(os.sched_getaffinity(0)),
                       "env": {name: os.environ.get(name) for name in names}})
    os.write(1, text.encode() + b"\\n")  # at once: lines of two ranks stay apart
elif mode == "fail":
    if rank == int(sys.argv[2]):
        print("last words of", rank)
        sys.exit(int(sys.argv[3]))
    time.sleep(60)
elif mode == "die":
    if rank == int(sys.argv[2]):
        os.kill(os.getpid(), int(sys.argv[3]))
    time.sleep(60)
elif mode == "sleep":
    open(sys.argv[2] + str(rank), "w").close()
    time.sleep(60)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train it.py"
    path.write_text(SCRIPT)
    return path


def shown(result):
    import json
    assert result.code == 0, str(result)
    lines = [json.loads(line) for line in result.out.splitlines() if line.startswith("{")]
    return sorted(lines, key=lambda line: line["rank"])


def test_each_rank_is_the_script_with_its_arguments(mpi, script):
    ranks = shown(lockstep(mpi, "run", "-n", 2, "--output", "all", script, "show", "-n", "7", "--threads=9"))
    assert [line["rank"] for line in ranks] == [0, 1]
    for line in ranks:
        assert line["args"] == ["show", "-n", "7", "--threads=9"]
        assert line["file"] == str(script)
        assert line["env"]["LOCKSTEP_RUN_TOKEN"] is None


@pytest.mark.parametrize("name, value", [("TF_MPI_ENABLE", "1"), ("LOCKSTEP_STATE", "state")])
def test_ranks_are_ranks_where_the_command_itself_would_take_part(mpi, tmp_path, name, value):
    (tmp_path / "who.py").write_text("from lockstep import start\nprint('a rank:', start.is_rank())\n")
    result = lockstep(mpi, "run", "-n", 2, "--output", "all", "who.py", cwd=tmp_path,
                      env={name: value, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests/site'}"})
    assert (result.code, result.out.count("a rank: True")) == (0, 2), str(result)


def test_lines_of_ranks_stay_whole(mpi, tmp_path):
    """print() hands its words over one by one.  Where the machine is busy, the terminal that mpirun reads from may still cut a
    line at the end of a piece, one in a thousand; with words mixed they are one in ten."""
    (tmp_path / "words.py").write_text("for number in range(500):\n    print(*'abcdefgh')\n")
    result = lockstep(mpi, "run", "-n", 2, "--output", "all", "words.py", cwd=tmp_path,
                      env={"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests/site'}"})
    assert (result.code, len(result.out)) == (0, 1000 * len("a b c d e f g h\n")), str(result)
    assert result.out.splitlines().count("a b c d e f g h") >= 990, str(result)


def test_cores_are_divided_and_threads_match_them(mpi, script):
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        pytest.skip("one core cannot be divided")
    ranks = shown(lockstep(mpi, "run", "-n", 2, "--output", "all", script))
    assert not set(ranks[0]["cpus"]) & set(ranks[1]["cpus"])
    for line in ranks:
        assert line["env"]["OMP_NUM_THREADS"] == line["env"]["TF_NUM_INTRAOP_THREADS"]
        assert int(line["env"]["OMP_NUM_THREADS"]) <= len(line["cpus"])


def test_threads_that_the_user_has_set_stay(mpi, script):
    ranks = shown(lockstep(mpi, "run", "-n", 2, "--output", "all", script, env={"OMP_NUM_THREADS": 5}))
    assert [line["env"]["OMP_NUM_THREADS"] for line in ranks] == ["5", "5"]


def test_settings_reach_all_ranks(mpi, script):
    ranks = shown(lockstep(mpi, "run", "-n", 2, "--batch", "per-rank", "--output", "all", script, env={"WORD": "a b"}))
    assert [(line["env"]["LOCKSTEP_BATCH"], line["env"]["WORD"]) for line in ranks] == [("per-rank", "a b")] * 2


def test_each_rank_of_a_host_has_a_gpu_of_its_own(mpi, script):
    ranks = shown(lockstep(mpi, "run", "-n", 2, "--output", "all", script, env={"CUDA_VISIBLE_DEVICES": "3,5"}))
    assert [line["env"]["CUDA_VISIBLE_DEVICES"] for line in ranks] == ["3", "5"]


def test_only_rank_0_is_shown(mpi, script):
    assert [line["rank"] for line in shown(lockstep(mpi, "run", "-n", 2, script))] == [0]


def test_a_module_is_run(mpi, script):
    ranks = shown(lockstep(mpi, "run", "-n", 1, "-m", "train", "show", "-m", cwd=move(script, "train.py")))
    assert ranks[0]["args"] == ["show", "-m"]


def move(script, name):
    script.rename(script.parent / name)
    return script.parent


def test_more_ranks_than_cores_only_when_asked_for(mpi, script):
    number = 2 * len(os.sched_getaffinity(0))
    result = lockstep(mpi, "run", "-n", number, script)
    assert result.code == 2
    assert f"{number} ranks are more than" in result.err and "--oversubscribe" in result.err
    assert len(shown(lockstep(mpi, "run", "-n", number, "--oversubscribe", "--output", "all", script))) == number


@pytest.mark.parametrize("failing, code", [(0, 3), (1, 7)])
def test_the_exit_code_is_that_of_the_rank_that_failed(mpi, script, failing, code):
    result = lockstep(mpi, "run", "-n", 2, script, "fail", failing, code)
    assert result.code == code, str(result)
    assert f"rank {failing} on host" in result.err
    assert f"last words of {failing}" in result.out + result.err


LEAVING = """
import os, sys
from lockstep.cli.engine import Engine
engine = Engine()
for i in range(100):
    if engine.rank == 1 and i == 50:
        os._exit(0)
    engine.allgather("all", b"x")
engine.stop()
"""


def test_a_rank_that_leaves_the_others_with_code_0_is_a_failure(mpi, tmp_path):
    (tmp_path / "leaves.py").write_text(LEAVING)
    result = lockstep(mpi, "run", "-n", 2, "leaves.py", cwd=tmp_path, env={"LOCKSTEP_FLIGHT_DIR": "off"})
    assert result.code != 0, str(result)
    if "Killed (signal 9)" not in result.out:  # mpiexec may kill the other rank before it has found out and said so
        assert result.code == 1 and ("rank 1 (process" in result.err or "a rank left in the middle" in result.err), str(result)


def test_a_rank_that_is_killed_gives_128_and_the_signal(mpi, script):
    result = lockstep(mpi, "run", "-n", 2, script, "die", 1, int(signal.SIGSEGV))
    assert result.code == 128 + signal.SIGSEGV, str(result)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_all_ranks(mpi, script, tmp_path, number):
    process, job_id = start(mpi, "run", "-n", 2, script, "sleep", tmp_path / "up-", env={"TMPDIR": tmp_path})
    try:
        assert wait_until(lambda: len(list(tmp_path.glob("up-*"))) == 2), "the ranks did not start"
        code = end_with(process, job_id, number)
    finally:
        kill_job(job_id)
    assert code == (-number if number == signal.SIGKILL else 128 + number)
    assert job_processes(job_id) == []


def test_each_rank_has_a_log(mpi, script, tmp_path):
    result = lockstep(mpi, "run", "-n", 2, "--log-dir", tmp_path / "logs", script, "show")
    assert [line["rank"] for line in shown(result)] == [0]
    for rank in range(2):
        assert f'"rank": {rank}' in (tmp_path / "logs" / f"rank-{rank}.log").read_text()
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["rank-0.log", "rank-1.log"]


def test_a_dry_run_prints_the_command_and_starts_nothing(mpi, script, tmp_path):
    result = lockstep(mpi, "run", "-n", 2, "--dry-run", "--log-dir", tmp_path / "logs", script, "sleep", tmp_path / "up-")
    assert result.code == 0
    words = shlex.split(result.out)
    assert words[-4:] == [sys.executable, str(script), "sleep", str(tmp_path / "up-")]
    assert any("mpi" in word for word in words)
    assert not (tmp_path / "logs").exists() and not list(tmp_path.glob("up-*"))


def test_a_program_that_is_no_python_file_is_started_as_it_is(mpi):
    result = lockstep(mpi, "run", "-n", 2, "--output", "all", "/bin/echo", "word", "-n")
    assert result.code == 0
    assert result.out.count("word -n") == 2


def test_python_itself_can_be_named_and_stays_that_of_its_environment(mpi):
    result = lockstep(mpi, "run", "-n", 2, "--oversubscribe", sys.executable, "-c", "import sys; print(sys.prefix)")
    assert result.code == 0, str(result)
    assert result.out.strip() == sys.prefix


BAD_INPUTS = [
    ([], "no script is named"),
    (["nothing.py"], "there is no file nothing.py"),
    (["/tmp"], "/tmp is a folder"),
    (["-H", "node1:x", "SCRIPT"], "'x' slots for host node1"),
    (["-H", "node1", "--hostfile", "f", "SCRIPT"], "both -H and --hostfile"),
    (["--hostfile", "nofile", "SCRIPT"], "the hostfile nofile cannot be read"),
    (["-n", "0", "SCRIPT"], "'0' is not a number from 1 up"),
    (["-n", "2", "--threads", "999", "SCRIPT"], "2 ranks with 999 cores each need 1998"),
    (["-n", "3", "-H", "node1:2", "SCRIPT"], "3 ranks are more than the 2 slots of the hosts"),
    (["-H", "no-such-host.invalid:2", "SCRIPT"], "host no-such-host.invalid"),
    (["--agent", "/no/agent", "-H", "node1:2", "SCRIPT"], "'/no/agent', which cannot be started"),
    (["--mpirun", "/no/mpirun", "SCRIPT"], "there is no launcher '/no/mpirun'"),
    (["--launcher", "srun", "SCRIPT"], "needs a Slurm allocation"),
    (["--log-dir", "/dev/null/x", "SCRIPT"], "the log directory /dev/null/x cannot be made"),
]


@pytest.mark.parametrize("words, complaint", BAD_INPUTS, ids=[complaint for _, complaint in BAD_INPUTS])
def test_bad_input_is_one_clear_sentence(mpi, script, words, complaint):
    result = lockstep(mpi, "run", *[str(script) if word == "SCRIPT" else word for word in words], timeout=60)
    check_one_sentence(result, complaint)


def check_one_sentence(result, complaint):
    """The last line says what is wrong, and after it what to do."""
    assert result.code == 2, str(result)
    assert "Traceback" not in result.err
    last = result.err.strip().splitlines()[-1]
    assert last.startswith("lockstep run: ") and complaint in last, str(result)
    assert "'0'" in complaint or re.search(r": \S", last.split(complaint)[1]), f"nothing to do is said: {last}"


def make_agent(folder, lines):
    agent = folder / "agent"
    agent.write_text("#!/bin/sh\n" + lines)
    agent.chmod(0o755)
    return agent


BAD_HOSTS = [
    ("echo 'ssh: Could not resolve hostname node1: Name or service not known' >&2; exit 255", "host node1 is not known"),
    ("echo 'ssh: connect to host node1 port 22: Connection refused' >&2; exit 255", "host node1 cannot be reached (ssh: connect"),
    ("exit 127", "host node1 has no "),
    ("echo \"No module named 'lockstep'\" >&2; exit 1", "host node1 cannot load Lockstep with"),
    ("echo 9.9.9", "host node1 has Lockstep 9.9.9, this one"),
]


@pytest.mark.parametrize("lines, complaint", BAD_HOSTS, ids=[complaint for _, complaint in BAD_HOSTS])
def test_a_host_that_cannot_take_part_is_one_clear_sentence(mpi, script, tmp_path, lines, complaint):
    agent = make_agent(tmp_path, lines)
    check_one_sentence(lockstep(mpi, "run", "--agent", agent, "-H", "node1:2", script, timeout=60), complaint)


def test_two_mixed_mpis_are_an_error(mpi, script, tmp_path):
    other = {"openmpi": "HYDRA build details:", "mpich": "mpirun (Open MPI) 4.1.4"}[mpi.name]
    wrong = tmp_path / "mpirun"
    wrong.write_text(f"#!/bin/sh\necho '{other}'\n")
    wrong.chmod(0o755)
    result = lockstep(mpi, "run", "--mpirun", wrong, script)
    assert result.code == 2
    assert "two MPIs are mixed" in result.err


@pytest.mark.parametrize("version, complaint", [(None, "imports TensorFlow, and"), ("2.11.0", "TensorFlow 2.11.0 is older")])
def test_a_tensorflow_that_is_missing_or_too_old_is_said_before_the_start(mpi, tmp_path, version, complaint):
    (tmp_path / "train.py").write_text("import tensorflow as tf\n")
    (tmp_path / "sitecustomize.py").write_text(
        "from importlib import metadata\n"
        "def version(name):\n"
        f"    if {version!r} and name == 'tensorflow':\n"
        f"        return {version!r}\n"
        "    raise metadata.PackageNotFoundError(name)\n"
        "metadata.version = version\n")
    from commands import environment
    path = str(tmp_path) + os.pathsep + environment(mpi)["PYTHONPATH"]
    result = lockstep(mpi, "run", "-n", 2, tmp_path / "train.py", env={"PYTHONPATH": path})
    assert result.code == 2
    assert complaint in result.err
