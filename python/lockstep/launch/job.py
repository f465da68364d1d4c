# SPDX-License-Identifier: Apache-2.0
"""Starts a launcher, hands on what it writes, and makes sure that all of it ends."""
import ctypes
import os
import re
import selectors
import signal
import subprocess
import time
from dataclasses import dataclass

PR_SET_PDEATHSIG = 1
GRACE_S = 10.0      # for a launcher to end its ranks after SIGTERM
SNAPSHOT_S = 25.0   # for the ranks to write a snapshot and end: Slurm kills 30 s after its SIGTERM
LAST_WORDS_S = 5.0   # for the other ranks to say what they know of the failed one
DRAIN_S = 1.0
SILENT_CODE = 1
TICK_S = 0.2
CHUNK = 65536


@dataclass
class Failure:
    """A rank's own report of how it ended."""

    rank: int
    host: str
    code: int


class Reports:
    """Takes the reports of rank.py out of a stream of bytes, however it is cut up."""

    def __init__(self, token):
        self.pattern = re.compile(rb"\x1elockstep " + token.encode() + rb" (\d+) (\S+) (\d+)\x1e")
        self.kept = b""
        self.failures = []
        self.num_good = 0  # ranks that ended with 0

    def take(self, data):
        data = self.kept + data
        for match in self.pattern.finditer(data):
            if int(match[3]) == 0:
                self.num_good += 1
            else:
                self.failures.append(Failure(int(match[1]), match[2].decode(), int(match[3])))
        data = self.pattern.sub(b"", data)
        begin = data.rfind(b"\x1e")
        if begin >= 0 and len(data) - begin < 400:
            data, self.kept = data[:begin], data[begin:]
        else:
            self.kept = b""
        return data

    def rest(self):
        data, self.kept = self.kept, b""
        return data


def _die_with_parent():
    """If this process is killed outright, the launcher still ends its ranks."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)


class Job:
    """One start.  `view` has out(bytes), err(bytes), tick() and close().  `ask_to_end()`, where there is one, asks the ranks to
    write a snapshot and end: that is tried first.  `num_silent` after run(): ranks that the launcher has ended, while it says 0."""

    ASKING = (signal.SIGTERM, signal.SIGUSR2)

    def __init__(self, command, environment, token, view, ask_to_end=None, must_hear=0):
        """must_hear: so many ranks tell that they ended well; 0: the launcher's word is enough."""
        self.ask_to_end, self.must_hear, self.num_silent = ask_to_end, must_hear, 0
        self.asked_at = None
        self.command, self.environment, self.view = command, environment, view
        self.reports = Reports(token)
        self.process = None
        self.received = None      # the signal that asked us to end
        self.terminated_at = None
        self.failed_at = None

    def _on_signal(self, number, _frame):
        if self.ask_to_end is not None and self.asked_at is None and number in self.ASKING:
            self.asked_at = time.monotonic()
            self.ask_to_end()
        elif self.received is None:
            self.received = number
            self._terminate()
        else:  # the second time: no more patience
            self._kill()

    def _terminate(self):
        if self.terminated_at is None:
            self.terminated_at = time.monotonic()
            self.process.terminate()  # it alone: its agents must live to end the ranks on other hosts

    def _kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def run(self):
        """Returns the exit code: the first failing rank's, or the launcher's, or 128 + the signal that ended it."""
        self.process = subprocess.Popen(self.command, env=self.environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                                        preexec_fn=_die_with_parent)
        taken = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, *(self.ASKING if self.ask_to_end else ())}
        before = {number: signal.signal(number, self._on_signal) for number in taken}
        try:
            self._watch()
            code = self.process.wait()
        finally:
            self._kill()  # whatever is left of the launcher's own processes
            self.process.wait()
            for number, handler in before.items():
                signal.signal(number, handler)
            self.view.close()
        if self.received is not None:
            return 128 + self.received
        if self.reports.failures:
            return self.reports.failures[0].code
        if code == 0 and self.reports.num_good < self.must_hear:
            self.num_silent = self.must_hear - self.reports.num_good
            return SILENT_CODE
        return code if code >= 0 else 128 - code

    def _watch(self):
        selector = selectors.DefaultSelector()
        selector.register(self.process.stdout, selectors.EVENT_READ, self.view.out)
        selector.register(self.process.stderr, selectors.EVENT_READ, self.view.err)
        ended_at = None
        while selector.get_map():
            for key, _ in selector.select(TICK_S):
                data = os.read(key.fd, CHUNK)
                if data:
                    self._hand_on(key, data)
                else:
                    selector.unregister(key.fileobj)
            self.view.tick()
            self._keep_time()
            if self.process.poll() is not None:
                ended_at = ended_at or time.monotonic()
                if time.monotonic() - ended_at > DRAIN_S:
                    break  # a process that stayed behind keeps the pipe open
        self.view.err(self.reports.rest())
        selector.close()

    def _hand_on(self, key, data):
        if key.fileobj is self.process.stderr:
            data = self.reports.take(data)
        if data:
            key.data(data)

    def _keep_time(self):
        """A failed rank ends the job even where its launcher would not, and a launcher that does not end is killed."""
        now = time.monotonic()
        if self.reports.failures and self.failed_at is None:
            self.failed_at = now
        if self.asked_at is not None and self.received is None and now - self.asked_at > SNAPSHOT_S:
            self.received = signal.SIGTERM
            self._terminate()
        if self.failed_at is not None and now - self.failed_at > LAST_WORDS_S:
            self._terminate()
        if self.terminated_at is not None and now - self.terminated_at > GRACE_S:
            self._kill()
