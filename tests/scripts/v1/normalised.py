# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation with update ops.  Each rank normalises with the statistics of its slice, as one does with several
machines.  Of rows that repeat in every third of a batch they are those of the batch, and all is the same as in one process.
Of other rows weights differ; the moving mean of the input is linear in the rows, and the same."""
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

rng = np.random.RandomState(3)
x_spread = (rng.randn(192, 5) * 2 + 1).astype(np.float32)
x_repeated = np.concatenate([np.tile(x_spread[start:start + 32], (3, 1)) for start in (0, 96)])
y_all = (x_spread[:, :1] - x_spread[:, 1:2]).astype(np.float32)

x = tf.placeholder(tf.float32, [None, 5])
y = tf.placeholder(tf.float32, [None, 1])
training = tf.placeholder_with_default(False, [])


def batch_norm(inputs):
    mean = tf.get_variable("moving_mean", [5], initializer=tf.zeros_initializer, trainable=False)
    variance = tf.get_variable("moving_variance", [5], initializer=tf.ones_initializer, trainable=False)
    now_mean, now_variance = tf.nn.moments(inputs, [0])
    for moving, now in ((mean, now_mean), (variance, now_variance)):
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign(moving, moving * 0.8 + now * 0.2))
    used_mean, used_variance = tf.cond(training, lambda: (now_mean, now_variance), lambda: (mean.read_value(), variance.read_value()))
    return tf.nn.batch_normalization(inputs, used_mean, used_variance, None, None, 1e-3)


w = tf.get_variable("w", initializer=np.full((5, 1), 0.1, np.float32))
loss = tf.reduce_mean(tf.square(tf.matmul(batch_norm(x), w) - y))
with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
mean, variance = [v for v in tf.global_variables() if "moving" in v.name]

with tf.Session() as sess:
    for rows in (x_spread, x_repeated):
        sess.run(tf.global_variables_initializer())
        for epoch in range(2):
            for start in range(0, 192, 96):
                sess.run(train, {x: rows[start:start + 96], y: y_all[start:start + 96], training: True})
            print("moving mean", *("%.6f" % value for value in sess.run(mean)))
    tf.train.Saver().save(sess, "model/bn")
    print("loss %.6f" % sess.run(loss, {x: x_repeated, y: y_all}))
    np.savez("weights.npz", variance=sess.run(variance), w=sess.run(w))
