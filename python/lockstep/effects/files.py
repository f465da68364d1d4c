# SPDX-License-Identifier: Apache-2.0
"""Plain files of the script: open, os, shutil, pathlib, tempfile, h5py.

Rank 0 works on the real files, and lists what it changes (journal.py).  The others have an overlay (overlay.py).

Seams: names in builtins, io, os, shutil and tempfile, where pathlib, numpy, zipfile, pandas and others look them up when
they are called.  Modules that took such a name before TensorFlow was imported (tarfile, bz2, numpy's savetxt, a script with `from os
import mkdir`) are given the new function.  What a library writes in C by itself (cv2.imwrite) is not seen; databases are in
databases.py."""
import builtins
import glob
import os
import shutil
import socket
import sys
import tempfile
import weakref

from lockstep import hooks, host, native, world
from lockstep.effects import journal, listing, overlay
from lockstep.effects.once import share

PREFIX = ".lockstep-files-"


def attach(log_folder):
    """`log_folder` is LOCKSTEP_LOG_DIR; "-" for none."""
    if world.size == 1:
        return
    from lockstep.effects import tf_files  # which lists rank 0's changes here
    folder = _make_folder(log_folder)
    listing.hidden.update((folder, log_folder))
    listing.attach()
    _attach_h5py()
    journal.attach(os.path.join(folder, "rank-0"))
    host.barrier("list of changes")
    if world.is_root():
        _attach_root()
        tf_files.attach_root()
    else:
        overlay.attach(os.path.join(folder, f"rank-{world.rank}"))
        _attach_temporary()
        _attach_open()
        _attach_reading()
        _attach_changes()
        tf_files.attach()
    hooks.hand_on((builtins, os, shutil, tempfile))
    native.after_stop(_remove_folder, folder)


