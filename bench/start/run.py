#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an installed Lockstep costs a Python process that no launcher started.

  nothing     python -c pass
  tensorflow  import of a package of that name that only imports 3,000 modules, as many as TensorFlow does and more: what
              Lockstep adds to an import of TensorFlow, without the seconds in which 5 ms cannot be seen
  real        import tensorflow itself (--real N starts; it takes seconds)

Processes with and without lockstep.pth take turns.  Printed are medians, and the median of the differences of a turn, in
wall-clock and in processor time."""
import argparse
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

PYTHON = Path(__file__).resolve().parent.parent.parent / "python"
MODULES = 3000
STAND_IN = f"""
import sys
for number in range({MODULES}):
    name = f"tensorflow_part{{number}}"
    for finder in sys.meta_path:
        if finder.find_spec(name, None) is not None:
            break
"""
ADD_FOLDERS = "import site, sys; [site.addsitedir(folder) for folder in sys.argv[1:]]; "


def make_folder(parent, has_lockstep):
    """A folder of packages as pip leaves it."""
    folder = Path(parent) / ("with" if has_lockstep else "without")
    (folder / "tensorflow").mkdir(parents=True)
    (folder / "tensorflow" / "__init__.py").write_text(STAND_IN)
    if has_lockstep:
        (folder / "lockstep").symlink_to(PYTHON / "lockstep")
        (folder / "lockstep.pth").write_text((PYTHON / "lockstep.pth").read_text())
    return folder


def seconds_of(code, folders):
    """Wall clock and processor time of a process."""
    begin = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", ADD_FOLDERS + code, *map(str, folders)], env=environment(),
                               stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"'{code}' ended with code {process.returncode}")
    return time.perf_counter() - begin, usage.ru_utime + usage.ru_stime


def environment():
    """Without a launcher's variables; PYTHON* is left out by -I."""
    foreign = ("OMPI_", "PMI_", "PMIX_", "SLURM_", "LOCKSTEP_", "TF_MPI_")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


def compare(title, code, without, with_, rounds):
    seconds_of(code, without), seconds_of(code, with_)  # the first ones write byte code
    turns = [(seconds_of(code, without), seconds_of(code, with_)) for _ in range(rounds)]
    for clock, name in enumerate(("wall clock", "processor")):
        before, after = (1000 * statistics.median(turn[side][clock] for turn in turns) for side in (0, 1))
        added = 1000 * statistics.median(turn[1][clock] - turn[0][clock] for turn in turns)
        print(f"{title:11} {name:11} {before:9.2f} {after:9.2f} {added:+9.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=150, help="starts of each kind")
    parser.add_argument("--real", type=int, default=0, metavar="N", help="also N starts with the real TensorFlow")
    args = parser.parse_args()

    print(f"{'':11} {'':11} {'without':>9} {'with':>9} {'added':>9}  ms; added: median of the differences of a turn")
    with tempfile.TemporaryDirectory() as parent:
        without, with_ = make_folder(parent, False), make_folder(parent, True)
        compare("nothing", "pass", [without], [with_], args.rounds)
        compare("tensorflow", "import tensorflow", [without], [with_], args.rounds)
        if args.real:
            packages = sysconfig.get_paths()["purelib"]
            compare("real", "import tensorflow", [packages, without], [packages, with_], args.real)


if __name__ == "__main__":
    main()
