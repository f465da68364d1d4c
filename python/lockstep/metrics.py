# SPDX-License-Identifier: Apache-2.0
"""Metrics of Keras 3 and tf_keras count every sample once, and their results are those of all ranks.

A metric's variables hold the sums of this rank's samples.  result() adds up the variables of all ranks and computes from
the totals, so means, accuracies, AUC, precision, confusion matrices and whatever a script builds from sums are exact.
Where every rank has the same rows only rank 0 counts them (slices/part.py).

A single number that a script gives to Mean or Sum, the loss of a step, is a figure of the batch: it counts with the
rank's share."""
import functools
import threading

import tensorflow as tf

from lockstep import ops, variables, world
from lockstep.slices import current

_local = threading.local()


def attach(metric_class, read, assign, compute, batch_figures):
    """Hooks a library's class Metric, and every class made from it when the first object of that class is made.

    read(variable) is its value, assign(variable, value) sets it; compute(metric, result, totals) calls result() with
    the variables at these values; batch_figures are the classes whose scalars are figures of a batch."""
    kit = _Kit(read, assign, compute, batch_figures)
    original = metric_class.__init__

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        for cls in type(self).__mro__:
            if issubclass(cls, metric_class) and cls is not metric_class:
                _hook_class(cls, kit)
        original(self, *args, **kwargs)

    metric_class.__init__ = init


class _Kit:
    def __init__(self, read, assign, compute, batch_figures):
        self.read, self.assign, self.compute, self.batch_figures = read, assign, compute, batch_figures


def _hook_class(cls, kit):
    if "_lockstep_hooked" in cls.__dict__ or cls.__name__ == "CompileMetrics":  # it only calls other metrics
        return
    cls._lockstep_hooked = True
    for name, hook in (("update_state", _update_state), ("result", _result)):
        if name in cls.__dict__:
            setattr(cls, name, _outermost(cls.__dict__[name], hook, kit))


def _outermost(original, hook, kit):
    """A metric may use others, or its base class: only the outermost call does our part."""
    @functools.wraps(original)
    def hooked(self, *args, **kwargs):
        if not world.on() or world.size == 1 or getattr(_local, "busy", False):
            return original(self, *args, **kwargs)
        _local.busy = True
        try:
            return hook(original, kit, self, *args, **kwargs)
        finally:
            _local.busy = False

    return hooked


def _update_state(original, kit, self, *args, **kwargs):
    current.recall((args, kwargs))
    part = current.now()
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
    return args, kwargs if is_full else {"sample_weight": tf.cast(part.share(), tf.float32)}


def _result(original, kit, self, *args, **kwargs):
    own = list(self.variables)
    if not own:
        return original(self, *args, **kwargs)
    totals = ops.allreduce_group([kit.read(variable) for variable in own],
                                 [f"metric/{variables.key(variable)}" for variable in own], op=ops.SUM)
    for total, variable in zip(totals, own):
        total.set_shape(variable.shape)
    return kit.compute(self, functools.partial(original, self, *args, **kwargs), totals)
