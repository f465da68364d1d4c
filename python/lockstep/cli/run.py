# SPDX-License-Identifier: Apache-2.0
"""Start a script on many ranks: MPI's own launcher, with cores, threads and networks set as they should be.

Ctrl-C ends all ranks.  The exit code is that of the first rank that failed; 75 when a signal asked the job to end and it has
written a snapshot (--state)."""
import argparse
import os
import re
import shlex
import shutil
import sys
import tempfile
import zlib
from pathlib import Path

from lockstep.cli import start
from lockstep.launch import restarts
from lockstep.launch.job import Job
from lockstep.launch.problem import Problem

EXAMPLES = """examples:
  lockstep run train.py                                   # this machine, all of it
  lockstep run -n 4 --threads 2 train.py --epochs 3       # what follows the script is the script's
  lockstep run -H node1:4,node2:4 --log-dir logs train.py
  lockstep run -n 2 -m my_package.train
  lockstep run -n 4 --restarts 3 --state run1 train.py    # goes on after a failure from its last snapshot
  lockstep run -n 4 --dry-run train.py                    # print the command, start nothing"""

MIN_TENSORFLOW = (2, 16)


def add_arguments(parser):
    parser.usage = "lockstep run [options] script.py [arguments of the script]"
    start.add_arguments(parser)
    group = parser.add_argument_group("what it does")
    add = group.add_argument
    add("-m", dest="module", metavar="MODULE", help="run a module instead of a script, as python -m does")
    add("--batch", choices=("global", "per-rank"),
        help="global: the script's batch is divided (the numbers of one process); per-rank: each rank takes all of it")
    add("--log-dir", metavar="DIR", help="keep each rank's output there, as rank-N.log (or LOCKSTEP_LOG_DIR)")
    add("--output", choices=("first", "all"), default="first",
        help="first: rank 0 writes to the terminal, the others are shown when they fail; all: every rank does")
    add("--ranks-table", action="store_true", help="show a row per rank: step, step time, wait, CPU, memory")
    add("--no-progress", action="store_true", help="no progress line")
    add("--dry-run", action="store_true", help="print the command and what is set for it, start nothing")
    group = parser.add_argument_group("what it does after a failure (docs/restart.md)")
    add = group.add_argument
    add("--state", metavar="DIR", help="keep snapshots there; a start with the same folder goes on from the newest")
    add("--restarts", type=start.positive, metavar="K", default=0, help="start again up to K times; needs --state")
    add("--snapshot-every", type=start.seconds, metavar="S", help="seconds between snapshots (300)")
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def split_words(parser, words):
    """(own options, script and its arguments): argparse alone would take the script's options for its own."""
    takes_value = {name: action.nargs != 0 for action in parser._actions for name in action.option_strings}
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        name, equals, _ = words[at].partition("=")
        if name == "-m":
            at += 2
            break
        if not equals and takes_value.get(name, False):
            at += 1
        at += 1
    tail = words[at:]
    return words[:at], tail[1:] if tail[:1] == ["--"] else tail


def _is_program(path):
    """An executable that is no Python file is started as it is."""
    return os.access(path, os.X_OK) and path.is_file() and path.suffix != ".py"


def program_of(args):
    """The command of one rank."""
    if args.module:
        return [sys.executable, "-m", args.module, *args.program]
    if not args.program:
        raise Problem("no script is named", "for example: lockstep run -n 2 train.py")
    path = Path(args.program[0])
    if not path.exists():
        raise Problem(f"there is no file {path}", f"the script is looked for from {os.getcwd()}")
    if path.is_dir() and not (path / "__main__.py").is_file():
        raise Problem(f"{path} is a folder", "name the script in it")
    if not os.access(path, os.R_OK):
        raise Problem(f"{path} cannot be read", "check its permissions")
    if _is_program(path):
        return [str(path.absolute()), *args.program[1:]]  # links kept: python of a virtual environment is one
    return [sys.executable, *args.program]


def tensorflow_version():
    """The version of the installed TensorFlow, without importing it; None when there is none."""
    from importlib import metadata
    for name in ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly", "tensorflow-rocm"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def check_tensorflow(program):
    """A script that imports TensorFlow needs one that Lockstep knows."""
    script = Path(program[1]) if len(program) > 1 and program[0] == sys.executable else None
    if script is None or script.suffix != ".py" or not script.is_file():
        return
    if not re.search(r"^\s*(import|from)\s+(tensorflow|keras|tf_keras)\b", script.read_text(errors="replace"), re.MULTILINE):
        return
    version = tensorflow_version()
    if version is None:
        raise Problem(f"{script} imports TensorFlow, and {sys.executable} has none", "pip install tensorflow")
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < MIN_TENSORFLOW:
        raise Problem(f"TensorFlow {version} is older than {'.'.join(map(str, MIN_TENSORFLOW))}, the oldest that Lockstep "
                      "works with", "pip install --upgrade tensorflow")


