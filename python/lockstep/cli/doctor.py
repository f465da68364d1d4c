# SPDX-License-Identifier: Apache-2.0
"""Find out what is wrong with a machine or a cluster: starts a small job as `lockstep run` would, looks at every host,
measures, and prints each finding with what to do.  The exit code is 1 when something must be put right."""
import json
import sys
import threading

from lockstep.cli import start
from lockstep.cli.findings import Finding, findings_of
from lockstep.cli.view import KeptView
from lockstep.launch.job import Job
from lockstep.launch.problem import Problem

EXAMPLES = """examples:
  lockstep doctor
  lockstep doctor -n 4 --oversubscribe --no-tensorflow
  lockstep doctor -H node1:4,node2:4"""

STALL_S = "300"  # TensorFlow loads on one rank of a host while the others wait
LINES_SHOWN = 12


def add_arguments(parser):
    start.add_arguments(parser)
    parser.add_argument("--no-tensorflow", action="store_true", help="do not load TensorFlow")
    parser.add_argument("--limit", type=start.positive, default=240, metavar="S", help="give up after so many seconds (240)")
    parser.add_argument("--json", metavar="FILE", help="write what the ranks saw and measured")


def run_probe(job_start, limit):
    """What the ranks saw; Problem with the last lines when they did not get so far."""
    job_start.set(LOCKSTEP_STALL_WARN_S=STALL_S, TF_MPI_ENABLE="0", LOCKSTEP_RUN_OUTPUT="first")
    listener = KeptView()
    job = Job(job_start.command, job_start.environment, job_start.token, listener)
    timer = threading.Timer(limit, lambda: job.process and job.process.terminate())
    timer.start()
    try:
        code = job.run()
    finally:
        timer.cancel()
    for line in listener.text.decode(errors="replace").splitlines():
        if line.startswith("PROBE "):
            return json.loads(line[len("PROBE "):])
    said = [line for line in listener.errors.decode(errors="replace").splitlines() if line.strip()]
    raise Problem(f"a job of {job_start.plan.ranks} ranks did not run (code {code})",
                  "the last lines were\n" + "\n".join("      " + line for line in said[-LINES_SHOWN:]))


def probe_program(args):
    return [sys.executable, "-m", "lockstep.cli.probe", *(["--no-tensorflow"] if args.no_tensorflow else [])]


def show(finding, found):
    found.append(finding)
    print(finding, flush=True)


def examine(args, found):
    job_start = start.Start(args, probe_program(args))
    show(Finding("ok", f"launcher: {job_start.plan.launcher}, {job_start.plan.ranks} ranks"), found)
    job_start.check_hosts()
    if job_start.plan.hosts:
        show(Finding("ok", "hosts answer, with the same Lockstep: "
                     + ", ".join(host.name for host in job_start.plan.hosts)), found)
    report = run_probe(job_start, args.limit)
    expected = len(job_start.plan.ranks_per_host) if job_start.plan.hosts else 0
    for finding in findings_of(report, expected, not args.no_tensorflow):
        show(finding, found)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(report, file, indent=1)


def main(args):
    found = []
    try:
        examine(args, found)
    except Problem as problem:
        show(Finding("FAIL", problem.what, problem.todo), found)
    bad = sum(finding.level == "FAIL" for finding in found)
    doubtful = sum(finding.level == "warn" for finding in found)
    print(f"{len(found)} findings: {bad} to be put right, {doubtful} to look at")
    return 1 if bad else 0
