# SPDX-License-Identifier: Apache-2.0
"""A recurrent net as a tf.while_loop that is differentiated, and gradient descent inside a tf.while_loop."""
import sys

import numpy as np
import tensorflow.compat.v1 as tf

if "v1" in sys.argv:
    tf.disable_v2_behavior()
else:
    tf.disable_eager_execution()

rng = np.random.RandomState(6)
sequences = rng.randn(50, 6, 3).astype(np.float32)
sums = sequences.sum((1, 2)).reshape(-1, 1).astype(np.float32) / 4

seq = tf.placeholder(tf.float32, [None, 6, 3])
total = tf.placeholder(tf.float32, [None, 1])
cell = tf.get_variable("cell", initializer=(rng.randn(7, 4) * 0.3).astype(np.float32))
out = tf.get_variable("out", initializer=(rng.randn(4, 1) * 0.3).astype(np.float32))
steps = tf.transpose(seq, [1, 0, 2])


def body(i, state):
    return i + 1, tf.tanh(tf.matmul(tf.concat([steps[i], state], 1), cell))


_, last = tf.while_loop(lambda i, _: i < 6, body, (0, tf.zeros([tf.shape(seq)[0], 4])))
loss = tf.reduce_mean(tf.square(tf.matmul(last, out) - total))
train = tf.train.AdamOptimizer(0.02).minimize(loss)

# Five steps of descent in one run: the gradient is taken inside of the loop.
flat = tf.reshape(seq, [-1, 18])
line = tf.get_variable("line", initializer=np.zeros((18, 1), np.float32), use_resource=True)


def descend(i):
    error = tf.reduce_mean(tf.square(tf.matmul(flat, line) - total))
    grad, = tf.gradients(error, [line])
    with tf.control_dependencies([line.assign_sub(0.05 * grad)]):
        return i + 1


descent = tf.while_loop(lambda i: i < 5, descend, [0])
fit = tf.reduce_mean(tf.square(tf.matmul(flat, line) - total))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(2):
        for start in range(0, 50, 20):
            feed = {seq: sequences[start:start + 20], total: sums[start:start + 20]}
            _, value = sess.run([train, loss], feed)
            sess.run(descent, feed)
            print("loss %.6f" % value)
        print("fit %.6f" % sess.run(fit, {seq: sequences, total: sums}))
    np.savez("weights.npz", *sess.run([cell, out, line]))
