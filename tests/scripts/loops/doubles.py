# SPDX-License-Identifier: Apache-2.0
"""A recommender in double precision: rows of a table of items, a loss for each rating, and its mean as a metric."""
import sys

import keras
import numpy as np
import tensorflow as tf

ITEMS, FACTORS, RATINGS, BATCH = 12, 3, 100, 20

generator = np.random.default_rng(5)
users = generator.normal(size=(RATINGS, FACTORS))
items = generator.integers(0, ITEMS, RATINGS)
ratings = generator.normal(size=RATINGS)
ratings[::7] *= 3
data = tf.data.Dataset.from_tensor_slices((users, items, ratings)).batch(BATCH)

table = tf.Variable(generator.normal(size=(ITEMS, FACTORS)), name="table")
offset = tf.Variable(np.float64(0.1), name="offset")
mean_loss = keras.metrics.Mean(dtype="float64")


def step(user, item, rating):
    with tf.GradientTape() as tape:
        guess = tf.reduce_sum(user * tf.gather(table, item), axis=1) + offset
        losses = tf.square(guess - rating)
        total = tf.reduce_mean(losses)
    row_gradient, offset_gradient = tape.gradient(losses, [table, offset])  # the sum over the ratings
    table.scatter_sub(tf.IndexedSlices(0.01 * row_gradient.values, row_gradient.indices))
    offset.assign_sub(0.01 * offset_gradient)
    return total


if sys.argv[1] == "function":
    step = tf.function(step)
for epoch in range(3):
    mean_loss.reset_state()
    for batch in data:
        mean_loss.update_state(step(*batch))
    print(f"epoch {epoch}: loss {float(mean_loss.result()):.15g}, offset {offset.numpy():.15g}")
print(*[f"{value:.15g}" for value in table.numpy().ravel()])
