# SPDX-License-Identifier: Apache-2.0
"""The command lines of the launchers, and the parts they are made of."""
import sys

import pytest
from jobs import ROOT

sys.path.insert(0, str(ROOT / "python"))
from lockstep.launch import hosts, machine, mpich, openmpi, rank, slurm  # noqa: E402
from lockstep.launch.hosts import Host, parse_hosts  # noqa: E402
from lockstep.launch.job import Failure, Reports  # noqa: E402
from lockstep.launch.mpi import Mpi, family_of, find_launcher  # noqa: E402
from lockstep.launch.plan import Plan, passed_names  # noqa: E402
from lockstep.launch.problem import Problem  # noqa: E402

HOSTS = [Host("a", 2), Host("b", 2)]


def plan(**changes):
    return Plan(**{"program": ["python", "x.py"], "ranks": 4, "launcher": "L", **changes})


@pytest.mark.parametrize("made, words", [
    (plan(cores=2), "L -n 4 --map-by slot:PE=2 --bind-to core:if-supported python x.py"),
    (plan(is_root=True), "L -n 4 --allow-run-as-root --bind-to none python x.py"),
    (plan(cores=2, is_oversubscribed=True), "L -n 4 --oversubscribe --bind-to none python x.py"),
    (plan(hosts=HOSTS, left_out=["docker0", "lo"], agent="rsh", more_args=["--tag-output"]),
     "L -n 4 --bind-to none -H a:2,b:2 --mca btl_tcp_if_exclude 127.0.0.0/8,docker0 --mca oob_tcp_if_exclude "
     "127.0.0.0/8,docker0 --mca plm_rsh_agent rsh -x LOCKSTEP_LOG -x PATH --tag-output python x.py"),
    (plan(hosts=HOSTS, interface="ib0"),
     "L -n 4 --bind-to none -H a:2,b:2 --mca btl_tcp_if_include ib0 --mca oob_tcp_if_include ib0 -x LOCKSTEP_LOG -x PATH "
     "python x.py"),
])
def test_open_mpi(made, words):
    assert " ".join(openmpi.command(made, {"PATH": "", "LOCKSTEP_LOG": "", "HOSTNAME": "", "OMPI_X": ""})) == words


@pytest.mark.parametrize("made, words", [
    (plan(cores=2), "L -n 4 -bind-to core:2 python x.py"),
    (plan(cores=2, is_oversubscribed=True), "L -n 4 -bind-to none python x.py"),
    (plan(ranks=3, hosts=HOSTS, agent="rsh"), "L -n 3 -bind-to none -hosts a:2,b:1 -launcher ssh -launcher-exec rsh python x.py"),
])
def test_mpich(made, words):
    assert " ".join(mpich.command(made, {})) == words


def test_mpich_takes_an_agent_without_arguments():
    with pytest.raises(Problem, match="name a program without arguments"):
        mpich.command(plan(hosts=HOSTS, agent="ssh -p 22"), {})


@pytest.mark.parametrize("made, words", [
    (plan(cores=2), "L -n 4 --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task=2 --cpu-bind=cores python x.py"),
    (plan(is_oversubscribed=True), "L -n 4 --mpi=pmix --kill-on-bad-exit=1 --overcommit --cpu-bind=none python x.py"),
    (plan(hosts=HOSTS), "L -n 4 --mpi=pmix --kill-on-bad-exit=1 --nodelist=a,b python x.py"),
])
def test_srun(made, words):
    assert " ".join(slurm.command(made, {}, "pmix")) == words


def test_the_slots_of_an_allocation():
    asked = {"SLURM_NTASKS": "7", "SLURM_TASKS_PER_NODE": "2(x3),1", "SLURM_JOB_CPUS_PER_NODE": "8(x4)"}
    assert slurm.tasks_per_node(asked) == [2, 2, 2, 1]
    del asked["SLURM_NTASKS"]
    assert slurm.tasks_per_node(asked) == [8, 8, 8, 8]
    with pytest.raises(Problem, match="not understood"):
        slurm.tasks_per_node({"SLURM_JOB_CPUS_PER_NODE": "many"})


def test_hosts_are_filled_one_after_another():
    assert plan(ranks=3, hosts=HOSTS).ranks_per_host == [("a", 2), ("b", 1)]
    assert plan(ranks=2, hosts=HOSTS).ranks_per_host == [("a", 2)]
    assert plan(ranks=7, hosts=HOSTS, is_oversubscribed=True).ranks_per_host == [("a", 2), ("b", 5)]
    assert parse_hosts("a:2,b,a:1") == [Host("a", 3), Host("b", 1)]


