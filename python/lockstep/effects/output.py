# SPDX-License-Identifier: Apache-2.0
"""Rank 0 prints.  What the others print, log and warn goes to one file each in LOCKSTEP_LOG_DIR; the engine's lines, and
the error that ends a rank, still come to the terminal.

Of ranks that end with an error the first shows its traceback: it is the one that can make a file.  The others' go to
their log files, since most often they say only that a rank is gone."""
import fcntl
import os
import socket
import sys
import tempfile
import traceback

from lockstep import host, native, world
from lockstep.slices import hints

FIRST_DESCRIPTOR = 200  # out of the way of scripts that close or expect low numbers
_terminal = 2
_folder = "-"


def attach():
    """Returns LOCKSTEP_LOG_DIR as a full path, or "-": the script may go to another folder."""
    global _folder, _terminal
    folder = native.setting("LOG_DIR")
    if world.size == 1 or folder == "-":
        return "-"
    _folder = _make(os.path.abspath(folder))
    if world.is_root():
        _remove_old()
    else:
        _terminal = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
        native.log_to(_terminal)
        _redirect(_log_path())
    host.barrier("log files")  # the marks of an earlier job are gone
    sys.excepthook = _end_with_error
    return _folder


def _make(folder):
    try:
        os.makedirs(folder, mode=0o750, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
        problem = "not writable"
    except OSError as error:
        problem = error.strerror
    instead = tempfile.mkdtemp(prefix="lockstep-logs-")
    sys.stderr.write(f"lockstep rank {world.rank}: warn: LOCKSTEP_LOG_DIR={folder}: {problem}; using {instead}\n")
    return instead


def _log_path():
    return os.path.join(_folder, f"rank-{world.rank}.log")


def _mark_path():
    return os.path.join(_folder, "first-error.log")


def _remove_old():
    for path in (_mark_path(), _log_path()):
        try:
            os.remove(path)
        except FileNotFoundError:
            pass


def _redirect(path):
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o640)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def _end_with_error(kind, error, trace):
    if not world.on():
        sys.__excepthook__(kind, error, trace)
        return
    text = "".join(traceback.format_exception(kind, error, trace)) + hints.of_error(error)
    with world.alone():
        if _is_first(text):
            _write(_terminal, f"lockstep: rank {world.rank} on {socket.gethostname()} ended with this error; the job ends.\n"
                   + text)
        if not world.is_root():
            _write(2, text)
        elif kind is not KeyboardInterrupt:
            _append(_log_path(), text)


def _is_first(text):
    """The mark holds the traceback too, for those who come later."""
    try:
        mark = os.open(_mark_path(), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
    except FileExistsError:
        return False
    except OSError:
        return True  # a full disk, a folder that is gone: better twice than never
    _write(mark, f"rank {world.rank}\n{text}")
    os.close(mark)
    return True


def _append(path, text):
    try:
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
    except OSError:
        return
    _write(log, text)
    os.close(log)


def _write(descriptor, text):
    """In one piece, where it fits a pipe: lines of ranks do not mix."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    content = text.encode(errors="replace")
    while content:
        try:
            content = content[os.write(descriptor, content):]
        except OSError:
            return
