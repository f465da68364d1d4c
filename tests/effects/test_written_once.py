# SPDX-License-Identifier: Apache-2.0
"""Every kind of file is written by rank 0 and by no other.

A script that is compared with one process cannot show it: where all ranks write the same into a file, the file is right,
most of the time.  So a library that is loaded before all others notes who opens what for writing (who_writes.c).  The
folders that a script leaves are the kinds."""
import os
import subprocess
from pathlib import Path

import pytest
from jobs import ROOT, Mpi, run_ranks

HERE = Path(__file__).resolve().parent
PYTHON = ROOT / ".venv" / "bin" / "python"
TIME_LIMIT = 240


@pytest.fixture(scope="module")
def spy(tmp_path_factory):
    library = tmp_path_factory.mktemp("spy") / "who_writes.so"
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library, HERE / "who_writes.c", "-ldl"], check=True)
    return library


def run_script(script, folder, spy):
    """{kind: the ranks that wrote files of it}"""
    notes = folder.parent / "notes"
    env = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'tests' / 'site'}", "LOCKSTEP_LIB": ROOT / "build" / "openmpi" / "lib",
           "TF_CPP_MIN_LOG_LEVEL": "3", "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "2", "LOCKSTEP_SUMMARY": "off",
           "LOCKSTEP_LOG_DIR": folder.parent / "rank-logs", "LOCKSTEP_STALL_ABORT_S": "60", "LD_PRELOAD": spy,
           "WHO_WRITES_LOG": notes, "WHO_WRITES_UNDER": f"{folder}/"}
    job = run_ranks(Mpi("openmpi"), 2, PYTHON, [HERE / script], env=env, cwd=folder, timeout=TIME_LIMIT)
    assert job.code == 0, str(job)
    writers = {path.name: set() for path in folder.iterdir() if path.is_dir()}
    for line in notes.read_text().splitlines():
        rank, path = line.split(" ", 1)
        writers.setdefault(Path(path).relative_to(folder).parts[0], set()).add(rank)
    return writers


@pytest.mark.parametrize("script,kinds", [
    ("kinds.py", {"save", "save-h5", "save-weights", "export", "model-checkpoint", "backup-and-restore", "tensorboard",
                  "csv-logger", "checkpoint", "checkpoint-manager", "saved-model", "summary-writer", "records", "write-file", "plain",
                  "archive", "library", "numpy"}),
    pytest.param("kinds_tf_keras.py", {"save", "save-h5", "save-tf", "save-weights", "save-weights-tf", "export", "model-checkpoint",
                                       "tensorboard", "csv-logger"}, marks=pytest.mark.long),
    ("kinds_v1.py", {"saver", "event-writer", "graph", "simple-save", "builder", "monitored"})])
def test_only_rank_0_writes(script, kinds, tmp_path, spy):
    folder = tmp_path / "run"
    folder.mkdir()
    writers = run_script(script, folder, spy)
    assert {kind: ranks for kind, ranks in writers.items() if ranks != {"0"} and kind in kinds} == {}
    assert kinds <= set(writers)
    assert not [kind for kind, ranks in writers.items() if ranks - {"0"}]
