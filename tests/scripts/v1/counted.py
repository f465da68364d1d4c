# SPDX-License-Identifier: Apache-2.0
"""tf.metrics: updated while training, reset and updated in an evaluation; accumulators of the script's own."""
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

rng = np.random.RandomState(2)
x_all = rng.randn(130, 6).astype(np.float32)
y_all = (x_all[:, 0] + 0.3 * rng.randn(130) > 0).astype(np.int64)

x = tf.placeholder(tf.float32, [None, 6])
y = tf.placeholder(tf.int64, [None])
w = tf.get_variable("w", initializer=np.zeros((6, 2), np.float32))
logits = tf.matmul(x, w)
loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
guess = tf.argmax(logits, 1)
with tf.variable_scope("metrics"):
    accuracy, update_accuracy = tf.metrics.accuracy(y, guess)
    recall, update_recall = tf.metrics.recall(y, guess)
    auc, update_auc = tf.metrics.auc(y, tf.nn.softmax(logits)[:, 1])
seen = tf.get_variable("seen", [], tf.int32, initializer=tf.zeros_initializer, trainable=False)
see = seen.assign_add(tf.shape(x)[0])
train = tf.train.GradientDescentOptimizer(0.3).minimize(loss)
updates = tf.group(update_accuracy, update_recall, update_auc)
reset = tf.variables_initializer(tf.get_collection(tf.GraphKeys.LOCAL_VARIABLES, scope="metrics"))

with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    for epoch in range(2):
        sess.run(reset)
        for start in range(0, 130, 43):  # the last batch has one row
            sess.run([train, updates, see], {x: x_all[start:start + 43], y: y_all[start:start + 43]})
        print("training: accuracy %.6f recall %.6f auc %.6f, %d seen" % tuple(sess.run([accuracy, recall, auc, seen])))
        sess.run(reset)
        for start in range(0, 130, 50):
            value, _ = sess.run([update_accuracy, updates], {x: x_all[start:start + 50], y: y_all[start:start + 50]})
        print("evaluation: accuracy %.6f recall %.6f auc %.6f, last %.6f" % (*sess.run([accuracy, recall, auc]), value))
    np.save("w.npy", sess.run(w))
