# SPDX-License-Identifier: Apache-2.0
"""Models with a training step of their own, metrics of their own, and optimizers old and new."""
import numpy as np
import tensorflow as tf
import tf_keras as keras

generator = np.random.default_rng(2)
x = generator.normal(size=(210, 6)).astype("float32")
y = (x[:, :1] - 2 * x[:, 1:2]).astype("float32")


class Largest(keras.metrics.Metric):
    def __init__(self, name="largest", **options):
        super().__init__(name=name, **options)
        self.error = self.add_weight(name="error", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        largest = tf.reduce_max(tf.abs(y_true - y_pred))
        if largest > self.error:
            self.error.assign(largest)

    def result(self):
        return self.error


class Model(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1)

    def call(self, inputs):
        hidden = self.hidden(inputs)
        if tf.reduce_max(hidden) > 1e6:  # Python's if, on a tensor
            hidden = hidden * 0.0
        return self.out(hidden)


class OwnStep(Model):
    def train_step(self, data):
        inputs, targets = data
        with tf.GradientTape() as tape:
            outputs = self(inputs, training=True)
            loss = self.compiled_loss(targets, outputs, regularization_losses=self.losses)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.compiled_metrics.update_state(targets, outputs)
        return {**{metric.name: metric.result() for metric in self.metrics}, "plain": tf.reduce_mean(tf.abs(outputs - targets))}


class Extended(Model):
    def train_step(self, data):
        return {**super().train_step(data), "norm": tf.linalg.global_norm(self.trainable_variables)}


OPTIMIZERS = {"adam": keras.optimizers.Adam(0.02, clipnorm=0.5), "legacy": keras.optimizers.legacy.SGD(0.05, momentum=0.9),
              "legacy_adam": keras.optimizers.legacy.Adam(0.02, global_clipnorm=0.5), "ema": keras.optimizers.SGD(0.05, use_ema=True)}
for cls in OwnStep, Extended:
    for name, optimizer in OPTIMIZERS.items():
        keras.utils.set_random_seed(3)
        model = cls()
        model.compile(optimizer=type(optimizer).from_config(optimizer.get_config()), loss="mse", metrics=["mae", Largest()])
        history = model.fit(x, y, batch_size=32, epochs=2, verbose=0)
        for key, values in sorted(history.history.items()):
            print(cls.__name__, name, key, *(f"{value:.6f}" for value in values))
        np.savez(f"{cls.__name__}-{name}.npz", *model.get_weights())