def _make_folder(log_folder):
    """The folder for the list of changes and the other ranks' files: one per job, on the file system the script works on.
    Rank 0 chooses the name; a host that cannot write there has one of its own."""
    if world.is_root():
        _remove_abandoned(log_folder)
    name = share(f"{PREFIX}{socket.gethostname()}-{os.getpid()}", "name of files folder")
    for parent in ([] if log_folder == "-" else [log_folder]) + [os.getcwd(), tempfile.gettempdir()]:
        folder = os.path.join(parent, name)
        try:
            os.makedirs(folder, mode=0o750, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
        except OSError:
            continue
    raise native.LockstepError("no folder for files: the working directory and the temporary one cannot be written")


def _remove_abandoned(log_folder):
    """What a job that was killed left here."""
    for path in glob.glob(os.path.join("." if log_folder == "-" else log_folder, f"{PREFIX}{socket.gethostname()}-*")):
        pid = path.rpartition("-")[2]
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(path, ignore_errors=True)


def _remove_folder(folder):
    journal.close()
    overlay.close()
    try:
        os.rmdir(folder)  # by the last rank
    except OSError:
        pass


def _is_writing(mode):
    return isinstance(mode, str) and any(letter in mode for letter in "wax+")


# ---- rank 0 --------------------------------------------------------------------------------------------------

def touch(path, how=journal.CHANGE):
    """Rank 0 is about to change this."""
    if isinstance(path, int) or path is None:
        return
    path = os.path.abspath(os.fsdecode(path))
    if not path.startswith(("/dev/", "/proc/", "/sys/")) and os.path.dirname(path) not in listing.hidden and "://" not in path:
        journal.touch(overlay.in_real_folder(path), how)


def touch_folders(path):
    """Rank 0 is about to make this folder, and those above it that are missing."""
    path = os.path.abspath(os.fsdecode(path))
    while "://" not in path and not os.path.exists(path):
        touch(path)
        path = os.path.dirname(path)


def _attach_root():
    def hooked_open(original, file, mode="r", *args, **kwargs):
        if _is_writing(mode):
            touch(file, journal.REWRITE if "w" in mode else journal.CHANGE)
        return original(file, mode, *args, **kwargs)

    hooks.wrap(builtins, "open")(hooked_open)

    @hooks.wrap(os, "open")
    def os_open(original, path, flags, *args, **kwargs):
        if flags & (os.O_WRONLY | os.O_RDWR) and kwargs.get("dir_fd") is None:
            touch(path, journal.REWRITE if flags & os.O_TRUNC else journal.CHANGE)
        return original(path, flags, *args, **kwargs)

    @hooks.wrap(os, "mkdir")
    def mkdir(original, path, *args, **kwargs):
        if kwargs.get("dir_fd") is None:
            touch(path)
        return original(path, *args, **kwargs)

    def removing(original, path, *args, **kwargs):
        if kwargs.get("dir_fd") is None:
            touch(path, journal.REMOVE)
        return original(path, *args, **kwargs)

    for owner, name in ((os, "remove"), (os, "unlink"), (os, "rmdir"), (shutil, "rmtree")):
        hooks.wrap(owner, name)(removing)

    def moving(original, source, target, *args, **kwargs):
        touch(source, journal.REMOVE)
        touch(target)
        return original(source, target, *args, **kwargs)

    for name in ("rename", "replace"):
        hooks.wrap(os, name)(moving)

    @hooks.wrap(os, "symlink")
    def symlink(original, source, target, *args, **kwargs):
        if kwargs.get("dir_fd") is None:
            touch(target)
        return original(source, target, *args, **kwargs)


# ---- other ranks ---------------------------------------------------------------------------------------------

def _attach_temporary():
    """Temporary files have names of their own on each rank: they are real."""
    @hooks.wrap(tempfile, "mkdtemp")
    def mkdtemp(original, suffix=None, prefix=None, dir=None):
        dir = dir if dir is None else _place_of_temporary(dir)
        with world.alone():
            path = original(suffix, prefix, dir)
        overlay.add_private(path)
        return path

    @hooks.wrap(tempfile, "_mkstemp_inner")
    def mkstemp(original, dir, *args):
        dir = _place_of_temporary(dir)
        with world.alone():
            file, path = original(dir, *args)
        overlay.add_private(path)
        return file, path


def _place_of_temporary(folder):
    """The usual folder for them, or this rank's own where the script wants them beside its files, to give them a name later."""
    if os.path.abspath(os.fsdecode(folder)) == os.path.abspath(tempfile.gettempdir()):
        return folder
    if not os.path.isdir(folder):
        return folder  # an error, as in one process
    where = overlay.for_private(folder)
    return os.fsencode(where) if isinstance(folder, bytes) else where


def _attach_open():
    def hooked_open(original, file, mode="r", *args, **kwargs):
        if isinstance(file, int) or not isinstance(file, (str, bytes, os.PathLike)):
            return original(file, mode, *args, **kwargs)
        if not _is_writing(mode):
            return _read(file, lambda where: original(where, mode, *args, **kwargs))
        where = overlay.to_write(file, keeps="a" in mode or "r" in mode, creates="r" not in mode, is_new="x" in mode)
        opened = original(where, mode.replace("x", "w"), *args, **kwargs)
        if where is not file:
            overlay.note_open(file, weakref.ref(opened))
        return opened

    hooks.wrap(builtins, "open")(hooked_open)

    @hooks.wrap(os, "open")
    def os_open(original, path, flags, mode=0o777, *, dir_fd=None):
        if dir_fd is not None:
            return original(path, flags, mode, dir_fd=dir_fd)
        if not flags & (os.O_WRONLY | os.O_RDWR):
            return _read(path, lambda where: original(where, flags, mode), os.close)
        where = overlay.to_write(path, keeps=not flags & os.O_TRUNC, creates=bool(flags & os.O_CREAT),
                                 is_new=bool(flags & os.O_EXCL))
        return original(where, flags & ~os.O_EXCL if where is not path else flags, mode)


def _read(path, act, close=lambda result: getattr(result, "close", bool)()):
    """act(where the path is to be read).  Rank 0 may change it in the same moment: then once more."""
    where = overlay.to_read(path)
    try:
        result = act(where)
    except FileNotFoundError:
        again = overlay.to_read(path)
        if again == where:
            raise
        return act(again)
    try:
        again = overlay.to_read(path)
    except FileNotFoundError:
        close(result)
        raise
    if again == where:
        return result
    close(result)
    return act(again)


def _attach_reading():
    def reading(original, path, *args, **kwargs):
        if isinstance(path, int) or kwargs.get("dir_fd") is not None:
            return original(path, *args, **kwargs)
        return _read(path, lambda where: original(where, *args, **kwargs))

    for name in ("stat", "lstat", "listxattr", "getxattr"):
        if hasattr(os, name):
            hooks.wrap(os, name)(reading)

    @hooks.wrap(os, "readlink")
    def readlink(original, path, **kwargs):
        says = overlay.link_at(path) if kwargs.get("dir_fd") is None else None
        return reading(original, path, **kwargs) if says is None else says

    @hooks.wrap(os, "access")
    def access(original, path, mode, **kwargs):
        try:
            return reading(original, path, mode, **kwargs)
        except FileNotFoundError:
            return False

    @hooks.wrap(os, "chdir")
    def chdir(original, path):
        name = None if isinstance(path, int) else overlay.full(path)
        if name is not None and overlay.is_folder(name):
            overlay._wait(lambda: overlay._is_there(name))  # rank 0 is about to make it
        return original(path)


def _attach_changes():
    @hooks.wrap(os, "mkdir")
    def mkdir(original, path, mode=0o777, *, dir_fd=None):
        if dir_fd is not None:
            return original(path, mode, dir_fd=dir_fd)
        return overlay.make_folder(path)

    def removing(original, path, *args, **kwargs):
        if kwargs.get("dir_fd") is not None or not overlay.remove(path):
            return original(path, *args, **kwargs)
        return None

    for name in ("remove", "unlink", "rmdir"):
        hooks.wrap(os, name)(removing)

    @hooks.wrap(shutil, "rmtree")
    def rmtree(original, path, ignore_errors=False, *args, **kwargs):
        try:
            if not overlay.remove(path, is_tree=True):
                original(path, ignore_errors, *args, **kwargs)
        except FileNotFoundError:
            if not ignore_errors and not any(args) and not any(kwargs.values()):
                raise

    def moving(original, source, target, *args, **kwargs):
        if not overlay.rename(source, target):
            original(source, target, *args, **kwargs)

    for name in ("rename", "replace"):
        hooks.wrap(os, name)(moving)

    def changing(original, path, *args, **kwargs):
        if isinstance(path, int):
            return original(path, *args, **kwargs)
        where = overlay.full(path)
        if where is None:
            return original(path, *args, **kwargs)
        if overlay.is_own(where):
            return original(overlay.shadow(where), *args, **kwargs)
        return None  # rank 0 changes the mode or the time of a real file

    for name in ("chmod", "utime", "chown", "setxattr"):
        if hasattr(os, name):
            hooks.wrap(os, name)(changing)

    @hooks.wrap(os, "truncate")
    def truncate(original, path, length):
        return original(path if isinstance(path, int) else overlay.to_write(path, keeps=True, creates=False), length)

    @hooks.wrap(os, "symlink")
    def symlink(original, source, target, *args, **kwargs):
        if kwargs.get("dir_fd") is not None or not overlay.make_link(source, target):
            original(source, target, *args, **kwargs)


def _attach_h5py():
    """HDF5 locks what it writes: the same file opened by two ranks is an error."""
    def hook(h5py):
        @hooks.wrap(h5py.File, "__init__")
        def init(original, self, name, mode="r", *args, **kwargs):
            if isinstance(name, (str, bytes, os.PathLike)) and kwargs.get("driver") not in ("core", "fileobj"):
                if world.is_root():
                    if mode != "r":
                        touch(name, journal.REWRITE if mode == "w" else journal.CHANGE)
                elif mode == "r":
                    name = overlay.to_read(name)
                else:
                    name = overlay.to_write(name, keeps=mode in ("a", "r+"), creates=mode != "r+", is_new=mode in ("x", "w-"))
            return original(self, name, mode, *args, **kwargs)

    after_import("h5py", hook)


def after_import(name, function):
    """function(module) now if it is imported already, or else at the end of its import."""
    if name in sys.modules:
        function(sys.modules[name])
        return
    from lockstep import start
    start.after_import(name, function)
