# SPDX-License-Identifier: Apache-2.0
"""Word vectors: embedding_lookup has sparse gradients, with equal words in one batch; three optimizers."""
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
if "ref" in sys.argv:
    tf.disable_resource_variables()

rng = np.random.RandomState(12)
words = rng.zipf(1.5, size=(90, 5)) % 40
labels = (words.sum(1) % 2).astype(np.float32)

ids = tf.placeholder(tf.int32, [None, 5])
label = tf.placeholder(tf.float32, [None])
results = {}
trains, losses, tables = [], [], []
for name, optimizer in (("sgd", tf.train.GradientDescentOptimizer(1.0)), ("adagrad", tf.train.AdagradOptimizer(0.5)),
                        ("adam", tf.train.AdamOptimizer(0.05))):
    with tf.variable_scope(name):
        table = tf.get_variable("table", initializer=(np.random.RandomState(1).randn(40, 6) * 0.2).astype(np.float32))
        vectors = tf.nn.embedding_lookup(table, ids)
        score = tf.reduce_sum(tf.reduce_mean(vectors, 1), 1)
        losses.append(tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=score)))
        trains.append(optimizer.minimize(losses[-1]))
        tables.append(table)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(3):
        for start in range(0, 90, 32):
            _, values = sess.run([trains, losses], {ids: words[start:start + 32], label: labels[start:start + 32]})
        print(*("%.6f" % value for value in values))
    np.savez("tables.npz", *sess.run(tables))
