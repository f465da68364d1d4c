# SPDX-License-Identifier: Apache-2.0
"""What the front ends of Keras 3 and tf_keras share: steps on a slice of the batch, losses of slices, agreed stops."""
import contextlib
import functools
import itertools
import math
import threading

import numpy as np
import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from lockstep import audit, batchnorm, following, gradients, hooks, host, metrics, ops, say, summary, world
from lockstep.losses import figures, looks, numbers
from lockstep.slices import current, own, part as parts

_local = threading.local()


def cut(model, data):
    """(part, this rank's rows), or all rows where the model keeps something for each of them."""
    if isinstance(data, parts.Rows) or not keeps_rows(model):
        return parts.cut(data)
    return parts.WHOLE, data


def keeps_rows(model):
    """Has the model a layer that keeps a state for each row of the batch, for the next one (LSTM with stateful=True)?"""
    if world.size == 1 or not hasattr(model, "_flatten_layers"):
        return False
    layers = [layer for layer in model._flatten_layers() if getattr(layer, "stateful", False) and hasattr(layer, "return_sequences")]
    if layers:
        say.once(f"the layer {layers[0].name} keeps a state for each row of the batch: every rank computes whole batches, which is right "
                 "but not faster")
    return bool(layers)


def on_slice(step):
    """step(*objects, data) is given this rank's slice of the batch; what it logs are numbers of the batch."""
    @functools.wraps(step)
    def step_on_slice(*arguments):
        *objects, data = arguments
        if looks.is_noting():
            return on_noted_whole(*objects, data)
        batch = data
        part, data = cut(objects[0] if objects else getattr(step, "__self__", None), batch)
        summary.count(part)
        with current.scope(part), figures.step(), batchnorm.agreed_at_end():
            looks.note_rows(data, batch)
            logs = step(*objects, data)
            if is_sliced():
                looks.decide_of_variables()
            return global_logs(logs, part)

    def on_noted_whole(*arguments):
        *objects, data = arguments
        data = parts.whole(data)
        with looks.noting(data):
            return on_whole(step)(*objects, data)

    return step_on_slice


def on_whole(step):
    """step(*objects, data) is given the whole batch on every rank."""
    @functools.wraps(step)
    def step_on_whole(*arguments):
        *objects, data = arguments
        with current.scope(parts.WHOLE), batchnorm.agreed_at_end():
            return step(*objects, parts.whole(data))

    return step_on_whole


def whole_where_needed(on_slices, on_whole):
    """A train function of Keras: on_slices, or on_whole() if its loss needs whole batches, which shows when it is called first."""
    function = None

    def train(batches):
        nonlocal function
        if function is not None or not looks.is_on():
            return (function or on_slices)(batches)
        again = batches
        if not isinstance(batches, tf.data.Iterator):  # train_on_batch gives what can be taken once
            batches, again = itertools.tee(batches)
        try:
            with looks.deciding():
                logs = on_slices(batches)
        except Exception:
            if not looks.has_given_up():
                raise
            function = on_whole()
            return function(again)
        function = on_whole() if looks.needs_whole() else on_slices
        return logs

    return train


def attach_ended_traces():
    """Variables that a trace has made begin with their values when it is done; also where looks.decide() has ended it: the
    layers keep them."""
    @hooks.wrap(polymorphic_function.Function, "_initialize")
    def initialize_or_end(original, self, args, kwds, add_initializers_to=None):
        try:
            return original(self, args, kwds, add_initializers_to=add_initializers_to)
        except Exception:
            if looks.is_giving_up() and add_initializers_to:
                self._initialize_uninitialized_variables(add_initializers_to)
            raise


def on_delivered(step):
    """The same for a batch that a loop of the script has cut already."""
    @functools.wraps(step)
    def step_on_delivered(*arguments):
        return global_logs(step(*arguments), current.now())

    return step_on_delivered


def on_own(step):
    """The same for a batch that is this rank's part already (lockstep.data)."""
    @functools.wraps(step)
    def step_on_own(*arguments):
        *objects, data = arguments
        part = own.part_of(data)
        summary.note_sliced()
        with current.scope(part), figures.step(), batchnorm.agreed_at_end():
            return global_logs(step(*objects, own.with_a_row(data, part)), part)

    return step_on_own


def counted(function, model):
    """A train function whose calls are steps."""
    audit.watch_model(model)

    @functools.wraps(function)
    def train(*args):
        logs = function(*args)
        gradients.note_step(_loss_of(logs))
        return logs

    return train


def _loss_of(logs):
    """A train_step of the script may call it by another name ("total_loss", "d_loss"): the first that says loss, or the first."""
    if not isinstance(logs, dict):
        return logs
    named = [name for name, value in logs.items() if "loss" in name and not isinstance(value, dict)]
    return logs.get("loss", logs[named[0]] if named else next(iter(logs.values()), None))


def global_logs(logs, part):
    """What a train_step of the script returns besides the results of metrics are numbers of the slice."""
    if world.size == 1 or not isinstance(logs, dict):
        return logs
    values = {name: value for name, value in _leaves(logs) if tf.is_tensor(value) and not metrics.is_of_all(value)}
    own = [tf.convert_to_tensor(value) for value in values.values()]  # a variable of a metric, perhaps
    kinds = numbers.kinds_of(own, numbers.RETURNED)
    if kinds is not None:
        looks.decide_by(numbers.first_problem(kinds))
    kinds = [_kind_of_log(value, kind) for value, kind in zip(own, kinds or [None] * len(own))]
    together = numbers.of_batch(own, kinds, [f"log/{name}" for name in values], part)
    return _with_leaves(logs, dict(zip(values, together)))


