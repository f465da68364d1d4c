# SPDX-License-Identifier: Apache-2.0
import os
import sys

import pytest
from jobs import ROOT, Mpi

pytest.importorskip("tensorflow")
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("LOCKSTEP_LIB", str(Mpi("openmpi" if Mpi("openmpi").folder.is_dir() else "mpich").folder / "lib"))

from lockstep.losses import counts  # noqa: E402
from tensorflow.python.ops import array_ops  # noqa: E402


@pytest.fixture(autouse=True)
def shapes_are_noted(monkeypatch):
    """As counts.attach() has it on ranks."""
    for name in ("shape_internal", "size_internal"):
        original = getattr(array_ops, name)
        monkeypatch.setattr(array_ops, name, lambda tensor, *args, _original=original, **kwargs: counts.noted(_original(tensor, *args, **kwargs), tensor))
