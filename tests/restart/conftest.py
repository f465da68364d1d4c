# SPDX-License-Identifier: Apache-2.0
import pytest
from jobs import Mpi


@pytest.fixture(scope="session")
def mpi(request):
    """What a snapshot holds does not depend on the MPI: one of them, but for the tests in which it matters how ranks
    end and are asked to."""
    built = Mpi(getattr(request, "param", "openmpi"))
    if not built.folder.is_dir():
        pytest.skip(f"the library is not built with {built.name}")
    return built
