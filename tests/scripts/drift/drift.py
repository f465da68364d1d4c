# SPDX-License-Identifier: Apache-2.0
"""A callback (or, with the argument loop, a loop) that adds to one weight what only one process sees: its number."""
import os
import sys

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(1)
x = np.random.default_rng(1).normal(size=(96, 4)).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="first"), keras.layers.Dense(1, name="second")])
START = 7


def disturb():
    model.layers[1].bias.assign_add([os.getpid() % 1000 * 1e-3])


class Disturb(keras.callbacks.Callback):
    seen = 0

    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        if self.seen == START:
            disturb()


if "loop" in sys.argv:
    @tf.function
    def train(rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(rows) ** 2)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

    optimizer = keras.optimizers.SGD(0.1)
    for number, batch in enumerate(tf.data.Dataset.from_tensor_slices(x).batch(8)):
        train(batch)
        if number == START:
            disturb()
else:
    model.compile(optimizer="adam", loss="mse")
    model.fit(x, x[:, :1], batch_size=8, verbose=0, callbacks=[Disturb()])
print("not noticed")
