# SPDX-License-Identifier: Apache-2.0
"""Keras 3 with the TensorFlow backend: fit, evaluate, predict, *_on_batch (Keras 3.3 to 3.15).

Seams: TensorFlowTrainer._make_function (older_keras3.py before Keras 3.7) and make_predict_function get the step functions
(the script's own train_step among them) and call them with a whole batch; here they are called with this rank's slice of it.  Gradients are reduced by the
tape that the step uses (tape.py), and figures by the metrics (metrics.py)."""
import contextlib
import functools
import inspect
import threading

import tensorflow as tf

from lockstep import batchnorm, hooks, means, metrics, native, world
from lockstep.data import mark
from lockstep.frontends import older_keras3, steps
from lockstep.losses import figures, looks
from lockstep.slices import current, own, part as parts, pipeline, weak

_local = threading.local()


def attach():
    from keras.src import backend
    if backend.backend() != "tensorflow":
        return
    from keras.src.backend.tensorflow import trainer
    from keras.src.callbacks import callback_list
    from keras.src.losses import loss
    from keras.src.metrics import metric, reduction_metrics
    from keras.src.trainers import compile_utils
    _attach_steps(trainer.TensorFlowTrainer)
    steps.attach_ended_traces()
    _attach_epochs(trainer.TFEpochIterator)
    _attach_rates()
    _attach_losses()
    figures.attach_to(loss.Loss, reduction_metrics.MeanMetricWrapper,
                      [(compile_utils.CompileLoss, "__call__"), (compile_utils.CompileMetrics, "update_state")])
    _attach_added_losses(trainer.TensorFlowTrainer)
    _attach_batchnorm()
    steps.attach_stops(callback_list.CallbackList, "keras")
    steps.attach_expectation(callback_list.CallbackList)
    metrics.attach_to_classes(metric.Metric, metrics.Kit(
        read=lambda variable: tf.convert_to_tensor(variable.value), assign=lambda variable, value: variable.assign(value),
        compute=_compute_stateless, batch_figures=(reduction_metrics.Mean, reduction_metrics.Sum), package="keras"))


def _compute_stateless(metric, result, totals):
    from keras.src import backend
    with backend.StatelessScope(state_mapping=list(zip(metric.variables, totals))):
        return result()


# ---- steps ---------------------------------------------------------------------------------------------------

def _attach_steps(trainer_class):
    if hasattr(trainer_class, "_make_function"):
        @hooks.wrap(trainer_class, "_make_function")
        def make_function(original, self, step_function):
            trains = step_function == self.train_step
            function = _choosing(lambda step: original(self, step(step_function)), trains)
            return steps.counted(function, self) if trains else function
    else:
        older_keras3.attach_steps(trainer_class, _choosing)
        older_keras3.attach_variables()

    @hooks.wrap(trainer_class, "predict")
    def predict(original, self, x, *args, **kwargs):
        if world.size > 1 and mark.is_partitioned(x):
            raise native.LockstepError("predict() gives all rows, but this data is only this rank's part; read it with "
                                       "part=(0, 1) for predict()")
        with _at_work(self):
            return original(self, x, *args, **kwargs)

    for name in ("fit", "evaluate"):
        @hooks.wrap(trainer_class, name)
        def run(original, self, *args, **kwargs):
            with _at_work(self):
                return original(self, *args, **kwargs)

    @hooks.wrap(trainer_class, "make_predict_function")
    def make_predict_function(original, self, force=False):
        before = self.predict_function
        original(self, force)
        if self.predict_function is not before:
            self.predict_function = _gathering(self.predict_function, steps.keeps_rows(self))
        return self.predict_function


@contextlib.contextmanager
def _at_work(model):
    """Epochs that begin are this model's: nobody tells them whose they are."""
    before, _local.model = getattr(_local, "model", None), model
    try:
        yield
    finally:
        _local.model = before


def _choosing(make, trains):
    """Keras takes batches from an iterator of tf.data, or from a generator (train_on_batch and its kin).  What is this
    rank's part already (lockstep.data), or was cut by a loop of the script that now gives it to train_on_batch, is
    not to be cut again.  make(step) gives the function whose steps are step(the model's)."""
    made = make(steps.on_slice)
    make = functools.lru_cache(maxsize=None)(make)
    on_slices = steps.whole_where_needed(made, lambda: make(steps.on_whole)) if trains else made

    @functools.wraps(made)
    def function(iterator):
        if current.is_delivering_slices() and not isinstance(iterator, tf.data.Iterator):
            return make(steps.on_delivered)(iterator)
        with current.scope(None):  # the iterator's batches are cut in the step, not by loops.py
            return make(steps.on_own)(iterator) if own.is_own(iterator) else on_slices(iterator)

    return function


def _gathering(predict, is_whole):
    """A predict function that computes this rank's slice of each batch (is_whole: all of it), and gives all ranks' rows.

    In a loop of the script that gets slices, the batch may be one: it is computed as it is."""
    gives_rows = False if is_whole else None  # not known before the first batch

    def predict_batch(batch):
        nonlocal gives_rows
        part, own = (parts.WHOLE, parts.whole(batch)) if gives_rows is False else parts.cut(batch)
        with current.scope(part):
            outputs = predict([own])
        if part.is_whole:
            return outputs
        if gives_rows is None:
            gives_rows = steps.are_rows(outputs, part)
        return steps.all_rows(outputs, part) if gives_rows else predict_batch(batch)

    @functools.wraps(predict)
    def predict_function(batches):
        if current.is_delivering_slices():
            return predict(batches)
        outputs = [predict_batch(batch) for batch in batches]
        return outputs[0] if len(outputs) == 1 else tf.nest.map_structure(lambda *rows: tf.concat(rows, 0), *outputs)

    return predict_function


