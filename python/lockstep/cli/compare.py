# SPDX-License-Identifier: Apache-2.0
"""Compares two records (lockstep.record): losses step by step, weights at the end.

What counts as rounding: a difference of at most `tolerance`, or one that rounding alone makes in this script.  Sums of slices
are rounded in another order than the sum of the whole batch, and training amplifies that: two good float32 runs may be
1e-7 apart at first and 1e-2 at the end.  How fast, depends on the script.  So there is a third run, the *yardstick*: one
process whose weights are changed in their last bit after each step (LOCKSTEP_RECORD_NUDGE).  What is apart by up to FACTOR
times as much as the yardstick, up to that step, is rounding.  A mistake is there from the step where it is made, long before
rounding has grown to its size.

Weights are held against the yardstick by their mean square, not by the largest difference: that one belongs to a single
element, and jumps from run to run.  Growth is exponential, so runs that differ by rounding alone are still several times as
far apart as others (examples/digits.py, 4 ranks: losses up to 2 times the yardstick, Adam's moments up to 9 times)."""
import math
from dataclasses import dataclass, field

from lockstep.record import read_losses, read_weights


FACTOR = 30


@dataclass
class Yardstick:
    """How far rounding takes the script: by step for losses (the largest up to it), by name for weights."""

    losses: dict = field(default_factory=dict)
    weights: dict = field(default_factory=dict)

    def of_loss(self, step):
        return self.losses.get(step, 0.0)

    def of_weight(self, name):
        return self.weights.get(name, 0.0)


@dataclass
class Comparison:
    """What was seen; `complaints` is empty when the runs agree."""

    num_steps: int = 0
    loss_difference: float = 0.0     # the largest, relative
    loss_step: int = 0               # where that was
    first_step: int = -1             # the first one beyond the tolerance; -1: none
    weight_difference: float = 0.0   # the largest, relative to the variable's largest value
    weight_name: str = ""
    num_variables: int = 0
    complaints: list = field(default_factory=list)
    may_be_rounding: bool = True     # a yardstick could explain the complaints


def relative(first, second, scale):
    """0 where both are the same, also where both are not numbers or infinite in the same way."""
    if first == second or (math.isnan(first) and math.isnan(second)):
        return 0.0
    difference = abs(first - second)
    return difference / scale if scale > 0 and math.isfinite(difference) else math.inf


def compare_losses(one, many, tolerance, result, yardstick=Yardstick()):
    first, second = dict(one), dict(many)
    if first.keys() != second.keys():
        result.may_be_rounding = False
        result.complaints.append(f"one process took {len(first)} steps, the ranks took {len(second)}")
    for step in sorted(first.keys() & second.keys()):
        difference = relative(first[step], second[step], max(abs(first[step]), abs(second[step])))
        result.num_steps += 1
        if difference > result.loss_difference:
            result.loss_difference, result.loss_step = difference, step
        if difference > max(tolerance, FACTOR * yardstick.of_loss(step)) and result.first_step < 0:
            result.first_step = step
            # The first loss comes before any update: nothing has grown yet.
            result.may_be_rounding &= step != min(first) and math.isfinite(difference)
            result.complaints.append(f"the losses part at step {step}: {first[step]:.9g} and {second[step]:.9g}")


def variable_difference(one, many):
    """The largest difference of two arrays, relative to the largest value in them."""
    import numpy
    if one.shape != many.shape:
        return math.inf
    if one.dtype.kind not in "fiub" or one.size == 0:
        return 0.0 if numpy.array_equal(one, many) else math.inf
    first, second = one.astype(numpy.float64), many.astype(numpy.float64)
    is_equal = (first == second) | (numpy.isnan(first) & numpy.isnan(second))
    if is_equal.all():
        return 0.0
    difference = numpy.abs(first - second)[~is_equal].max()
    scale = max(numpy.abs(values[numpy.isfinite(values)]).max(initial=0.0) for values in (first, second))
    return float(difference / scale) if numpy.isfinite(difference) and scale > 0 else math.inf


def mean_difference(one, many):
    """The root of the mean square of the differences, relative to that of the values."""
    import numpy
    if one.shape != many.shape or one.dtype.kind != "f":
        return math.inf
    first, second = one.astype(numpy.float64), many.astype(numpy.float64)
    with numpy.errstate(invalid="ignore", over="ignore"):
        return relative(float(numpy.linalg.norm(first - second)), 0.0, float(numpy.linalg.norm(first)))


def compare_weights(one, many, tolerance, result, who="one process and the ranks", yardstick=Yardstick()):
    missing = one.keys() ^ many.keys()
    if missing:
        result.may_be_rounding = False
        result.complaints.append(f"{who} do not have the same variables: {', '.join(sorted(missing)[:5])}")
    beyond = []
    for name in one.keys() & many.keys():
        difference = variable_difference(one[name], many[name])
        if difference > result.weight_difference:
            result.weight_difference, result.weight_name = difference, name
        if difference > tolerance and mean_difference(one[name], many[name]) > FACTOR * yardstick.of_weight(name):
            beyond.append((difference, name))
    result.num_variables = max(result.num_variables, len(one.keys() & many.keys()))
    if beyond:
        difference, name = max(beyond)
        result.complaints.append(f"{len(beyond)} of {len(one)} variables differ between {who}; most of all '{name}', by "
                                 f"{difference:.3g} of its largest value")


def read_yardstick(one, nudged):
    """From the records of one process, as it is and nudged."""
    first, second = dict(read_losses(one / "rank-0.losses")), dict(read_losses(nudged / "rank-0.losses"))
    yardstick, largest = Yardstick(), 0.0
    for step in sorted(first.keys() & second.keys()):
        difference = relative(first[step], second[step], max(abs(first[step]), abs(second[step])))
        largest = max(largest, difference if math.isfinite(difference) else 0.0)
        yardstick.losses[step] = largest
    if (one / "rank-0.npz").exists() and (nudged / "rank-0.npz").exists():
        weights, others = read_weights(one / "rank-0.npz"), read_weights(nudged / "rank-0.npz")
        found = {name: mean_difference(weights[name], others[name]) for name in weights.keys() & others.keys()}
        yardstick.weights = {name: difference for name, difference in found.items() if math.isfinite(difference)}
    return yardstick


def compare_ranks(weights, paths, result):
    """The ranks among themselves: theirs must be the same bits."""
    for path in paths:
        if path.exists():
            before = len(result.complaints)
            compare_weights(weights, read_weights(path), 0.0, result, f"rank 0 and {path.stem.replace('-', ' ')}")
            result.may_be_rounding &= len(result.complaints) == before


def compare_folders(one, many, tolerance, yardstick=Yardstick()):
    """`one` and `many` hold the records of the two runs."""
    result = Comparison()
    losses = sorted(many.glob("rank-*.losses"), key=lambda path: int(path.stem.split("-")[1]))
    compare_losses(read_losses(one / "rank-0.losses"), read_losses(losses[0]), tolerance, result, yardstick)
    if (one / "rank-0.npz").exists() and (many / "rank-0.npz").exists():
        weights = read_weights(many / "rank-0.npz")
        compare_ranks(weights, [path.with_suffix(".npz") for path in losses[1:]], result)
        compare_weights(read_weights(one / "rank-0.npz"), weights, tolerance, result, yardstick=yardstick)
    return result
