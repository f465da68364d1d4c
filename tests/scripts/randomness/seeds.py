# SPDX-License-Identifier: Apache-2.0
"""A step that draws a seed for stateless operators, two numbers, as layers of TensorFlow Probability do: for noise of the weights, and
of the rows.  The slices of the last batch have two rows, too."""
import numpy as np
import tensorflow as tf

tf.random.set_seed(1)
data = tf.data.Dataset.from_tensor_slices(np.random.RandomState(1).rand(53, 4)).batch(16)
weights = tf.Variable(np.ones((4, 1)))


@tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float64)])
def step(rows):
    seed = tf.random.uniform([2], tf.int32.min, tf.int32.max, tf.int32)
    other = tf.random.experimental.stateless_fold_in(seed, 7)
    noise = tf.random.stateless_normal([4, 1], seed, dtype=rows.dtype)
    rows += tf.random.stateless_uniform(tf.shape(rows), other, dtype=rows.dtype)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(rows @ (weights + 0.1 * noise) - 1))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for _ in range(3):
    for rows in data:
        print(f"{float(step(rows)):.10g}")
