# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's file functions: tf.io.gfile and all of TensorFlow's Python code go through one module in C++, which is the
seam.  What its operators write by themselves is in records.py."""
import functools
import os
import shutil

from tensorflow.python.framework import errors
from tensorflow.python.lib.io import _pywrap_file_io as low

from lockstep import hooks
from lockstep.effects import files, journal, overlay


def attach_root():
    @hooks.wrap(low, "WritableFile")
    def writing(original, path, mode, *args):
        files.touch(path, journal.REWRITE if "w" in os.fsdecode(mode) else journal.CHANGE)
        return original(path, mode, *args)

    @hooks.wrap(low, "CreateDir")
    def making_one(original, path, *args, **kwargs):
        files.touch(path)
        return original(path, *args, **kwargs)

    @hooks.wrap(low, "RecursivelyCreateDir")
    def making(original, path, *args, **kwargs):
        files.touch_folders(path)
        return original(path, *args, **kwargs)

    def removing(original, path, *args, **kwargs):
        files.touch(path, journal.REMOVE)
        return original(path, *args, **kwargs)

    for name in ("DeleteFile", "DeleteRecursively"):
        hooks.wrap(low, name)(removing)

    def moving(original, source, target, *args, **kwargs):
        files.touch(source, journal.REMOVE if original.__name__ == "RenameFile" else journal.CHANGE)
        files.touch(target)
        return original(source, target, *args, **kwargs)

    for name in ("RenameFile", "CopyFile"):
        hooks.wrap(low, name)(moving)


def attach():
    def local(path):
        text = os.fsdecode(path)
        return None if "://" in text else text

    def reading(original, path, *args, **kwargs):
        if local(path) is None:
            return original(path, *args, **kwargs)
        return original(_like(path, or_itself(local(path))), *args, **kwargs)

    for name in ("FileExists", "IsDirectory", "Stat", "BufferedInputStream"):
        if hasattr(low, name):
            hooks.wrap(low, name)(reading)

    @hooks.wrap(low, "WritableFile")
    def writable(original, path, mode, *args):
        if local(path) is None:
            return original(path, mode, *args)
        mode_text = os.fsdecode(mode)
        where = overlay.to_write(local(path), keeps="a" in mode_text or "r" in mode_text)
        return original(_like(path, where), mode, *args)

    @hooks.wrap(low, "GetChildren")
    def children(original, path, *args):
        if local(path) is None:
            return original(path, *args)
        return sorted(os.listdir(local(path))) if overlay.exists(overlay.full(local(path)) or local(path)) else original(path, *args)

    @hooks.wrap(low, "GetMatchingFiles")
    def matching(original, pattern, *args):
        if local(pattern) is None:
            return original(pattern, *args)
        text = overlay.as_saved(local(pattern))
        real = [path for path in original(_like(pattern, text), *args) if overlay.exists(overlay.full(path) or os.fsdecode(path))]
        own = overlay.own_matches(os.path.abspath(text))
        prefix = "" if text.startswith("/") else os.path.abspath(".") + "/"
        return sorted({*map(os.fsdecode, real), *(path.removeprefix(prefix) for path in own)})

    def doing(what):
        def hooked(original, path, *args, **kwargs):
            if local(path) is None:
                return None  # rank 0 does it
            try:
                return what(local(path), *(os.fsdecode(arg) for arg in args if isinstance(arg, (str, bytes))))
            except FileNotFoundError as error:
                raise errors.NotFoundError(None, None, f"{error.filename}; {error.strerror}") from None

        return hooked

    for name, what in (("DeleteFile", os.remove), ("DeleteRecursively", shutil.rmtree), ("RenameFile", os.replace),
                       ("CreateDir", functools.partial(os.makedirs, exist_ok=True)), ("CopyFile", shutil.copyfile),
                       ("RecursivelyCreateDir", functools.partial(os.makedirs, exist_ok=True))):
        hooks.wrap(low, name)(doing(what))


def or_itself(path):
    """TensorFlow has its own words for what is missing."""
    try:
        return overlay.to_read(path)
    except FileNotFoundError:
        return path if not overlay._is_there(path) else overlay.shadow(path)


def _like(path, where):
    return os.fsencode(where) if isinstance(path, bytes) else where
