# SPDX-License-Identifier: Apache-2.0
"""Scripts with older TensorFlows, from the same build: each has an environment of its own below build/."""
import os
import subprocess
import sys

import pytest
from jobs import ROOT
from test_scripts import HERE, Case, check_case

pytestmark = pytest.mark.long

# With the Keras of their time.
VERSIONS = {"2.16.2": ["keras==3.3.3", "tf_keras==2.16.0"], "2.18.1": ["keras==3.8.0", "tf_keras==2.18.0"]}
# Lines as in cases.txt.  Scripts that need a later Keras in one process already are not here.
SCRIPTS = {"keras3": ["together ways: dense.py; dense.py jit; dense.py eager",
                      "together rows: added.py; positions.py; unlike.py; outputs.py; figures.py; looked.py | float64",
                      "together models: custom_step.py; gan.py; optimizers.py; on_batch.py; stateful.py; inputs.py; callbacks.py"],
           "tf_keras": ["together models: fit.py; steps.py; figures.py; looked.py"],
           "loops": ["together ways: linear.py function; linear.py xla; linear.py graph",
                     "together doubles: looked.py eager; looked.py function; looked.py graph; returned.py arrays; returned.py data; sized.py arrays; sized.py data; points.py | float64"],
           "v1": ["together graphs: softmax_feed.py; monitored.py; looked.py"]}
CASES = [Case(HERE / folder, line) for folder, lines in SCRIPTS.items() for line in lines]


def environment(version):
    """The Python of an environment with this TensorFlow, made once."""
    if sys.version_info >= (3, 13):
        pytest.skip(f"there is no TensorFlow {version} for Python {sys.version_info.major}.{sys.version_info.minor}")
    folder = ROOT / "build" / f"tensorflow-{version}"
    python, finished = folder / "bin" / "python", folder / "finished"
    if not finished.exists():
        base = os.path.join(sys.base_prefix, "bin", "python3")
        subprocess.run([base, "-m", "venv", "--clear", folder], check=True, timeout=120)
        made = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", f"tensorflow-cpu=={version}",
                               *VERSIONS[version]], capture_output=True, text=True, timeout=900)
        if made.returncode != 0:
            pytest.skip(f"TensorFlow {version} could not be installed: {made.stderr.strip()[-200:]}")
        finished.touch()
    return python


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("version", VERSIONS)
def test_same_as_one_process_with_an_older_tensorflow(version, case, tmp_path):
    case.python = environment(version)
    check_case(case, [2], tmp_path)
