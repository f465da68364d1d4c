# SPDX-License-Identifier: Apache-2.0
"""A one-shot iterator: shuffle, repeat, batch, until the data ends; the last batch has one sample."""
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(4)

rng = np.random.RandomState(5)
x_all = rng.randn(97, 5).astype(np.float32)
y_all = (x_all.sum(1) > 0).astype(np.int64)

dataset = tf.data.Dataset.from_tensor_slices({"x": x_all, "y": y_all}).shuffle(97, seed=1).repeat(3)
dataset = dataset.map(lambda row: (row["x"] * 2.0, row["y"])).batch(29).prefetch(1)  # 291 = 10 * 29 + 1
features, label = dataset.make_one_shot_iterator().get_next()

w = tf.get_variable("w", [5, 2])
b = tf.get_variable("b", [2], initializer=tf.zeros_initializer)
logits = features @ w + b
loss = tf.losses.sparse_softmax_cross_entropy(label, logits)
step = tf.train.get_or_create_global_step()
train = tf.train.AdagradOptimizer(0.3).minimize(loss, step)

with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    rows = 0
    try:
        while True:
            _, value, labels, at = sess.run([train, loss, label, step])
            rows += len(labels)
            print("loss %.6f labels %s" % (value, "".join(map(str, labels))))
    except tf.errors.OutOfRangeError:
        print("done after", rows, "rows")
    np.savez("weights.npz", w=sess.run(w), b=sess.run(b), step=sess.run(step))
