# SPDX-License-Identifier: Apache-2.0
"""SQLite databases of the script (optuna's studies, mlflow's runs), which its library writes in C.  Each rank has its own, a copy
of what was there; rank 0's is the real one.

A large one is mostly one that is read, and nobody keeps how it was before rank 0 changed it (journal.py): it is left as it is.

Seam: sqlite3.connect, which SQLAlchemy and others look up when they connect."""
import os
import urllib.parse

from lockstep import hooks, world
from lockstep.effects import files, journal, overlay


def attach():
    if world.size > 1:
        files.after_import("sqlite3", _hook)


def _hook(sqlite3):
    def connect(original, database, *args, **kwargs):
        url = _parse(database, kwargs.get("uri", False))
        if url is None:
            return original(database, *args, **kwargs)
        path, options = urllib.parse.unquote(url.path), urllib.parse.parse_qs(url.query)
        mode = "ro" if "immutable" in options else options.get("mode", ["rwc"])[0]
        if not world.is_root():
            where = _place(path, mode)
            database = url._replace(path=urllib.parse.quote(where)).geturl() if url.scheme else where
        elif mode != "ro":
            files.touch(path)
        return original(database, *args, **kwargs)

    for owner in (sqlite3.dbapi2, sqlite3):
        hooks.wrap(owner, "connect")(connect)
    hooks.hand_on((sqlite3.dbapi2, sqlite3))


def _parse(database, is_url):
    """What connect() is given, as a URL; None: it is no file."""
    if not isinstance(database, (str, bytes, os.PathLike)):
        return None
    name = os.fsdecode(database)
    if is_url and name.startswith("file:"):
        url = urllib.parse.urlsplit(name)
        return None if url.path == ":memory:" or "mode=memory" in url.query else url
    return None if name in ("", ":memory:") else urllib.parse.SplitResult("", "", urllib.parse.quote(name), "", "")


def _place(path, mode):
    """Where a rank other than 0 has this database.  What is not there, SQLite says in its own words."""
    name = overlay.full(path)
    if name is None:
        return path
    try:
        if mode == "ro" or _is_left(name):
            return overlay.to_read(path)
        return overlay.to_write(path, keeps=True, creates=mode == "rwc", settles=False)
    except FileNotFoundError:
        return overlay.shadow(name)


def _is_left(name):
    return not overlay.is_own(name) and overlay.exists(name) and os.stat(name).st_size > journal.LARGEST_COPY
