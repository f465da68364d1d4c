# SPDX-License-Identifier: Apache-2.0
"""Each script of examples/data prints what its head says it prints."""
import importlib.util
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from jobs import ROOT

EXAMPLES = [path for path in sorted((ROOT / "examples" / "data").glob("*.py")) if path.stem not in ("make_data", "small_model")]
AT_ONCE = 2  # each takes longest to start TensorFlow, with one core
LIMIT = 240

pytestmark = pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed")


def expected_output(script):
    head = script.read_text().split('"""')[1]
    lines = head.split("Expected output:\n")[1].splitlines()
    return [line[4:] for line in lines[:next((i for i, line in enumerate(lines) if not line.startswith("    ")), None)]]


def run(script, *args):
    settings = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'site'}", "TF_CPP_MIN_LOG_LEVEL": "3"}
    result = subprocess.run([sys.executable, script, *args], text=True, capture_output=True, timeout=LIMIT, env=settings)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples") / "data"
    script = ROOT / "examples" / "data" / "make_data.py"
    assert run(script, folder) == expected_output(script)
    return folder


@pytest.fixture(scope="module")
def started(folder):
    """All of them have been started, a few at a time: {script: what it will have printed}"""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {script: pool.submit(run, script, *([folder] if re.search(r"sys\.argv", script.read_text()) else []))
               for script in EXAMPLES}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example_prints_what_it_says(script, started):
    assert started[script].result() == expected_output(script)
