# SPDX-License-Identifier: Apache-2.0
"""The C library: where it is, and the one context that this process has in it."""
import atexit
import ctypes
import functools
import os
import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent


class LockstepError(RuntimeError):
    """What the engine said."""


def lib_folder():
    """Folder of the shared libraries; LOCKSTEP_LIB names another, for a build that is not installed."""
    return Path(os.environ.get("LOCKSTEP_LIB") or _FOLDER / "lib")


def _find(pattern):
    folder = lib_folder()
    found = sorted(folder.glob(pattern), key=lambda path: len(path.name))
    if not found:
        raise FileNotFoundError(f"no {pattern.rstrip('*')} in {folder}: was lockstep installed with pip?")
    return str(found[0])


def lib_path():
    """Path of liblockstep.so, for ctypes.CDLL or a linker."""
    return _find("liblockstep.so*")


def ops_path():
    """Path of liblockstep_tf.so, for tf.load_op_library."""
    return _find("liblockstep_tf.so*")


def include_path():
    """Folder of lockstep.h."""
    return str(_FOLDER / "include")


# ls_counters_t, in its order.
COUNTERS = ("requests", "requests_failed", "bytes_in", "bytes_sent_node", "bytes_sent_net", "buckets_replayed",
            "buckets_negotiated", "control_messages", "schedule_changes", "sleeps", "ns_copy", "ns_reduce", "ns_wait",
            "ns_open", "ns_exposed")


@functools.lru_cache(maxsize=None)
def _library():
    library = ctypes.CDLL(lib_path())
    library.ls_last_error.restype = ctypes.c_char_p
    library.ls_process_get.restype = ctypes.c_void_p
    library.ls_process_put.argtypes = [ctypes.c_void_p]
    for name in ("ls_rank", "ls_size", "ls_local_rank", "ls_local_size", "ls_num_nodes"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
        getattr(library, name).restype = ctypes.c_uint
    library.ls_transport.argtypes, library.ls_transport.restype = [ctypes.c_void_p], ctypes.c_char_p
    library.ls_hash.argtypes, library.ls_hash.restype = [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_uint64
    library.ls_counters.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.ls_expect_unfinite.argtypes, library.ls_expect_unfinite.restype = [ctypes.c_void_p], None
    return library


def start():
    """Joins the job; returns when all ranks have.  Does nothing when it is done already."""
    library = _library()
    if library.ls_process_start() != 0:
        raise LockstepError(library.ls_last_error().decode(errors="replace"))
    _stop_at_exit()


@functools.lru_cache(maxsize=None)
def _stop_at_exit():
    atexit.register(_at_exit)


def _at_exit():
    # After an uncaught exception the others are not on their way to stop; the engine tells them that this rank is gone.
    is_well = hasattr(sys, "last_type") or stop()
    for pid, function, args in _after_stop:
        if pid == os.getpid():  # a child ends too
            function(*args)
    if not is_well:
        end_with_failure()


_after_stop = []


def after_stop(function, *args):
    """Calls function(*args) at the end of the process, when all ranks have come to their end."""
    _after_stop.append((os.getpid(), function, args))


def stop():
    """Leaves the job; waits until every rank does.  False: the job did not end well."""
    return _library().ls_process_stop() == 0


def leave_with_failure():
    """Ends this process, which is on its way out, with an exit code that says so; every rank does."""
    stop()
    end_with_failure()


def end_with_failure():
    """Ends this process at once; the others learn that it is gone.  The only way to change the exit code of a script that has ended."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


@functools.lru_cache(maxsize=None)
def setting(name):
    """The value of LOCKSTEP_<name> as text; the table of settings is that of the C library."""
    text = ctypes.create_string_buffer(256)
    library = _library()
    if library.ls_setting(name.encode(), text, ctypes.c_size_t(len(text))) != 0:
        raise LockstepError(library.ls_last_error().decode(errors="replace"))
    return text.value.decode(errors="replace")


def _ask(name, *args):
    start()
    library = _library()
    context = library.ls_process_get()
    if context is None:
        raise LockstepError("the engine has stopped, or this process is the child of a rank")
    try:
        return getattr(library, name)(context, *args)
    finally:
        library.ls_process_put(context)


def log_to(descriptor):
    """The engine's lines go to this descriptor instead of standard error."""
    _library().ls_log_to(ctypes.c_int(descriptor))


def expect_unfinite():
    """The script scales its loss: gradients may be infinite."""
    _ask("ls_expect_unfinite")


def counters():
    """What the engine has counted since it started, by name: include/lockstep.h says what each is."""
    values = (ctypes.c_uint64 * len(COUNTERS))()
    _ask("ls_counters", values)
    return dict(zip(COUNTERS, values))


def rank():
    """This process's number in the job, from 0."""
    return _ask("ls_rank")


def size():
    """The number of processes in the job."""
    return _ask("ls_size")


def local_rank():
    """This process's number among those of its machine, from 0."""
    return _ask("ls_local_rank")


def local_size():
    """The number of processes of the job on this machine."""
    return _ask("ls_local_size")


def is_root():
    """Is this rank 0?"""
    return rank() == 0


def num_nodes():
    """The number of machines of the job."""
    return _ask("ls_num_nodes")


def transport():
    """How ranks reach each other, in words."""
    return _ask("ls_transport").decode()


def hash_memory(address, size):
    """A 64-bit hash of memory: an address, or bytes."""
    return _library().ls_hash(address, size)


def hash_text(text):
    data = text.encode(errors="replace")
    return hash_memory(data, len(data))
