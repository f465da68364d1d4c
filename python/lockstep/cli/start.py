# SPDX-License-Identifier: Apache-2.0
"""From the options of a command to a Plan: how many ranks, where, with which cores and threads."""
import os
import shlex
import shutil
import sys
import uuid
from pathlib import Path

from lockstep.launch import hosts as hosts_module
from lockstep.launch import machine, mpich, openmpi, slurm
from lockstep.launch.mpi import find_launcher, library_mpi
from lockstep.launch.plan import Plan
from lockstep.launch.problem import Problem

RANK_FILE = Path(__file__).resolve().parent.parent / "launch" / "rank.py"


def positive(text):
    number = int(text) if text.isdigit() else 0
    if number < 1:
        import argparse
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 up")
    return number


def seconds(text):
    import argparse
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds, more than 0")
    return number


def add_arguments(parser):
    group = parser.add_argument_group("where it runs")
    add = group.add_argument
    add("-n", "--ranks", type=positive, metavar="N",
        help="number of ranks; without it: the slots of the hosts or of the Slurm allocation; on one machine one per GPU, "
             "or one per four cores and at least two")
    add("-H", "--hosts", metavar="HOST:SLOTS,...", help="hosts and how many ranks each takes")
    add("--hostfile", metavar="FILE", help="the same in a file: one host per line, as 'node1 slots=4' or 'node1:4'")
    add("--threads", type=positive, metavar="T", help="threads and cores per rank; without it: the host's cores divided")
    add("--oversubscribe", action="store_true", help="allow more ranks than slots or cores")
    add("--bind", choices=("auto", "none"), default="auto", help="auto: each rank has its own cores; none: it roams")
    add("--interface", default="", metavar="NAME", help="network interface between hosts, as eth0 or ib0")
    add("--agent", default="", metavar="COMMAND", help="what starts a process on another host, instead of ssh")
    add("--mpirun", metavar="PATH", help="the launcher, where it is not found by itself")
    add("--launcher", choices=("auto", "mpi", "srun"), default="auto",
        help="mpi: MPI's own; srun: Slurm's; auto: srun inside a Slurm allocation when it knows this MPI")
    add("--mpi-args", default="", metavar="TEXT", help="more words for the launcher, as --mpi-args='--tag-output'")
    add("--no-host-check", action="store_true", help="do not ask the other hosts for their Lockstep before the start")


def _check_not_a_rank():
    """A launcher inside each rank of another would start everything many times."""
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"):
        if os.environ.get(name, "").isdigit() and int(os.environ[name]) > 1:
            raise Problem(f"this is already one of {os.environ[name]} ranks that another launcher has started ({name})",
                          "use lockstep by itself, or start python with that launcher")


def _hosts(args):
    if args.hosts and args.hostfile:
        raise Problem("both -H and --hostfile are given", "use one of them")
    if args.hosts:
        return hosts_module.parse_hosts(args.hosts)
    return hosts_module.parse_hostfile(args.hostfile) if args.hostfile else []


def _slots(hosts, is_slurm):
    """(how many ranks there is room for, what offers it)"""
    if hosts:
        return sum(host.slots for host in hosts), "the hosts"
    if is_slurm:
        return sum(slurm.tasks_per_node(os.environ)), "the Slurm allocation"
    return machine.cores(), "this machine"


