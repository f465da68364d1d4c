# SPDX-License-Identifier: Apache-2.0
"""Training and validation data behind one iterator, in the three ways of v1; the validation accuracy must see every row."""
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.set_random_seed(9)
how = sys.argv[1]

rng = np.random.RandomState(8)
x = rng.randn(260, 7).astype(np.float32)
y = (x @ rng.randn(7, 3)).argmax(1).astype(np.int32)


def input_fn(images, labels, batch, train):
    data = tf.data.Dataset.from_tensor_slices((images, labels))
    return data.shuffle(50, seed=2).batch(batch) if train else data.batch(batch)


handle = None
if how == "initializable":
    px, py, pbatch = tf.placeholder(tf.float32, [None, 7]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int64, [])
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.from_tensor_slices((px, py)).batch(pbatch))
elif how == "structure":
    train_data, test_data = input_fn(x[:200], y[:200], 32, True), input_fn(x[200:], y[200:], 25, False)
    iterator = tf.data.Iterator.from_structure(tf.data.get_output_types(train_data), tf.data.get_output_shapes(train_data))
    to_train, to_test = iterator.make_initializer(train_data), iterator.make_initializer(test_data)
else:
    train_iterator = tf.data.make_initializable_iterator(input_fn(x[:200], y[:200], 32, True))
    test_iterator = tf.data.make_initializable_iterator(input_fn(x[200:], y[200:], 25, False))
    handle = tf.placeholder(tf.string, [])
    iterator = tf.data.Iterator.from_string_handle(handle, (tf.float32, tf.int32), ([None, 7], [None]))

images, labels = iterator.get_next()
keep = tf.placeholder_with_default(1.0, [])
net = images * keep
w = tf.get_variable("w", [7, 3], initializer=tf.truncated_normal_initializer(stddev=0.1))
logits = tf.matmul(net, w)
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
right = tf.reduce_sum(tf.cast(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels), tf.int32))
size = tf.shape(labels)[0]
train_op = tf.train.GradientDescentOptimizer(0.5).minimize(loss)


def start(sess, training):
    """Begins an epoch; the feed that its runs need."""
    if how == "initializable":
        rows = slice(0, 200) if training else slice(200, 260)
        sess.run(iterator.initializer, {px: x[rows], py: y[rows], pbatch: 32 if training else 25})
        return {}
    if how == "structure":
        sess.run(to_train if training else to_test)
        return {}
    chosen = train_iterator if training else test_iterator
    sess.run(chosen.initializer)
    return {handle: sess.run(chosen.string_handle())}


with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for epoch in range(3):
        feed, total, seen, hits = {**start(sess, True), keep: 0.9}, 0.0, 0, 0
        while True:
            try:
                _, l, n, r = sess.run([train_op, loss, size, right], feed)
            except tf.errors.OutOfRangeError:
                break
            total, seen, hits = total + l * n, seen + n, hits + r
        print("epoch %d: loss %.6f over %d rows, %d right" % (epoch, total / seen, seen, hits))
        feed, seen, hits = start(sess, False), 0, 0
        while True:
            try:
                n, r = sess.run([size, right], feed)
            except tf.errors.OutOfRangeError:
                break
            seen, hits = seen + n, hits + r
        print("validation: %d of %d" % (hits, seen))
    np.save("w.npy", sess.run(w))
