# SPDX-License-Identifier: Apache-2.0
"""Which signal asks a rank to end with a snapshot, and which ends it at once."""
import os
import signal
import subprocess
import sys

from jobs import ROOT

SCRIPT = """
import os, signal, time
from lockstep.restart import wishes
wishes.attach()
for pause in (0, 0.3):
    time.sleep(pause)
    os.kill(os.getpid(), signal.SIGUSR2)
print("lives", flush=True)
time.sleep(wishes.SAME_SIGNAL_S)
os.kill(os.getpid(), signal.SIGUSR2)
print("lives on", flush=True)
"""

EARLY = """
import os, signal
from lockstep.start import wake
wake()
os.kill(os.getpid(), signal.SIGUSR2)
from lockstep.restart import wishes
wishes.attach()
print("told" if wishes._is_told else "not told", flush=True)
"""


def run(script, mpi, **env):
    return subprocess.run([sys.executable, "-c", script], text=True, capture_output=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "LOCKSTEP_LIB": str(mpi.folder / "lib"), **env})


def test_a_signal_that_comes_twice_is_one_and_a_later_one_ends_the_rank(mpi):
    """Slurm tells the script and what has started it, which hands it on."""
    result = run(SCRIPT, mpi)
    assert result.stdout == "lives\n" and result.returncode == -signal.SIGUSR2, str(result)


def test_a_signal_during_the_import_of_tensorflow_is_not_lost(mpi, tmp_path):
    result = run(EARLY, mpi, LOCKSTEP_STATE=str(tmp_path))
    assert result.stdout == "told\n" and result.returncode == 0, str(result)
