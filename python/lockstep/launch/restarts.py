# SPDX-License-Identifier: Apache-2.0
"""Starts a job again after a failure: on the hosts that are left, from the newest whole snapshot."""
import os
from pathlib import Path

from lockstep.launch import hosts as hosts_module
from lockstep.launch.problem import Problem

END_CODE = 75  # the job was asked to end, and has written a snapshot
USER_CODES = (1, 2)  # an exception of Python, wrong arguments


class State:
    """The folder of the snapshots, as `lockstep run` sees it."""

    def __init__(self, path):
        from lockstep.restart import folder
        self._folder = folder
        self.path = Path(path).absolute()
        try:
            folder.make(self.path)
        except OSError as error:
            raise Problem(f"the folder {self.path} for snapshots cannot be made ({error})",
                          "name another with --state") from None
        if not os.access(self.path, os.W_OK):
            raise Problem(f"the folder {self.path} for snapshots cannot be written to", "name another with --state")
        self._last_error = folder.get_text(self.path, folder.ERROR)

    def ask_to_end(self):
        """The ranks look for this file at every meeting."""
        (self.path / self._folder.STOP).touch(mode=0o600)

    def begin(self):
        """Before each start."""
        self._folder.make(self.path)
        for name in (self._folder.ERROR, self._folder.LOST, self._folder.STOP):
            (self.path / name).unlink(missing_ok=True)

    def clear(self):
        self._folder.clear(self.path)

    def place(self):
        """Where the next start goes on, in words."""
        found = self._folder.newest(self.path)
        ended = self._folder.names(self.path, "fit")
        fit = int(ended[-1].rpartition("-")[2]) if ended else 0
        if found is None or found.meta["fit"] <= fit:
            name = f"the end of fit() number {fit} ({ended[-1]})" if ended else "the beginning: there is no snapshot"
        else:
            name = f"epoch {found.meta['epoch'] + 1}, step {found.meta['batches']} ({found.name})"
        if found is not None:
            found.close()
        return name

    def repeated_error(self):
        """The error of the script that ended this start, if the start before ended with it at the same place."""
        before, self._last_error = self._last_error, self._folder.get_text(self.path, self._folder.ERROR)
        return self._last_error["error"] if self._last_error and self._last_error == before else None

    def lost_a_rank(self):
        """Did a rank end because another was gone, and none by an error of the script?"""
        return (self.path / self._folder.LOST).exists() and self._last_error is None

    def early_error(self):
        """The error of the script that ended this start before any fit() began."""
        error = self._folder.get_text(self.path, self._folder.ERROR)
        return error["error"] if error and error["place"][0] == 0 else None


def why_not(state, code, was_stepping):
    """A reason not to start again; None: do."""
    early, repeated = state.early_error(), state.repeated_error()
    if state.lost_a_rank():
        return None
    if repeated:
        return f"the script ended twice at the same place with {repeated}"
    if code in USER_CODES and (early or not was_stepping):
        return f"the script failed before its first step{f', with {early}' if early else ''}"
    return None


def drop_lost_hosts(args, hosts, agent, python):
    """Names of hosts that do not answer any more; the others stay in args, with as many ranks as there is room for."""
    lost = []
    for host in hosts:
        try:
            hosts_module.check_hosts([host], agent or hosts_module.SSH, python)
        except Problem:
            lost.append(host)
    left = [host for host in hosts if host not in lost]
    if not lost:
        return []
    if not left:
        raise Problem("no host answers any more", "start again when they do: the snapshots are kept")
    args.hosts, args.hostfile = ",".join(f"{host.name}:{host.slots}" for host in left), None
    if not args.oversubscribe:
        room = sum(host.slots for host in left)
        args.ranks = min(args.ranks or room, room)
    return [host.name for host in lost]
