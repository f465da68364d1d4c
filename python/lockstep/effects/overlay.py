# SPDX-License-Identifier: Apache-2.0
"""The files as a rank other than 0 sees them: those on disk, and over them what the script has changed on this rank.

Rank 0 changes the real files.  On the others a file that the script writes lies in a folder of the rank's own, one it
removes is only noted, and reading gives back what was written: every rank sees the files that it would see alone.
Files that the script did not change are the real ones.

    _own[path] = FILE    written here, lies below _folder
                 FOLDER  made here; rank 0 makes the real one
                 GONE    removed here, with all below it"""
import contextlib
import errno
import fnmatch
import functools
import os
import shutil
import stat
import time

from lockstep import world
from lockstep.effects import journal

FILE, FOLDER, GONE = "file", "folder", "gone"
SETTLE_SECONDS = 10.0
MOST_LINKS = 40  # that Linux follows
_NEVER = ("/dev", "/proc", "/sys", "/run")

_stat, _lstat, _mkdir, _remove, _rename = os.stat, os.lstat, os.mkdir, os.remove, os.rename

_folder = None
_own = {}
_children = {}  # folder: names of what is in _own
_open_files = {}  # path: weak reference to the file object that writes it
_unsettled = set()
_private = set()  # temporary files and folders, which have other names on each rank
_renamed = {}  # path this rank asked for: path that rank 0 used
_links = {}  # path of a symbolic link that was made here: what it says


def _by_itself(function):
    """What the overlay does with files is no doing of the script."""
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        with world.alone():
            return function(*args, **kwargs)

    return wrapped


def attach(folder):
    global _folder
    _folder = folder
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder, mode=0o700)


def close():
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)


def for_private(folder):
    """Where temporary files go that the script wants in this folder: not among its own, under a name that rank 0 does not know."""
    name = full(folder)
    if name is None:
        return folder
    os.makedirs(shadow(name), mode=0o700, exist_ok=True)
    return shadow(name)


def add_private(path):
    _private.add(os.path.abspath(os.fsdecode(path)))


def full(path):
    """The absolute path, or None for what is not ours to arrange: descriptors, devices, temporary and log files."""
    if isinstance(path, int) or path is None:
        return None
    path = os.path.abspath(os.fsdecode(path))
    renamed = as_saved(path)  # first: a model that was saved into a temporary folder is in rank 0's
    if renamed != path:
        return renamed
    if _below(path, _NEVER) or _below(path, (os.path.dirname(_folder), *_private)):
        return None
    for link in _links:
        if path.startswith(link + "/"):
            return full(_end_of(link) + path[len(link):])
    return in_real_folder(path)


def in_real_folder(path):
    """The name of an absolute path behind the links to folders that were there before: what is written under one name may be
    read under the other."""
    head, _, last = path.rpartition("/")
    real = ""
    for name in head.split("/")[1:]:
        real = _behind_real_link(f"{real}/{name}")
    return f"{real}/{last}"


def _behind_real_link(path):
    try:
        is_link = path not in _own and stat.S_ISLNK(_lstat(path).st_mode)
    except OSError:
        return path
    if not is_link:
        return path
    with world.alone():
        return os.path.realpath(path)


def call_it(path, root_path):
    """What this rank calls `path` is what rank 0 calls `root_path`."""
    own, real = os.path.abspath(os.fsdecode(path)), os.path.abspath(root_path)
    if own != real:
        _renamed[own] = real


def as_saved(path):
    """The name that rank 0 gave what the ranks have saved under this one; the path itself where it is the same."""
    absolute = os.path.abspath(os.fsdecode(path))
    for mine, theirs in _renamed.items():
        if absolute == mine or absolute.startswith((mine + "/", mine + ".")):
            return theirs + absolute[len(mine):]
    return path


def _below(path, folders):
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def missing(path):
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


# ---- what is there -------------------------------------------------------------------------------------------

def place(path):
    """Where to read this full path: itself, a file of the rank's own, or a copy of what it was; None: it is not there."""
    kind = _own.get(path)
    if kind == FILE:
        if path in _links:
            _point(path)
        return shadow(path)
    if kind == FOLDER:
        return path if _is_there(path) else shadow(path)
    if kind == GONE or _is_below_gone(path):
        return None
    was = journal.before(path)
    if was is None:
        return path
    if was[0] == "none":
        return None
    return was[1] or path


