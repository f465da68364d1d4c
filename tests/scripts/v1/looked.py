# SPDX-License-Identifier: Apache-2.0
"""Losses of v1 graphs that are no mean over the rows: a sum, a masked mean, rows beside rows; and some that are.  100 rows in batches
of 33 and a rest of 1."""
import sys

import numpy as np
import tensorflow.compat.v1 as tf

if "old" in sys.argv:
    tf.disable_v2_behavior()
else:
    tf.disable_eager_execution()

rng = np.random.RandomState(1)
x_all = rng.randn(100, 3)
y_all = np.tanh(x_all @ np.array([[1.0, 0.5], [2.0, 0.3], [-1.0, 0.2]]))
LOSSES = {
    "sum": lambda true, out: -tf.reduce_sum(true * tf.log_sigmoid(out)),
    "masked": lambda true, out: tf.reduce_sum(tf.square(true - out) * tf.to_double(true > 0)) / tf.reduce_sum(tf.to_double(true > 0)),
    "likeness": lambda true, out: tf.reduce_mean(tf.nn.softmax(tf.matmul(out, true, transpose_b=True))[:, :1]),
    "mean": lambda true, out: tf.reduce_mean(tf.reduce_sum(tf.square(true - out), reduction_indices=[1])),
    "losses": lambda true, out: tf.losses.mean_squared_error(true, out),
    "weighted": lambda true, out: tf.losses.mean_squared_error(true, out, weights=tf.to_double(true > 0)),
    "branch": lambda true, out: tf.cond(tf.constant(True), lambda: tf.norm(true - out), lambda: tf.reduce_mean(out)),
}

for name, loss_of in LOSSES.items():
    tf.reset_default_graph()
    x, y = tf.placeholder(tf.float64, [None, 3]), tf.placeholder(tf.float64, [None, 2])
    rate = tf.placeholder(tf.float64, [])
    w = tf.get_variable("w", initializer=rng.randn(3, 2))
    loss = loss_of(y, tf.matmul(x, w))
    train = tf.train.GradientDescentOptimizer(rate).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for start in [*range(0, 100, 33)] * 2:
            sess.run(train, {x: x_all[start:start + 33], y: y_all[start:start + 33], rate: 0.01})
        print(name, *("%.10f" % value for value in sess.run(w).ravel()))
