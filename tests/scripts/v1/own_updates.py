# SPDX-License-Identifier: Apache-2.0
"""tf.gradients in three ways: applied by an optimizer, by two optimizers, by hand; also with respect to the input.
A fourth model has its derivative written by hand."""
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as v1

v1.disable_eager_execution()

rng = np.random.default_rng(3)
data = rng.normal(size=(150, 6)).astype(np.float32)
truth = (data @ rng.normal(size=(6, 2)) + 0.3).astype(np.float32)

x = v1.placeholder(tf.float32, [None, 6])
t = v1.placeholder(tf.float32, [None, 2])


def linear(name):
    w = v1.get_variable(name + "_w", initializer=np.full((6, 2), 0.1, np.float32))
    b = v1.get_variable(name + "_b", initializer=np.zeros(2, np.float32))
    return w, b, tf.reduce_mean(tf.square(tf.matmul(x, w) + b - t))


w1, b1, loss1 = linear("applied")
step1 = v1.train.AdamOptimizer(0.05).apply_gradients(zip(tf.gradients(loss1, [w1, b1]), [w1, b1]))

w2, b2, loss2 = linear("two")
grad_w, grad_b = v1.gradients(loss2, [w2, b2])
step2 = tf.group(v1.train.GradientDescentOptimizer(0.1).apply_gradients([(grad_w, w2)]),
                 v1.train.RMSPropOptimizer(0.05).apply_gradients([(grad_b, b2)]))

w3, b3, loss3 = linear("by_hand")
moves = [v1.assign_sub(v, 0.1 * g) for v, g in zip([w3, b3], tf.gradients(loss3, [w3, b3]))]
sensitivity = tf.gradients(loss3, x)[0]

w4, b4, loss4 = linear("derived")
error = 2 * (tf.matmul(x, w4) + b4 - t) / tf.cast(tf.size(t), tf.float32)
step4 = [v1.assign_sub(w4, 0.1 * tf.matmul(x, error, transpose_a=True)), v1.assign_sub(b4, 0.1 * tf.reduce_sum(error, 0))]

with v1.Session() as sess:
    sess.run(v1.global_variables_initializer())
    for epoch in range(4):
        for i in range(0, 150, 40):
            sess.run([step1, step2, moves], {x: data[i:i + 40], t: truth[i:i + 40]})
            sess.run(step4, {x: data[i:i + 40], t: truth[i:i + 40]})
        print("epoch", epoch, *("%.6f" % value for value in sess.run([loss1, loss2, loss3, loss4], {x: data, t: truth})))
    print("sensitivity %.6f" % np.abs(sess.run(sensitivity, {x: data, t: truth})).sum())
    values = sess.run([w1, b1, w2, b2, w3, b3, w4, b4])
    np.savez("weights.npz", *values)