def shadow(path):
    return _folder + path


def is_own(path):
    """Has the script written this full path on this rank?"""
    return _own.get(path) == FILE


def _is_below_gone(path):
    """Removed with a folder above it.  A folder made again after that holds only what was put into it since."""
    parent = os.path.dirname(path)
    while parent != path:
        if _own.get(parent) == GONE or parent in _emptied:
            return True
        path, parent = parent, os.path.dirname(parent)
    return False


_emptied = set()  # folders removed and made again


def _is_there(path):
    try:
        _lstat(path)
    except OSError:
        return False
    return True


def _mode(path):
    """(where a full path is to be read, its kind and rights or None).  Rank 0 may make it in this moment: what place()
    says is asked again after the look."""
    where = place(path)
    while True:
        try:
            mode = None if where is None else _stat(where).st_mode
        except OSError:
            mode = stat.S_IFLNK if _is_there(where) else None
        again = place(path)
        if again == where:
            return where, mode
        where = again


@_by_itself
def exists(path):
    return _mode(path)[1] is not None


@_by_itself
def is_folder(path):
    mode = _mode(path)[1]
    return mode is not None and stat.S_ISDIR(mode)


@_by_itself
def to_read(path):
    """Where to read what the script calls `path`."""
    where = full(path)
    if where is None:
        return path
    found = place(where)
    if found is None:
        raise missing(path)
    return path if found == os.path.abspath(os.fsdecode(path)) else found


def own_names(folder):
    """(names to add, names to leave out) of the real listing of a folder"""
    names = _children.get(folder, set())
    add = {name for name in names if _own[os.path.join(folder, name)] != GONE}
    return add, names - add


def own_matches(pattern):
    """Paths of the overlay that a pattern of full path matches; * and ? match no slash."""
    depth = pattern.count("/")
    return [path for path, kind in list(_own.items())
            if kind != GONE and path.count("/") == depth and fnmatch.fnmatchcase(path, pattern)]


def hides_all(folder):
    return folder in _emptied or _is_below_gone(folder)


# ---- changes -------------------------------------------------------------------------------------------------

def _set(path, kind):
    _links.pop(path, None)
    _own[path] = kind
    _children.setdefault(os.path.dirname(path), set()).add(os.path.basename(path))


def _drop(path):
    _links.pop(path, None)
    _own.pop(path, None)
    _children.get(os.path.dirname(path), set()).discard(os.path.basename(path))


@_by_itself
def to_write(path, keeps=False, creates=True, is_new=False, settles=True):
    """Where to write what the script calls `path`; keeps: what is in it stays; is_new: it must not be there; settles: it is
    closed in the end, and then as long as rank 0's."""
    name = full(path)
    if name is None:
        return path
    if name in _links and not is_new:
        return to_write(_end_of(name), keeps, creates, settles=settles)
    found, mode = _mode(name)
    if mode is not None:
        if is_new:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        if not stat.S_ISREG(mode):
            return path
    elif not creates or not is_folder(os.path.dirname(name)):
        raise missing(path)
    else:
        found = None
    own = shadow(name)
    if found != own:
        os.makedirs(os.path.dirname(own), mode=0o700, exist_ok=True)
        _set(name, FILE)
        if keeps and found is not None:
            shutil.copyfile(found, own)
        elif _is_there(own):
            _remove(own)
    if settles:
        _unsettled.add(name)
    return own


def note_open(path, weak_file):
    name = full(path)
    if name is not None:
        _open_files[name] = weak_file


@_by_itself
def make_folder(path):
    name = full(path)
    if name is None:
        return _mkdir(path)
    if exists(name):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    if not is_folder(os.path.dirname(name)):
        raise missing(path)
    if _own.get(name) == GONE:
        _emptied.add(name)
    os.makedirs(shadow(name), mode=0o700, exist_ok=True)
    _set(name, FOLDER)
    return None


@_by_itself
def remove(path, is_tree=False):
    """Notes that a file or a folder is not there any more."""
    name = full(path)
    if name is None:
        return False
    if not exists(name):
        raise missing(path)
    if is_tree:
        for below in [below for below in list(_own) if below.startswith(name + "/")]:
            _drop(below)
        shutil.rmtree(shadow(name), ignore_errors=True)
    elif _own.get(name) == FILE:
        _remove(shadow(name))
    _unsettled.discard(name)
    _emptied.discard(name)
    _set(name, GONE)
    return True


