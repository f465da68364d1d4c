# SPDX-License-Identifier: Apache-2.0
"""What was built, what was found, which settings are in force and where they come from, and the algorithms."""
import platform
import sys

from lockstep.launch import machine
from lockstep.launch.mpi import find_launcher, library_mpi, load_library, own_version
from lockstep.launch.problem import Problem

EXAMPLES = """examples:
  lockstep info
  LOCKSTEP_ALGO=allreduce:64k-inf:ring lockstep info --choices"""


def add_arguments(parser):
    parser.add_argument("--settings", action="store_true", help="only the settings")
    parser.add_argument("--choices", action="store_true", help="only the table of algorithms")


def _operators():
    from lockstep import native
    try:
        return native.ops_path()
    except FileNotFoundError:
        return "not built"


def _launcher(mpi):
    try:
        return find_launcher(mpi)
    except Problem as problem:
        return f"none: {problem}"


def facts():
    """(name, value) pairs."""
    from lockstep import native
    from lockstep.cli.run import tensorflow_version
    mpi = library_mpi()
    return [
        ("lockstep", own_version()),
        ("library", native.lib_path()),
        ("operators", _operators()),
        ("MPI", f"{mpi} ({mpi.path})"),
        ("launcher", _launcher(mpi)),
        ("TensorFlow", tensorflow_version() or "not installed"),
        ("Python", f"{platform.python_version()} ({sys.executable})"),
        ("machine", f"{machine.cores()} cores, {machine.gpus()} GPUs, {platform.machine()}, Linux {platform.release()}"),
    ]


def _print_table(library, print_fn, *args):
    sys.stdout.flush()
    if print_fn(sys.stdout.fileno(), *args) != 0:
        raise Problem(library.ls_last_error().decode(errors="replace"), "put the setting right, or unset it")


def main(args):
    library = load_library()
    everything = not (args.settings or args.choices)
    if everything:
        for name, value in facts():
            print(f"{name:11} {value}")
        print()
    if everything or args.settings:
        _print_table(library, library.ls_print_settings, 1)
    if everything:
        print()
    if everything or args.choices:
        _print_table(library, library.ls_print_choices)
    return 0
