# SPDX-License-Identifier: Apache-2.0
"""Where the batches come from: arrays, tf.data, generators, PyDataset; how many of them, and how they are divided."""
import keras
import numpy as np
import tensorflow as tf

generator = np.random.default_rng(20)
x = generator.normal(size=(213, 5)).astype("float32")
y = (x @ generator.normal(size=(5, 1))).astype("float32")


class Parts(keras.utils.PyDataset):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def __len__(self):
        return -(-len(x) // self.size)

    def __getitem__(self, index):
        rows = slice(index * self.size, (index + 1) * self.size)
        return x[rows], y[rows]


class Endpoint(keras.layers.Layer):
    """Is given the targets beside the outputs, and adds the loss."""

    def call(self, outputs, targets):
        self.add_loss(keras.ops.mean((outputs - targets) ** 2))
        return outputs


def batches(count):
    for i in range(count):
        rows = slice(16 * i % 200, 16 * i % 200 + 16 - i % 3)
        yield x[rows], y[rows]


keras.utils.set_random_seed(21)
model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.SGD(0.05), loss="mse", metrics=["mae"])
start = model.get_weights()


def train(name, *args, **options):
    keras.utils.set_random_seed(22)
    model.set_weights(start)
    history = model.fit(*args, verbose=0, **options)
    for key, values in sorted(history.history.items()):
        print(name, key, *(f"{value:.6f}" for value in values))
    np.savez(f"{name}.npz", *model.get_weights())


data = tf.data.Dataset.from_tensor_slices((x, y))
train("arrays", x, y, batch_size=32, epochs=4, initial_epoch=1, validation_data=(x[:50], y[:50]), validation_steps=2,
      validation_batch_size=20)
train("split", x, y, epochs=3, validation_split=0.25, validation_freq=2, shuffle=False)
train("steps", data.shuffle(50, seed=1).repeat().batch(30), epochs=3, steps_per_epoch=5,
      validation_data=data.batch(16).repeat(), validation_steps=3)
train("dataset", data.map(lambda a, b: (a * 2, b)).batch(30).prefetch(2), epochs=2)
train("dropped", data.batch(30, drop_remainder=True), epochs=2)
train("generator", batches(12), epochs=3, steps_per_epoch=4)
train("short", batches(9), epochs=4, steps_per_epoch=4)  # ends in the third epoch
train("parts", Parts(40), epochs=2, shuffle=True)
print("evaluate", *(f"{value:.6f}" for value in model.evaluate(Parts(40), verbose=0)))
print("steps", *(f"{value:.6f}" for value in model.evaluate(data.batch(7), steps=4, verbose=0)))
np.savez("predict.npz", parts=model.predict(Parts(40), verbose=0), few=model.predict(data.batch(9), steps=3, verbose=0),
         one=model.predict(x[:1], verbose=0))

inputs, targets = keras.Input((5,)), keras.Input((1,))
model = keras.Model([inputs, targets], Endpoint()(keras.layers.Dense(1)(inputs), targets))
model.compile(optimizer=keras.optimizers.SGD(0.05))
start = model.get_weights()
rows = tf.data.Dataset.from_tensor_slices(((x, y),)).map(lambda pair: (pair,)).batch(30)  # a tuple of one, before and after
train("endpoint", rows, epochs=2, validation_data=rows.take(3))
np.save("endpoint.npy", model.predict(rows, verbose=0))