def link_at(path):
    """What a symbolic link that was made here says; None: there is none."""
    return _links.get(full(path))


def _end_of(name):
    """Where a link leads."""
    return os.path.abspath(os.path.join(os.path.dirname(name), _links[name]))


def behind_links(path):
    """Where links at this path lead, those of the script and those that were there."""
    for _ in range(MOST_LINKS):
        name = full(path)
        if name not in _links:
            end = None if name is None else _behind_real_link(name)
            return path if end == name else end
        path = _end_of(name)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


@_by_itself
def make_link(source, target):
    """A symbolic link.  It lies with the files of this rank's own, and leads to them where it would lead there."""
    name = full(target)
    if name is None:
        return False
    if exists(name):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), source, None, target)
    if not is_folder(os.path.dirname(name)):
        raise missing(target)
    _set(name, FILE)
    _links[name] = os.fsdecode(source)
    os.makedirs(os.path.dirname(shadow(name)), mode=0o700, exist_ok=True)
    _point(name)
    return True


@_by_itself
def _point(link):
    """Lets the real link lead to where its end is to be read now, which may have been written or removed since it was made."""
    end = behind_links(link)
    name = full(end)
    where = end if name is None else place(name) or shadow(name)
    if not _is_there(shadow(link)) or os.readlink(shadow(link)) != where:
        with contextlib.suppress(FileNotFoundError):
            _remove(shadow(link))
        os.symlink(where, shadow(link))


@_by_itself
def rename(source, target):
    """A file moves; a folder is moved by rank 0, and waited for."""
    old, new = full(source), full(target)
    if new is None:
        return False
    if old is None:
        return _move_here(source, target)
    if old in _links:
        says = _links[old]
        remove(source)
        if exists(new):
            remove(target)
        return make_link(says, target)
    found, mode = _mode(old)
    if mode is None:
        raise missing(source)
    if stat.S_ISDIR(mode):
        _wait(lambda: _is_there(new) and not _is_there(old))
        return True
    content = shadow(new) + ".moving"
    os.makedirs(os.path.dirname(content), mode=0o700, exist_ok=True)
    try:
        shutil.copyfile(found, content)
    except FileNotFoundError:  # rank 0 has moved it in this moment
        shutil.copyfile(new, content)
    _rename(content, to_write(target))
    remove(source)
    return True


def _move_here(source, target):
    """What is temporary, and therefore real on each rank, becomes a file or a folder of the script."""
    if not os.path.isdir(source):
        _stat(source)
        if is_folder(full(target)):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), source, None, target)
        shutil.move(source, to_write(target))
        return True
    if not is_folder(full(target)):  # one that is there may be taken if it is empty; rank 0 says so if it is not
        make_folder(target)
    for name in os.listdir(source):
        _move_here(os.path.join(source, name), os.path.join(target, name))
    os.rmdir(source)
    return True


# ---- together with rank 0 ------------------------------------------------------------------------------------

@_by_itself
def met():
    """Rank 0 has by now done everything that was done here: what was removed is gone, folders are there."""
    for path, kind in list(_own.items()):
        if kind == GONE or (kind == FOLDER and _is_there(path)):
            _drop(path)
    _emptied.clear()


@_by_itself
def saved(path, root_path):
    """The ranks have written `path` together: it is the real one from here on.  Rank 0 may have called it otherwise,
    where the name has the time of day in it."""
    call_it(path, root_path)
    real = in_real_folder(os.path.abspath(root_path))
    for name in [name for name in list(_own) if name == real or name.startswith((real + "/", real + "."))]:
        _drop(name)


@_by_itself
def settle():
    """Waits until the files that were written here are whole on disk as well, rank 0 having come here, too: TensorFlow reads
    those in C++.  Sizes would not tell: a log with times has another one on each rank, a file written anew has its old one."""
    look = journal.look()
    whole = {path for path in _unsettled if not _is_open(path)}
    if any(_own.get(path) == FILE for path in whole):
        _wait(lambda: journal.has_root_come_to(look))
    _unsettled.difference_update(whole)


def _is_open(path):
    reference = _open_files.get(path)
    file = reference() if reference is not None else None
    return file is not None and not getattr(file, "closed", False)


def _wait(is_done):
    end = time.monotonic() + SETTLE_SECONDS
    while not is_done() and time.monotonic() < end:
        time.sleep(0.005)

