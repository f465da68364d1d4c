# SPDX-License-Identifier: Apache-2.0
"""tf_keras, which is tf.keras with TF_USE_LEGACY_KERAS=1 (tf_keras 2.16 to 2.21).

Seams: Model.make_train_function and its kin make the functions that call train_step, test_step and predict_step; before
they do, the classes of the model get steps that work on this rank's slice.  tf_keras takes the gradients of fit with the
tape (tape.py); its losses and metrics are those of Keras 3 in other files."""
import functools
import threading

import tensorflow as tf

from lockstep import batchnorm, hooks, means, metrics, ops, world
from lockstep.frontends import steps, tf_keras_sequences, tf_keras_weak
from lockstep.losses import figures, looks
from lockstep.slices import current, part as parts

_local = threading.local()


def attach():
    from tf_keras.src import callbacks, losses
    from tf_keras.src.engine import compile_utils, training
    from tf_keras.src.metrics import base_metric
    _attach_steps(training.Model)
    _attach_losses()
    figures.attach_to(losses.Loss, base_metric.MeanMetricWrapper,
                      [(compile_utils.LossesContainer, "__call__"), (compile_utils.MetricsContainer, "update_state")])
    _attach_batchnorm()
    tf_keras_weak.attach()
    tf_keras_sequences.attach()
    steps.attach_stops(callbacks.CallbackList, "tf_keras")
    steps.attach_expectation(callbacks.CallbackList)
    _attach_metrics(base_metric)


def _attach_metrics(base_metric):
    kit = metrics.Kit(
        read=lambda variable: variable.read_value(), assign=lambda variable, value: variable.assign(value),
        compute=_compute_with, batch_figures=(base_metric.Mean, base_metric.Sum), package="tf_keras")
    metrics.attach_to_objects(base_metric.Metric, kit)

    @hooks.wrap(base_metric.Reduce, "update_state")
    def update_state(original, self, values, sample_weight=None):
        """Of the class: what MeanMetricWrapper calls with what its function gives, perhaps one number for the batch."""
        if metrics.is_updating() and world.size > 1:
            sample_weight = metrics.weigh_inner_figure(kit, self, values, sample_weight)
        return original(self, values, sample_weight=sample_weight)


def _compute_with(metric, result, totals):
    """result() reads the variables: they hold the totals meanwhile."""
    own = [tf.identity(variable.read_value()) for variable in metric.variables]
    with tf.control_dependencies(own):
        set_totals = [variable.assign(total) for variable, total in zip(metric.variables, totals)]
    with tf.control_dependencies(set_totals):
        results = tf.nest.map_structure(tf.identity, result())
    with tf.control_dependencies(tf.nest.flatten(results)):
        put_back = [variable.assign(value) for variable, value in zip(metric.variables, own)]
    with tf.control_dependencies(put_back):
        return tf.nest.map_structure(tf.identity, results)


# ---- steps ---------------------------------------------------------------------------------------------------

def _attach_steps(model_class):
    for kind, hook in (("train", _train_or_test), ("test", _train_or_test), ("predict", _predict)):
        _attach_step(model_class, kind, hook)


def _attach_step(model_class, kind, hook):
    @hooks.wrap(model_class, f"make_{kind}_function")
    def make_function(original, self, *args, **kwargs):
        for cls in type(self).__mro__:
            if issubclass(cls, model_class):
                _hook_step(cls, f"{kind}_step", hook)
        function = original(self, *args, **kwargs)
        if hasattr(function, "_lockstep"):  # made before
            return function
        function = _in_scope(function)
        if kind != "train":
            return function

        def on_whole():
            """Made anew: one whose first trace has failed may not make variables any more."""
            self.__dict__["_lockstep_on_whole"] = True
            kept, made = self.train_function, original(self, force=True)
            self.train_function = kept
            return _in_scope(made)

        return steps.counted(_marked(steps.whole_where_needed(function, on_whole)), self)


def _hook_step(cls, name, hook):
    original = cls.__dict__.get(name)
    if original is None or hasattr(original, "_lockstep"):
        return

    @functools.wraps(original)
    def step(self, data):
        if current.has_part():  # super().train_step: the batch was cut already
            return original(self, data)
        return hook(original, self, data)

    step._lockstep = name
    setattr(cls, name, step)


def _in_scope(function):
    """The function takes batches from an iterator by itself; they are cut in the step, not by loops.py."""
    @functools.wraps(function)
    def function_in_scope(*args):
        with current.scope(None):
            return function(*args)

    return _marked(function_in_scope)


