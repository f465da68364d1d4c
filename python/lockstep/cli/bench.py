# SPDX-License-Identifier: Apache-2.0
"""Measure collectives, beside the same calls of the MPI in the same run, with every result checked.

Columns: size, time (median, minimum, 99th percentile), bandwidth, wrong values, and how many times as fast as MPI."""
import json
import os
import tempfile
from pathlib import Path

from lockstep.cli import start
from lockstep.cli.view import KeptView
from lockstep.launch.job import Job
from lockstep.launch.problem import Problem

EXAMPLES = """examples:
  lockstep bench                                        # all-reduce on this machine
  lockstep bench broadcast -n 2 --from 4K --to 16M --json times.json --plot times.png
  lockstep bench allreduce -H node1:1,node2:1"""

COLLECTIVES = ("allreduce", "broadcast", "allgather", "reduce_scatter", "alltoall")
PROGRAM = "bench_collectives"


def add_arguments(parser):
    parser.add_argument("what", nargs="?", default="allreduce", choices=COLLECTIVES, metavar="WHAT",
                        help=f"{', '.join(COLLECTIVES)} (allreduce)")
    start.add_arguments(parser)
    group = parser.add_argument_group("what is measured")
    add = group.add_argument
    add("--from", dest="smallest", default="4", metavar="SIZE", help="smallest size in bytes, as 4 or 64K (4)")
    add("--to", dest="largest", default="64M", metavar="SIZE", help="largest size (64M)")
    add("--type", default="float32", help="element type (float32)")
    add("--iterations", type=start.positive, metavar="N", help="of each size; without it: what fits into 0.3 s")
    add("--json", metavar="FILE", help="write the numbers")
    add("--plot", metavar="FILE", help="draw time by size (.png or .svg; needs matplotlib)")


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


def main(args):
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as folder:
        report = Path(folder) / "report.json"
        program = [program_path(), "-c", args.what, "-b", args.smallest, "-e", args.largest, "-t", args.type]
        program += ["-n", str(args.iterations)] if args.iterations else []
        job_start = start.Start(args, program)
        if len(job_start.plan.ranks_per_host) > 1:
            job_start.plan.program.append("--multi-node")
        if args.json or args.plot:
            job_start.plan.program += ["--json", str(report)]
        job_start.check_hosts()
        job_start.set(LOCKSTEP_RUN_OUTPUT="first")
        job = Job(job_start.command, job_start.environment, job_start.token, KeptView(is_shown=True))
        code = job.run()
        if code != 0:
            return code
        if args.json:
            Path(args.json).write_text(json.dumps(read_report(report), indent=1))
        if args.plot:
            from lockstep.cli.plot import draw_reports
            draw_reports([read_report(report)], args.plot)
    return 0
