# SPDX-License-Identifier: Apache-2.0
"""Wakes Lockstep in a process that a launcher started with more than one rank.

lockstep.pth (lockstep.start for Pythons of PEP 829) runs at the start of every Python process of the environment: it
looks at a few environment variables, and imports this module only in a rank, or when TensorFlow is imported.  In a rank
nothing else happens until the script imports TensorFlow, Keras or tf_keras; hooks attach at the end of that import.
Elsewhere TensorFlow only gets DataSet.

Children of a rank inherit its environment: LOCKSTEP_RANK_PID tells them that they are not the rank.  A process without a
launcher may start one, as `lockstep run` does: ranks of that are not its children in this sense."""
import os
import sys

# Set by each launcher for its ranks: the number of ranks.  Those of an MPI come first: mpirun under Slurm starts its own
# daemons with srun, whose variables the ranks then see too.  Slurm's SLURM_NTASKS is also there in a batch script, which
# is no rank; SLURM_STEP_NUM_TASKS is set by srun.  Hydra as a PMIx server tells only the ranks of the machine.
SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS")
# The same on all ranks, different in each job.
JOB_VARIABLES = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID", "PMI_JOBID")
# Modules of libraries that ask for the launcher's variables to take the ranks for their own: DeepXDE then wants Horovod, or
# refuses.  They see what they see in one process.
UNAWARE = ("deepxde.config",)
PID_VARIABLE = "LOCKSTEP_RANK_PID"
ALONE = " alone"  # behind the number: it had no launcher
SWITCH = "TF_MPI_ENABLE"

_warnings = []  # signals that ask for a snapshot and came while TensorFlow was being imported


def launched_size():
    """The number of ranks that a launcher started, as far as it tells; 1 without one."""
    for name in SIZE_VARIABLES:
        number = os.environ.get(name, "")
        if number.isdigit():
            return int(number)
    return 1


def _is_child():
    """Of a rank, or of a process alone that has taken part."""
    mark = os.environ.get(PID_VARIABLE, "")
    if not mark or mark.removesuffix(ALONE) == str(os.getpid()):
        return False
    return not (mark.endswith(ALONE) and _has_launcher())


def _has_launcher():
    return any(name in os.environ for name in SIZE_VARIABLES)


def is_rank():
    """Should this process take part?"""
    switch = os.environ.get(SWITCH, "").strip().lower()
    if switch in ("0", "off", "no", "false"):
        return False
    if _is_child():
        return False
    return launched_size() > 1 or switch in ("1", "on", "yes", "true") or any(
        os.environ.get(name) for name in ("LOCKSTEP_RECORD", "LOCKSTEP_STATE"))


def _agree_on_hashing():
    """Strings hash differently in each process: sets and what is built from them would have another order on each rank.
    The hash seed is fixed when Python starts, so a rank starts again, once, with a seed that the ranks share.

    Nothing has been imported yet, and the process stays the same one.  PYTHONHASHSEED in the environment, also as
    "random", is the user's word and stays; `lockstep run` sets it, and saves the second start."""
    if not sys.flags.hash_randomization or sys.flags.ignore_environment or "PYTHONHASHSEED" in os.environ:
        return
    if not hasattr(sys, "orig_argv") or not sys.executable or os.path.realpath(sys.executable) != os.path.realpath("/proc/self/exe"):
        return  # Python 3.9, or Python inside another program
    import zlib  # here, for the sake of every process that is no rank
    # A job that goes on from its snapshots has the seed that it had before.
    job = next((os.environ[name] for name in ("LOCKSTEP_STATE", *JOB_VARIABLES) if os.environ.get(name)), "")
    os.environ["PYTHONHASHSEED"] = str(zlib.crc32(job.encode()))
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _hear_warnings():
    """A signal that asks for a snapshot must not end a rank that imports TensorFlow, which takes seconds; restart/wishes.py
    hears of it and takes over.  SIGTERM does end it: there is nothing to keep yet."""
    import signal  # here, for the sake of every process that is no rank

    def hear(number, _frame):
        _warnings.append(number)

    for name in os.environ.get("LOCKSTEP_SNAPSHOT_SIGNAL", "USR2").split(","):
        number = getattr(signal, f"SIG{name.strip().upper().removeprefix('SIG')}", None)
        if number not in (None, signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, hear)


def _print_whole_lines():
    """Lines appear when they are printed, as on a terminal, and whole, also with PYTHONUNBUFFERED, as containers often have
    it: print() would hand its words over one by one, and they would mix with those of other ranks."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True, write_through=False)


def was_warned():
    return bool(_warnings)


def wake():
    if is_rank():
        _agree_on_hashing()
        os.environ[PID_VARIABLE] = f"{os.getpid()}{'' if _has_launcher() else ALONE}"
        _print_whole_lines()
        if os.environ.get("LOCKSTEP_STATE"):
            _hear_warnings()
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(is_rank()))


def find(name, path=None, target=None):
    """Wakes at the import of TensorFlow, in a process that is no rank: for tf.DataSet."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return None  # it comes after this
    wake()
    return sys.meta_path[0].find_spec(name, path, target)


def _data_set(*args, **kwargs):
    """lockstep.DataSet, which reads data sets of files: MaTEx's, and so known to its scripts as tf.DataSet."""
    from lockstep import data
    return data.DataSet(*args, **kwargs)


def _give_data_set(module):
    module.DataSet = _data_set


_callbacks = {}


def after_import(name, function):
    """Has function(module) called at the end of an import that is still to come."""
    _callbacks[name] = function


class _Finder:
    """Finds what the other finders find, and has attach() called when the module is there.

    No class of importlib.abc: importing that module would cost more than all the rest here."""

    NAMES = ("tensorflow", "keras", "tf_keras")

    def __init__(self, is_of_rank):
        self.is_of_rank = is_of_rank

    def find_spec(self, name, path=None, target=None):
        if name not in self.NAMES and name not in _callbacks and name not in UNAWARE:
            return None
        spec = self._find(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, name)
        return spec

    def _find(self, name, path, target):
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None


class _Loader:
    def __init__(self, loader, name):
        self._loader, self._name = loader, name

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        if self._name in UNAWARE:
            self._execute_unaware(module)
            return
        self._loader.exec_module(module)
        if self._name in _callbacks:
            _callbacks[self._name](module)
            return
        if self._name == "tensorflow":
            _give_data_set(module)
            after_import("tensorflow.compat.v1", _give_data_set)  # is loaded once more when it is imported by this name
        if is_rank():
            from lockstep import attach
            attach.attached(self._name)

    def _execute_unaware(self, module):
        """Before TensorFlow is there, nobody has joined the job, and the variables are still needed."""
        names = [name for name in SIZE_VARIABLES if name in os.environ] if is_rank() and "tensorflow" in sys.modules else []
        hidden = {name: os.environ.pop(name) for name in names}
        try:
            self._loader.exec_module(module)
        finally:
            os.environ.update(hidden)

    def __getattr__(self, name):
        return getattr(self._loader, name)