# ---- epochs, learning rates ------------------------------------------------------------------------------------

def _attach_epochs(iterator_class):
    """The data set that Keras iterates gives this rank's rows where it can; with LOCKSTEP_BATCH=per-rank, its batches."""
    @hooks.wrap(iterator_class, "__init__")
    def make_epochs(original, self, *args, **kwargs):
        if not weak.is_on() or mark.is_partitioned(kwargs.get("x")):
            original(self, *args, **kwargs)
            if not steps.keeps_rows(getattr(_local, "model", None)):
                self._distributed_dataset = pipeline.sliced(self._distributed_dataset) or self._distributed_dataset
            return
        kwargs["steps_per_epoch"] = weak.steps(kwargs.get("steps_per_epoch"))
        original(self, *args, **kwargs)
        self._distributed_dataset = weak.grouped(self._distributed_dataset)
        self.data_adapter = weak.FewerBatches(self.data_adapter)
        self._num_batches = self.data_adapter.num_batches


def _attach_rates():
    """LOCKSTEP_LR_SCALE acts where the rate is used: what callbacks and schedules read and set is the script's."""
    from keras.src.backend.tensorflow import optimizer

    @hooks.wrap(optimizer.TFOptimizer, "_backend_update_step")
    def update(original, self, grads, trainable_variables, learning_rate):
        if weak.scales_rate():
            factor = weak.rate_factor(tf.convert_to_tensor(self.iterations))
            learning_rate = learning_rate * tf.cast(factor, learning_rate.dtype)
        return original(self, grads, trainable_variables, learning_rate)


# ---- losses --------------------------------------------------------------------------------------------------

def _attach_losses():
    from keras.src.losses import loss as loss_module

    @hooks.wrap(loss_module, "apply_mask")
    def apply_mask(original, sample_weight, mask, dtype, reduction):
        merged = original(sample_weight, mask, dtype, reduction)
        if mask is None or reduction not in ("mean", "sum_over_batch_size") or not steps.is_sliced():
            return merged
        figures.give_up_looking()
        added = older_keras3.added_to_valid(mask, dtype) if _keras_version() < (3, 13) else 0.0
        return merged * steps.divided_by_all(steps.valid_part(mask, dtype), "mask", added)

    @hooks.wrap(loss_module, "reduce_weighted_values")
    def reduce_weighted_values(original, values, *args, **kwargs):
        with steps.weighing(values, kwargs.get("sample_weight")):
            return original(values, *args, **kwargs)

    signature = inspect.signature(loss_module.reduce_values)  # Keras 3.3 gives it no weights

    @hooks.wrap(loss_module, "reduce_values")
    def reduce_values(original, values, *args, **kwargs):
        loss = original(values, *args, **kwargs)
        if not steps.is_sliced() or values.shape.rank == 0 or loss.shape.rank != 0:
            return looks.settled(loss, *steps.weighed(values)) if values.shape.rank else loss
        given = signature.bind(values, *args, **kwargs).arguments
        reduction, sample_weight = given.get("reduction", "sum_over_batch_size"), given.get("sample_weight")
        if reduction == "sum" and not metrics.adds_sums():
            figures.give_up_looking()
            loss = steps.sum_as_mean(loss)
        elif reduction == "mean_with_sample_weight" and sample_weight is not None:
            figures.give_up_looking()
            own_weight = tf.reduce_mean(tf.cast(sample_weight, loss.dtype))
            loss *= steps.divided_by_all(own_weight, "weight")
        return means.of_batch(loss) if means.is_by_hand(values) else looks.settled(loss, *steps.weighed(values))


def _attach_added_losses(trainer_class):
    """What a layer gave to add_loss."""
    if _keras_version() < (3, 14):
        older_keras3.attach_activity_penalties()
    if not hasattr(trainer_class, "_aggregate_additional_loss"):
        older_keras3.attach_added_losses()
        return

    @hooks.wrap(trainer_class, "_aggregate_additional_loss")
    def aggregate_additional_loss(original, self, loss):
        """One number for each row is summed over the rows."""
        total = original(self, loss)
        return steps.sum_as_mean(total) if steps.is_sliced() and steps.has_rows(loss) else total


def _keras_version():
    """(major, minor)"""
    from keras.src.version import __version__
    return tuple(int(number) for number in __version__.split(".")[:2])


# ---- batch normalisation -------------------------------------------------------------------------------------

def _attach_batchnorm():
    from keras.src import backend
    from keras.src.layers.normalization.batch_normalization import BatchNormalization

    def is_training(layer, args, kwargs):
        training = kwargs.get("training", args[1] if len(args) > 1 else None)
        return bool(training) and layer.trainable

    batchnorm.attach_call(BatchNormalization, is_training, lambda variable, value: variable.assign(value))

    @hooks.wrap(BatchNormalization, "_moments")
    def moments(original, self, inputs, mask):
        if not batchnorm.is_synchronized() or not steps.is_sliced():
            return original(self, inputs, mask)
        return batchnorm.moments(self, inputs, self._reduction_axes, False, mask, backend.epsilon())
