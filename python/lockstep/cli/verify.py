# SPDX-License-Identifier: Apache-2.0
"""Compare one process with many ranks: runs the script both ways, compares the losses step by step and the weights at the
end, and tells the largest difference, where it first appears and in which variable.

The exit code is 0 only when they agree within rounding.  What rounding alone does to this script is measured, where that is
the question: one process runs again, its weights changed in their last bit after each step.  Seeds are the script's business: where initial weights are drawn
anew in each run, or dropout is used, runs differ for that reason alone."""
import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from lockstep.cli import run, start
from lockstep.cli.compare import FACTOR, compare_folders, read_yardstick
from lockstep.cli.view import KeptView
from lockstep.launch.job import Job
from lockstep.launch.problem import Problem

EXAMPLES = """examples:
  lockstep verify -n 2 train.py
  lockstep verify -n 4 --oversubscribe --steps 50 --plot losses.png train.py --epochs 1"""

TOLERANCE = 1e-5
split_words = run.split_words


def add_arguments(parser):
    parser.usage = "lockstep verify [options] script.py [arguments of the script]"
    start.add_arguments(parser)
    group = parser.add_argument_group("what is compared")
    add = group.add_argument
    add("-m", dest="module", metavar="MODULE", help="run a module instead of a script")
    add("--steps", type=start.positive, metavar="K", help="end both runs after so many steps")
    add("--tolerance", type=float, default=TOLERANCE, metavar="R",
        help=f"a relative difference up to this one always counts as rounding ({TOLERANCE:g})")
    add("--plot", metavar="FILE", help="draw both loss curves (.png or .svg; needs matplotlib)")
    add("--keep", metavar="DIR", help="keep the records there")
    add("--show-output", action="store_true", help="show what the runs write, not only when they fail")
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def _fail(what, code, output):
    lines = output.decode(errors="replace").splitlines()[-15:]
    raise Problem(f"the run with {what} failed with code {code}", "its last lines were\n  " + "\n  ".join(lines))


def _settings(args, folder):
    settings = {"LOCKSTEP_RECORD": str(folder), "PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0")}
    if args.steps:
        settings["LOCKSTEP_RECORD_STEPS"] = str(args.steps)
    return settings


def run_one(args, program, folder, **more):
    """One process, without a launcher."""
    print("verify: one process" + (", its weights changed in their last bit" if more else "") + " ...", flush=True)
    result = subprocess.run(program, env={**os.environ, **_settings(args, folder), **more}, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if args.show_output:
        sys.stdout.write(result.stdout.decode(errors="replace"))
    if result.returncode != 0:
        _fail("one process", result.returncode, result.stdout)


def run_many(job_start, args, folder):
    print(f"verify: {job_start.plan.ranks} ranks ...", flush=True)
    job_start.set(**_settings(args, folder), LOCKSTEP_RUN_OUTPUT="first")
    view = KeptView(args.show_output)
    job = Job(job_start.command, job_start.environment, job_start.token, view)
    code = job.run()
    if job.received is not None:
        raise KeyboardInterrupt
    if code != 0:
        _fail(f"{job_start.plan.ranks} ranks", code, view.text + view.errors)


def check_record(folder, what):
    if not (folder / "rank-0.losses").exists() or not (folder / "rank-0.losses").stat().st_size:
        raise Problem(f"the run with {what} recorded no loss",
                      "does the script train with TensorFlow, and is Lockstep installed in this Python?")


def plot(one, many, path, num_ranks):
    try:
        import matplotlib
    except ImportError:
        raise Problem("--plot needs matplotlib", "pip install matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    from lockstep.record import read_losses
    figure, axes = pyplot.subplots(figsize=(6.4, 3.8))
    for folder, label, style in ((one, "1 process", {"linewidth": 4, "color": "#9a9a9a"}),
                                 (many, f"{num_ranks} ranks", {"linewidth": 1.4, "color": "#d1495b"})):
        losses = read_losses(folder / "rank-0.losses")
        axes.plot([step for step, _ in losses], [loss for _, loss in losses], label=label, **style)
    axes.set(xlabel="step", ylabel="loss")
    axes.grid(color="#dddddd")
    axes.legend(frameon=False)
    figure.tight_layout()
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise Problem(f"{path} cannot be written ({error})", "name a file that ends in .png or .svg") from None


def tell(result, num_ranks, tolerance, yardstick):
    print(f"losses    {result.num_steps} steps compared; largest difference {result.loss_difference:.2g} "
          f"(step {result.loss_step})")
    if result.num_variables:
        where = f" ('{result.weight_name}')" if result.weight_name else ""
        print(f"weights   {result.num_variables} variables compared; largest difference {result.weight_difference:.2g}{where}")
    else:
        print("weights   not recorded by both runs")
    if yardstick:
        print(f"rounding  changes the losses of this script by up to {max(yardstick.losses.values(), default=0):.2g}, its "
              f"weights by up to {max(yardstick.weights.values(), default=0):.2g} of their size")
    for complaint in result.complaints:
        print(f"DIFFERS   {complaint}")
    verdict = "do NOT agree" if result.complaints else "agree within rounding"
    print(f"1 process and {num_ranks} ranks {verdict} (tolerance {tolerance:g}"
          + (f", or {FACTOR} times what rounding does)" if yardstick else ")"))


def compare(args, program, folder):
    """(what was seen, the yardstick if one was needed)"""
    one, many, nudged = folder / "one", folder / "many", folder / "nudged"
    result = compare_folders(one, many, args.tolerance)
    if not result.complaints or not result.may_be_rounding:
        return result, None
    run_one(args, program, nudged, LOCKSTEP_RECORD_NUDGE="on")
    check_record(nudged, "changed weights")
    yardstick = read_yardstick(one, nudged)
    return compare_folders(one, many, args.tolerance, yardstick), yardstick


def main(args):
    program = run.program_of(args)
    run.check_tensorflow(program)
    job_start = start.Start(args, program)
    job_start.check_hosts()
    with tempfile.TemporaryDirectory(prefix="lockstep-verify-") as temporary:
        folder = Path(args.keep).resolve() if args.keep else Path(temporary)
        one, many = folder / "one", folder / "many"
        run_one(args, program, one)
        check_record(one, "one process")
        run_many(job_start, args, many)
        check_record(many, f"{job_start.plan.ranks} ranks")
        result, yardstick = compare(args, program, folder)
        if args.plot:
            plot(one, many, args.plot, job_start.plan.ranks)
    tell(result, job_start.plan.ranks, args.tolerance, yardstick)
    return 1 if result.complaints else 0
