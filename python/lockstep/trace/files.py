# SPDX-License-Identifier: Apache-2.0
"""Reads the traces of all ranks, brings the clocks of their hosts together, and writes one file for Perfetto."""
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from lockstep.launch.problem import Problem

FILE_NAME = re.compile(r"^rank-(\d+)\.json$")
ROWS = {"bucket": 1, "engine": 2}  # thread numbers; requests overlap and get a track of their own


@dataclass
class Span:
    """One thing that took time; microseconds."""

    row: str
    name: str
    begin: float
    end: float
    num_bytes: int
    detail: str


@dataclass
class RankTrace:
    rank: int
    host: str = "?"
    spans: list = field(default_factory=list)
    is_complete: bool = True

    def row(self, name):
        return [span for span in self.spans if span.row == name]

    def shift(self, offset):
        for span in self.spans:
            span.begin += offset
            span.end += offset


def _events(path):
    """One event per line; the last lines are missing when the rank was killed."""
    text = path.read_text(errors="replace")
    is_complete = text.rstrip().endswith("]")
    events = []
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip().rstrip(",")
        if line in ("[", "]", ""):
            continue
        try:
            events.append(json.loads(line))
        except ValueError:
            if number < text.count("\n"):
                raise Problem(f"{path}:{number} is no event of a trace", "was the file changed?") from None
            is_complete = False
    return events, is_complete


def read_rank(path, rank):
    trace = RankTrace(rank)
    events, trace.is_complete = _events(path)
    for event in events:
        try:
            if event["ph"] == "M" and event["name"] == "process_name":
                trace.host = event["args"]["name"]
            elif event["ph"] == "X":
                trace.spans.append(Span(str(event["tid"]), event["name"], event["ts"], event["ts"] + event["dur"],
                                        event["args"].get("bytes", 0), event["args"].get("detail", "")))
        except (KeyError, TypeError) as error:
            raise Problem(f"{path} has an event without {error}", "was it written by Lockstep?") from None
    trace.spans.sort(key=lambda span: span.begin)
    return trace


def read_folder(folder):
    """The traces of all ranks, in rank order, on one clock that begins at 0."""
    folder = Path(folder)
    if not folder.is_dir():
        raise Problem(f"there is no folder {folder}", "start the job with LOCKSTEP_TRACE=<folder>")
    paths = {int(match[1]): path for path in folder.iterdir() if (match := FILE_NAME.match(path.name))}
    if not paths:
        raise Problem(f"{folder} holds no traces (rank-0.json, rank-1.json, ...)",
                      "start the job with LOCKSTEP_TRACE=<folder>")
    traces = [read_rank(paths[rank], rank) for rank in sorted(paths)]
    if not any(trace.spans for trace in traces):
        raise Problem(f"the traces in {folder} are empty", "did the job reduce anything?")
    align(traces)
    return traces


def _bucket_ends(trace):
    """(name, how many times it came before): when it ended."""
    ends, seen = {}, {}
    for span in sorted(trace.row("bucket"), key=lambda span: span.end):
        number = seen[span.name] = seen.get(span.name, -1) + 1
        ends[span.name, number] = span.end
    return ends


def align(traces):
    """Ranks of a host share a clock.  Hosts are aligned by the ends of their buckets, which are nearly the same moment."""
    reference = _bucket_ends(traces[0])
    offsets = {traces[0].host: 0.0}
    for trace in traces:
        if trace.host not in offsets:
            ends = _bucket_ends(trace)
            common = [reference[key] - ends[key] for key in reference.keys() & ends.keys()]
            offsets[trace.host] = median(common) if common else 0.0
        trace.shift(offsets[trace.host])
    begin = min(span.begin for trace in traces for span in trace.spans)
    for trace in traces:
        trace.shift(-begin)


def _events_of(trace):
    yield {"ph": "M", "pid": trace.rank, "name": "process_name", "args": {"name": f"rank {trace.rank} on {trace.host}"}}
    yield {"ph": "M", "pid": trace.rank, "name": "process_sort_index", "args": {"sort_index": trace.rank}}
    for name, number in ROWS.items():
        yield {"ph": "M", "pid": trace.rank, "tid": number, "name": "thread_name", "args": {"name": name}}
    for number, span in enumerate(trace.spans):
        event = {"pid": trace.rank, "name": span.name, "ts": round(span.begin, 3),
                 "args": {"bytes": span.num_bytes, "detail": span.detail}}
        if span.row in ROWS:
            yield {**event, "ph": "X", "tid": ROWS[span.row], "dur": round(span.end - span.begin, 3)}
        else:
            pair = {**event, "cat": span.row, "id": f"{trace.rank}.{number}", "tid": 0}
            yield {**pair, "ph": "b"}
            yield {"ph": "e", "pid": trace.rank, "tid": 0, "cat": span.row, "name": span.name, "id": pair["id"],
                   "ts": round(span.end, 3)}


def write_joined(traces, path):
    """One file that https://ui.perfetto.dev and chrome://tracing open."""
    with open(path, "w") as file:
        file.write('{"displayTimeUnit":"ms","traceEvents":[\n')
        events = (event for trace in traces for event in _events_of(trace))
        file.write(",\n".join(json.dumps(event, separators=(",", ":")) for event in events))
        file.write("\n]}\n")