def _leaves(logs, before=""):
    for name, value in logs.items():
        yield from _leaves(value, f"{before}{name}/") if isinstance(value, dict) else [(f"{before}{name}", value)]


def _with_leaves(logs, values, before=""):
    return {name: _with_leaves(value, values, f"{before}{name}/") if isinstance(value, dict) else values.get(f"{before}{name}", value)
            for name, value in logs.items()}


def _kind_of_log(value, kind):
    """A number that nobody knows more about is taken for a mean."""
    return numbers.MEAN if not isinstance(kind, str) and value.shape.rank == 0 and value.dtype.is_floating else kind


# ---- what predict gives ---------------------------------------------------------------------------------------

def can_have_rows(output):
    return isinstance(output, tf.Tensor) and output.shape.rank != 0


def are_rows(outputs, part):
    """Has every output a row for each of the slice's, on all ranks?  One process puts what the batches give one after another,
    also where it is the same for each batch (a matrix of the model), a figure of the batch, or several rows for each
    sample: what that is cannot be told from slices."""
    own = all(can_have_rows(rows) and rows.shape[0] == max(part.count, 1) for rows in tf.nest.flatten(outputs))
    together = bool(host.allreduce(np.array([own], np.int32), "predict/is_rows", "min")[0])
    if not together:
        say.once("an output of the model does not have a row for each sample: predict() computes whole batches on every rank")
    return together


def all_rows(outputs, part):
    flat = tf.nest.flatten(outputs)
    return tf.nest.pack_sequence_as(outputs, [parts.gather(rows, part, f"predict/{i}") for i, rows in enumerate(flat)])


# ---- losses --------------------------------------------------------------------------------------------------
# The mean over ranks weighs a slice by its samples.  Losses that were divided by something else, or not at all, are
# brought to that: the weighted mean of the slices' losses is then the loss of the batch.

def is_sliced():
    part = current.now()
    return world.size > 1 and not (part.is_static and part.is_whole)


def has_rows(loss):
    """Is there a number for each row of the slice, as far as can be known?"""
    if not loss.shape.rank:
        return False
    part, known = current.now(), tf.compat.dimension_value(loss.shape[0])
    return known is None or not part.is_static or known == max(part.count, 1)


def sum_as_mean(loss):
    """A loss that was summed over the slice."""
    part = current.now()
    return looks.settled(tf.math.divide_no_nan(loss, ops.exact(part.share_in_mean(), loss.dtype)), loss)


@contextlib.contextmanager
def weighing(*tensors):
    """Keras brings these losses of rows to a mean, and does with masks and weights whatever it does."""
    before, _local.weighed = getattr(_local, "weighed", None), tensors
    try:
        yield
    finally:
        _local.weighed = before


def weighed(values):
    """What these losses, which may have been multiplied with weights, were made from."""
    return getattr(_local, "weighed", None) or (values,)


def divided_by_all(own, what, added=0.0):
    """own / the mean of all ranks' own.  Losses have no names; they come in the same order on all ranks.  added: what was
    added to own in the slice, and would have been once in the batch, divided by its rows."""
    part = current.now()
    together = ops.allreduce(own, current.numbered(f"loss/{what}"), **part.mean())
    return tf.stop_gradient(tf.math.divide_no_nan(own + added, together + added * ops.exact(part.share(), own.dtype)))


def valid_part(mask, dtype):
    return tf.reduce_mean(tf.cast(tf.cast(mask, tf.bool), dtype))


# ---- how many steps there will be --------------------------------------------------------------------------------

def attach_expectation(callback_list_class):
    """Keras knows, where the data have a length; who watches the job then sees how much time is left."""
    @hooks.wrap(callback_list_class, "on_epoch_begin")
    def on_epoch_begin(original, self, epoch, *args, **kwargs):
        params = getattr(self, "params", None) or {}
        epochs, batches = params.get("epochs"), params.get("steps")
        if epochs and batches:
            at_once = getattr(getattr(self, "model", None), "steps_per_execution", 1)
            calls = math.ceil(batches / at_once) if isinstance(at_once, int) and at_once > 0 else batches
            following.expect((epochs - epoch) * calls)
        original(self, epoch, *args, **kwargs)


# ---- stopping ------------------------------------------------------------------------------------------------

def attach_stops(callback_list_class, package):
    """model.stop_training is a decision that all ranks take together: one wants to stop, so do all.

    Callbacks that decide by logs decide alike; those that look at a clock or at a file may not.  After a batch only
    callbacks of the script are asked, and only where they act on batches."""
    @hooks.wrap(callback_list_class, "on_epoch_end")
    def on_epoch_end(original, self, *args, **kwargs):
        original(self, *args, **kwargs)
        _agree_to_stop(getattr(self, "model", None))

    @hooks.wrap(callback_list_class, "on_train_batch_end")
    def on_train_batch_end(original, self, *args, **kwargs):
        original(self, *args, **kwargs)
        if any(_acts_on_batches(callback, package) for callback in self.callbacks):
            _agree_to_stop(getattr(self, "model", None))


def _acts_on_batches(callback, package):
    for cls in type(callback).__mro__:
        if cls.__module__.split(".")[0] == package:
            return False
        if any(name in cls.__dict__ for name in ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin",
                                                 "on_batch_end", "on_epoch_begin")):
            return True
    return False


def _agree_to_stop(model):
    if world.size > 1 and model is not None:
        wish = np.array([bool(model.stop_training)], np.uint8)
        model.stop_training = bool(host.allreduce(wish, "stop_training", op="max")[0])
