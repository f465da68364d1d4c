# SPDX-License-Identifier: Apache-2.0
"""Plain TensorFlow scripts, run with one process and with several ranks: the same lines, the same files.

Each folder is a way of writing or a promise.  Its cases.txt has one line per run:

    script.py [arguments] | ranks=2,3 env:NAME=VALUE tolerance=2e-5 mpi=openmpi float64 long
    together NAME: script.py [arguments]; script.py; ... | ...

together: the scripts run one after another in one process, which saves the time that TensorFlow takes to start.
float64: Keras computes in float64, by its configuration file, and numbers must agree to 10 digits: what is left of a
difference in rounding after some steps of training cannot hide a mistake.

A script prints its numbers and saves its weights as anybody's does; what it prints and every file it leaves are compared.
Scripts know nothing of ranks, and are not told."""
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from compare import compare_folders, compare_log, compare_text
from jobs import ROOT, Mpi, run_process, run_ranks

HERE = Path(__file__).resolve().parent
PYTHON = ROOT / ".venv" / "bin" / "python"
TIME_LIMIT = 480
TOLERANCE = 2e-5
FLOAT64_TOLERANCE = 1e-10
KERAS_FLOAT64 = '{"floatx": "float64", "epsilon": 1e-07, "backend": "tensorflow", "image_data_format": "channels_last"}'


class Case:
    """A line of cases.txt"""

    def __init__(self, folder, line):
        command, _, options = line.partition("|")
        self.path, self.args, name = self._parse(folder, command)
        self.ranks, self.env, self.tolerance, self.mpi = [2, 3], {}, TOLERANCE, "openmpi"
        self.is_long = self.is_float64 = False
        self.python = PYTHON
        for option in shlex.split(options):
            self._set(option)
        self.id = "-".join([folder.name, *name, *self.env.values(), *([self.mpi] if self.mpi != "openmpi" else []),
                            *(["float64"] if self.is_float64 else [])])

    @staticmethod
    def _parse(folder, command):
        """(path, arguments, words of the name)"""
        if command.startswith("together "):
            name, _, scripts = command.removeprefix("together ").partition(":")
            return HERE / "together.py", [folder, *map(str.strip, scripts.split(";"))], ["together", name]
        script, *args = shlex.split(command)
        return folder / script, args, [script.removesuffix(".py"), *args]

    def _set(self, option):
        name, _, value = option.partition("=")
        if name == "ranks":
            self.ranks = [int(n) for n in value.split(",")]
        elif name.startswith("env:"):
            self.env[name.removeprefix("env:")] = value
        elif name == "tolerance":
            self.tolerance = float(value)
        elif name == "mpi":
            self.mpi = value
        elif option == "float64":
            self.is_float64, self.tolerance = True, FLOAT64_TOLERANCE
        elif option == "long":
            self.is_long = True
        else:
            raise ValueError(f"{self.path}: no option '{option}'")


def all_cases():
    """The largest number of ranks in every test run, the others in the long ones."""
    for table in sorted(HERE.glob("*/cases.txt")):
        for line in table.read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                case = Case(table.parent, line)
                *others, most = case.ranks
                yield pytest.param(case, [most], id=f"{case.id}-{most}", marks=[pytest.mark.long] if case.is_long else [])
                if others:
                    yield pytest.param(case, others, id=f"{case.id}-{others[0]}", marks=[pytest.mark.long])


@pytest.mark.parametrize("case,ranks", list(all_cases()))
def test_same_as_one_process(case, ranks, tmp_path):
    if not Mpi(case.mpi).folder.is_dir():
        pytest.skip(f"the library is not built with {case.mpi}")
    check_case(case, ranks, tmp_path)


def check_case(case, ranks, tmp_path):
    """Runs the script with one process and with each of these numbers of ranks, and compares."""
    with ThreadPoolExecutor() as pool:
        one = pool.submit(_run, case, tmp_path / "one", None)
        jobs = {n: pool.submit(_run, case, tmp_path / f"ranks-{n}", n) for n in ranks}
    for n, job in jobs.items():
        compare_text(one.result(), job.result(), case.tolerance, f"standard output with {n} ranks")
        compare_folders(tmp_path / "one", tmp_path / f"ranks-{n}", case.tolerance)
        for log in (tmp_path / f"ranks-{n}" / "rank-logs").glob("rank-*.log"):
            compare_log(one.result(), log.read_text(), case.tolerance, f"{log.name} of {n} ranks")


def _run(case, folder, n):
    """Standard output of the script, run in an empty folder."""
    folder.mkdir()
    home = folder.parent / "keras-home"
    home.mkdir(exist_ok=True)
    if case.is_float64:
        (home / "keras.json").write_text(KERAS_FLOAT64)
    env = {"KERAS_HOME": home, "PYTHONPATH": f"{ROOT / 'python'}:{HERE.parent / 'site'}", "TF_CPP_MIN_LOG_LEVEL": "3",
           "LOCKSTEP_LIB": ROOT / "build" / case.mpi / "lib", "LOCKSTEP_STALL_ABORT_S": "60", "TF_NUM_INTRAOP_THREADS": "1",
           "TF_NUM_INTEROP_THREADS": "2", "LOCKSTEP_LOG_DIR": "rank-logs", "LOCKSTEP_SUMMARY": "off", **case.env}
    if n is None:
        job = run_process([case.python, case.path, *case.args], env=env, cwd=folder, timeout=TIME_LIMIT)
    else:
        job = run_ranks(Mpi(case.mpi), n, case.python, [case.path, *case.args], env=env, cwd=folder, timeout=TIME_LIMIT)
    assert job.code == 0, str(job)
    return job.stdout