def _num_ranks(args, hosts, is_slurm):
    slots, where = _slots(hosts, is_slurm)
    if args.ranks is None:
        if hosts or is_slurm:
            return slots
        if args.threads:
            return max(1, slots // args.threads)
        return machine.default_ranks(slots, machine.gpus())
    if args.ranks > slots and not args.oversubscribe:
        raise Problem(f"{args.ranks} ranks are more than the {slots} slots of {where}",
                      "ask for fewer with -n, or allow it with --oversubscribe")
    return args.ranks


def _cores_per_rank(args, plan, is_slurm):
    """0 where it cannot be known: then ranks are not bound, and threads not limited."""
    if args.threads:
        return args.threads
    if is_slurm:
        nodes = slurm.cpus_per_node(os.environ)
        return max(1, min(nodes) * len(nodes) // max(plan.ranks, len(nodes)))
    pairs = plan.ranks_per_host
    if pairs and not all(hosts_module.is_local(name) for name, _ in pairs) and not hosts_module.is_local(pairs[0][0]):
        return 0
    return max(1, machine.cores() // max([here for _, here in pairs] or [plan.ranks]))


def _check_cores(plan, is_slurm):
    """On this machine it can be said before the launcher does."""
    needed = plan.ranks * plan.cores
    if not (plan.hosts or is_slurm or plan.is_oversubscribed) and needed > machine.cores():
        raise Problem(f"{plan.ranks} ranks with {plan.cores} cores each need {needed}, this machine has {machine.cores()}",
                      "lower -n or --threads, or let ranks roam with --bind none")


def _thread_settings(args, cores):
    """What the user has set stays, unless --threads says otherwise."""
    if cores == 0:
        return {}
    wanted = dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"), cores)
    return {name: str(value) for name, value in wanted.items() if args.threads or name not in os.environ}


def _choose_launcher(args, mpi, is_slurm):
    """(path, function that makes its command line)"""
    if args.launcher == "srun" and not is_slurm:
        raise Problem("--launcher srun needs a Slurm allocation", "use it inside salloc or sbatch")
    srun = shutil.which("srun") if is_slurm and args.launcher != "mpi" and not args.mpirun else None
    mpi_type = slurm.choose_mpi_type(srun, mpi.family) if srun else None
    if mpi_type:
        return srun, lambda plan, environment: slurm.command(plan, environment, mpi_type)
    if args.launcher == "srun":
        raise Problem(f"srun has no way to start ranks of {mpi} (srun --mpi=list)", "leave --launcher away")
    return find_launcher(mpi, args.mpirun), {"openmpi": openmpi, "mpich": mpich}[mpi.family].command


class Start:
    """A plan with its command line and environment."""

    def __init__(self, args, program):
        _check_not_a_rank()
        mpi = library_mpi()
        is_slurm = slurm.is_inside(os.environ)
        hosts = _hosts(args)
        launcher, make_command = _choose_launcher(args, mpi, is_slurm)
        self.plan = Plan(program=[sys.executable, "-I", "-S", str(RANK_FILE), *program],
                         ranks=_num_ranks(args, hosts, is_slurm), launcher=launcher, hosts=hosts,
                         is_oversubscribed=args.oversubscribe, is_root=os.geteuid() == 0, interface=args.interface,
                         left_out=machine.inner_interfaces(), agent=args.agent, more_args=shlex.split(args.mpi_args))
        cores = _cores_per_rank(args, self.plan, is_slurm)
        self.plan.cores = cores if args.bind == "auto" and self.plan.ranks > 1 else 0
        _check_cores(self.plan, is_slurm)
        self.token = uuid.uuid4().hex
        self.plan.env.update(_thread_settings(args, cores))
        self.plan.env["LOCKSTEP_LOG_DIR"] = "-"  # rank.py has put the ranks' output where it belongs
        if "PYTHONHASHSEED" not in os.environ:  # strings hash alike on all ranks, and no rank has to start again for it
            self.plan.env["PYTHONHASHSEED"] = str(int(self.token[:8], 16))
        self.must_check = not (is_slurm or args.no_host_check)
        # Hydra ends the other ranks when one leaves without MPI_Finalize, and may say 0 then.
        self.must_hear = self.plan.ranks if make_command is mpich.command else 0
        self._make_command = make_command

    def set(self, **settings):
        self.plan.env.update(settings)

    @property
    def environment(self):
        return {**os.environ, "LOCKSTEP_RUN_TOKEN": self.token, **self.plan.env}

    @property
    def command(self):
        return self._make_command(self.plan, self.environment)

    def check_hosts(self):
        if self.must_check and self.plan.hosts:
            hosts_module.check_hosts(self.plan.hosts, self.plan.agent or hosts_module.SSH, sys.executable)
