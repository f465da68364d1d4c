# SPDX-License-Identifier: Apache-2.0
"""A loss or metric that is a figure of the batch, computed from this rank's rows: its sums and means over the rows become those of
the batch, and all that the function makes of them is what one process has.

    sqrt(mean((y - p) ** 2))                the mean of all ranks, then the root
    sum(loss * mask) / sum(mask)            two sums of all ranks, then the quotient

The function is first traced on its own, to see what it is made of (anatomy.py); the sums and means that are to be replaced are
known by their order among its calls of tf.reduce_sum and tf.reduce_mean.  Where the anatomy is not clear, and where the mean
over ranks is right anyway, the function is called as it is.

Gradients.  The optimizer gets the mean of the ranks' gradients, weighed with their shares w of the batch.  A sum over ranks,
S = sum of s, may be used row by row, as in sum((y - mean(y)) ** 2), or be multiplied by weights of the rows: dL/dS is the mean over
the ranks of what each has of it.  What rank q gave to S it alone differentiates: that must arrive with the weight 1, so the
gradient by s is dL/dS / w.  For a mean over the rows, s = w * mean, and w cancels.

Seam: gen_math_ops._sum and mean, below tf.reduce_sum, tf.reduce_mean and keras.ops, while such a function is called;
Loss.call and MeanMetricWrapper._fn of both Kerases."""
import contextlib
import threading

import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.framework.func_graph import FuncGraph
from tensorflow.python.ops import gen_math_ops

from lockstep import hooks, native, ops, world
from lockstep.losses import anatomy
from lockstep.slices import current

_MEANS = ("sum_over_batch_size", "mean", "auto")  # reductions of Keras that take the mean
_local = threading.local()


def attach():
    if world.size == 1:
        return
    for name in ("_sum", "mean"):
        @hooks.wrap(gen_math_ops, name)
        def reduce(original, input, *args, **kwargs):
            value = original(input, *args, **kwargs)
            watch = getattr(_local, "watch", None)
            return value if watch is None else watch(input, value)


def attach_to(loss_class, metric_class):
    """Keras's Loss, whose method call() may be the script's, and its metric made from a function."""
    @hooks.wrap(loss_class, "__call__")
    def call_loss(original, self, *args, **kwargs):
        with _called_by_us(self, "call", self.reduction in _MEANS):
            return original(self, *args, **kwargs)

    @hooks.wrap(metric_class, "update_state")
    def update_metric(original, self, *args, **kwargs):
        with _called_by_us(self, "_fn", is_averaged=False):
            return original(self, *args, **kwargs)


@contextlib.contextmanager
def _called_by_us(owner, name, is_averaged):
    """Meanwhile owner.name(...), a method or a function that owner has, is called by call()."""
    if not _is_sliced():
        yield
        return
    function = hooks.converted(getattr(owner, name))
    before = owner.__dict__.get(name)
    owner.__dict__[name] = hooks.ours(lambda *args, **kwargs: call(function, args, kwargs, is_averaged))
    try:
        yield
    finally:
        del owner.__dict__[name]
        if before is not None:
            owner.__dict__[name] = before


def give_up_looking():
    """Called by who changes a number of the slice by itself: what a function around it is made of is not clear then."""
    if getattr(_local, "is_looking", False):
        raise anatomy.Unclear("a loss of Keras inside, which is looked after")


def call(function, args, kwargs, is_averaged):
    """function(*args, **kwargs) of the batch, where the arguments are rows of this rank's slice.  is_averaged: should it give
    several figures, their mean will be taken."""
    if getattr(_local, "is_inside", False) or not all(isinstance(rows, tf.Tensor) and rows.shape.rank for rows in args):
        return function(*args, **kwargs)
    _local.is_inside = True
    try:
        seen = _look(function, args, kwargs, is_averaged)
        if seen is None:
            return function(*args, **kwargs)
        value, made = _replaced(function, args, kwargs, seen)
        return value if made == len(seen) else function(*args, **kwargs)
    finally:
        _local.is_inside = False


def _is_sliced():
    """In Keras's steps: there all ranks call alike.  Not where the script says how its losses add up."""
    if world.size == 1 or not current.has_part() or native.setting("LOSS") == "sum":
        return False
    part = current.now()
    return not (part.is_static and part.is_whole)


# ---- what it is made of ----------------------------------------------------------------------------------------

