# SPDX-License-Identifier: Apache-2.0
"""Open MPI's mpirun, 4 and 5."""
from lockstep.launch.plan import passed_names

LOOPBACK = "127.0.0.0/8"


def _interface_flags(plan):
    """Only between hosts: which networks the ranks and the launcher's own daemons use."""
    if plan.interface:
        return ["--mca", "btl_tcp_if_include", plan.interface, "--mca", "oob_tcp_if_include", plan.interface]
    left_out = ",".join([LOOPBACK, *[name for name in plan.left_out if name != "lo"]])
    return ["--mca", "btl_tcp_if_exclude", left_out, "--mca", "oob_tcp_if_exclude", left_out]


def _binding_flags(plan):
    if plan.is_oversubscribed:
        return ["--oversubscribe", "--bind-to", "none"]
    if plan.cores == 0:
        return ["--bind-to", "none"]
    return ["--map-by", f"slot:PE={plan.cores}", "--bind-to", "core:if-supported"]


def command(plan, environment):
    """The command line; `environment` is the one the launcher itself gets: names of it go to other hosts."""
    words = [plan.launcher, "-n", str(plan.ranks)]
    if plan.is_root:
        words.append("--allow-run-as-root")
    words += _binding_flags(plan)
    if plan.hosts:
        words += ["-H", ",".join(f"{name}:{ranks}" for name, ranks in plan.ranks_per_host)]
    if len(plan.ranks_per_host) > 1 or plan.interface:
        words += _interface_flags(plan)
    if plan.hosts:
        if plan.agent:
            words += ["--mca", "plm_rsh_agent", plan.agent]
        for name in passed_names(environment):
            words += ["-x", name]
    return [*words, *plan.more_args, *plan.program]
