# SPDX-License-Identifier: Apache-2.0
"""Keras writes a model over the last one of that name: a full disk, or a kill, would leave neither."""
import contextlib
import os

ENDINGS = (".keras", ".h5")


@contextlib.contextmanager
def replaced(filepath):
    """A name beside the file, which becomes the file when it is whole and on the disk.  What is no file of this machine, and
    what has another ending, which may stand for a folder, is left as it is."""
    path = os.path.realpath(filepath)
    if not path.endswith(ENDINGS) or "://" in os.fsdecode(filepath) or os.path.isdir(path):
        yield filepath
        return
    folder, name = os.path.split(path)
    unfinished = os.path.join(folder, f".unfinished-{os.getpid()}-{name}")
    try:
        yield unfinished
        _bring_to_disk(unfinished)
        os.replace(unfinished, path)
    finally:
        if os.path.exists(unfinished):
            os.remove(unfinished)


def _bring_to_disk(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
