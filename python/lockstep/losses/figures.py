# SPDX-License-Identifier: Apache-2.0
"""A loss or metric that is a figure of the batch, computed from this rank's rows: its sums and means over the rows become those of
the batch, and all that the function makes of them is what one process has.

    sqrt(mean((y - p) ** 2))                the mean of all ranks, then the root
    sum(loss * mask) / sum(mask)            two sums of all ranks, then the quotient

The function is traced on its own first, to see what it is made of (anatomy.py), and then called once, so that what it prints, counts
and keeps is that of one call.  Where it is not clear, and where the mean over ranks is right anyway, it is called as it is;
otherwise with the sums and means that are to be replaced, which are known by their order among its calls of tf.reduce_sum and
tf.reduce_mean.

Gradients.  The optimizer gets the mean of the ranks' gradients, weighed with their shares w of the batch.  A sum over ranks,
S = sum of s, may be used row by row, as in sum((y - mean(y)) ** 2), or be multiplied by weights of the rows: dL/dS is the mean over
the ranks of what each has of it.  What rank q gave to S it alone differentiates: that must arrive with the weight 1, so the
gradient by s is dL/dS / w.  For a mean over the rows, s = w * mean, and w cancels.

Seam: gen_math_ops._sum and mean, below tf.reduce_sum, tf.reduce_mean and keras.ops, while such a function is called;
Loss.call and MeanMetricWrapper._fn of both Kerases."""
import contextlib
import io
import random
import threading

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.framework.func_graph import FuncGraph
from tensorflow.python.ops import gen_math_ops
from tensorflow.python.ops.control_flow_v2_func_graphs import ControlFlowFuncGraph

from lockstep import hooks, native, ops, world
from lockstep.losses import anatomy, looks
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


def attach_to(loss_class, metric_class, compiled):
    """Keras's Loss, whose method call() may be the script's, and its metric made from a function, where they are called by the
    methods of compile_utils that compute what compile() was given: (class, name) each."""
    for owner, name in compiled:
        @hooks.wrap(owner, name)
        def compute(original, self, *args, **kwargs):
            with _kept(is_compiled=True):
                return original(self, *args, **kwargs)

    @hooks.wrap(loss_class, "__call__")
    def call_loss(original, self, y_true, y_pred, sample_weight=None):
        with _called_by_us(self, "call", is_averaged=self.reduction in _MEANS, is_weighted=_has_weights(y_pred, sample_weight)):
            return original(self, y_true, y_pred, sample_weight)

    @hooks.wrap(metric_class, "update_state")
    def update_metric(original, self, y_true, y_pred, sample_weight=None):
        with _called_by_us(self, "_fn", is_weighted=_has_weights(y_pred, sample_weight)):
            return original(self, y_true, y_pred, sample_weight)


def _has_weights(y_pred, sample_weight):
    """Keras makes weights of rows from a mask, too."""
    return sample_weight is not None or getattr(y_pred, "_keras_mask", None) is not None


@contextlib.contextmanager
def step():
    """A step of Keras on a slice begins: in its graph all ranks compute alike."""
    with _kept(graph=None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()):
        yield


@contextlib.contextmanager
def _kept(**values):
    before = {name: getattr(_local, name, None) for name in values}
    vars(_local).update(values)
    try:
        yield
    finally:
        vars(_local).update(before)


@contextlib.contextmanager
def _called_by_us(owner, name, **use):
    """Meanwhile owner.name(...), a method or a function that owner has, is called by call()."""
    if not _is_wanted():
        yield
        return
    function = hooks.converted(getattr(owner, name))
    before = owner.__dict__.get(name)
    owner.__dict__[name] = hooks.ours(lambda *args, **kwargs: call(owner, function, args, kwargs, **use))
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


def call(owner, function, args, kwargs, is_averaged=False, is_weighted=False):
    """function(*args, **kwargs) of the batch, where the arguments are rows of this rank's slice; owner is the object that has it.
    is_averaged: should it give several figures, their mean will be taken; is_weighted: what it gives will be multiplied with weights
    of rows."""
    with _kept(is_compiled=False):  # what the function calls in turn is part of it
        kinds, is_some = _look(owner, function, args, kwargs, is_averaged, is_weighted) if _are_rows(args) else (None, False)
        value, made = (None, 0) if kinds is None else _replaced(function, args, kwargs, kinds)
        if kinds is None or made != len(kinds):
            value = function(*args, **kwargs)
        return _by_their_number(value, args[0]) if is_some and is_averaged and not is_weighted else value


