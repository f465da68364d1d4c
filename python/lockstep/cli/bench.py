# SPDX-License-Identifier: Apache-2.0
"""Measure collectives, beside the same calls of the MPI in the same run and with every result checked; or training steps,
beside one process and tf.distribute; or the readers, beside pandas, pyarrow, numpy, h5py, netCDF4 and TFRecordDataset.

Columns for collectives: size, time (median, minimum, 99th percentile), bandwidth, wrong values, and how many times as fast
as MPI.  Training takes turns between one process on one core and on two, two copies of it (the limit), two ranks,
tf.distribute, and Horovod where it is installed; it prints the speed-ups at the same global batch."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from lockstep.cli import start
from lockstep.cli.view import KeptView
from lockstep.launch.job import Job
from lockstep.launch.problem import Problem

EXAMPLES = """examples:
  lockstep bench                                        # all-reduce on this machine
  lockstep bench broadcast -n 2 --from 4K --to 16M --json times.json --plot times.png
  lockstep bench allreduce -H node1:1,node2:1
  lockstep bench train --case mnist:128 --json steps.json --plot steps.png
  lockstep bench read --case csv --case tfrecord --plot read.png"""

COLLECTIVES = ("allreduce", "broadcast", "allgather", "reduce_scatter", "alltoall")
PROGRAM = "bench_collectives"
TRAIN, READ = "train", "read"
SCRIPTS = {TRAIN: ("ways", "rounds", "steps"), READ: ("rounds",)}  # programs of their own, with the options they know


def add_arguments(parser):
    parser.add_argument("what", nargs="?", default="allreduce", choices=(*COLLECTIVES, *SCRIPTS), metavar="WHAT",
                        help=f"{', '.join(COLLECTIVES)} (allreduce), {TRAIN} or {READ}")
    start.add_arguments(parser)
    group = parser.add_argument_group("what is measured")
    add = group.add_argument
    add("--from", dest="smallest", default="4", metavar="SIZE", help="smallest size in bytes, as 4 or 64K (4)")
    add("--to", dest="largest", default="64M", metavar="SIZE", help="largest size (64M)")
    add("--type", default="float32", help="element type (float32)")
    add("--iterations", type=start.positive, metavar="N", help="of each size; without it: what fits into 0.3 s")
    add("--json", metavar="FILE", help="write the numbers")
    add("--plot", metavar="FILE", help="draw them (.png or .svg; needs matplotlib)")
    group = parser.add_argument_group("training, on two cores of this machine; reading, on one")
    add = group.add_argument
    add("--case", action="append", default=[], metavar="NAME",
        help="a model and its batch, as mnist:128, or part of a file's name, as csv; more than once; all when not given")
    add("--ways", metavar="WAY,...", help="of one, copies, ranks, peer, alone, whole, cores, horovod (all)")
    add("--rounds", type=start.positive, metavar="N", help="turns of each (3; of readers 7)")
    add("--steps", type=start.positive, metavar="N", help="training steps of each turn (60)")


def program_path():
    """In the installed package, or in the build that LOCKSTEP_LIB names."""
    from lockstep import native
    folders = [Path(native.__file__).resolve().parent / "bin", native.lib_folder().parent / "bench",
               native.lib_folder().parent / "libexec" / "lockstep"]
    for folder in folders:
        if os.access(folder / PROGRAM, os.X_OK):
            return str((folder / PROGRAM).resolve())
    raise Problem(f"{PROGRAM} is not installed", "install Lockstep again with pip: it brings the program")


def read_report(path):
    try:
        return json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise Problem(f"the numbers cannot be read ({error})", "rank 0 writes them: let it run on this host") from None


def script_of(what):
    """In the installed package, or in the checkout."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "bench", package.parent.parent / "bench"):
        if (folder / what / "run.py").is_file():
            return folder / what / "run.py"
    raise Problem(f"bench {what} is not installed", "install Lockstep again with pip: it brings it")


def bench_script(args, report):
    """The benches of training and reading are programs of their own: they start all ways by turns."""
    words = [sys.executable, str(script_of(args.what)), "--json", str(report)]
    for case in args.case:
        words += ["--case", case]
    for name in SCRIPTS[args.what]:
        if getattr(args, name) is not None:
            words += [f"--{name}", str(getattr(args, name))]
    return subprocess.run(words, stdin=subprocess.DEVNULL).returncode


def bench_collective(args, report):
    program = [program_path(), "-c", args.what, "-b", args.smallest, "-e", args.largest, "-t", args.type]
    program += ["-n", str(args.iterations)] if args.iterations else []
    job_start = start.Start(args, program)
    if len(job_start.plan.ranks_per_host) > 1:
        job_start.plan.program.append("--multi-node")
    if args.json or args.plot:
        job_start.plan.program += ["--json", str(report)]
    job_start.check_hosts()
    job_start.set(LOCKSTEP_RUN_OUTPUT="first")
    return Job(job_start.command, job_start.environment, job_start.token, KeptView(is_shown=True)).run()


def main(args):
    from lockstep.cli import plot
    draw = {TRAIN: plot.draw_training, READ: plot.draw_reading}.get(args.what)
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as folder:
        report = Path(folder) / "report.json"
        code = (bench_script if args.what in SCRIPTS else bench_collective)(args, report)
        if code != 0:
            return code
        if args.json:
            Path(args.json).write_text(json.dumps(read_report(report), indent=1))
        if args.plot and draw:
            draw(read_report(report), args.plot)
        elif args.plot:
            plot.draw_reports([read_report(report)], args.plot)
    return 0
