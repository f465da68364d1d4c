# SPDX-License-Identifier: Apache-2.0
"""Finds the training steps in the traces, and where their time went.

A step begins when its first tensor is handed in and ends when the next step's is.  The steps are found by the tensors
that come again and again: those which move most bytes.  Within a step of one rank,

  exposed   from the moment the last tensor is handed in until the last one is back: nothing is left to compute, the rank
            waits.  The part before the slowest rank has handed in its last tensor is waiting for that rank, the rest is
            communication.  Where tensors are handed in one at a time, all of their time is exposed.
  hidden    communication while tensors were still being computed
  compute   the rest of the step

Steps many times longer than the median hold something else, as an evaluation or a checkpoint: they are called pauses and
left out of the shares."""
from collections import Counter
from dataclasses import dataclass, field
from statistics import median

PAUSE_FACTOR = 5


@dataclass
class RankStep:
    """One step of one rank; microseconds."""

    begin: float
    end: float
    last_given: float
    done: float
    exposed: float
    hidden: float
    late: float = 0.0  # of exposed: waiting for the slowest rank

    @property
    def length(self):
        return self.end - self.begin

    @property
    def compute(self):
        return self.length - self.exposed

    @property
    def transfer(self):
        return self.exposed - self.late


@dataclass
class Step:
    number: int
    ranks: dict = field(default_factory=dict)
    slowest: int = 0

    @property
    def begin(self):
        return min(rank.begin for rank in self.ranks.values())

    @property
    def end(self):
        return max(rank.end for rank in self.ranks.values())

    def mean(self, name):
        return sum(getattr(rank, name) for rank in self.ranks.values()) / len(self.ranks)


def repeated_names(requests):
    """The tensors that make a step: of those that come equally often, the group that moves most bytes."""
    count = Counter(span.name for span in requests)
    traffic = Counter()
    for span in requests:
        traffic[count[span.name]] += span.num_bytes + 1
    times = max((number for number in traffic if number > 1), key=lambda number: traffic[number], default=0)
    return {name for name, number in count.items() if number == times}


def _union(intervals, begin, end):
    """Length of what the intervals cover between begin and end."""
    total, at = 0.0, begin
    for first, last in sorted(intervals):
        first, last = max(first, at), min(last, end)
        if last > first:
            total += last - first
            at = last
    return total


def _is_one_at_a_time(spans):
    return len(spans) > 1 and all(first.end <= second.begin for first, second in zip(spans, spans[1:]))


def _rank_step(spans, buckets, begin, end):
    last_given, done = max(span.begin for span in spans), max(span.end for span in spans)
    if _is_one_at_a_time(spans):
        exposed, hidden = sum(span.end - span.begin for span in spans), 0.0
    else:
        exposed = min(done, end) - min(last_given, end)
        hidden = _union([(span.begin, span.end) for span in buckets], begin, min(last_given, end))
    return RankStep(begin, end, last_given, done, exposed, hidden)


def rank_steps(trace, names):
    """The RankStep of each step of one rank, the last one (which has no end) by when it is done."""
    requests = [span for span in trace.row("request") if span.name in names]
    if not requests:
        return []
    anchor = requests[0].name
    begins = [span.begin for span in requests if span.name == anchor]
    buckets, steps = trace.row("bucket"), []
    at = bucket_at = 0
    for number, begin in enumerate(begins):
        is_last = number + 1 == len(begins)
        spans = []
        while at < len(requests) and (is_last or requests[at].begin < begins[number + 1]):
            spans.append(requests[at])
            at += 1
        end = max(span.end for span in spans) if is_last else begins[number + 1]
        here = []
        while bucket_at < len(buckets) and buckets[bucket_at].begin < end:
            here.append(buckets[bucket_at])
            bucket_at += 1
        steps.append(_rank_step(spans, here, begin, end))
    return steps


def find_steps(traces):
    """The steps that all ranks took, the one without an end left out where there are others."""
    names = repeated_names([span for trace in traces for span in trace.row("request")])
    per_rank = {trace.rank: rank_steps(trace, names) for trace in traces if trace.row("request")}
    common = min((len(steps) for steps in per_rank.values()), default=0)
    steps = []
    for number in range(common - 1 if common > 1 else common):
        step = Step(number, {rank: taken[number] for rank, taken in per_rank.items()})
        step.slowest = max(step.ranks, key=lambda rank: step.ranks[rank].last_given)
        slowest_at = step.ranks[step.slowest].last_given
        for rank in step.ranks.values():
            rank.late = min(max(0.0, slowest_at - rank.last_given), rank.exposed)
        steps.append(step)
    return steps


def regular_steps(steps):
    """Those that are no pauses."""
    limit = PAUSE_FACTOR * median(step.mean("length") for step in steps)
    return [step for step in steps if step.mean("length") <= limit]


def shares_of(steps):
    """Percent of the time of regular steps, mean over ranks."""
    regular = regular_steps(steps)
    total = sum(step.mean("length") for step in regular)
    return {name: 100 * sum(step.mean(name) for step in regular) / total if total else 0.0
            for name in ("compute", "exposed", "late", "hidden")}


@dataclass
class TensorUse:
    name: str
    num_bytes: int
    count: int
    mean_us: float


def largest_tensors(traces, number=20):
    """By the bytes of one request; times are the mean over ranks and steps, from handed in to back."""
    found = {}
    for trace in traces:
        for span in trace.row("request"):
            found.setdefault(span.name, []).append(span)
    uses = [TensorUse(name, max(span.num_bytes for span in spans), len(spans) // len(traces) or 1,
                      sum(span.end - span.begin for span in spans) / len(spans)) for name, spans in found.items()]
    return sorted(uses, key=lambda use: (-use.num_bytes, use.name))[:number]
