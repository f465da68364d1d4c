# SPDX-License-Identifier: Apache-2.0
"""Which MPI the library runs with, and the launcher that belongs to it.

A launcher of another MPI starts n processes that each believe to be alone: the job would run, n times the same."""
import ctypes
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lockstep.launch.problem import Problem

# What an MPI or its launcher says of itself, and which of our two families of launchers it belongs to.
FAMILIES = ((r"Open ?MPI|OpenRTE|PRRTE", "openmpi"), (r"MPICH|HYDRA|MVAPICH|Intel\(R\) MPI|CRAY", "mpich"))
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}
LAUNCHERS = {"openmpi": ("mpirun.openmpi", "mpirun", "mpiexec"),
             "mpich": ("mpiexec.hydra", "mpiexec.mpich", "mpiexec", "mpirun")}
VERSION = re.compile(r"(\d+\.\d+(?:\.\d+)?)")
ASK_LIMIT_S = 20


@dataclass(frozen=True)
class Mpi:
    """family: openmpi or mpich; path: the file of libmpi."""

    family: str
    version: str
    path: str

    def __str__(self):
        return f"{NAMES[self.family]} {self.version}"


def family_of(text):
    for pattern, family in FAMILIES:
        if re.search(pattern, text, re.IGNORECASE):
            return family
    return None


def _version_of(text):
    match = VERSION.search(text)
    return match[1] if match else "of unknown version"


def load_library():
    """liblockstep, with the functions that tell about it; starts nothing."""
    from lockstep import native
    try:
        library = ctypes.CDLL(native.lib_path())
    except FileNotFoundError as error:
        raise Problem(str(error)) from None
    except OSError as error:
        raise Problem(f"liblockstep cannot be loaded ({error})",
                      "install the MPI it was built with, or build it again with pip install") from None
    for name in ("ls_version", "ls_mpi_version", "ls_mpi_path", "ls_last_error"):
        getattr(library, name).restype = ctypes.c_char_p
    return library


def own_version():
    """The version of the library: what has to be equal on all hosts."""
    return load_library().ls_version().decode()


def library_mpi():
    """The MPI that liblockstep is linked with."""
    library = load_library()
    text = library.ls_mpi_version().decode(errors="replace")
    if not text:
        raise Problem("this Lockstep was built without MPI", "install an MPI and build it again with pip install")
    family = family_of(text)
    if family is None:
        raise Problem(f"liblockstep runs with '{text}', whose launcher is not known",
                      "start the script with that MPI's mpirun instead of lockstep run")
    return Mpi(family, _version_of(text), library.ls_mpi_path().decode(errors="replace"))


def launcher_says(path):
    """What the launcher answers to --version; "" when it does not."""
    try:
        result = subprocess.run([str(path), "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace", timeout=ASK_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout


def _candidates(mpi):
    """Beside the library, beside this Python (MPICH from PyPI), and on the PATH."""
    folders = [Path(mpi.path).resolve().parent.parent / "bin", Path(sys.executable).parent]
    for name in LAUNCHERS[mpi.family]:
        for folder in folders:
            if os.access(folder / name, os.X_OK):
                yield folder / name
        found = shutil.which(name)
        if found:
            yield Path(found)


def _given_launcher(mpi, given):
    path = shutil.which(given)
    if path is None:
        raise Problem(f"there is no launcher '{given}'", "name the mpirun or mpiexec of your MPI")
    family = family_of(launcher_says(path))
    if family != mpi.family:
        raise Problem(f"two MPIs are mixed: liblockstep is linked with {mpi} ({mpi.path}), but {path} is of "
                      f"{NAMES.get(family, 'something else')}", f"name a launcher of {NAMES[mpi.family]}, or leave "
                      "--mpirun away")
    return path


def find_launcher(mpi, given=None):
    """The path of the launcher of this MPI; Problem when there is none, or only those of others."""
    if given:
        return _given_launcher(mpi, given)
    others = []
    for path in dict.fromkeys(_candidates(mpi)):
        family = family_of(launcher_says(path))
        if family == mpi.family:
            return str(path)
        if family is not None:
            others.append(f"{path} ({NAMES[family]})")
    if others:
        raise Problem(f"two MPIs are mixed: liblockstep is linked with {mpi} ({mpi.path}), but the launchers found are "
                      f"{', '.join(others)}",
                      f"put {NAMES[mpi.family]}'s first on the PATH, name it with --mpirun, or build Lockstep with the "
                      "other MPI")
    raise Problem(f"there is no launcher of {mpi}",
                  f"install it (Debian: {'openmpi-bin' if mpi.family == 'openmpi' else 'mpich'}), or name it with "
                  "--mpirun")
