# SPDX-License-Identifier: Apache-2.0
"""Lockstep wakes in ranks, and only there.

Each test runs in an environment with lockstep.pth in its site-packages, as pip installs it."""
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from jobs import ROOT, Mpi, run_process, run_ranks

HERE = Path(__file__).resolve().parent
TENSORFLOW_LIMIT = 240
AWAKE = (f"import sys; sys.path.insert(0, {str(HERE)!r}); import whoami; "
         "sys.stdout.write('awake\\n' if whoami.is_awake() else 'asleep\\n')")
JOIN = "import tensorflow; import lockstep; print('joined', lockstep.rank(), 'of', lockstep.size())"
LAUNCHERS = ("OMPI_", "PMI", "MPI_", "SLURM_", "TF_MPI", "LOCKSTEP_", "PYTHON")


@pytest.fixture(scope="module")
def packages():
    found = list((ROOT / ".venv" / "lib").glob("python3*/site-packages"))
    return found[0]


def make_environment(folder, *paths):
    """An environment that sees `paths`, with the files that pip puts into site-packages."""
    base = subprocess.run([ROOT / ".venv/bin/python", "-c", "import sys; print(sys.base_prefix)"], text=True, check=True,
                          capture_output=True).stdout.strip()
    subprocess.run([f"{base}/bin/python3", "-m", "venv", "--without-pip", folder], check=True)
    site, = folder.glob("lib/python3*/site-packages")
    (site / "checkout.pth").write_text("".join(f"{path}\n" for path in paths))
    for name in ("lockstep.pth", "lockstep.start"):
        shutil.copy(ROOT / "python" / name, site)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A Python with Lockstep and without TensorFlow."""
    return make_environment(tmp_path_factory.mktemp("bare") / "venv", ROOT / "python")


@pytest.fixture(scope="module")
def full(tmp_path_factory, packages):
    """A Python with both."""
    return make_environment(tmp_path_factory.mktemp("full") / "venv", ROOT / "python", packages)


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch, tmp_path):
    """The tests' own environment has no part in it."""
    import os
    for name in list(os.environ):
        if name.startswith(LAUNCHERS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    monkeypatch.setenv("LOCKSTEP_SUMMARY", "off")
    monkeypatch.setenv("LOCKSTEP_LOG_DIR", "-")
    monkeypatch.chdir(tmp_path)


def library(mpi):
    return {"LOCKSTEP_LIB": mpi.folder / "lib"}


def one_word(python, env, *flags):
    job = run_process([python, *flags, "-c", AWAKE], env=env)
    assert job.code == 0, str(job)
    return job.stdout.strip()


@pytest.mark.parametrize("env, word", [
    ({}, "asleep"),
    ({"OMPI_COMM_WORLD_SIZE": 2, "OMPI_COMM_WORLD_RANK": 0}, "awake"),
    ({"OMPI_COMM_WORLD_SIZE": 1, "SLURM_STEP_NUM_TASKS": 4}, "asleep"),
    ({"PMI_SIZE": 3, "PMI_RANK": 1}, "awake"),
    ({"PMIX_RANK": 0, "PMIX_NAMESPACE": "job", "PMIX_SIZE": 2}, "awake"),
    ({"PMIX_RANK": 0, "SLURM_STEP_NUM_TASKS": 2}, "awake"),
    ({"SLURM_STEP_NUM_TASKS": 2, "SLURM_PROCID": 1}, "awake"),
    ({"SLURM_STEP_NUM_TASKS": 1}, "asleep"),
    ({"SLURM_NTASKS": 8, "SLURM_JOB_ID": 1}, "asleep"),
    ({"OMPI_COMM_WORLD_SIZE": "many"}, "asleep"),
    ({"OMPI_COMM_WORLD_SIZE": 2, "TF_MPI_ENABLE": 0}, "asleep"),
    ({"TF_MPI_ENABLE": 1}, "awake"),
    ({"LOCKSTEP_STATE": "folder"}, "awake"),
    ({"OMPI_COMM_WORLD_SIZE": 2, "LOCKSTEP_RANK_PID": 1}, "asleep"),
    ({"OMPI_COMM_WORLD_SIZE": 2, "LOCKSTEP_RANK_PID": "1 alone"}, "awake"),  # whoever started mpirun was alone
    ({"TF_MPI_ENABLE": 1, "LOCKSTEP_RANK_PID": "1 alone"}, "asleep"),
], ids=lambda value: value if isinstance(value, str) else " ".join(f"{n}={v}" for n, v in value.items()) or "nothing")
def test_wakes_by_the_launchers_variables(bare, env, word):
    assert one_word(bare, env) == word


def test_an_isolated_python_is_a_rank_too(bare):
    assert one_word(bare, {"OMPI_COMM_WORLD_SIZE": 2}, "-I") == "awake"


def test_without_site_nothing_happens(bare):
    job = run_process([bare, "-S", "-c", "import sys; print('lockstep' in sys.modules)"], env={"OMPI_COMM_WORLD_SIZE": 2})
    assert (job.code, job.stdout.strip()) == (0, "False"), str(job)


def test_without_a_launcher_lockstep_is_not_even_imported(bare):
    job = run_process([bare, "-c", "import sys; print(sorted(n for n in sys.modules if n.startswith('lockstep')))"])
    assert job.stdout.strip() == "[]", str(job)


def test_the_start_file_names_what_the_pth_calls():
    module, _, function = (ROOT / "python/lockstep.start").read_text().strip().partition(":")
    assert f'__import__("{module}").start.{function}()' in (ROOT / "python/lockstep.pth").read_text()


def test_ranks_without_tensorflow_run_as_they_are(mpi, bare):
    job = run_ranks(mpi, 2, bare, ["-c", AWAKE], env=library(mpi))
    assert (job.code, job.stdout.split()) == (0, ["awake", "awake"]), str(job)


def test_a_rank_that_executes_another_program_stays_a_rank(bare):
    code = f"import os, sys; os.execv(sys.executable, [sys.executable, '-c', {AWAKE!r}])"
    job = run_ranks(Mpi("openmpi"), 2, bare, ["-c", code])
    assert (job.code, job.stdout.split()) == (0, ["awake", "awake"]), str(job)


def test_children_of_a_rank_are_no_ranks(mpi, full):
    job = run_ranks(mpi, 2, full, [HERE / "children.py"], env=library(mpi), timeout=TENSORFLOW_LIMIT)
    assert job.code == 0, str(job)
    for rank in range(2):
        assert f"parent: rank {rank} of 2" in job.stdout, str(job)
    for line, text in (("os.fork", "no rank"), ("fork", "no rank, awake"), ("spawn", "no rank, asleep"),
                       ("subprocess", "False"), ("sum", "[6.]")):
        assert len(re.findall(rf"^{line}: {re.escape(text)}$", job.stdout, re.MULTILINE)) == 2, str(job)


def test_one_rank_joins_when_told_to(mpi, full):
    job = run_process([full, "-c", JOIN], env={**library(mpi), "TF_MPI_ENABLE": "1"}, timeout=TENSORFLOW_LIMIT)
    assert (job.code, job.stdout.strip()) == (0, "joined 0 of 1"), str(job)


def test_switched_off_ranks_have_tensorflow_untouched(full):
    code = "import tensorflow as tf; print(hasattr(tf.GradientTape.gradient, '_lockstep'))"
    job = run_ranks(Mpi("openmpi"), 2, full, ["-c", code], env={"TF_MPI_ENABLE": "0"}, timeout=TENSORFLOW_LIMIT)
    assert (job.code, job.stdout.split()) == (0, ["False", "False"]), str(job)


def test_a_launcher_of_another_mpi_is_named(full):
    if not all(Mpi(name).folder.is_dir() for name in ("openmpi", "mpich")):
        pytest.skip("needs both MPIs")
    job = run_ranks(Mpi("mpich"), 2, full, ["-c", JOIN], env=library(Mpi("openmpi")), timeout=TENSORFLOW_LIMIT)
    assert job.code != 0, str(job)
    assert "the launcher started 2 ranks, but MPI sees 1" in job.stderr, str(job)
    assert "Traceback" not in job.stderr and "joined" not in job.stdout, str(job)


def test_a_missing_library_is_named(full, tmp_path):
    job = run_ranks(Mpi("openmpi"), 2, full, ["-c", JOIN], env={"LOCKSTEP_LIB": tmp_path}, timeout=TENSORFLOW_LIMIT)
    assert job.code != 0, str(job)
    assert f"lockstep: no liblockstep.so in {tmp_path}" in job.stderr, str(job)
    assert "Traceback" not in job.stderr and "joined" not in job.stdout, str(job)


@pytest.mark.parametrize("env, backend, seen", [
    ({"OMPI_COMM_WORLD_SIZE": 2}, "tensorflow", False),
    ({"OMPI_COMM_WORLD_SIZE": 2}, "another", True),
    ({"OMPI_COMM_WORLD_SIZE": 2, "TF_MPI_ENABLE": 0}, "tensorflow", True),
], ids=["rank", "without-tensorflow", "switched-off"])
def test_a_library_that_looks_for_a_launcher_sees_none(bare, tmp_path, env, backend, seen):
    """DeepXDE does, once its backend is imported."""
    package = tmp_path / "deepxde"
    package.mkdir()
    (package / "__init__.py").write_text(f"import sys; sys.modules[{backend!r}] = sys\nfrom . import config\n")
    (package / "config.py").write_text("import os; seen = 'OMPI_COMM_WORLD_SIZE' in os.environ\n")
    code = (f"import os, sys; sys.path.insert(0, {str(tmp_path)!r}); import deepxde; "
            "print(deepxde.config.seen, 'OMPI_COMM_WORLD_SIZE' in os.environ)")
    job = run_process([bare, "-c", code], env=env)
    assert (job.code, job.stdout.split()) == (0, [str(seen), "True"]), str(job)


def mpi_of(path):
    """The MPI library that a library was linked with."""
    found = re.search(r"libmpi\S*\.so\S* => (\S+)", subprocess.run(["ldd", path], text=True, capture_output=True).stdout)
    return found[1]


@pytest.mark.parametrize("name, order", [("openmpi", "first"), ("openmpi", "second"), ("mpich", "first")])
def test_a_script_may_use_mpi4py(full, packages, name, order):
    if not (packages / "mpi4py").is_dir():
        pytest.skip("mpi4py is not installed")
    mpi = Mpi(name)
    if not mpi.folder.is_dir():
        pytest.skip(f"the library is not built with {name}")
    # mpi4py takes the first MPI that it finds, which may be the other one of this machine.
    env = {**library(mpi), "MPI4PY_LIBMPI": mpi_of(mpi.folder / "lib/liblockstep.so")}
    job = run_ranks(mpi, 2, full, [HERE / "with_mpi4py.py", order], env=env, timeout=TENSORFLOW_LIMIT)
    assert job.code == 0, str(job)
    for rank in range(2):
        assert f"mpi4py {rank} of 2, sum 3, gradient 1.5\n" in job.stdout, str(job)