def _look(function, args, kwargs, is_averaged):
    """Kinds of its reductions in their order, None for those that stay; or None: leave it."""
    made, graph = [], FuncGraph("lockstep_loss")
    _local.is_looking = True
    try:
        with graph.as_default(), record.stop_recording(), _watching(lambda _, value: made.append(value.op.name) or value):
            rows, given = _placeholders(args)
            result = function(*rows, **kwargs)
        found = anatomy.Anatomy(graph, given, result)
    except Exception:  # whatever is wrong with the function shows when it is called for its value
        return None
    finally:
        _local.is_looking = False
    is_figure = isinstance(found.result, anatomy.Figure)
    if is_figure and result.shape.rank != 0 and not is_averaged:
        return None
    needs_all = found.feeds_rows or (is_figure and not found.result.is_mean)
    if not needs_all or not set(found.kinds) <= set(made):
        return None
    return [found.kinds.get(name) for name in made]


def _placeholders(args):
    """(stand-ins for the arguments, these and those for their masks).  The number of rows is left open: all ranks see the same."""
    rows, given = [], []
    for tensor in args:
        rows.append(_placeholder(tensor))
        given.append(rows[-1])
        mask = getattr(tensor, "_keras_mask", None)
        if mask is not None:
            rows[-1]._keras_mask = _placeholder(mask)
            given.append(rows[-1]._keras_mask)
    return rows, given


def _placeholder(tensor):
    return tf.compat.v1.placeholder(tensor.dtype, [None, *tensor.shape[1:]])


@contextlib.contextmanager
def _watching(watch):
    before, _local.watch = getattr(_local, "watch", None), watch
    try:
        yield
    finally:
        _local.watch = before


# ---- the same with the sums of all ranks -----------------------------------------------------------------------

def _replaced(function, args, kwargs, kinds):
    """(value, number of reductions that it made)"""
    made = 0

    def watch(input, value):
        nonlocal made
        kind = kinds[made] if made < len(kinds) else None
        made += 1
        if kind is None:
            return value
        with _watching(None):
            return _of_batch(kind, input, value)

    with _watching(watch):
        value = function(*args, **kwargs)
    return value, made


def _of_batch(kind, input, value):
    part, name = current.now(), current.numbered(f"loss/{kind}")
    dtype = tf.float32 if value.dtype in (tf.float16, tf.bfloat16) else value.dtype
    own = tf.cast(value, dtype)
    reduce = {anatomy.SUM: _sum, anatomy.SUM_BY_COUNT: _sum_by_count, anatomy.MEAN: _mean, anatomy.MEAN_OF_SOME: _mean_of_some}[kind]
    if not dtype.is_floating:
        return _shaped(reduce(own, input, part, name)[0], value)

    @tf.custom_gradient
    def of_batch(own):
        together, back = reduce(own, input, part, name)

        def of_all(grad):
            return ops.allreduce(grad, *ops.gradient_names([name]), **part.mean())

        return together, lambda grad: back(grad, of_all)

    return _shaped(tf.cast(of_batch(own), value.dtype), value)


def _shaped(together, value):
    together.set_shape(value.shape)
    return together


# Each gives the figure of the batch, and how the gradient comes back: back(grad, of_all), where of_all(grad) is the ranks' mean.

def _sum(own, _, part, name):
    return ops.allreduce(_if_counts(own, part), name, op=ops.SUM), lambda grad, of_all: _divided(of_all(grad), part.share_in_mean())


def _sum_by_count(own, _, part, name):
    """The script will divide it by the rows of the slice: the slice's share of the sum."""
    share = ops.exact(part.share_in_mean(), own.dtype)
    together = ops.allreduce(_if_counts(own, part), name, op=ops.SUM) * share
    return together, lambda grad, of_all: _divided(of_all(grad * share), share)


def _mean(own, _, part, name):
    return ops.allreduce(own, name, **part.mean()), lambda grad, of_all: of_all(grad)


def _mean_of_some(own, input, part, name):
    """A mask leaves a rank some of its elements, or none."""
    number = _if_counts(tf.cast(tf.size(input) // tf.maximum(tf.size(own), 1), own.dtype), part)
    total = ops.allreduce(tf.math.multiply_no_nan(own, number), name, op=ops.SUM)
    numbers = ops.allreduce(number, name + "/number", op=ops.SUM)
    part_of_all = tf.math.divide_no_nan(number, numbers)
    return total / numbers, lambda grad, of_all: _divided(of_all(grad) * part_of_all, part.share_in_mean())


def _if_counts(own, part):
    """A row that was lent counts nothing."""
    counts = part.counts()
    return own if counts is True else tf.where(counts, own, tf.zeros_like(own))


def _divided(grad, share):
    return tf.math.divide_no_nan(grad, ops.exact(share, grad.dtype))
