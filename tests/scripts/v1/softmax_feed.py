# SPDX-License-Identifier: Apache-2.0
"""Softmax regression on digits with feed_dict: 1,003 samples do not divide by batches or ranks."""
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

rng = np.random.RandomState(0)
images = rng.rand(1003, 64).astype(np.float32)
labels = np.eye(10, dtype=np.float32)[(images @ rng.randn(64, 10)).argmax(1)]
learning_rate, training_epochs, batch_size = 0.5, 3, 64

x = tf.placeholder(tf.float32, [None, 64])
y = tf.placeholder(tf.float32, [None, 10])
W = tf.Variable(tf.random_normal([64, 10], stddev=0.1, seed=3))
b = tf.Variable(tf.zeros([10]))

logits = tf.matmul(x, W) + b
pred = tf.nn.softmax(logits)
cost = tf.reduce_mean(-tf.reduce_sum(y * tf.nn.log_softmax(logits), axis=1))
train_step = tf.train.GradientDescentOptimizer(learning_rate).minimize(cost)
correct = tf.equal(tf.argmax(pred, 1), tf.argmax(y, 1))
accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
hits = tf.reduce_sum(tf.cast(correct, tf.int32))
names = tf.string_join(["class", tf.as_string(tf.argmax(pred, 1))], "_")

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    print("accuracy before", "%.4f" % accuracy.eval({x: images, y: labels}))
    for epoch in range(training_epochs):
        avg_cost, seen, right = 0.0, 0, 0
        for start in range(0, len(images), batch_size):
            feed = {x: images[start:start + batch_size], y: labels[start:start + batch_size]}
            _, c, acc, n, p, guessed = sess.run([train_step, cost, accuracy, hits, pred, names], feed_dict=feed)
            assert p.shape == (len(feed[x]), 10), p.shape
            avg_cost += c * len(p)
            right += n
            seen += len(p)
        print("epoch %d cost %.6f, %d of %d right, last batch %d, %.4f" % (epoch, avg_cost / seen, right, seen, len(p), acc))
        print("last guesses", b" ".join(guessed[-3:]).decode())
    print("accuracy", "%.4f" % accuracy.eval({x: images, y: labels}), "cost", "%.6f" % sess.run(cost, {x: images, y: labels}))
    # The last batch has one sample.
    for start in range(0, 33, 32):
        c, _ = sess.run([cost, train_step], {x: images[start:min(start + 32, 33)], y: labels[start:min(start + 32, 33)]})
        print("cost %.6f" % c)
    np.savez("weights.npz", W=W.eval(), b=sess.run(b))
