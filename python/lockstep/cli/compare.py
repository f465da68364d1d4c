# SPDX-License-Identifier: Apache-2.0
"""Compares two records (lockstep.record): losses step by step, weights at the end."""
import math
from dataclasses import dataclass, field

from lockstep.record import read_losses, read_weights


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


def relative(first, second, scale):
    """0 where both are the same, also where both are not numbers or infinite in the same way."""
    if first == second or (math.isnan(first) and math.isnan(second)):
        return 0.0
    difference = abs(first - second)
    return difference / scale if scale > 0 and math.isfinite(difference) else math.inf


def compare_losses(one, many, tolerance, result):
    first, second = dict(one), dict(many)
    if first.keys() != second.keys():
        result.complaints.append(f"one process took {len(first)} steps, the ranks took {len(second)}")
    for step in sorted(first.keys() & second.keys()):
        difference = relative(first[step], second[step], max(abs(first[step]), abs(second[step])))
        result.num_steps += 1
        if difference > result.loss_difference:
            result.loss_difference, result.loss_step = difference, step
        if difference > tolerance and result.first_step < 0:
            result.first_step = step
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


def compare_weights(one, many, tolerance, result, who="one process and the ranks"):
    missing = one.keys() ^ many.keys()
    if missing:
        result.complaints.append(f"{who} do not have the same variables: {', '.join(sorted(missing)[:5])}")
    beyond = []
    for name in one.keys() & many.keys():
        difference = variable_difference(one[name], many[name])
        if difference > result.weight_difference:
            result.weight_difference, result.weight_name = difference, name
        if difference > tolerance:
            beyond.append((difference, name))
    result.num_variables = max(result.num_variables, len(one.keys() & many.keys()))
    if beyond:
        difference, name = max(beyond)
        result.complaints.append(f"{len(beyond)} of {len(one)} variables differ between {who}; most of all '{name}', by "
                                 f"{difference:.3g} of its largest value")


def compare_folders(one, many, tolerance):
    """`one` and `many` hold the records of the two runs."""
    result = Comparison()
    losses = sorted(many.glob("rank-*.losses"), key=lambda path: int(path.stem.split("-")[1]))
    compare_losses(read_losses(one / "rank-0.losses"), read_losses(losses[0]), tolerance, result)
    if (one / "rank-0.npz").exists() and (many / "rank-0.npz").exists():
        weights = read_weights(many / "rank-0.npz")
        # The ranks among themselves first: theirs must be the same bits, and that would explain the rest.
        for path in losses[1:]:
            other = path.with_suffix(".npz")
            if other.exists():
                compare_weights(weights, read_weights(other), 0.0, result, f"rank 0 and {other.stem.replace('-', ' ')}")
        compare_weights(read_weights(one / "rank-0.npz"), weights, tolerance, result)
    return result
