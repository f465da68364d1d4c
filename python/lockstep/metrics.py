# SPDX-License-Identifier: Apache-2.0
"""Metrics of Keras 3 and tf_keras count every sample once, and their results are those of all ranks.

A metric's variables hold the sums of this rank's samples.  result() adds up the variables of all ranks and computes from
the totals, so means, accuracies, AUC, precision, confusion matrices and whatever a script builds with assign_add are
exact.  Where every rank has the same rows only rank 0 counts them (slices/part.py).

A metric of the script that sets its variables in another way (assign: a maximum, a list of the last values) is no sum.
It is given the rows of all ranks, on every rank, and its variables are what they are in one process.

A single number that a script gives to Mean or Sum, the loss of a step, is a figure of the batch: it counts with the
rank's share."""
import functools
import threading
import types

import tensorflow as tf

from lockstep import hooks, ops, variables, world
from lockstep.losses import looks
from lockstep.slices import current, part as parts

_local = threading.local()
_CONTAINERS = ("CompileMetrics", "MetricsList")  # of Keras 3: they only call other metrics
_NOT_UPDATES = ("__init__", "build", "result", "reset_state", "reset_states", "get_config", "from_config")


class Kit:
    """What differs between the two libraries: read(variable) is its value, assign(variable, value) sets it;
    compute(metric, result, totals) calls result() with the variables at these values; batch_figures are the classes
    whose scalars are figures of a batch; package is where the library's own metrics are, which are all sums."""

    def __init__(self, read, assign, compute, batch_figures, package):
        self.read, self.assign, self.compute = read, assign, compute
        self.batch_figures, self.package = batch_figures, package


def attach_to_classes(metric_class, kit):
    """Hooks a library's class Metric, and every class made from it when the first object of that class is made."""
    original = metric_class.__init__

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        for cls in type(self).__mro__:
            if issubclass(cls, metric_class) and cls is not metric_class:
                _hook_class(cls, kit)
        original(self, *args, **kwargs)

    metric_class.__init__ = init


def _hook_class(cls, kit):
    if "_lockstep_hooked" in cls.__dict__ or cls.__name__ in _CONTAINERS:
        return
    cls._lockstep_hooked = True
    for name, hook in (("update_state", _update_state), ("result", _result)):
        if name in cls.__dict__:
            setattr(cls, name, _outermost(cls.__dict__[name], hook, kit))


def attach_to_objects(metric_class, kit):
    """The same for a library whose objects have methods of their own, made by __new__ from those of the class."""
    original = metric_class.__new__

    @functools.wraps(original)
    def new(cls, *args, **kwargs):
        metric = original(cls, *args, **kwargs)
        for name, hook in (("update_state", _update_state), ("result", _result)):
            method = _outermost(_without_self(getattr(metric, name)), hook, kit)
            setattr(metric, name, types.MethodType(method, metric))
        return metric

    metric_class.__new__ = staticmethod(new)


def _without_self(bound):
    @functools.wraps(bound)
    def function(_self, *args, **kwargs):
        return bound(*args, **kwargs)

    return function


def _outermost(original, hook, kit):
    """A metric may use others, or its base class: only the outermost call does our part."""
    @functools.wraps(original)
    def hooked(self, *args, **kwargs):
        method = hooks.converted(original)
        if not world.on() or world.size == 1:
            return method(self, *args, **kwargs)
        if getattr(_local, "busy", None):
            if hook is _update_state and _is_sum(type(self), kit.package):  # a function that gives one number per batch
                args, kwargs = _weigh_batch_figure(kit, current.now(), self, args, kwargs)
            return method(self, *args, **kwargs)
        _local.busy = hook, isinstance(self, kit.batch_figures)
        try:
            with looks.counting():
                return hook(method, kit, self, *args, **kwargs)
        finally:
            _local.busy = None

    return hooks.ours(hooked)


def is_updating():
    """Is a metric being updated, not asked for its result?"""
    busy = getattr(_local, "busy", None)
    return busy is not None and busy[0] is _update_state


def adds_sums():
    """Is a metric being updated that adds what it computes to variables of its own?  What it sums over the rows of the slice is
    added to that of the other ranks in the end; a figure of the batch, given to Mean or Sum, counts with the rank's share."""
    return is_updating() and not _local.busy[1]


