# SPDX-License-Identifier: Apache-2.0
"""lockstep info: what was built and found, and the settings with where they come from."""
import os
import subprocess
import sys

import pytest
from commands import environment, lockstep

NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}


def test_it_names_the_mpi_of_the_library_and_its_launcher(mpi):
    result = lockstep(mpi, "info")
    assert result.code == 0, str(result)
    facts = dict(line.split(maxsplit=1) for line in result.out.split("\n\n")[0].splitlines())
    assert facts["MPI"].startswith(NAMES[mpi.name])
    assert facts["library"].startswith(str(mpi.folder))
    assert "mpi" in facts["launcher"]


def test_it_says_where_a_setting_comes_from(mpi):
    result = lockstep(mpi, "info", "--settings", env={"LOCKSTEP_SPIN_US": 7})
    assert "| LOCKSTEP_SPIN_US | 7 | environment |" in result.out
    assert "| LOCKSTEP_SHM | on | default |" in result.out
    assert "MPI " not in result.out


def test_choices_follow_the_setting(mpi):
    assert "ring" in lockstep(mpi, "info", "--choices", env={"LOCKSTEP_ALGO": "allreduce:0-inf:ring"}).out.splitlines()[1]


def test_a_bad_setting_is_one_sentence(mpi):
    result = lockstep(mpi, "info", env={"LOCKSTEP_SPIN_US": "soon"})
    assert result.code == 2
    assert "LOCKSTEP_SPIN_US is 'soon'" in result.err


def test_a_library_that_is_not_there_is_one_sentence(mpi, tmp_path):
    result = lockstep(mpi, "info", env={"LOCKSTEP_LIB": tmp_path})
    assert result.code == 2
    assert "no liblockstep.so" in result.err and "Traceback" not in result.err


def test_a_library_whose_mpi_is_missing_is_one_sentence(mpi, tmp_path):
    (tmp_path / "liblockstep.so").write_bytes(b"not a library")
    result = lockstep(mpi, "info", env={"LOCKSTEP_LIB": tmp_path})
    assert result.code == 2
    assert "liblockstep cannot be loaded" in result.err and "install the MPI" in result.err


@pytest.mark.parametrize("words, code, text", [
    ([], 2, "commands"), (["--help"], 0, "commands"), (["nothing"], 2, "there is no command 'nothing'"),
    (["--version"], 0, "lockstep 0."), (["run", "--help"], 0, "examples:"), (["doctor", "--help"], 0, "examples:"),
])
def test_the_command_by_itself(mpi, words, code, text):
    result = lockstep(mpi, *words)
    assert result.code == code
    assert text in result.out + result.err


def test_no_command_imports_tensorflow(mpi):
    code = ("import sys, importlib, lockstep.cli as cli\n"
            "[importlib.import_module(module) for module, _ in cli.COMMANDS.values()]\n"
            "assert not {'tensorflow', 'numpy', 'matplotlib'} & set(sys.modules)")
    subprocess.run([sys.executable, "-c", code], env=environment(mpi), check=True)


def test_who_stops_reading_is_no_error(mpi):
    """As in `lockstep info | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run([sys.executable, "-m", "lockstep", "info"], env=environment(mpi), stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writing)
    assert (result.returncode, result.stderr) == (141, "")
