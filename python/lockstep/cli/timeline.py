# SPDX-License-Identifier: Apache-2.0
"""Join the ranks' traces (LOCKSTEP_TRACE=DIR) into one file for Perfetto, and write a report of where the time of each
step went: compute, communication, hidden and exposed, the slowest rank, the largest tensors."""
from pathlib import Path
from statistics import median

from lockstep.launch.problem import Problem

EXAMPLES = """examples:
  LOCKSTEP_TRACE=trace lockstep run -n 2 train.py
  lockstep timeline trace                  # writes trace/timeline.json and trace/report.html
  xdg-open trace/report.html; open trace/timeline.json at https://ui.perfetto.dev"""


def add_arguments(parser):
    parser.add_argument("folder", metavar="DIR", help="where the traces are (rank-0.json, ...)")
    parser.add_argument("-o", "--output", metavar="DIR", help="where to write; without it: beside the traces")
    parser.add_argument("--title", default="", help="heading of the report")


def summary(traces):
    from lockstep.trace.steps import find_steps, shares_of
    steps = find_steps(traces)
    if not steps:
        return "no tensor was reduced more than once: no steps to show"
    shares = shares_of(steps)
    length = median(step.mean("length") for step in steps) / 1000
    return (f"{len(steps)} steps of {length:.3g} ms (median): {shares['compute']:.1f} % compute, {shares['exposed']:.1f} % "
            f"exposed communication (waiting for the slowest rank: {shares['late']:.1f} %)")


def main(args):
    from lockstep.trace.files import read_folder, write_joined
    from lockstep.trace.report import make_report
    traces = read_folder(args.folder)
    folder = Path(args.output or args.folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_joined(traces, folder / "timeline.json")
        title = args.title or f"Lockstep timeline: {Path(args.folder).resolve().name}"
        (folder / "report.html").write_text(make_report(traces, title), encoding="utf-8")
    except OSError as error:
        raise Problem(f"{folder} cannot be written ({error})", "name another folder with -o") from None
    for trace in traces:
        if not trace.is_complete:
            print(f"rank {trace.rank}'s trace is cut short: it did not end in order")
    print(summary(traces))
    print(f"{folder}/report.html\n{folder}/timeline.json   (https://ui.perfetto.dev)")
    return 0