def is_sum(metric):
    """Do its variables hold this rank's part of a sum?  Those of other metrics are alike on all ranks."""
    packages = {base.__module__.split(".")[0] for base in type(metric).__mro__}
    return _is_sum(type(metric), "tf_keras" if "tf_keras" in packages else "keras")


@functools.lru_cache(maxsize=None)
def _is_sum(cls, package):
    """Does a metric only add to its variables?  The library's own do; a script's do if no method but those that build or
    reset it mentions assign."""
    for base in cls.__mro__:
        if base.__module__.split(".")[0] == package:
            return True
        for name, method in base.__dict__.items():
            code = getattr(getattr(method, "__wrapped__", method), "__code__", None)
            if code is not None and name not in _NOT_UPDATES and "assign" in code.co_names:
                return False
    return True


# ---- update_state --------------------------------------------------------------------------------------------

def _update_state(original, kit, self, *args, **kwargs):
    current.recall((args, kwargs))
    part = current.now()
    if not _is_sum(type(self), kit.package):
        args, kwargs = _all_rows((args, kwargs), part, self.name)
        return original(self, *args, **kwargs)
    args, kwargs = _weigh_batch_figure(kit, part, self, args, kwargs)
    counts = part.counts()
    if not tf.is_tensor(counts) and counts:
        return original(self, *args, **kwargs)
    before = {id(variable): tf.identity(kit.read(variable)) for variable in self.variables}
    result = original(self, *args, **kwargs)
    for variable in self.variables:
        value = kit.read(variable)
        kit.assign(variable, tf.where(counts, value, before.get(id(variable), tf.zeros_like(value))))
    return result


def _weigh_batch_figure(kit, part, self, args, kwargs):
    if not isinstance(self, kit.batch_figures) or len(args) != 1 or kwargs.get("sample_weight") is not None:
        return args, kwargs
    if not set(kwargs) <= {"sample_weight"} or tf.convert_to_tensor(args[0]).shape.rank != 0:
        return args, kwargs
    is_full = part.is_static and part.share() == 1.0
    return args, kwargs if is_full else {"sample_weight": ops.exact(part.share(), self.dtype or "float32")}


def weigh_inner_figure(kit, self, values, sample_weight):
    """The weight of a number that a metric's function gives to the Mean that the metric is made from."""
    _, kwargs = _weigh_batch_figure(kit, current.now(), self, (values,), {"sample_weight": sample_weight})
    return kwargs["sample_weight"]


def _all_rows(arguments, part, name):
    """What was given to a metric, of all ranks: rows are gathered, numbers are those of the batch."""
    if part.is_static and part.is_whole:
        return arguments
    flat = tf.nest.flatten(arguments)
    together = [_rows_of_all(item, part, current.numbered(f"metric/{name}/rows/{i}")) for i, item in enumerate(flat)]
    return tf.nest.pack_sequence_as(arguments, together)


def _rows_of_all(item, part, name):
    if item is None or isinstance(item, str):
        return item
    item = tf.convert_to_tensor(item)
    if item.shape.rank == 0:
        return ops.allreduce(item, name, **part.mean()) if item.dtype.is_floating else item
    return parts.gather(item, part, name)


# ---- result --------------------------------------------------------------------------------------------------

def _result(original, kit, self, *args, **kwargs):
    own = list(self.variables)
    if not own or not _is_sum(type(self), kit.package):
        return original(self, *args, **kwargs)
    totals = ops.allreduce_group([kit.read(variable) for variable in own],
                                 [f"metric/{variables.key(variable)}" for variable in own], op=ops.SUM)
    for total, variable in zip(totals, own):
        total.set_shape(variable.shape)
    result = kit.compute(self, functools.partial(original, self, *args, **kwargs), totals)
    for number in tf.nest.flatten(result):
        if isinstance(number, tf.Tensor):
            number._lockstep_is_of_all = True
    return result


def is_of_all(number):
    """Is this a result, which is the same on all ranks already?"""
    return getattr(number, "_lockstep_is_of_all", False)
