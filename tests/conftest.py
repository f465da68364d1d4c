# SPDX-License-Identifier: Apache-2.0
import pytest
from jobs import Mpi


@pytest.fixture(params=["openmpi", "mpich"])
def mpi(request):
    """Each MPI that was built; `make test` builds both where both are installed."""
    built = Mpi(request.param)
    if not built.folder.is_dir():
        pytest.skip(f"the library is not built with {built.name}")
    return built
