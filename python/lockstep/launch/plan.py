# SPDX-License-Identifier: Apache-2.0
"""What is to run where: the part of a start that is the same for every launcher."""
import re
from dataclasses import dataclass, field

# These belong to one process or one host; everything else of the environment goes to all ranks.
NOT_PASSED = re.compile(r"^(_|PWD|OLDPWD|SHLVL|HOSTNAME|HOST|DISPLAY|WINDOWID|TERM.*|COLUMNS|LINES|SSH_.*|XDG_.*|DBUS_.*|"
                        r"OMPI_.*|OPAL_.*|ORTE_.*|PRTE_.*|PMIX?_.*|HYDRA?_.*|MPI_LOCAL.*|SLURM.*|STY|TMUX.*)$")
PLAIN_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


@dataclass
class Plan:
    """hosts: empty for this machine alone, or for those of a Slurm allocation.  cores: per rank, 0: not bound.
    env: variables that are set for the ranks."""

    program: list
    ranks: int
    launcher: str
    hosts: list = field(default_factory=list)
    cores: int = 0
    is_oversubscribed: bool = False
    is_root: bool = False
    interface: str = ""
    left_out: list = field(default_factory=list)
    agent: str = ""
    env: dict = field(default_factory=dict)
    more_args: list = field(default_factory=list)

    @property
    def ranks_per_host(self):
        """(host, ranks) pairs: hosts are filled one after another."""
        pairs, left = [], self.ranks
        for host in self.hosts:
            here = min(left, host.slots)
            if self.is_oversubscribed and host is self.hosts[-1]:
                here = left
            if here > 0:
                pairs.append((host.name, here))
            left -= here
        return pairs


def passed_names(environment):
    """The variables that ranks on other hosts get too."""
    return sorted(name for name in environment if PLAIN_NAME.match(name) and not NOT_PASSED.match(name))
