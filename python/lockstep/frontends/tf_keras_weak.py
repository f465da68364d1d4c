# SPDX-License-Identifier: Apache-2.0
"""LOCKSTEP_BATCH=per-rank for tf_keras: fit and evaluate take a batch for each rank in one step (slices/weak.py).

Seams: DataHandler, which makes data sets and counts steps.  predict cuts each batch, as without the setting.
LOCKSTEP_LR_SCALE acts where optimizers read the rate to use it: what callbacks and schedules read and set is the script's."""
import threading

import tensorflow as tf

from lockstep import hooks, world
from lockstep.data import mark
from lockstep.slices import weak

_local = threading.local()


def attach():
    from tf_keras.src.engine import data_adapter, training
    from tf_keras.src.optimizers import optimizer
    from tf_keras.src.optimizers.legacy import optimizer_v2
    _attach_steps(data_adapter.DataHandler)
    _attach_predict(training.Model)
    _attach_rate(optimizer._BaseOptimizer, optimizer.Optimizer)
    _attach_legacy_rate(optimizer_v2.OptimizerV2)


def _attach_steps(handler_class):
    @hooks.wrap(handler_class, "_configure_dataset_and_inferred_steps")
    def configure(original, self, strategy, x, steps_per_epoch, class_weight, distribute):
        original(self, strategy, x, steps_per_epoch, class_weight, distribute)
        if not weak.is_on() or not distribute or mark.is_partitioned(x) or getattr(_local, "predicts", False):
            return
        self._lockstep_batches = self._dataset
        # Arrays are one data set with the batches of all epochs, one after another.
        per_epoch = None if self._adapter.should_recreate_iterator() else self._adapter.get_size()
        self._dataset = weak.grouped(self._dataset, per_epoch)
        self._inferred_steps = weak.steps(self._inferred_steps)

    @hooks.wrap(handler_class, "_infer_steps")
    def infer_steps(original, self, steps, dataset):
        batches = getattr(self, "_lockstep_batches", None)
        if batches is None:
            return original(self, steps, dataset)
        return weak.steps(original(self, steps, batches))


def _attach_predict(model_class):
    @hooks.wrap(model_class, "predict")
    def predict(original, self, *args, **kwargs):
        _local.predicts = True
        try:
            return original(self, *args, **kwargs)
        finally:
            _local.predicts = False


def _scaled(rate, optimizer):
    return rate * tf.cast(weak.rate_factor(tf.convert_to_tensor(optimizer.iterations)), rate.dtype)


def _attach_rate(base_class, optimizer_class):
    script_rate = base_class.learning_rate

    def rate(self):
        value = script_rate.fget(self)
        return _scaled(tf.convert_to_tensor(value), self) if getattr(_local, "updates", False) else value

    base_class.learning_rate = property(rate, script_rate.fset, script_rate.fdel, script_rate.__doc__)

    @hooks.wrap(optimizer_class, "_internal_apply_gradients")
    def apply(original, self, grads_and_vars):
        _local.updates = world.on() and weak.scales_rate()
        try:
            return original(self, grads_and_vars)
        finally:
            _local.updates = False


def _attach_legacy_rate(optimizer_class):
    @hooks.wrap(optimizer_class, "_decayed_lr")
    def decayed_rate(original, self, var_dtype):
        rate = original(self, var_dtype)
        return _scaled(rate, self) if weak.scales_rate() else rate
