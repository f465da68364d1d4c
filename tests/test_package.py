# SPDX-License-Identifier: Apache-2.0
"""`pip install .` in an empty environment gives one wheel with the library and the header."""
import os
import shutil
import subprocess
import venv
import zipfile

import pytest
from jobs import ROOT

PROGRAM = r"""
#include <stdio.h>
#include "lockstep.h"
int main(void) { puts(ls_version()); return 0; }
"""


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, **options)
    assert result.returncode == 0, result.stdout
    return result.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of the checkout: nothing that was built here may help."""
    folder = tmp_path_factory.mktemp("source") / "lockstep"
    ignored = shutil.ignore_patterns("build", ".venv", ".git", "__pycache__", "dist")
    return shutil.copytree(ROOT, folder, ignore=ignored)


@pytest.fixture(scope="module")
def wheel(python, source, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(python, "-m", "pip", "wheel", "--no-deps", "-w", folder, source)
    wheels = list(folder.glob("*.whl"))
    assert len(wheels) == 1
    run(python, "-m", "pip", "install", wheels[0])
    return wheels[0]


@pytest.mark.long
def test_the_wheel_holds_each_library_once_and_the_header(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert sorted(name for name in names if ".so" in name) == ["lockstep/lib/liblockstep.so",
                                                               "lockstep/lib/liblockstep_tf.so"]
    assert {"lockstep/include/lockstep.h", "lockstep/include/lockstep_data.h", "lockstep/include/lockstep_state.h"} <= set(names)
    assert {"lockstep/data/read.py", "lockstep/data/families/mnist.py"} <= set(names)
    assert {"lockstep/bin/bench_collectives", "lockstep/bench/train/run.py", "lockstep/bench/train/peer.py",
            "lockstep/bench/train/peer_horovod.py", "lockstep/bench/read/run.py"} <= set(names)
    assert {"lockstep.pth", "lockstep.start"} <= set(names)
    assert any(name.endswith("/share/man/man1/lockstep.1") for name in names)
    assert not any(name.startswith(("src/", "tests/", "lockstep.pc")) for name in names)


def test_python_knows_the_counters_of_the_header():
    import re
    import sys
    sys.path.insert(0, str(ROOT / "python"))
    from lockstep.native import COUNTERS
    listed = (ROOT / "include" / "lockstep.h").read_text().split("#define LS_COUNTER_LIST(X)")[1].split("typedef")[0]
    assert tuple(re.findall(r"X\((\w+),", listed)) == COUNTERS


@pytest.mark.long
def test_a_program_builds_and_runs_against_the_installed_package(wheel, python, tmp_path):
    code = "import lockstep; print(lockstep.lib_path()); print(lockstep.include_path()); print(lockstep.__version__)"
    library, include, version = run(python, "-c", code, cwd=tmp_path).split()
    (tmp_path / "program.c").write_text(PROGRAM)
    run("cc", tmp_path / "program.c", "-I", include, library, f"-Wl,-rpath,{os.path.dirname(library)}", "-o",
        tmp_path / "program")
    assert run(tmp_path / "program").strip() == version


@pytest.mark.long
def test_the_library_loads_from_python_without_a_launcher(wheel, python, tmp_path):
    code = ("import ctypes, lockstep; lib = ctypes.CDLL(lockstep.lib_path()); "
            "lib.ls_version.restype = ctypes.c_char_p; print(lib.ls_version().decode() == lockstep.__version__)")
    assert run(python, "-c", code, cwd=tmp_path).strip() == "True"


@pytest.mark.long
def test_the_operators_find_their_engine_and_say_that_tensorflow_is_missing(wheel, python, tmp_path):
    code = ("import ctypes, lockstep.native as native; lib = ctypes.CDLL(native.ops_path()); "
            "lib.lockstep_tf_problem.restype = ctypes.c_char_p; print(lib.lockstep_tf_problem().decode())")
    assert "import tensorflow first" in run(python, "-c", code, cwd=tmp_path)


def bench_folder(python):
    site, = python.parent.parent.glob("lib/python3*/site-packages")
    return site / "lockstep" / "bench"


@pytest.mark.long
def test_the_command_is_installed_and_starts_ranks_from_any_directory(wheel, python, tmp_path):
    command = python.parent / "lockstep"
    script = tmp_path / "a folder" / "my script.py"
    script.parent.mkdir()
    script.write_text("import lockstep\nprint(lockstep.rank(), lockstep.size())\n")
    for cwd, path in ((script.parent, script.name), (tmp_path, "a folder/my script.py"), ("/", script)):
        assert run(command, "run", "-n", "2", "--oversubscribe", path, cwd=cwd).strip() == "0 2"
    for what in ("allreduce", "broadcast", "allgather"):
        assert "# OK" in run(command, "bench", what, "-n", "2", "--oversubscribe", "--to", "64", "--iterations", "5", cwd=tmp_path)
    assert "--ways" in run(python, bench_folder(python) / "train" / "run.py", "--help")
    assert "launcher" in run(command, "info", cwd=tmp_path)


@pytest.mark.long
def test_an_installed_lockstep_wakes_in_a_rank(wheel, python, tmp_path):
    code = "import sys; print(any(getattr(finder, 'is_of_rank', False) for finder in sys.meta_path))"
    assert run(python, "-c", code, cwd=tmp_path).strip() == "False"
    assert run(python, "-c", code, cwd=tmp_path, env={"OMPI_COMM_WORLD_SIZE": "2"}).strip() == "True"


def files_of(folder):
    """All files of an environment, without what Python compiled while it ran."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*")
                  if not path.is_dir() and "__pycache__" not in path.parts)


@pytest.mark.long
def test_uninstalling_leaves_nothing(wheel, tmp_path):
    folder = tmp_path / "venv"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    site, = folder.glob("lib/python3*/site-packages")
    before = files_of(folder)
    run(python, "-m", "pip", "install", "--no-index", wheel)
    for path in (site / "lockstep.pth", site / "lockstep.start", folder / "bin/lockstep", folder / "share/man/man1/lockstep.1"):
        assert path.is_file(), f"{path} was not installed"
    run(python, "-c", "import lockstep.start", cwd=tmp_path)
    run(python, "-m", "pip", "uninstall", "-y", "lockstep")
    assert files_of(folder) == before
    assert not (site / "lockstep").exists()
