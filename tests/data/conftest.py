# SPDX-License-Identifier: Apache-2.0
"""The tests use the library that was built here, and the package of this checkout."""
import os
import sys
import threading

import pytest
from jobs import ROOT

LIBRARY = next((ROOT / "build" / name / "lib" for name in ("openmpi", "mpich") if (ROOT / "build" / name / "lib").is_dir()),
               None)

sys.path.insert(0, str(ROOT / "python"))
if LIBRARY is not None:
    os.environ.setdefault("LOCKSTEP_LIB", str(LIBRARY))


def pytest_collection_modifyitems(items):
    if LIBRARY is None:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="the library is not built"))


@pytest.fixture
def as_ranks(monkeypatch):
    """DataSet(...) on each of n ranks; ranks are threads."""
    import lockstep
    from lockstep.data import dataset
    from lockstep.data.part import Part
    from ranks import all_well, together
    place = threading.local()
    monkeypatch.setattr(dataset.parts, "current", lambda: getattr(place, "part", Part()))

    def run(size, *args, **options):
        def work(part):
            place.part = part
            return lockstep.DataSet(*args, **options)
        return all_well(together(size, work))
    return run