def _settings(args, log_dir, status_dir):
    settings = {"LOCKSTEP_RUN_OUTPUT": args.output}
    if "PYTHONUNBUFFERED" not in os.environ:
        settings["PYTHONUNBUFFERED"] = "1"  # lines appear when they are printed, not when a buffer is full
    if args.batch:
        settings["LOCKSTEP_BATCH"] = args.batch
    if log_dir:
        settings["LOCKSTEP_RUN_LOG_DIR"] = str(log_dir)
    if status_dir:
        settings["LOCKSTEP_STATUS_DIR"] = str(status_dir)
    if args.state:
        settings["LOCKSTEP_STATE"] = str(Path(args.state).absolute())
        if "PYTHONHASHSEED" not in os.environ:  # the same in every start
            settings["PYTHONHASHSEED"] = str(zlib.crc32(settings["LOCKSTEP_STATE"].encode()))
    if args.snapshot_every:
        settings["LOCKSTEP_SNAPSHOT_S"] = str(args.snapshot_every)
    return settings


def _make_log_dir(args):
    name = args.log_dir or os.environ.get("LOCKSTEP_LOG_DIR", "-")
    if name in ("", "-"):
        return None
    folder = Path(name).resolve()
    try:
        if not args.dry_run:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Problem(f"the log directory {folder} cannot be made ({error})", "name another with --log-dir") from None
    return folder


def shell_line(job):
    """What a user could type."""
    settings = [f"{name}={value}" for name, value in sorted(job.plan.env.items())]
    return shlex.join([*(["env"] if settings else []), *settings, *job.command])


def say_how_it_ended(job, log_dir):
    failures = job.reports.failures
    if job.received is not None or not failures:
        return
    first = failures[0]
    how = f"code {first.code}" if first.code < 128 else f"signal {first.code - 128}"
    where = f"; its output is in {log_dir}/rank-{first.rank}.log" if log_dir else ""
    print(f"lockstep run: rank {first.rank} on host {first.host} ended first, with {how}{where}", file=sys.stderr)


def main(args):
    program = program_of(args)
    if (args.restarts or args.snapshot_every) and not args.state:
        raise Problem("--restarts and --snapshot-every need a folder for snapshots", "name one with --state")
    check_tensorflow(program)
    log_dir = _make_log_dir(args)
    job_start = start.Start(args, program)
    if args.dry_run:
        job_start.set(**_settings(args, log_dir, None))
        print(shell_line(job_start))
        return 0
    job_start.check_hosts()
    state = restarts.State(args.state) if args.state else None
    status_dir = None if args.no_progress and not state else Path(log_dir or tempfile.mkdtemp(prefix="lockstep-")) / "status"
    try:
        return _run_until_done(args, program, job_start, state, log_dir, status_dir)
    finally:
        if status_dir is not None:
            shutil.rmtree(status_dir if log_dir else status_dir.parent, ignore_errors=True)


def _run_until_done(args, program, job_start, state, log_dir, status_dir):
    for left in range(args.restarts, -1, -1):
        code, job = _run(args, job_start, state, log_dir, status_dir)
        if state is None:
            return code
        if code == 0:
            state.clear()
        if code in (0, restarts.END_CODE) or job.received is not None:
            return code
        reason = restarts.why_not(state, code, _was_stepping(status_dir))
        if reason or left == 0:
            text = reason or "no restart is left"
            _say(f"{text}; not started again. The snapshots in {state.path} are kept" if args.restarts else
                 f"the snapshots are kept: the same command goes on from {state.place()}")
            return code
        lost = restarts.drop_lost_hosts(args, job_start.plan.hosts, job_start.plan.agent, sys.executable)
        job_start = start.Start(args, program)
        _say(f"{f'lost {chr(44).join(lost)}; ' if lost else ''}starting again with {_number(job_start.plan.ranks, 'rank')} from "
             f"{state.place()}; {_number(left - 1, 'restart')} left")
    return code


def _number(count, what):
    return f"{count} {what}{'' if count == 1 else 's'}"


def _say(text):
    print(f"lockstep run: {text}", file=sys.stderr, flush=True)


def _was_stepping(status_dir):
    """Has a rank of the last start told of a step?"""
    from lockstep import progress
    return any(status.step > 0 for status in progress.read_all(status_dir))


def _run(args, job_start, state, log_dir, status_dir):
    from lockstep.cli.view import make_view
    if status_dir is not None:
        shutil.rmtree(status_dir, ignore_errors=True)  # of the start before
        status_dir.mkdir()
    if state is not None:
        state.begin()
    job_start.set(**_settings(args, log_dir, status_dir))
    view = make_view(None if args.no_progress else status_dir, args.ranks_table, log_dir)
    job = Job(job_start.command, job_start.environment, job_start.token, view, state.ask_to_end if state else None)
    code = job.run()
    if code != restarts.END_CODE or state is None:
        say_how_it_ended(job, log_dir)
    return code, job
