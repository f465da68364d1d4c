# SPDX-License-Identifier: Apache-2.0
"""Jobs over several hosts: network namespaces with addresses and names of their own, and no shared memory between them."""
import os
import re
import subprocess
import uuid

import promise
import pytest
from commands import environment, lockstep
from fleet import make_hosts, remove_hosts
from jobs import JOB_VARIABLE, ROOT, job_processes, kill_job

CLOSING_LINE = re.compile(r"^(\d+) passed, (\d+) failed$", re.MULTILINE)
LIMIT = 120

SCRIPT = """
import json, os, socket
from lockstep.cli.engine import Engine
engine = Engine()
own = {"rank": engine.rank, "host": engine.host, "hostname": socket.gethostname(), "nodes": engine.num_nodes,
       "local": engine.local_rank, "shm": os.listdir("/dev/shm"), "word": os.environ.get("WORD")}
ranks = [json.loads(part) for part in engine.allgather("all", json.dumps(own).encode())]
if engine.rank == 0:
    print(json.dumps(ranks))
engine.stop()
"""


FLEETS = [(2, 2), (4, 1), pytest.param(2, 1, marks=pytest.mark.long), pytest.param(4, 2, marks=pytest.mark.long)]


@pytest.fixture(scope="module")
def hosts(request):
    made = make_hosts(request.param)
    yield made
    remove_hosts(made)


@pytest.fixture
def two_hosts():
    made = make_hosts(2)
    yield made
    remove_hosts(made)


def mpirun(mpi, hosts, each, words):
    """The launcher without lockstep run: as a user of the C library starts it."""
    if mpi.name == "openmpi":
        start = ["mpirun", "--allow-run-as-root", "--bind-to", "none", "--mca", "plm_rsh_agent", hosts.agent, "-H"]
    else:
        start = [ROOT / ".venv" / "bin" / "mpiexec", "-bind-to", "none", "-launcher", "ssh", "-launcher-exec", hosts.agent,
                 "-hosts"]
    command = [*hosts.enter, *start, hosts.slots(each), "-n", hosts.number * each, *words]
    job_id = uuid.uuid4().hex
    try:
        return subprocess.run([str(word) for word in command], env={**environment(mpi), JOB_VARIABLE: job_id}, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT)
    finally:
        kill_job(job_id)


@pytest.mark.parametrize("hosts, each", FLEETS, indirect=["hosts"])
@pytest.mark.parametrize("body", ["allreduce", "others", "join", "random"])
def test_collectives_over_hosts(mpi, hosts, each, body):
    result = mpirun(mpi, hosts, each, [mpi.program("ranks/collectives"), body, "--quick"])
    assert result.returncode == 0, result.stdout + result.stderr
    reports = CLOSING_LINE.findall(result.stdout)
    assert reports and all(failed == "0" for _, failed in reports), result.stdout


def run_on(mpi, hosts, *words, env=None, timeout=LIMIT):
    return lockstep(mpi, "run", "--agent", hosts.agent, *words, env=env, timeout=timeout, before=hosts.enter)


@pytest.mark.parametrize("hosts, each", FLEETS, indirect=["hosts"])
def test_run_starts_ranks_on_each_host(mpi, hosts, each, tmp_path):
    import json
    (tmp_path / "script.py").write_text(SCRIPT)
    result = run_on(mpi, hosts, "-H", hosts.slots(each), tmp_path / "script.py", env={"WORD": "passed on"})
    assert result.code == 0, str(result)
    ranks = json.loads(result.out)
    assert [rank["hostname"] for rank in ranks] == [f"host{number + 1}" for number in range(hosts.number)
                                                    for _ in range(each)]
    for rank in ranks:
        assert rank["host"] == rank["hostname"]
        assert rank["nodes"] == hosts.number
        assert rank["local"] == rank["rank"] % each
        assert rank["word"] == "passed on"


def test_an_unmodified_keras_script_has_the_numbers_of_one_process_on_two_hosts(mpi, two_hosts, tmp_path):
    one = promise.one_process(mpi)
    (tmp_path / "two").mkdir()
    result = lockstep(mpi, "run", "--agent", two_hosts.agent, "-H", "host1,host2", promise.SCRIPT, env=promise.SETTINGS,
                      cwd=tmp_path / "two", timeout=promise.LIMIT, before=two_hosts.enter)
    assert result.code == 0, str(result)
    promise.check_same(one, result.out, "standard output on two hosts")


