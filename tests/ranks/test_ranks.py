# SPDX-License-Identifier: Apache-2.0
"""Runs the programs of this folder under mpirun, as cases.txt says.

A program passes when it ends with code 0 and a rank has printed the closing line of check.h without failures."""
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from jobs import Mpi, run_ranks

FOLDER = Path(__file__).resolve().parent
CLOSING_LINE = re.compile(r"^(\d+) passed, (\d+) failed$", re.MULTILINE)
DEFAULT_LIMIT = 60
LONG_SUFFIX = "L"  # of a number of ranks
MPIS = ("openmpi", "mpich")


@dataclass
class Case:
    program: str
    ranks: int
    args: list = field(default_factory=list)
    env: dict = field(default_factory=dict)
    limit: int = DEFAULT_LIMIT
    mpis: list = field(default_factory=list)
    is_long: bool = False
    is_apart: bool = False  # from MPI: one of them will do in a quick run

    def __str__(self):
        settings = [f"{name}={value}" for name, value in self.env.items()]
        return "-".join([self.program, str(self.ranks), *self.args, *settings])


def parse_option(case, option):
    key, _, value = option.partition("=")
    if key == "arg":
        case.args.append(value)
    elif key == "env" and "=" in value:
        name, _, text = value.partition("=")
        case.env[name] = text
    elif key == "timeLimit":
        case.limit = int(value)
    elif key == "mpi" and value in MPIS:
        case.mpis.append(value)
    elif option == "long":
        case.is_long = True
    elif option == "apart":
        case.is_apart = True
    else:
        raise ValueError(f"unknown option '{option}'")


def parse_cases(text):
    """One Case per line and number of ranks; ValueError names the line that is wrong."""
    cases = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = shlex.split(line, comments=True)
        if not words:
            continue
        try:
            if len(words) < 2:
                raise ValueError("a line needs a program and a number of ranks")
            for ranks in words[1].split(","):
                case = Case(words[0], int(ranks.removesuffix(LONG_SUFFIX)), is_long=ranks.endswith(LONG_SUFFIX))
                for option in words[2:]:
                    parse_option(case, option)
                cases.append(case)
        except ValueError as error:
            raise ValueError(f"cases.txt:{number}: {error}") from None
    return cases


CASES = parse_cases((FOLDER / "cases.txt").read_text())


def case_params():
    """(MPI, case); what does not use MPI is long with all but the first one that is built."""
    first = next((name for name in MPIS if Mpi(name).folder.is_dir()), MPIS[0])
    for case in CASES:
        for mpi in case.mpis or MPIS:
            is_long = case.is_long or (case.is_apart and mpi != first)
            yield pytest.param(mpi, case, id=f"{mpi}-{case}", marks=[pytest.mark.long] if is_long else [])


@pytest.mark.parametrize("mpi, case", list(case_params()), indirect=["mpi"])
def test_program(mpi, case):
    job = run_ranks(mpi, case.ranks, f"ranks/{case.program}", case.args, case.env, case.limit)
    reports = CLOSING_LINE.findall(job.stdout)
    assert job.code == 0, str(job)
    assert reports, f"no rank printed 'N passed, N failed'\n{job}"
    assert all(int(failed) == 0 for _, failed in reports), str(job)
    assert any(int(passed) > 0 for passed, _ in reports), f"nothing was tested\n{job}"


def test_every_program_has_a_case():
    programs = {path.stem for path in FOLDER.glob("*.c")}
    named = {case.program for case in CASES}
    assert named == programs, f"without a line: {programs - named}; without a program: {named - programs}"


@pytest.mark.parametrize("line, complaint", [
    ("ring", "needs a program and a number"),
    ("ring two", "invalid literal"),
    ("ring 2 timelimit=3", "unknown option 'timelimit=3'"),
    ("ring 2 env=NAME", "unknown option"),
    ("ring 2 mpi=lam", "unknown option 'mpi=lam'"),
])
def test_a_bad_line_is_an_error_that_names_it(line, complaint):
    with pytest.raises(ValueError, match=f"cases.txt:2: .*{complaint}"):
        parse_cases("# head\n" + line)


def test_a_number_of_ranks_can_be_for_the_long_run():
    assert [(case.ranks, case.is_long) for case in parse_cases("ring 1L,2,4L,5")] == [(1, True), (2, False), (4, True), (5, False)]


def test_a_line_gives_one_case_per_number_of_ranks():
    cases = parse_cases("ring 2,3 arg=-c arg='a b' env=LOCKSTEP_SHM=off timeLimit=7 mpi=mpich long apart")
    assert [case.ranks for case in cases] == [2, 3]
    for case in cases:
        assert (case.program, case.args, case.env) == ("ring", ["-c", "a b"], {"LOCKSTEP_SHM": "off"})
        assert (case.limit, case.mpis, case.is_long, case.is_apart) == (7, ["mpich"], True, True)
