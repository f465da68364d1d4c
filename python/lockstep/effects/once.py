# SPDX-License-Identifier: Apache-2.0
"""What one rank does for all: rank 0 acts, the others wait until it has, and all go on with the same outcome.

    rank 0   meet | act ............... | tell: done, this value
    rank 1   meet | wait  (busy) (busy) | hear: done, this value

All ranks meet first, so rank 0 does not overwrite what another still reads.  What went wrong on rank 0, a full disk, is
raised on every rank.  While rank 0 is at it it says so every second: a long save is no stall, a rank that is gone is.

Meetings of the main thread come in the same order on all ranks.  Those of other threads are told apart by the file's path."""
import builtins
import json
import os
import struct
import threading

import numpy as np

from lockstep import host, native, world
from lockstep.effects import journal, overlay

BLOCK = 4096
_HEAD = struct.Struct("<Iqq")  # bytes in this message from here on, or BUSY; rank 0's journal.position()
BUSY = 0xffffffff
BUSY_SECONDS = 1.0


_states = {}


def follow(name, get, put):
    """State of the process that rank 0's act may change, as names that a library has given out: where it does, put(value)
    is called with it on the other ranks.  get() returns text, numbers, or lists and dictionaries of them."""
    _states[name] = (get, put)


def once(what, act, path=""):
    """Rank 0's act(); returns its value everywhere, if it is text, numbers or a list of them, else None on other ranks.

    `what` says to the user what is waited for; the same on all ranks.  `path` is the file that rank 0 writes."""
    if world.size == 1:
        return act()
    path = os.path.abspath(os.fsdecode(path)) if path else ""
    name = _name(what, path)
    host.barrier(name + "/all here")
    if world.is_root():
        journal.all_met()
        return _act_for_all(name, act, path)
    answer = json.loads(_hear(name))
    if path:
        overlay.saved(path, answer["path"])
    for state, value in answer["states"].items():
        _states[state][1](value)
    if "error" in answer:
        raise _error(answer["error"])
    return answer.get("value")


def share(value, what):
    """Rank 0's value, which is text, a number, or a list of them."""
    if world.size == 1:
        return value
    name = _name(what, "")
    if world.is_root():
        _tell(name, json.dumps(value).encode())
        return value
    return json.loads(_hear(name))


def wait_for_readers(what):
    """All ranks have read a file in C++, where the list of changes (journal.py) cannot tell them what it was before: rank 0
    may go on and remove it.  Other threads than the main one are not at the same point on all ranks."""
    if world.size > 1 and threading.current_thread() is threading.main_thread():
        host.barrier(f"once/{what}")


def _name(what, key):
    if threading.current_thread() is threading.main_thread():
        return f"once/{what}"
    return f"once/{what}/{key}"


def _act_for_all(name, act, path):
    outcome, done = {"path": path, "states": {}}, threading.Event()
    before = {state: get() for state, (get, _) in _states.items()}
    ticker = threading.Thread(target=_say_busy, args=(name, done), daemon=True)
    ticker.start()
    try:
        with world.alone():
            value = act()
        outcome["value"] = value if _is_plain(value) else None
        return value
    except BaseException as error:
        outcome["error"] = _describe(error)
        raise
    finally:
        done.set()
        ticker.join()
        for state, (get, _) in _states.items():
            if get() != before[state]:
                outcome["states"][state] = get()
        _tell(name, json.dumps(outcome).encode())


def _say_busy(name, done):
    try:
        while not done.wait(BUSY_SECONDS):
            _exchange(_block(BUSY, b""), name)
    except native.LockstepError:
        pass  # the job is lost, which the last message will find too


def _exchange(block, name):
    """Rank 0's block; always of the same size, so that the ranks agree on it once."""
    return host.broadcast(np.frombuffer(block, np.uint8), name).tobytes()


def _block(length, content):
    return (_HEAD.pack(length, *journal.position()) + content).ljust(BLOCK, b"\0")


def _tell(name, text):
    room = BLOCK - _HEAD.size
    for start in range(0, max(len(text), 1), room):
        _exchange(_block(len(text) - start, text[start:start + room]), name)


def _hear(name):
    parts, room, empty = [], BLOCK - _HEAD.size, bytes(BLOCK)
    while True:
        block = _exchange(empty, name)
        length, *position = _HEAD.unpack_from(block)
        if length == BUSY:
            continue
        parts.append(block[_HEAD.size:_HEAD.size + min(length, room)])
        if length <= room:
            journal.passed(*position)
            overlay.met()
            return b"".join(parts)


# ---- values and errors ---------------------------------------------------------------------------------------

def _is_plain(value):
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _describe(error):
    kind = type(error)
    return {"module": kind.__module__, "type": kind.__qualname__, "errno": getattr(error, "errno", None),
            "message": str(getattr(error, "strerror", None) or getattr(error, "message", None) or error),
            "file": str(getattr(error, "filename", None) or "")}


def _error(described):
    """The error of rank 0, of the same class where it is one of Python's or TensorFlow's."""
    name, message = described["type"], described["message"]
    kind = getattr(builtins, name, None) if described["module"] == "builtins" else None
    if described["errno"] is not None and isinstance(kind, type) and issubclass(kind, OSError):
        return OSError(described["errno"], message, described["file"] or None)
    if isinstance(kind, type) and issubclass(kind, BaseException):
        try:
            return kind(message)
        except TypeError:
            return RuntimeError(f"{name}: {message}")
    if described["module"].startswith("tensorflow."):
        import tensorflow as tf
        kind = getattr(tf.errors, name, None)
        if kind is not None:
            return kind(None, None, message)
    return RuntimeError(f"{name}: {message}")
