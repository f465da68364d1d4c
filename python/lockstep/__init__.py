# SPDX-License-Identifier: Apache-2.0
"""Where the installed Lockstep library and its header are."""
from importlib.metadata import version as _version
from pathlib import Path

__version__ = _version("lockstep")

_FOLDER = Path(__file__).resolve().parent


def lib_path():
    """Path of liblockstep.so, for ctypes.CDLL or a linker."""
    found = sorted((_FOLDER / "lib").glob("liblockstep.so*"), key=lambda path: len(path.name))
    if not found:
        raise FileNotFoundError(f"no liblockstep.so in {_FOLDER / 'lib'}: was lockstep installed with pip?")
    return str(found[0])


def include_path():
    """Folder of lockstep.h."""
    return str(_FOLDER / "include")