def _are_rows(args):
    """As far as shapes tell: a matrix of the model's weights that it gives as an output has another number of rows than the labels."""
    if not all(isinstance(rows, tf.Tensor) and rows.shape.rank for rows in args):
        return False
    labels, *outputs = (tf.compat.dimension_value(rows.shape[0]) for rows in args)
    return all(number in (None, labels) for number in outputs)


def _is_wanted():
    """In what compile() was given, while a step of Keras is traced, and not in a branch or loop of the script: there all ranks call
    alike.  Eagerly nobody could tell a number of this slice from a constant.  Not where the script says how its losses add up."""
    if world.size == 1 or not getattr(_local, "is_compiled", False) or not current.has_part() or native.setting("LOSS") == "sum":
        return False
    part = current.now()
    return not (part.is_static and part.is_whole) and not tf.executing_eagerly() and _is_straight()


def _is_straight():
    """Is there no branch or loop between the step and the graph that is being traced?"""
    around = list(current.graphs_around(tf.compat.v1.get_default_graph()))
    if getattr(_local, "graph", None) not in around:
        return False
    return not any(isinstance(graph, ControlFlowFuncGraph) for graph in around[:around.index(_local.graph)])


# ---- what it is made of ----------------------------------------------------------------------------------------

def _look(owner, function, args, kwargs, is_averaged, is_weighted):
    """(kinds of its reductions in their order, None for those that stay; or None: leave it, does it give rows that a mask leaves)"""
    made, graph = [], FuncGraph("lockstep_loss")
    try:
        with graph.as_default(), record.stop_recording(), _unnoticed(owner), tf.variable_creator_scope(_no_variable), \
                _kept(is_looking=True, watch=lambda _, value: made.append(value.op.name) or value):
            rows, given = _placeholders(args)
            result = function(*rows, **kwargs)
        found = anatomy.Anatomy(graph, given, result)
    except Exception:  # should it not work at all, that will show when it is called for its value
        return None, False
    is_figure = isinstance(found.result, anatomy.Figure)
    is_some = isinstance(found.result, anatomy.Rows) and found.result.mask is not None
    if is_figure and result.shape.rank != 0 and not is_averaged:
        return None, False
    needs_all = found.feeds_rows or (is_figure and (is_weighted or not found.result.is_mean))
    if not needs_all or not set(found.kinds) <= set(made):
        return None, is_some
    return [found.kinds.get(name) for name in made], is_some


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
def _unnoticed(owner):
    """What the function prints, keeps in its object, and draws from Python's and numpy's generators comes when it is called."""
    numbers, numpy_numbers, attributes = random.getstate(), np.random.get_state(), dict(vars(owner))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        random.setstate(numbers)
        np.random.set_state(numpy_numbers)
        vars(owner).clear()
        vars(owner).update(attributes)


def _no_variable(*_, **__):
    """One that a function makes in its first call would belong to the graph that is only looked at."""
    raise anatomy.Unclear("a new variable")


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
        with _kept(watch=None):
            return _of_batch(kind, input, value)

    with _kept(watch=watch):
        value = function(*args, **kwargs)
    return value, made


def _by_their_number(some, rows):
    """Of the rows of the slice a mask leaves some, of which Keras will take the mean: weighed by how many of all they are.  Where it
    leaves none here but some elsewhere, a zero stands for them: older versions of Keras would divide by their number."""
    part = current.now()
    own = tf.size(some, tf.int64) / tf.shape(rows, tf.int64)[0]
    together = ops.allreduce(own, current.numbered("loss/some"), **part.mean())
    weighed = some * tf.cast(tf.math.divide_no_nan(own, together), some.dtype)
    number_of_zeros = tf.cast(tf.logical_and(own == 0, together > 0), tf.int32)
    with_zeros = tf.concat([weighed, tf.zeros([number_of_zeros, *tf.unstack(tf.shape(some))[1:]], some.dtype)], axis=0)
    return looks.settled(with_zeros, some)


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
        return together, lambda grad: back(grad, lambda each: _of_all(each, part, name))

    return _shaped(tf.cast(of_batch(own), value.dtype), value)


def _of_all(grad, part, name):
    """The mean over the ranks.  What flows back through it, where gradients are differentiated, is the mean of that."""
    name = ops.gradient_names([name])[0]

    @tf.custom_gradient
    def mean(grad):
        return ops.allreduce(grad, name, **part.mean()), lambda second: _of_all(second, part, name)

    return mean(grad)


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
