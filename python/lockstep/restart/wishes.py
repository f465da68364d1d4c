# SPDX-License-Identifier: Apache-2.0
"""When a snapshot is due.  Ranks must take it at the same step, so they meet at steps about half a second apart: rank 0
looks at its clock and for a request of `lockstep run`, every rank tells whether a signal came, and rank 0 says after how
many steps they meet again.  Between meetings a step costs one comparison."""
import os
import signal
import time

import numpy as np

from lockstep import host, native, world
from lockstep.restart import folder
from lockstep.start import was_warned

MEETING_S = 0.5
MAX_STEPS = 1 << 20
SAME_SIGNAL_S = 2.0  # Slurm tells every process of a step: the script, and what has started it, which hands it on
_pid = None  # children of a rank inherit its signal handlers
_is_told, _told_at = False, 0.0
_has_begun = False  # a fit()


def attach():
    """Listens to the signals of LOCKSTEP_SNAPSHOT_SIGNAL; one that the script takes for itself is the script's."""
    global _pid, _is_told, _told_at
    _pid = os.getpid()
    _is_told, _told_at = was_warned(), time.monotonic()
    for name in native.setting("SNAPSHOT_SIGNAL").split(","):
        name = name.strip().upper().removeprefix("SIG")
        if name in ("", "OFF"):
            continue
        number = getattr(signal, f"SIG{name}", None)
        if number is None or number in (signal.SIGKILL, signal.SIGSTOP):
            raise native.LockstepError(f"LOCKSTEP_SNAPSHOT_SIGNAL has '{name}', which is no signal that can be taken")
        signal.signal(number, _on_signal)


def _on_signal(number, _frame):
    """Outside of fit() the next one hears of it, and ends the job before its first step.  SIGTERM has to end a script that has
    none, or that has not come to it yet."""
    global _is_told, _told_at
    is_second = _is_told and time.monotonic() - _told_at >= SAME_SIGNAL_S
    if is_second or os.getpid() != _pid or (number == signal.SIGTERM and not _has_begun):
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    if not _is_told:
        _is_told, _told_at = True, time.monotonic()


class Clock:
    """Of one fit(): tells at each step whether it is time."""

    def __init__(self, state):
        global _has_begun
        self._state = state
        self._interval_s = float(native.setting("SNAPSHOT_S"))
        self._taken_at = self._met_at = time.monotonic()
        self._step, self._next, self._last = 0, 0, 0
        _has_begun = True

    def look(self, is_busy):
        """(is a snapshot due, is the job to end), the same on all ranks.  is_busy: the last one is still being written."""
        if self._step < self._next:
            self._step += 1
            return False, False
        now = time.monotonic()
        is_due = world.is_root() and now - self._taken_at >= self._interval_s and not is_busy
        wishes = [_is_told or self._is_asked(), is_due, self._steps_to_next(now) if world.is_root() else 0]
        must_end, is_due, steps = host.allreduce(np.array(wishes, np.int64), "snapshot/wishes", "max").tolist()
        self._last, self._met_at = self._step, now
        self._next = self._step + steps
        self._step += 1
        if is_due:
            self._taken_at = now
        return bool(is_due or must_end), bool(must_end)

    def must_end(self):
        """At the end of the fit(), after the last step."""
        return bool(host.allreduce(np.array([_is_told or self._is_asked()], np.int64), "snapshot/end", "max")[0])

    def _is_asked(self):
        with world.alone():
            return world.is_root() and os.path.exists(os.path.join(self._state, folder.STOP))

    def _steps_to_next(self, now):
        taken = self._step - self._last
        if taken == 0:
            return 1
        per_step = (now - self._met_at) / taken
        return int(min(max(MEETING_S / max(per_step, 1e-6), 1), 2 * taken + 1, MAX_STEPS))
