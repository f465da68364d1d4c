# SPDX-License-Identifier: Apache-2.0
"""An unmodified Keras script that prints its losses: the same lines, whatever starts it."""
import functools
import importlib.util
import os
import subprocess
import sys
import tempfile

import pytest
from commands import environment
from compare import compare_text
from jobs import ROOT

SCRIPT = ROOT / "tests" / "scripts" / "keras3" / "dense.py"
SETTINGS = {"PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(ROOT / "tests" / "site")]), "TF_CPP_MIN_LOG_LEVEL": "3",
            "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "2", "LOCKSTEP_SUMMARY": "off"}
TOLERANCE = 2e-5
LIMIT = 240


@functools.lru_cache(maxsize=None)
def one_process(mpi):
    """What the script prints as anybody's process; skips where there is no TensorFlow."""
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("needs TensorFlow")
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([sys.executable, str(SCRIPT)], env=environment(mpi, SETTINGS), cwd=folder, text=True,
                              check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIMIT).stdout


def check_same(one, many, what):
    compare_text(one, many, TOLERANCE, what)
    assert "evaluate" in many, many
