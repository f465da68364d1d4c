# SPDX-License-Identifier: Apache-2.0
"""A loss that is the sum over the samples."""
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

rng = np.random.RandomState(1)
x_all = rng.randn(100, 3).astype(np.float32)
y_all = x_all @ np.array([[1.0], [2.0], [-1.0]], np.float32)
x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 1])
table = tf.get_variable("table", initializer=np.zeros((3, 1), np.float32))
w = tf.get_variable("w", initializer=np.zeros((3, 1), np.float32))
loss = tf.reduce_sum(tf.square(tf.matmul(x, w) + tf.gather(table, tf.cast(tf.abs(x[:, 0]), tf.int32) % 3) - y))
train = tf.train.GradientDescentOptimizer(0.002).minimize(loss)
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(3):
        for start in range(0, 100, 33):
            _, value = sess.run([train, loss], {x: x_all[start:start + 33], y: y_all[start:start + 33]})
            print("%.5f" % value)
    np.savez("weights.npz", *sess.run([w, table]))
