# SPDX-License-Identifier: Apache-2.0
"""The counts at the end of `make test`: nothing that went wrong may be missing from them."""
import importlib.util
import sys
from importlib.machinery import SourceFileLoader

import pytest
from jobs import ROOT


@pytest.fixture(scope="module")
def runner():
    loader = SourceFileLoader("run_tests", str(ROOT / "tools" / "run_tests"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", loader))
    loader.exec_module(module)
    return module


def count(runner, lines):
    suite = runner.UnitSuite()
    for line in lines:
        suite.on_line(line)
    return str(suite.counts)


RESULT = "1/1 Test #1: unit_test_ring ..................   {}    0.01 sec"


@pytest.mark.parametrize("report, result, expected", [
    ("5 passed, 0 failed", "Passed", "5 passed, 0 failed"),
    ("4 passed, 1 failed", "***Failed", "4 passed, 1 failed"),
    ("5 passed, 0 failed", "***Failed", "5 passed, 1 failed"),  # a sanitizer complained at the end
    ("4 passed, 1 failed", "Passed", "4 passed, 1 failed"),
    ("0 passed, 0 failed", "Passed", "0 passed, 1 failed"),
    ("no closing line", "Passed", "0 passed, 1 failed"),
    ("no closing line", "***Timeout", "0 passed, 1 failed"),
    ("no closing line", "***Exception: SegFault", "0 passed, 1 failed"),
])
def test_a_program_counts_by_its_closing_line_and_its_end(runner, report, result, expected):
    assert count(runner, [f"1: {report}", RESULT.format(result)]) == expected


def test_programs_that_run_side_by_side_are_counted_apart(runner):
    lines = ["2: 7 passed, 0 failed", "1: 3 passed, 1 failed", RESULT.format("***Failed"),
             "2/2 Test #2: unit_test_plan ...   Passed    0.20 sec"]
    assert count(runner, lines) == "10 passed, 1 failed"


def test_a_command_that_takes_too_long_is_ended(runner):
    lines = []
    code = runner.run([sys.executable, "-c", "import time; print('began', flush=True); time.sleep(60)"], 1,
                      lines.append)
    assert code != 0
    assert lines[0] == "began"


def test_skipped_cases_are_shown(runner):
    assert str(runner.Counts(1, 0, 2) + runner.Counts(1)) == "2 passed, 0 failed, 2 skipped"
