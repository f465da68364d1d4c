# SPDX-License-Identifier: Apache-2.0
"""Three models with a training step of their own; 403 samples leave a short last batch."""
import sys

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(3)
generator = np.random.default_rng(3)
x = generator.normal(size=(403, 12)).astype("float32")
y = (x[:, :1] * 2 - x[:, 1:2] + 0.1 * generator.normal(size=(403, 1))).astype("float32")


class WithMetrics(keras.Model):
    """Layers are made at the first call; the step tracks what it wants."""

    def __init__(self):
        super().__init__()
        self.hidden, self.out = keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1)
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.mae = keras.metrics.MeanAbsoluteError(name="mae")

    def call(self, inputs):
        return self.out(self.hidden(inputs))

    def train_step(self, data):
        inputs, targets = data
        with tf.GradientTape() as tape:
            outputs = self(inputs, training=True)
            loss = tf.reduce_mean(tf.square(outputs - targets))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.loss_tracker.update_state(loss)
        self.mae.update_state(targets, outputs)
        return {"loss": self.loss_tracker.result(), "mae": self.mae.result()}

    @property
    def metrics(self):
        return [self.loss_tracker, self.mae]


class PlainLoss(keras.Model):
    """Returns the loss of the step as it is, sums and numbers of rows, and prints."""

    def train_step(self, data):
        inputs, targets = data
        with tf.GradientTape() as tape:
            losses = keras.losses.huber(targets, self(inputs, training=True))
            loss = keras.ops.mean(losses)
        self.optimizer.apply(tape.gradient(loss, self.trainable_weights), self.trainable_weights)
        tf.print("loss of the batch", loss, tf.shape(inputs)[0], output_stream=sys.stdout)
        high = tf.reduce_sum(tf.cast(losses > 0.1, tf.int32))
        return {"loss": loss, "twice": 2 * loss, "sum": tf.reduce_sum(losses), "high": high, "rows": tf.shape(inputs)[0]}


class ComputeLoss(keras.Model):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return super().compute_loss(x, y, y_pred, sample_weight) + 0.01 * keras.ops.mean(keras.ops.abs(y_pred))

    def train_step(self, data):
        inputs, targets = data
        with tf.GradientTape() as tape:
            outputs = self(inputs, training=True)
            loss = self.compute_loss(y=targets, y_pred=outputs)
        weights = self.trainable_weights
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        for metric in self.metrics:
            metric.update_state(loss)
        return {metric.name: metric.result() for metric in self.metrics}


def functional(cls):
    inputs = keras.Input((12,))
    hidden = keras.layers.Dense(16, activation="relu", kernel_regularizer="l2")(inputs)
    return cls(inputs, keras.layers.Dense(1)(hidden))


for model in WithMetrics(), functional(PlainLoss), functional(ComputeLoss):
    model.compile(optimizer=keras.optimizers.Adam(0.02), loss="mse")
    history = model.fit(x, y, batch_size=50, epochs=3, verbose=0)
    for name, values in sorted(history.history.items()):
        print(type(model).__name__, name, *(f"{value:.6f}" for value in values), flush=True)
    np.savez(f"{type(model).__name__}.npz", *model.get_weights())
