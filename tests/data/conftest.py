# SPDX-License-Identifier: Apache-2.0
"""The tests use the library that was built here, and the package of this checkout."""
import os
import sys

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
