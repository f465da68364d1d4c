# SPDX-License-Identifier: Apache-2.0
"""Trains from lockstep.data: each rank reads its part of the batches that one process would have; 203 rows divide by nothing."""
import sys
import tempfile

import keras
import lockstep.data
import numpy as np
import tensorflow as tf

BATCH = 32

keras.utils.set_random_seed(1)
generator = np.random.default_rng(0)
x = generator.normal(size=(203, 8)).astype("float32")
with tempfile.TemporaryDirectory() as folder:  # each process has a file of its own; it stays open
    np.savez(f"{folder}/table.npz", x=x, y=(x @ generator.normal(size=(8, 3))).argmax(1))
    data = lockstep.data.read(f"{folder}/table.npz", ("x", "y"), batch=2 if "small" in sys.argv else BATCH, shuffle=True, seed=3)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(3)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.SGD(0.1)

if {"loop", "function", "inside", "given", "next"} & set(sys.argv):
    def train(batch_x, batch_y):
        with tf.GradientTape() as tape:
            value = loss(batch_y, model(batch_x))
        optimizer.apply_gradients(zip(tape.gradient(value, model.trainable_variables), model.trainable_variables))

    if "function" in sys.argv:
        train = tf.function(train, reduce_retracing=True)

    def epoch():
        for batch_x, batch_y in data:
            train(batch_x, batch_y)

    @tf.function
    def epoch_of(batches):
        for batch_x, batch_y in batches:
            train(batch_x, batch_y)

    @tf.function
    def train_next(batches):
        train(*next(batches))

    if "inside" in sys.argv:
        epoch = tf.function(epoch)
    for _ in range(3):
        if "given" in sys.argv:
            epoch_of(data.prefetch(1))
        elif "next" in sys.argv:
            iterator = iter(data)
            for _ in range(len(data)):
                train_next(iterator)
        else:
            epoch()
else:
    model.compile(optimizer, loss, metrics=["accuracy"], run_eagerly="eager" in sys.argv)
    history = model.fit(data.map(lambda a, b: (a * 2.0, b)), epochs=3, verbose=0)
    for name, values in history.history.items():
        print(name, *(f"{value:.5f}" for value in values))
    print("evaluate", *(f"{value:.5f}" for value in model.evaluate(data, verbose=0)))
np.save("weights.npy", np.concatenate([weight.numpy().ravel() for weight in model.trainable_weights]))
