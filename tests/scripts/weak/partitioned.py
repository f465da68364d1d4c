# SPDX-License-Identifier: Apache-2.0
"""A script that gives each of its processes every n-th row; its batches get smaller accordingly."""
import os

import keras
import numpy as np
import tensorflow as tf

part, parts = int(os.environ.get("OMPI_COMM_WORLD_RANK", 0)), int(os.environ.get("OMPI_COMM_WORLD_SIZE", 1))
keras.utils.set_random_seed(2)
generator = np.random.default_rng(4)
x = generator.normal(size=(64, 4)).astype("float32")
y = (x[:, :1] > 0).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).shard(parts, part).batch(16 // parts)

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")])
model.compile(keras.optimizers.SGD(0.5), "binary_crossentropy", metrics=["accuracy"])
history = model.fit(data, epochs=2, verbose=0)
print(*(f"{key} {value:.6f}" for key, values in history.history.items() for value in values))

accuracy = keras.metrics.BinaryAccuracy()
optimizer = keras.optimizers.SGD(0.5)
for rows, labels in data:
    with tf.GradientTape() as tape:
        guesses = model(rows)
        loss = tf.reduce_mean(keras.losses.binary_crossentropy(labels, guesses))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    accuracy.update_state(labels, guesses)
    print(f"{float(loss):.6f} {float(accuracy.result()):.6f}")
np.save("weights.npy", model.get_weights()[0])
