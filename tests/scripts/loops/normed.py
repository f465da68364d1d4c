# SPDX-License-Identifier: Apache-2.0
"""A loop with batch normalisation whose loss sums over the samples; 70 samples in batches of 20 and a rest of 10."""
import sys

import keras
import numpy as np
import tensorflow as tf

generator = np.random.default_rng(8)
x = generator.normal(2, 3, size=(70, 4))
y = np.tanh(x.sum(axis=1, keepdims=True))
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(20)
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(6, activation="tanh"),
                          keras.layers.BatchNormalization(momentum=0.7), keras.layers.Dense(1)])


def step(rows, wanted):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((model(rows, training=True) - wanted) ** 2)
    for variable, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
        variable.assign_sub(0.002 * gradient)
    return loss


if sys.argv[1] == "function":
    step = tf.function(step)
for epoch in range(3):
    losses = [float(step(*batch)) for batch in data]
    print(epoch, *[f"{loss:.12f}" for loss in losses])
for variable in model.variables:
    print(variable.path, *[f"{value:.12f}" for value in np.ravel(variable)])
print("after training", f"{float(tf.reduce_sum((model(x, training=False) - y) ** 2)):.12f}")
