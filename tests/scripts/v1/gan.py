# SPDX-License-Identifier: Apache-2.0
"""A small generative adversarial net: two losses, two train ops over parts of one graph."""
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(11)
np.random.seed(2)

real_data = np.random.multivariate_normal([1.0, -2.0], [[0.5, 0.2], [0.2, 0.3]], 400).astype(np.float32)


def mlp(inputs, sizes, scope):
    with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
        for number, size in enumerate(sizes):
            w = tf.get_variable("w%d" % number, [inputs.shape[-1], size], initializer=tf.random_normal_initializer(stddev=0.3))
            b = tf.get_variable("b%d" % number, [size], initializer=tf.zeros_initializer())
            inputs = tf.matmul(inputs, w) + b
            if number + 1 < len(sizes):
                inputs = tf.nn.leaky_relu(inputs)
    return inputs


real = tf.placeholder(tf.float32, [None, 2])
noise = tf.placeholder(tf.float32, [None, 4])
fake = mlp(noise, [8, 2], "generator")
on_real, on_fake = mlp(real, [8, 1], "discriminator"), mlp(fake, [8, 1], "discriminator")
cross = tf.nn.sigmoid_cross_entropy_with_logits
d_loss = tf.reduce_mean(cross(labels=tf.ones_like(on_real), logits=on_real) + cross(labels=tf.zeros_like(on_fake), logits=on_fake))
g_loss = tf.reduce_mean(cross(labels=tf.ones_like(on_fake), logits=on_fake))
d_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="discriminator")
g_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="generator")
d_train = tf.train.AdamOptimizer(0.01, beta1=0.5).minimize(d_loss, var_list=d_vars)
g_train = tf.train.AdamOptimizer(0.01, beta1=0.5).minimize(g_loss, var_list=g_vars)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(24):
        batch = real_data[step * 16 % 384:][:17]
        _, d = sess.run([d_train, d_loss], {real: batch, noise: np.random.randn(len(batch), 4)})
        _, g = sess.run([g_train, g_loss], {noise: np.random.randn(17, 4)})
        if step % 6 == 0:
            print("step %d d %.5f g %.5f" % (step, d, g))
    made = sess.run(fake, {noise: np.random.randn(50, 4)})
    print("made", made.shape, "mean %.5f %.5f" % tuple(made.mean(0)))
    np.savez("weights.npz", *sess.run(d_vars + g_vars))
