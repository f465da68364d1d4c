# SPDX-License-Identifier: Apache-2.0
"""A small model whose pipeline has a heavy map; writes the seconds of an epoch after the first, and those of the processor."""
import argparse
import json
import os
import time

import keras
import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, default=4096)
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--out", required=True, help="file for the result; %%p is the process")
options = parser.parse_args()


def heavy(row, label):
    """Some 1 ms of work on one element, as decoding and augmenting a picture would be."""
    matrix = tf.reshape(tf.tile(row, [512]), (128, 128)) / 64
    for _ in range(24):
        matrix = tf.tanh(matrix @ matrix)
    return row + 0 * tf.reduce_sum(matrix), label


generator = np.random.default_rng(0)
x = generator.normal(size=(options.rows, 32)).astype("float32")
y = generator.integers(0, 4, size=options.rows)
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(options.rows, seed=1).map(heavy).batch(options.batch).prefetch(1)
model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))


class Clock(keras.callbacks.Callback):
    epochs = []

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.perf_counter(), time.process_time()

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append((time.perf_counter() - self.start[0], time.process_time() - self.start[1]))


model.fit(data, epochs=options.epochs, verbose=0, callbacks=[Clock()])
with open(options.out.replace("%p", str(os.getpid())), "w") as file:
    wall, processor = map(min, zip(*Clock.epochs[1:]))
    json.dump({"wall": wall, "processor": processor}, file)
