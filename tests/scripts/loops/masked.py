# SPDX-License-Identifier: Apache-2.0
"""A loss that divides a sum over the entries that count by their number, of which some slices have none; and one relative to the outputs.

    masked.py eager | function"""
import sys

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(1)
rng = np.random.default_rng(0)
x, y = rng.normal(size=(50, 6)), rng.normal(size=(50, 3))
mask = (rng.uniform(size=(50, 3)) > 0.5).astype("float64")
mask[11:17] = 0
data = tf.data.Dataset.from_tensor_slices((x, y, mask)).batch(16)
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(3)])
optimizer = keras.optimizers.Adam(0.01)
mean = keras.metrics.Mean()


def step(x, y, mask):
    with tf.GradientTape() as tape:
        outputs = model(x)
        loss = tf.reduce_sum((outputs - y) ** 2 * mask) / tf.reduce_sum(mask)
        loss += tf.reduce_sum(tf.abs(outputs - y)) / tf.reduce_sum(outputs ** 2)  # of which both depend on the weights
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    mean.update_state(loss)
    return loss


if sys.argv[1] == "function":
    step = tf.function(step)
for epoch in range(3):
    for batch in data:
        print(float(step(*batch)))
    print(epoch, float(mean.result()), [float(np.abs(weights).sum()) for weights in model.get_weights()])
