# SPDX-License-Identifier: Apache-2.0
"""Which files rank 0 has changed since the ranks met last, and how they were before.

Rank 0 writes a line before it first changes a path; a rank that is a little behind reads the list, and sees those paths
as they were.  Only plain files of the script are listed: what ranks write together (once.py) needs no list.

A rank that is a little ahead waits where TensorFlow reads files in C++, a "look": rank 0 writes a line when it has come to a
look, with all that it changed before.  Looks are counted, and the counts are made equal when ranks meet.

A line is hidden for SECONDS at most: ranks that have not met for longer do not depend on each other's files."""
import json
import os
import shutil
import stat
import time

from lockstep import world

SECONDS = 30.0
LARGEST_COPY = 16 << 20  # a file above this is changed without a copy of what it was

CHANGE, REWRITE, REMOVE = "change", "rewrite", "remove"  # how a file changes: in place, from nothing, or it goes

_stat, _lstat, _open, _write, _read, _close = os.stat, os.lstat, os.open, os.write, os.read, os.close

_folder = _file = None
_length = 0  # rank 0: of the list; others: what has been read
_passed = 0
_touched = set()
_before = {}
_look = 0  # the number of the last one here
_root_look = 0  # others: of the last one in the list


def attach(folder):
    """`folder` is for rank 0's list and copies, the same on all ranks; called on rank 0 before ranks meet."""
    global _folder, _file
    _folder, _file = folder, os.path.join(folder, "changes")
    if world.is_root():
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, mode=0o750)
        _close(_open(_file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640))


def position():
    """(length of the list, number of the last look) of rank 0, which the ranks share when they meet"""
    return (_length, _look) if world.is_root() else (0, 0)


def touch(path, how=CHANGE):
    """Rank 0 is about to change this path."""
    if _folder is None or path in _touched:
        return
    _touched.add(path)
    kind, copy = _state(path, how)
    try:
        _append([path, kind, copy, time.time()])
        if how == REWRITE and copy is not None and os.path.samefile(path, copy):
            _leave(path)
    except OSError:
        pass  # a full disk: the script's own write will say so


def _append(entry):
    global _length
    file = _open(_file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        _length += _write(file, json.dumps(entry).encode() + b"\n")
    finally:
        _close(file)


def look():
    """TensorFlow is about to read files in C++; returns the number of this look."""
    global _look
    _look += 1
    if world.is_root() and _folder is not None:
        try:
            _append([_look])
        except OSError:
            pass  # the others wait for as long as they do at most
    return _look


def has_root_come_to(number):
    """Rank 0 has changed everything that it had to before the look of this number; or its files are not seen here."""
    _read_list()
    return _root_look >= number or not os.path.exists(_file)


def _state(path, how):
    """(what it was, where that can still be read)"""
    try:
        status = _lstat(path)
    except OSError:
        return "none", None
    if stat.S_ISDIR(status.st_mode):
        return "folder", _folder
    if not stat.S_ISREG(status.st_mode):
        return "other", None
    copy = os.path.join(_folder, f"{len(_touched)}-{_length}")
    with world.alone():
        try:
            if how != CHANGE and status.st_nlink == 1 and status.st_uid == os.geteuid():
                os.link(path, copy)
                return "file", copy
        except OSError:
            pass  # another file system: copied
        try:
            if status.st_size <= LARGEST_COPY:
                shutil.copy2(path, copy)
                return "file", copy
        except OSError:
            pass
    return "file", None


def _leave(path):
    """Leaves the old file to those who read it: a new one takes its name, empty, with the same rights."""
    mode = stat.S_IMODE(_stat(path).st_mode)
    new = f"{path}.lockstep-{os.getpid()}"
    with world.alone():
        file = _open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            os.fchmod(file, mode)
        finally:
            _close(file)
        os.replace(new, path)


def all_met():
    """Rank 0: the others have come to where rank 0 is; what was before is of no use any more."""
    _touched.clear()
    if _folder is None:
        return
    with world.alone():
        for name in os.listdir(_folder):
            if name != os.path.basename(_file):
                os.remove(os.path.join(_folder, name))


def passed(length, number):
    """The ranks met when rank 0's list had this length, and this was its last look: what is in it up to there has happened
    for all."""
    global _passed, _look
    _passed, _look = max(_passed, length), number
    for path in [path for path, entry in _before.items() if entry[3] < _passed]:
        del _before[path]


def before(path):
    """(what it was, where that can be read), of a path that rank 0 has changed already; None of others."""
    if _file is None or world.is_root():
        return None
    _read_list()
    entry = _before.get(path)
    if entry is None:
        return None
    kind, copy, changed, _ = entry
    if time.time() - changed > SECONDS:
        del _before[path]
        return None
    return kind, copy


def _read_list():
    global _length, _root_look
    try:
        if _stat(_file).st_size <= _length:
            return
        file = _open(_file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return  # not a file system that rank 0 shares with this rank: its files are not seen here either
    try:
        os.lseek(file, _length, os.SEEK_SET)
        text = b"".join(iter(lambda: _read(file, 1 << 16), b""))
    finally:
        _close(file)
    for line in text[:text.rfind(b"\n") + 1].splitlines(keepends=True):
        entry = json.loads(line)
        if len(entry) == 1:
            _root_look = entry[0]
        elif _length >= _passed:
            path, kind, copy, changed = entry
            _before[path] = (kind, copy, changed, _length)
        _length += len(line)


def close():
    if world.is_root() and _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)
