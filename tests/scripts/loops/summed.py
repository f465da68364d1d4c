# SPDX-License-Identifier: Apache-2.0
"""A loss that sums over the samples, of words in a table and weights behind it; 77 samples in batches of 25 and a rest of 2."""
import sys

import numpy as np
import tensorflow as tf

generator = np.random.default_rng(4)
words = generator.integers(0, 20, size=(77, 6))
targets = (words % 3).mean(axis=1, keepdims=True)
data = tf.data.Dataset.from_tensor_slices((words, targets)).batch(25)
table = tf.Variable(generator.normal(size=(20, 4)), name="table")
out = tf.Variable(generator.normal(size=(4, 1)), name="out")


def step(rows, wanted):
    with tf.GradientTape() as tape:
        guesses = tf.reduce_mean(tf.nn.embedding_lookup(table, rows), axis=1) @ out
        loss = tf.reduce_sum((guesses - wanted) ** 2)
    of_table, of_out = tape.gradient(loss, (table, out))
    table.scatter_sub(tf.IndexedSlices(0.005 * of_table.values, of_table.indices))
    out.assign_sub(0.005 * of_out)
    return loss


def train():
    for batch in data:
        step(*batch)


if sys.argv[1] == "graph":
    train = tf.function(train)
elif sys.argv[1] == "function":
    step = tf.function(step)
for epoch in range(3):
    train()
    loss = 0 if sys.argv[1] == "graph" else sum(float(step(*batch)) for batch in data)
    print(epoch, f"{loss:.12f} {float(tf.reduce_sum(table ** 2)):.12f} {float(tf.reduce_sum(out ** 2)):.12f}")
