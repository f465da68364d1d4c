# SPDX-License-Identifier: Apache-2.0
"""Folders are listed in alphabetical order on every rank, since file systems give any; without Lockstep's own folders; and
on ranks other than 0 as the overlay has them."""
import os

from lockstep import hooks, world
from lockstep.effects import overlay

hidden = set()  # Lockstep's own folders


def attach():
    @hooks.wrap(os, "listdir")
    def listdir(original, path="."):
        return _listed(original, path) if isinstance(path, int) or world.is_root() else sorted(_names(original, path))

    @hooks.wrap(os, "scandir")
    def scandir(original, path="."):
        if not isinstance(path, int) and not world.is_root():
            return _Entries(_entries(original, path))
        with original(path) as entries:
            found = {entry.name: entry for entry in entries}
        return _Entries([found[name] for name in _listed(lambda _: list(found), path)])


def _listed(original, path):
    """Without Lockstep's own folders, which one process would not see."""
    names = sorted(original(path))
    if isinstance(path, int):
        return names
    full = os.path.abspath(os.fsdecode(path))
    return [name for name in names if os.path.join(full, os.fsdecode(name)) not in hidden]


def _names(original, path):
    behind = overlay.behind_links(path)
    name = overlay.full(behind)
    if name is None:
        return _listed(original, path)
    where = overlay.to_read(behind)
    add, leave_out = overlay.own_names(name)
    names = set() if overlay.hides_all(name) else set(map(os.fsdecode, _listed(original, where)))
    names = {found for found in names - leave_out if found in add or overlay.place(os.path.join(name, found)) is not None}
    names |= add
    return {os.fsencode(found) for found in names} if isinstance(path, bytes) else names


def _entries(original, path):
    where = overlay.to_read(overlay.behind_links(path))
    with original(where) as entries:
        real = {entry.name: entry for entry in entries}
    names = sorted(_names(lambda _: list(real), path))
    return [real[name] if name in real and where == path and overlay.to_read(real[name].path) == real[name].path
            else _Entry(name, os.path.join(path, name)) for name in names]


class _Entries:
    """What os.scandir gives: an iterator that can be closed."""

    def __init__(self, entries):
        self._entries = iter(entries)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._entries)

    def close(self):
        self._entries = iter(())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class _Entry:
    """An os.DirEntry of a file in the overlay."""

    def __init__(self, name, path):
        self.name, self.path = name, path

    def __fspath__(self):
        return self.path

    def is_dir(self, *, follow_symlinks=True):
        return os.path.isdir(self.path)

    def is_file(self, *, follow_symlinks=True):
        return os.path.isfile(self.path)

    def is_symlink(self):
        return os.path.islink(self.path)

    def stat(self, *, follow_symlinks=True):
        return os.stat(self.path, follow_symlinks=follow_symlinks)

    def inode(self):
        return self.stat().st_ino
