# SPDX-License-Identifier: Apache-2.0
"""The folder of a job's snapshots.  Only rank 0 and `lockstep run` look into it; the C library writes, checks and maps.

  job.json               the seed of the job: a start that goes on draws the same numbers as the first
  snapshot-000017.*      in the middle of a fit(); the newest two are kept
  fit-000002.*           at the end of the second fit(); kept until the job has ended
  error.json             which error of the script ended the last start, and where
  lost.json              which rank was lost, in the words of one that saw it
  stop                   made by `lockstep run`: write a snapshot and end"""
import ctypes
import json
import os
import re
from pathlib import Path

from lockstep import native

KEPT = 2
NAME = re.compile(r"(snapshot|fit)-(\d{6,})\.manifest")
JOB, ERROR, LOST, STOP = "job.json", "error.json", "lost.json", "stop"


class _Part(ctypes.Structure):
    """ls_state_part_t"""
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_uint64)]


def _library():
    library = native._library()
    library.ls_state_part.restype = ctypes.c_void_p
    library.ls_state_part.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.POINTER(ctypes.c_uint64)]
    library.ls_state_num_parts.argtypes = library.ls_state_close.argtypes = [ctypes.c_void_p]
    return library


def make(folder):
    """Makes the folder, for its owner only, and clears away what a killed writer has left."""
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in Path(folder).glob("*.part"):
        path.unlink(missing_ok=True)


def write(folder, name, arrays):
    """Writes the arrays of bytes as one snapshot.  The library works without Python's lock."""
    parts = (_Part * len(arrays))(*[_Part(array.ctypes.data if array.nbytes else None, array.nbytes) for array in arrays])
    library = _library()
    if library.ls_state_write(os.fsencode(folder), name.encode(), parts, ctypes.c_uint(len(arrays))) != 0:
        raise native.LockstepError(library.ls_last_error().decode(errors="replace"))


class Snapshot:
    """An open one: `meta`, and part(i), which is memory of the file."""

    def __init__(self, folder, name):
        self.name, self._library, self._state = name, _library(), ctypes.c_void_p()
        if self._library.ls_state_open(os.fsencode(folder), name.encode(), ctypes.byref(self._state)) != 0:
            raise native.LockstepError(self._library.ls_last_error().decode(errors="replace"))
        try:
            self.meta = json.loads(self.part(0).decode())
            if not isinstance(self.meta, dict) or self.meta.get("version") != 1:
                raise ValueError("another version")
        except (ValueError, IndexError) as error:
            self.close()
            raise native.LockstepError(f"{folder}/{name}: it is no snapshot of this version ({error})") from None

    def part(self, index):
        size = ctypes.c_uint64()
        address = self._library.ls_state_part(self._state, index, ctypes.byref(size))
        if index >= self._library.ls_state_num_parts(self._state):
            raise IndexError(f"there is no part {index}")
        return ctypes.string_at(address, size.value)

    def close(self):
        self._library.ls_state_close(self._state)
        self._state = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def names(folder, kind):
    """Of all that have a manifest, oldest first."""
    found = [match for path in Path(folder).glob("*.manifest") if (match := NAME.fullmatch(path.name)) and match[1] == kind]
    return [match[0].removesuffix(".manifest") for match in sorted(found, key=lambda match: int(match[2]))]


def next_name(folder, kind):
    last = names(folder, kind)
    return f"{kind}-{int(last[-1].rpartition('-')[2]) + 1 if last else 1:06}"


def newest(folder, report=lambda text: None):
    """The newest whole snapshot of the middle of a fit, opened; None when there is none.  report(text) hears of damaged ones."""
    for name in reversed(names(folder, "snapshot")):
        try:
            return Snapshot(folder, name)
        except native.LockstepError as error:
            report(str(error))
    return None


def end_of_fit(folder, number, report=lambda text: None):
    """The snapshot of the end of a fit(); None when there is none that is whole."""
    name = f"fit-{number:06}"
    if name not in names(folder, "fit"):
        return None
    try:
        return Snapshot(folder, name)
    except native.LockstepError as error:
        report(str(error))
        return None


def remove_old(folder):
    for name in names(folder, "snapshot")[:-KEPT]:
        remove(folder, name)


def remove(folder, name):
    _library().ls_state_remove(os.fsencode(folder), name.encode())


def clear(folder):
    """The job has ended well: the next start begins anew."""
    for kind in ("snapshot", "fit"):
        for name in names(folder, kind):
            remove(folder, name)
    for name in (JOB, ERROR, LOST, STOP):
        (Path(folder) / name).unlink(missing_ok=True)


# ---- small files ---------------------------------------------------------------------------------------------

def put_text(folder, name, value):
    """Writes a value as JSON, whole or not at all."""
    unfinished = Path(folder) / f"{name}.{os.getpid()}.part"
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, Path(folder) / name)


def get_text(folder, name):
    """The value; None when there is none."""
    try:
        return json.loads((Path(folder) / name).read_text())
    except (OSError, ValueError):
        return None