def test_hosts_share_no_memory(two_hosts):
    def names_on(number):
        return subprocess.run([*two_hosts.enter_host(number), "ls", "/dev/shm"], text=True, stdout=subprocess.PIPE).stdout

    subprocess.run([*two_hosts.enter_host(1), "touch", "/dev/shm/of-host1"], check=True)
    assert "of-host1" in names_on(1)
    assert "of-host1" not in names_on(2)
    assert "of-host1" not in os.listdir("/dev/shm")


def test_a_hostfile_names_the_hosts(mpi, two_hosts, tmp_path):
    (tmp_path / "hosts.txt").write_text("host1 slots=1  # the first\nhost2:1\n")
    result = run_on(mpi, two_hosts, "--hostfile", tmp_path / "hosts.txt", "--output", "all", "/bin/hostname")
    assert result.code == 0, str(result)
    assert sorted(result.out.split()) == ["host1", "host2"]


def test_logs_of_all_hosts_come_together(mpi, two_hosts, tmp_path):
    result = run_on(mpi, two_hosts, "-H", "host1,host2", "--log-dir", tmp_path / "logs", "/bin/hostname")
    assert result.code == 0, str(result)
    assert (tmp_path / "logs" / "rank-0.log").read_text() == "host1\n"
    assert (tmp_path / "logs" / "rank-1.log").read_text() == "host2\n"


def test_the_exit_code_of_a_rank_on_another_host_comes_back(mpi, two_hosts, tmp_path):
    (tmp_path / "fails.py").write_text("import socket, sys, time\n"
                                       "sys.exit(9) if socket.gethostname() == 'host2' else time.sleep(60)\n")
    result = run_on(mpi, two_hosts, "-H", "host1,host2", tmp_path / "fails.py")
    assert result.code == 9, str(result)
    assert "rank 1 on host host2" in result.err


def test_an_unknown_host_is_one_sentence(mpi, two_hosts):
    result = run_on(mpi, two_hosts, "-H", "host1,host9", "/bin/hostname", timeout=60)
    assert result.code == 2
    assert "host host9 is not known" in result.err


def test_another_lockstep_on_a_host_is_one_sentence(mpi, two_hosts, tmp_path):
    agent = tmp_path / "agent"
    agent.write_text("#!/bin/sh\necho 9.9.9\n")
    agent.chmod(0o755)
    result = lockstep(mpi, "run", "--agent", agent, "-H", "host1,host2", "/bin/hostname", before=two_hosts.enter, timeout=60)
    assert result.code == 2
    assert "host host2 has Lockstep 9.9.9" in result.err


def test_a_signal_ends_the_ranks_on_all_hosts(mpi, two_hosts, tmp_path):
    from commands import end_with, start, wait_until
    (tmp_path / "sleeps.py").write_text("import pathlib, socket, sys, time\n"
                                        "pathlib.Path(sys.argv[1] + socket.gethostname()).touch(); time.sleep(60)\n")
    process, job_id = start(mpi, "run", "--agent", two_hosts.agent, "-H", "host1,host2", tmp_path / "sleeps.py",
                            tmp_path / "up-", before=two_hosts.enter)
    try:
        assert wait_until(lambda: len(list(tmp_path.glob("up-*"))) == 2)
        assert end_with(process, job_id) == 143
        assert job_processes(job_id) == []
    finally:
        kill_job(job_id)


def test_doctor_sees_a_slow_network(mpi):
    slow = make_hosts(2, "--rate", "200")
    try:
        result = lockstep(mpi, "doctor", "-H", "host1,host2", "--agent", slow.agent, "--no-tensorflow", before=slow.enter,
                          timeout=LIMIT)
    finally:
        remove_hosts(slow)
    assert result.code == 0, str(result)
    assert "2 ranks on 2 nodes: host1 (1), host2 (1)" in result.out
    assert "warn  host1 to host2" in result.out and "slower than 1 Gbit/s" in result.out