def _marked(function):
    """tf_keras keeps it, and asks to have it made again: it is."""
    function._lockstep = "scope"
    return function


def _train_or_test(original, self, data):
    return (steps.on_whole if self.__dict__.get("_lockstep_on_whole") else steps.on_slice)(original)(self, data)


def _predict(original, self, data):
    """Rows are gathered in the function itself, where XLA has no such operator, and where the steps of one execution may
    overlap; there every rank computes all rows."""
    if ops.is_in_xla() or _steps_per_execution(self) > 1:
        with current.scope(parts.WHOLE):
            return original(self, data)
    part, own = steps.cut(self, data)
    with current.scope(part):
        outputs = original(self, own)
    if not all(map(steps.can_have_rows, tf.nest.flatten(outputs))):
        with current.scope(parts.WHOLE):
            return original(self, data)
    return steps.all_rows(outputs, part)


def _steps_per_execution(model):
    with tf.init_scope():
        number = model._steps_per_execution
        return 1 if number is None else int(tf.convert_to_tensor(number))


# ---- losses --------------------------------------------------------------------------------------------------

def _attach_losses():
    from tf_keras.src.utils import losses_utils

    @hooks.wrap(losses_utils, "apply_valid_mask")
    def apply_valid_mask(original, losses, sw, mask, reduction):
        merged = original(losses, sw, mask, reduction)
        if mask is None or reduction not in ("auto", "sum_over_batch_size") or not steps.is_sliced():
            return merged
        figures.give_up_looking()
        factor = steps.divided_by_all(steps.valid_part(mask, losses.dtype), "mask")
        return tf.where(tf.math.is_finite(merged), merged, 0) * factor  # a slice may have no valid entry

    @hooks.wrap(losses_utils, "compute_weighted_loss")
    def compute_weighted_loss(original, losses, *args, **kwargs):
        with steps.weighing(losses):
            return original(losses, *args, **kwargs)

    @hooks.wrap(losses_utils, "reduce_weighted_loss")
    def reduce_weighted_loss(original, weighted_losses, reduction="sum_over_batch_size"):
        loss = original(weighted_losses, reduction)
        if not steps.is_sliced() or weighted_losses.shape.rank == 0 or loss.shape.rank != 0:
            return looks.settled(loss, *steps.weighed(weighted_losses)) if weighted_losses.shape.rank else loss
        if reduction == "sum" and not metrics.adds_sums():
            figures.give_up_looking()
            loss = steps.sum_as_mean(loss)
        return means.of_batch(loss) if means.is_by_hand(weighted_losses) else looks.settled(loss, *steps.weighed(weighted_losses))


# ---- batch normalisation -------------------------------------------------------------------------------------

def _attach_batchnorm():
    from tf_keras.src.layers.normalization.batch_normalization import BatchNormalizationBase as Base

    def is_training(layer, args, kwargs):
        training = layer._get_training_value(kwargs.get("training", args[1] if len(args) > 1 else None))
        return not tf.is_tensor(training) and bool(training)

    batchnorm.attach_call(Base, is_training, lambda variable, value: variable.assign(value))

    @hooks.wrap(Base, "build")
    def build(original, self, input_shape):
        original(self, input_shape)
        if batchnorm.is_synchronized() and self.fused:
            # The fused operator has no place for the other ranks' rows; it corrects the variance that it keeps.
            self.fused, self._lockstep_corrects = False, True

    @hooks.wrap(Base, "_calculate_mean_and_var")
    def calculate(original, self, inputs, reduction_axes, keep_dims, mask=None):
        if not batchnorm.is_synchronized():
            return original(self, inputs, reduction_axes, keep_dims, mask)
        _local.entries = batchnorm.entries(inputs, reduction_axes)
        if not steps.is_sliced():
            return original(self, inputs, reduction_axes, keep_dims, mask)
        return batchnorm.moments(self, inputs, reduction_axes, keep_dims, mask, epsilon=0.0)

    @hooks.wrap(Base, "_assign_moving_average")
    def assign_moving_average(original, self, variable, value, momentum, inputs_size):
        if getattr(self, "_lockstep_corrects", False) and variable is self.moving_variance:
            number = tf.cast(_local.entries, value.dtype)
            value *= number / tf.maximum(number - 1, 1)
        return original(self, variable, value, momentum, inputs_size)
