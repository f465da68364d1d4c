# SPDX-License-Identifier: Apache-2.0
"""What every fault must leave behind: nothing.  And the table of how long it took."""
import statistics
from pathlib import Path

import pytest
from jobs import ROOT

SHARED_MEMORY = Path("/dev/shm")
SECONDS = pytest.StashKey()


def is_mapped(path):
    """Does any process have this file of /dev/shm in memory?"""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            if str(path) in maps.read_text(errors="replace"):
                return True
        except OSError:
            continue  # it has ended, or it is not ours
    return False


@pytest.fixture
def clean_shared_memory():
    """Nothing new of ours stays in /dev/shm.  What an MPI leaves there is its own: it is put away."""
    before = set(SHARED_MEMORY.iterdir())
    yield
    new = set(SHARED_MEMORY.iterdir()) - before
    of_mpi = {path for path in new if path.name.startswith(("vader_segment", "mpich_shm", "ucx_shm"))}
    for path in of_mpi:
        if not is_mapped(path):
            path.unlink(missing_ok=True)
    assert not new - of_mpi, f"left in /dev/shm: {new - of_mpi}"


@pytest.fixture
def clean(clean_shared_memory):
    """Nor does a file stay where the job was started."""
    before = set(ROOT.glob("lockstep-flight-*"))
    yield
    assert set(ROOT.glob("lockstep-flight-*")) == before


@pytest.fixture
def time_table(request):
    """Takes (fault, seconds from the fault to the end of the last rank) for the table at the end."""
    rows = request.config.stash.setdefault(SECONDS, {})
    return lambda fault, seconds: rows.setdefault(fault, []).append(seconds)


def pytest_terminal_summary(terminalreporter, config):
    rows = config.stash.get(SECONDS, {})
    if rows:
        terminalreporter.section("seconds from the fault to the end of the last rank")
        terminalreporter.write_line(f"{'fault':44} {'runs':>5} {'median':>7} {'worst':>7}")
        for fault, seconds in sorted(rows.items()):
            terminalreporter.write_line(f"{fault:44} {len(seconds):5} {statistics.median(seconds):7.1f} "
                                        f"{max(seconds):7.1f}")
        every = [value for seconds in rows.values() for value in seconds]
        terminalreporter.write_line(f"{'all':44} {len(every):5} {statistics.median(every):7.1f} {max(every):7.1f}")
