# SPDX-License-Identifier: Apache-2.0
"""MPICH's mpiexec (Hydra), which Intel MPI and MVAPICH use too.  It passes the environment on by itself."""


def command(plan, environment):
    words = [plan.launcher, "-n", str(plan.ranks)]
    words += ["-bind-to", "none" if plan.cores == 0 or plan.is_oversubscribed else f"core:{plan.cores}"]
    if plan.hosts:
        words += ["-hosts", ",".join(f"{name}:{ranks}" for name, ranks in plan.ranks_per_host)]
        if plan.agent:
            # Hydra takes a program without arguments here.
            words += ["-launcher", "ssh", "-launcher-exec", plan.agent]
    if plan.interface:
        words += ["-iface", plan.interface, "-genv", "FI_TCP_IFACE", plan.interface, "-genv", "UCX_NET_DEVICES", plan.interface]
    return [*words, *plan.more_args, *plan.program]
