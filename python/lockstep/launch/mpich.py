# SPDX-License-Identifier: Apache-2.0
"""MPICH's mpiexec (Hydra), which Intel MPI and MVAPICH use too.  It passes the environment on by itself."""
from lockstep.launch.problem import Problem


def command(plan, environment):
    words = [plan.launcher, "-n", str(plan.ranks)]
    words += ["-bind-to", "none" if plan.cores == 0 or plan.is_oversubscribed else f"core:{plan.cores}"]
    if plan.hosts:
        words += ["-hosts", ",".join(f"{name}:{ranks}" for name, ranks in plan.ranks_per_host)]
        if plan.agent:
            if " " in plan.agent:
                raise Problem(f"MPICH cannot start '{plan.agent}' on other hosts", "name a program without arguments")
            words += ["-launcher", "ssh", "-launcher-exec", plan.agent]
    if plan.interface:
        words += ["-iface", plan.interface, "-genv", "FI_TCP_IFACE", plan.interface, "-genv", "UCX_NET_DEVICES", plan.interface]
    return [*words, *plan.more_args, *plan.program]
