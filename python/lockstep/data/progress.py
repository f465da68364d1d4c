# SPDX-License-Identifier: Apache-2.0
"""Long reads say how far they are: to the user's own function, or rank 0 on standard error: a line that is written over on a
terminal, otherwise a line now and then."""
import os
import sys
import time

FIRST_AFTER_S = 3.0
TERMINAL_EVERY_S, PLAIN_EVERY_S = 0.5, 30.0


class Line:
    """Called with (path, done, total) again and again; silent for the first seconds."""

    def __init__(self):
        self._begin = None
        self._drawn = 0  # characters on the terminal's line

    def __call__(self, path, done, total):
        now = time.monotonic()
        if self._begin is None:
            self._begin, self._due = now, now + FIRST_AFTER_S
        if now >= self._due:
            is_terminal = sys.stderr.isatty()
            self._due = now + (TERMINAL_EVERY_S if is_terminal else PLAIN_EVERY_S)
            self._write(f"lockstep: reading {os.path.basename(path)}: {100 * done // max(1, total)} % after "
                        f"{now - self._begin:.0f} s", is_terminal)

    def _write(self, text, is_terminal):
        if is_terminal:
            sys.stderr.write("\r" + text.ljust(self._drawn))
            self._drawn = len(text)
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def end(self):
        """Takes the line off the terminal."""
        if self._drawn:
            sys.stderr.write("\r" + " " * self._drawn + "\r")
            sys.stderr.flush()
        self._begin, self._drawn = None, 0


class Told:
    """Who is told: progress=None: a Line on rank 0; False: nobody; a function: that, and it can stop the work."""

    def __init__(self, wanted, part):
        self._line = Line() if wanted is None and part.rank == 0 else None
        self._function = self._line or wanted or None
        self.is_open = False
        self.by_library = self._by_library if self._function else None

    def _by_library(self, path, done, total):
        """While the data set is opened; how far a read is the reader of its steps knows better."""
        return bool(not self.is_open and self._function(path, done, total))

    def is_stopped(self, path, done, total):
        return bool(self._function and self._function(path, done, total))

    def end(self):
        if self._line:
            self._line.end()
