# SPDX-License-Identifier: Apache-2.0
import pytest
from jobs import Mpi


@pytest.fixture(scope="session")
def mpi():
    """What a snapshot holds does not depend on the MPI; tests/cli/test_restarts.py starts jobs again with each."""
    built = Mpi("openmpi")
    if not built.folder.is_dir():
        pytest.skip("the library is not built with openmpi")
    return built
