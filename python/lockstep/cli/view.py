# SPDX-License-Identifier: Apache-2.0
"""What a user sees of a running job: the output of its ranks, and how far it is.

On a terminal with rich: a line at the bottom that is drawn anew, or a table of the ranks.  Otherwise plain lines."""
import math
import sys
import time
from collections import deque

from lockstep import progress

WINDOW_S = 10.0  # speeds are of the last so many seconds
PLAIN_EVERY_S = 30.0
DRAW_PER_S = 4


def _clock(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class Progress:
    """Speeds from what the ranks last said."""

    def __init__(self, folder):
        self.folder = folder
        self.history = {}  # rank: statuses of the last seconds

    def read(self):
        """The newest Status of each rank."""
        newest = progress.read_all(self.folder) if self.folder else []
        for status in newest:
            past = self.history.setdefault(status.rank, deque())
            if not past or past[-1].time != status.time:
                past.append(status)
            while len(past) > 2 and past[-1].time - past[0].time > WINDOW_S:
                past.popleft()
        return newest

    def over_window(self, rank):
        """(first, last) of the window; the same twice when there is only one."""
        past = self.history[rank]
        return past[0], past[-1]


def _rate(first, last, field):
    seconds = last.time - first.time
    return (getattr(last, field) - getattr(first, field)) / seconds if seconds > 0 else 0.0


def line_of(job):
    """One line for the job: step, samples per second, loss, time left, and the share of time ranks wait."""
    statuses = job.read()
    if not statuses:
        return None
    lead = statuses[0]
    first, last = job.over_window(lead.rank)
    steps_per_s, samples_per_s = _rate(first, last, "step"), _rate(first, last, "samples")
    words = [f"step {lead.step:,}" + (f" of {lead.num_steps:,}" if lead.num_steps else "")]
    if samples_per_s > 0:
        words.append(f"{samples_per_s:,.0f} samples/s")
    if not math.isnan(lead.loss):
        words.append(f"loss {lead.loss:.4g}")
    if lead.num_steps and steps_per_s > 0:
        words.append(f"{_clock((lead.num_steps - lead.step) / steps_per_s)} left")
    waits = [_rate(*job.over_window(status.rank), "wait_s") for status in statuses]
    if max(waits) > 0:
        words.append(f"waiting {100 * sum(waits) / len(waits):.0f} %")
    return "  ".join(words)


def rows_of(job):
    """A row per rank: rank, host, step, milliseconds per step, percent waiting, percent CPU, memory."""
    rows = []
    for status in job.read():
        first, last = job.over_window(status.rank)
        steps_per_s = _rate(first, last, "step")
        rows.append((str(status.rank), status.host, f"{status.step:,}",
                     f"{1000 / steps_per_s:.1f}" if steps_per_s > 0 else "-",
                     f"{100 * _rate(first, last, 'wait_s'):.0f}", f"{100 * _rate(first, last, 'cpu_s'):.0f}",
                     f"{status.memory / 2**20:,.0f}"))
    return rows


HEADINGS = ("rank", "host", "step", "ms/step", "wait %", "CPU %", "MiB")


def plain_table(rows):
    """The same without rich."""
    widths = [max(len(row[column]) for row in [HEADINGS, *rows]) for column in range(len(HEADINGS))]
    return "\n".join("  ".join(word.rjust(width) for word, width in zip(row, widths)) for row in [HEADINGS, *rows])


class PlainView:
    """Bytes go through as they come; how far the job is, every half minute on standard error."""

    def __init__(self, job, has_table, log):
        self.job, self.has_table, self.log = job, has_table, log
        self.due = time.monotonic() + PLAIN_EVERY_S
        self.last = None

    def out(self, data):
        self._write(sys.stdout, data)

    def err(self, data):
        self._write(sys.stderr, data)

    def _write(self, stream, data):
        try:
            stream.buffer.write(data)
            stream.flush()
        except BrokenPipeError:
            pass  # `| head`: the job goes on
        if self.log:
            self.log.write(data)
            self.log.flush()

    def tick(self):
        if time.monotonic() >= self.due:
            self.due = time.monotonic() + PLAIN_EVERY_S
            self._say()

    def _say(self):
        line = line_of(self.job)
        if line and line != self.last:
            self.last = line
            text = f"lockstep: {line}\n" + (plain_table(rows_of(self.job)) + "\n" if self.has_table else "")
            self.err(text.encode())

    def close(self):
        if self.log:
            self.log.close()


class KeptView(PlainView):
    """Keeps what the job writes, and shows it only where that is asked for."""

    def __init__(self, is_shown=False):
        super().__init__(Progress(None), False, None)
        self.is_shown, self.text, self.errors = is_shown, b"", b""

    def out(self, data):
        self.text += data
        if self.is_shown:
            super().out(data)

    def err(self, data):
        self.errors += data
        if self.is_shown:
            super().err(data)


def frame_of(job, has_table, seconds):
    """What is drawn anew: the line, and the table above it."""
    from rich.console import Group
    from rich.spinner import Spinner
    from rich.table import Table
    from rich.text import Text
    words = line_of(job)
    if words is None:
        return Text("")
    line = Spinner("dots", text=Text(f"{words}  {_clock(seconds)}", style="bold"))
    if not has_table:
        return line
    table = Table(box=None, header_style="dim")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "host" else "right")
    for row in rows_of(job):
        table.add_row(*row)
    return Group(table, line)


class LiveView:
    """The job's output scrolls above a line, or a table, that is drawn anew."""

    def __init__(self, job, has_table, log, console=None):
        from rich.console import Console
        from rich.live import Live
        self.job, self.has_table, self.log = job, has_table, log
        self.began = time.monotonic()
        self.parts = {"out": b"", "err": b""}  # lines that have not ended
        self.live = Live(console=console or Console(), refresh_per_second=DRAW_PER_S, get_renderable=self.draw,
                         transient=True)
        self.live.start()

    def draw(self):
        return frame_of(self.job, self.has_table, time.monotonic() - self.began)

    def out(self, data):
        self._write("out", data)

    def err(self, data):
        self._write("err", data)

    def _write(self, name, data):
        if self.log:
            self.log.write(data)
            self.log.flush()
        *lines, self.parts[name] = (self.parts[name] + data).split(b"\n")
        for line in lines:
            self._print(line)

    def _print(self, line):
        """A line that was written over with carriage returns is what was written last."""
        from rich.text import Text
        text = line.rstrip(b"\r").split(b"\r")[-1].decode(errors="replace")
        self.live.console.print(Text.from_ansi(text), soft_wrap=True)

    def tick(self):
        """Rich draws by itself."""

    def close(self):
        last = line_of(self.job)
        self.live.stop()
        for part in self.parts.values():
            if part:
                self._print(part)
        if last:
            self.live.console.print(f"{last}  {_clock(time.monotonic() - self.began)}", highlight=False)
        if self.log:
            self.log.close()


def has_rich():
    try:
        import rich.live  # noqa: F401
    except ImportError:
        return False
    return True


def make_view(status_dir, has_table, log_dir):
    """All that arrives at the launcher is rank 0's, or the launcher's own: it goes to rank 0's log."""
    log = open(log_dir / "rank-0.log", "wb") if log_dir else None
    job = Progress(status_dir)
    if status_dir is not None and sys.stdout.isatty() and has_rich():
        return LiveView(job, has_table, log)
    return PlainView(job, has_table, log)
