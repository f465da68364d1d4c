# SPDX-License-Identifier: Apache-2.0
"""Keras 3 with the TensorFlow backend: fit, evaluate, predict, *_on_batch (Keras 3.3 to 3.15).

Seams: TensorFlowTrainer._make_function and make_predict_function get the step functions (the script's own train_step among
them) and call them with a whole batch; here they are called with this rank's slice of it.  Gradients are reduced by the
tape that the step uses (tape.py), and figures by the metrics (metrics.py)."""
import functools

import tensorflow as tf

from lockstep import hooks, metrics, native, ops, world
from lockstep.data import mark
from lockstep.slices import current, own, part as parts


def attach():
    from keras.src import backend
    if backend.backend() != "tensorflow":
        return
    from keras.src.backend.tensorflow import trainer
    from keras.src.metrics import metric, reduction_metrics
    _attach_steps(trainer.TensorFlowTrainer)
    _attach_losses()
    metrics.attach(
        metric.Metric, read=lambda variable: tf.convert_to_tensor(variable.value),
        assign=lambda variable, value: variable.assign(value), compute=_compute_stateless,
        batch_figures=(reduction_metrics.Mean, reduction_metrics.Sum))


def _compute_stateless(metric, result, totals):
    from keras.src import backend
    with backend.StatelessScope(state_mapping=list(zip(metric.variables, totals))):
        return result()


# ---- steps ---------------------------------------------------------------------------------------------------

def _attach_steps(trainer_class):
    @hooks.wrap(trainer_class, "_make_function")
    def make_function(original, self, step_function):
        return _cutting_by_itself(original(self, _on_slice(step_function)), original(self, _on_own(step_function)))

    @hooks.wrap(trainer_class, "predict")
    def predict(original, self, x, *args, **kwargs):
        if world.size > 1 and mark.is_partitioned(x):
            raise native.LockstepError("predict() gives all rows, but this data is only this rank's part; read it with "
                                       "part=(0, 1) for predict()")
        return original(self, x, *args, **kwargs)

    @hooks.wrap(trainer_class, "make_predict_function")
    def make_predict_function(original, self, force=False):
        before = self.predict_function
        original(self, force)
        if self.predict_function is not before:
            self.predict_function = _gathering(self.predict_function)
        return self.predict_function


def _cutting_by_itself(function, function_on_own):
    """Keras takes batches from an iterator too; they are not to be cut twice."""
    @functools.wraps(function)
    def function_on_slices(iterator):
        with current.scope(None):
            return function_on_own(iterator) if own.is_own(iterator) else function(iterator)

    return function_on_slices


def _on_slice(step):
    @functools.wraps(step)
    def step_on_slice(data):
        part, data = parts.cut(data)
        with current.scope(part):
            return _global_logs(step(data), part)

    return step_on_slice


def _on_own(step):
    """A step on batches that are this rank's part already (lockstep.data)."""
    @functools.wraps(step)
    def step_on_own(data):
        part = own.part_of(data)
        with current.scope(part):
            return _global_logs(step(own.with_a_row(data, part)), part)

    return step_on_own


def _global_logs(logs, part):
    """What a train_step of the script returns besides the results of metrics are numbers of the slice.

    Results of metrics are equal on all ranks already; the mean of what is equal is that."""
    if world.size == 1 or not isinstance(logs, dict):
        return logs
    return {name: _global_number(name, value, part) for name, value in logs.items()}


def _global_number(name, value, part):
    if isinstance(value, dict):
        return {key: _global_number(f"{name}/{key}", item, part) for key, item in value.items()}
    if getattr(value, "_lockstep_is_global", False) or not tf.is_tensor(value):
        return value
    if value.shape.rank != 0 or not value.dtype.is_floating:
        return value
    return ops.allreduce(value, f"log/{name}", **part.reduction())


def _gathering(predict):
    """A predict function that computes this rank's slice of each batch, and gives all ranks' rows."""
    @functools.wraps(predict)
    def predict_function(batches):
        outputs = [_predict_batch(predict, batch) for batch in batches]
        return outputs[0] if len(outputs) == 1 else tf.nest.map_structure(lambda *rows: tf.concat(rows, 0), *outputs)

    return predict_function


def _predict_batch(predict, batch):
    part, batch = parts.cut(batch)
    with current.scope(part):
        outputs = predict([batch])
    if part.is_whole:
        return outputs
    flat = tf.nest.flatten(outputs)
    return tf.nest.pack_sequence_as(outputs, [_gather_rows(rows, i, part) for i, rows in enumerate(flat)])


def _gather_rows(rows, position, part):
    if isinstance(rows, tf.RaggedTensor):
        raise NotImplementedError("lockstep: predict() of ragged outputs on several ranks; set TF_MPI_ENABLE=0 to predict")
    return ops.allgather(rows[:part.count], f"predict/{position}")


# ---- losses --------------------------------------------------------------------------------------------------

def _attach_losses():
    """The mean over ranks weighs a slice by its samples.  Losses that were divided by something else, or not at all, are
    brought to that: the weighted mean of the slices' losses is then the loss of the batch."""
    from keras.src.losses import loss as loss_module

    @hooks.wrap(loss_module, "apply_mask")
    def apply_mask(original, sample_weight, mask, dtype, reduction):
        if mask is None or reduction not in ("mean", "sum_over_batch_size") or not _is_sliced():
            return original(sample_weight, mask, dtype, reduction)
        mask = tf.convert_to_tensor(mask)
        own = _valid_part(mask, dtype)
        merged = original(sample_weight, mask, dtype, reduction)
        return merged * _divided_by_all(own, "mask")

    @hooks.wrap(loss_module, "reduce_values")
    def reduce_values(original, values, sample_weight=None, reduction="sum_over_batch_size"):
        loss = original(values, sample_weight, reduction)
        if not _is_sliced() or values.shape.rank == 0:
            return loss
        if reduction == "sum":
            part = current.now()
            share = tf.cast(part.share(), loss.dtype)
            return tf.math.divide_no_nan(loss, share)
        if reduction == "mean_with_sample_weight" and sample_weight is not None:
            own = tf.reduce_mean(tf.cast(sample_weight, loss.dtype))
            return loss * _divided_by_all(own, "weight")
        return loss


def _is_sliced():
    part = current.now()
    return world.size > 1 and not (part.is_static and part.is_whole)


def _valid_part(mask, dtype):
    return tf.reduce_mean(tf.cast(tf.cast(mask, tf.bool), dtype))


def _divided_by_all(own, what):
    """own / the mean of all ranks' own."""
    part = current.now()
    together = ops.allreduce(own, _loss_name(what), **part.reduction())
    return tf.stop_gradient(tf.math.divide_no_nan(own, together))


def _loss_name(what):
    """Losses have no names; they come in the same order on all ranks."""
    if tf.executing_eagerly():
        return f"loss/{what}"
    graph = tf.compat.v1.get_default_graph()
    graph._lockstep_losses = getattr(graph, "_lockstep_losses", 0) + 1
    return f"loss/{what}/{graph._lockstep_losses}"