def test_what_belongs_to_one_host_is_not_passed_on():
    names = {"PATH", "LOCKSTEP_LOG", "TF_X", "HOSTNAME", "PMIX_RANK", "SLURM_JOB_ID", "BASH_FUNC_x%%", "TERM", "SSH_TTY"}
    assert passed_names(dict.fromkeys(names)) == ["LOCKSTEP_LOG", "PATH", "TF_X"]


@pytest.mark.parametrize("text, family", [
    ("mpirun (Open MPI) 4.1.4", "openmpi"), ("HYDRA build details:\n    Version: 4.1", "mpich"),
    ("MPICH Version:\t5.0.2", "mpich"), ("Intel(R) MPI Library for Linux* OS", "mpich"), ("bash 5", None)])
def test_an_mpi_is_known_by_what_it_says(text, family):
    assert family_of(text) == family


@pytest.fixture
def launchers(tmp_path, monkeypatch):
    """A machine whose PATH has one folder, and an MPI without a launcher beside its library."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python" / "bin" / "python"))
    return tmp_path / "bin", Mpi("openmpi", "4.1.4", str(tmp_path / "mpi" / "lib" / "libmpi.so"))


def make_launcher(path, says):
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)


def test_an_mpi_without_a_launcher_is_said(launchers):
    with pytest.raises(Problem, match=r"there is no launcher of Open MPI 4.1.4: install it \(Debian: openmpi-bin\)"):
        find_launcher(launchers[1])


def test_launchers_of_another_mpi_only_are_said(launchers):
    folder, mpi = launchers
    make_launcher(folder / "mpirun", "HYDRA build details:")
    with pytest.raises(Problem, match=r"two MPIs are mixed: .* the launchers found are .*mpirun \(MPICH\): put Open MPI's"):
        find_launcher(mpi)
    make_launcher(folder / "mpirun.openmpi", "mpirun.openmpi (OpenRTE) 4.1.4")
    assert find_launcher(mpi) == str(folder / "mpirun.openmpi")


def test_a_host_that_does_not_answer_is_given_up(monkeypatch, tmp_path):
    (tmp_path / "agent").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "agent").chmod(0o755)
    monkeypatch.setattr(hosts, "REACH_LIMIT_S", 0.3)
    with pytest.raises(Problem, match=r"host far cannot be reached \(no answer within 0.3 s\)"):
        hosts._check(Host("far", 1), str(tmp_path / "agent"), "python", "0.1")


def test_threads_of_a_core_are_one_core(tmp_path):
    for cpu, core in ((0, 0), (1, 1), (2, 0), (3, 1)):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text("0\n")
        (folder / "core_id").write_text(f"{core}\n")
    assert machine.cores({0, 1, 2, 3}, tmp_path) == 2
    assert machine.cores({0, 2}, tmp_path) == 1


@pytest.mark.parametrize("cores, gpus, ranks", [(1, 0, 1), (2, 0, 2), (4, 0, 2), (16, 0, 4), (64, 0, 16), (64, 4, 4)])
def test_ranks_when_nobody_says_how_many(cores, gpus, ranks):
    assert machine.default_ranks(cores, gpus) == ranks


def test_interfaces_that_lead_nowhere_are_left_out(tmp_path):
    for name in ("lo", "eth0", "docker0", "br-12ab", "ib0", "veth3f", "bond0", "enp3s0"):
        (tmp_path / name).mkdir()
    assert machine.inner_interfaces(tmp_path) == ["br-12ab", "docker0", "lo", "veth3f"]


@pytest.mark.parametrize("allowed, local_rank, chosen", [("0,1,2,3", 2, "2"), ("5,7", 3, "7"), ("4", 1, "4"), ("", 1, "")])
def test_a_rank_has_the_gpu_of_its_place_on_the_host(monkeypatch, allowed, local_rank, chosen):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", allowed)
    rank.choose_gpu(local_rank)
    assert rank.os.environ["CUDA_VISIBLE_DEVICES"] == chosen


def test_reports_are_taken_out_of_a_stream_however_it_is_cut():
    text = b"before \x1elockstep T 3 node7 9\x1eafter\x1elockstep T 1 node2 1\x1e end \x1e."
    for size in (1, 2, 5, 7, 100):
        reports = Reports("T")
        rest = b"".join(reports.take(text[at:at + size]) for at in range(0, len(text), size)) + reports.rest()
        assert rest == b"before after end \x1e."
        assert reports.failures == [Failure(3, "node7", 9), Failure(1, "node2", 1)]
