# SPDX-License-Identifier: Apache-2.0
"""Launchers that let the other ranks live when one is gone: what those do is what is tested."""
from dataclasses import dataclass

from jobs import ROOT

PATIENT_ENV = {"OMPI_MCA_orte_abort_on_non_zero_status": "0"}


@dataclass(frozen=True)
class Patient:
    """An MPI whose launcher lets the other ranks live when one is gone: they are what is tested."""

    mpi: object

    def command(self, n, program, args=()):
        if self.mpi.name == "mpich":
            return [str(ROOT / ".venv/bin/mpiexec"), "-disable-auto-cleanup", "-bind-to", "none", "-n", str(n),
                    str(self.mpi.program(program)), *map(str, args)]
        return self.mpi.command(n, program, args)
