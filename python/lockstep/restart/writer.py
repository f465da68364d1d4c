# SPDX-License-Identifier: Apache-2.0
"""Writes snapshots in the background, one at a time; on rank 0 only."""
import threading

from lockstep import world
from lockstep.restart import folder

_thread = None
_error = None  # of the last one


def is_busy():
    return _thread is not None and _thread.is_alive()


def write(state, name, contents):
    """Begins to write; training goes on.  Without a name it is the next snapshot."""
    global _thread
    wait()
    _thread = threading.Thread(target=_write, args=(state, name, contents), name="lockstep-snapshot")
    _thread.start()


def _write(state, name, contents):
    global _error
    try:
        with world.alone():  # the folder is no file of the script
            folder.write(state, name or folder.next_name(state, "snapshot"), contents.arrays())
            folder.remove_old(state)
        _error = None
    except Exception as error:  # whatever it was: nobody may believe that there is a snapshot
        _error = f"{type(error).__name__}: {error}"


def wait():
    """Waits until what was begun is on the disk."""
    if _thread is not None:
        _thread.join()


def take_error():
    """Why the last one that has ended was not written, once; None where it was."""
    global _error
    if is_busy():
        return None
    error, _error = _error, None
    return error
