# SPDX-License-Identifier: Apache-2.0
"""Means that a loss or a metric of the script makes by hand, over those entries of the batch that count:

    tf.reduce_sum(loss * mask) / tf.reduce_sum(mask)        also / tf.maximum(tf.reduce_sum(mask), 1), / (... + 1e-8)

The ranks' losses are averaged by rows, but here a slice was divided by its own sum.  Each rank gets the quotient of the batch's sums
instead, Q = S / C, also one whose slice has no entry.  Its derivative is the slice's part of that of S / C,

    (dS_r - Q dC_r) / C,  divided by the share of the slice in the batch, by which the average of gradients multiplies

In a graph the operators say what a denominator is made of; an eager tensor is marked.  Only under a tape, in the update of a metric, and
in a function that takes no gradient (an evaluation): an optimizer that divides sums has the same ones on every rank, and
must get the same result.  Not in loops and branches that the step makes: a rank may go through them more often than another.

Seam: gen_math_ops.real_div and div_no_nan, below `/`, tf.math.divide_no_nan and keras.ops.divide; for eager tensors _sum."""
import sys

import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.ops import gen_math_ops
from tensorflow.python.ops.control_flow_v2_func_graphs import ControlFlowFuncGraph

from lockstep import hooks, means, metrics, native, ops, world
from lockstep.slices import current

# What a script may do to a sum before it divides by it, with a constant: done again to the sum of the batch.
_CHANGES = {"Identity": lambda total, _, dtype: total, "Cast": lambda total, _, dtype: tf.cast(total, dtype),
            "Maximum": lambda total, constant, _: tf.maximum(total, constant), "AddV2": lambda total, constant, _: total + constant}


def attach():
    if world.size == 1 or native.setting("LOSS") == "sum":
        return

    def divide(original, x, y, *args, **kwargs):
        if not _is_sum(x) or not _is_sum(y) or not _is_of_slices():
            return original(x, y, *args, **kwargs)
        quotient = original(_total(x), total := _total(y), *args, **kwargs)
        slope = tf.math.divide_no_nan(x - quotient * (y - tf.stop_gradient(y)), total * ops.exact(current.now().share_in_mean(), x.dtype))
        return quotient + slope - tf.stop_gradient(slope)

    for name in ("real_div", "div_no_nan"):
        hooks.wrap(gen_math_ops, name)(divide)

    @hooks.wrap(gen_math_ops, "_sum")
    def add_up(original, input, *args, **kwargs):
        total = original(input, *args, **kwargs)
        if tf.executing_eagerly() and total.shape.rank == 0 and current.is_delivering_slices():
            total._lockstep_is_sum = True
        return total


def _is_sum(tensor):
    """Is it one number, a sum, as far as it shows?"""
    if not isinstance(tensor, tf.Tensor) or tensor.shape.rank != 0 or not tensor.dtype.is_floating:
        return False
    return _source(tensor) is not None


def _source(tensor):
    """The sum that this number is made of; None: it is not made so."""
    if tf.executing_eagerly():
        return tensor if getattr(tensor, "_lockstep_is_sum", False) else None
    while tensor.op.type in _CHANGES:
        tensor, constant = _operands(tensor.op)
        if constant is not None and constant.op.type != "Const":
            return None
    return tensor if tensor.op.type == "Sum" and tensor.shape.rank == 0 else None


def _operands(op):
    """(what was changed, the constant that it was changed with)"""
    first, *others = op.inputs
    if others and first.op.type == "Const":
        return others[0], first
    return first, others[0] if others else None


def _is_of_slices():
    if not tf.compat.v1.executing_eagerly_outside_functions() or means.is_off() or not _is_loss_or_metric():
        return False
    part = current.now()
    return not (part.is_static and part.is_whole) and _can_be_reduced() and means.is_called_by_script(depth=4)


def _is_loss_or_metric():
    if metrics.is_at_work():
        return metrics.is_updating()
    return record.could_possibly_record() or _is_without_gradient()


def _is_without_gradient():
    if tf.executing_eagerly():
        return False
    *_, outermost = current.graphs_around(tf.compat.v1.get_default_graph())
    return not hasattr(outermost, "_lockstep_gradients")


def _can_be_reduced():
    """Not what runs for each row: vectorized_map, loops."""
    if not tf.executing_eagerly() and isinstance(tf.compat.v1.get_default_graph(), ControlFlowFuncGraph):
        return False
    frame = sys._getframe(1)
    while frame is not None and not frame.f_globals.get("__name__", "").endswith("parallel_for.control_flow_ops"):
        frame = frame.f_back
    return frame is None


def _total(tensor):
    """What the number would be in one process."""
    if tensor is _source(tensor):
        return _over_ranks(tensor)
    before, constant = _operands(tensor.op)
    return _CHANGES[tensor.op.type](_total(before), constant, tensor.dtype)


def _over_ranks(own):
    part = current.now()
    as_mean = tf.math.divide_no_nan(tf.cast(own, tf.float64), ops.exact(part.share_in_mean(), tf.float64))
    total = ops.allreduce(tf.stop_gradient(as_mean), current.numbered("loss/sum"), **part.mean())
    return tf.cast(tf.reshape(total, ()), own.dtype)
