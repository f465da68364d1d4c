# SPDX-License-Identifier: Apache-2.0
"""As MaTEx's users wrote it: DataSet for the data, a v1 graph, feed_dict.  A batch has all rows of its split, so that it is the
same on two and three ranks; the 13 rows to test divide by neither."""
import struct
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
TRAIN, TEST = 36, 13  # the last sixth of the training rows validate


def write(path, array):
    with open(path, "wb") as file:
        file.write(bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", n) for n in array.shape) + array.tobytes())


with tempfile.TemporaryDirectory() as folder:  # each process has files of its own
    for split, rows in (("train", TRAIN), ("t10k", TEST)):
        pictures = np.random.RandomState(rows).randint(0, 256, (rows, 28, 28)).astype(np.uint8)
        write(f"{folder}/{split}-images-idx3-ubyte", pictures)
        write(f"{folder}/{split}-labels-idx1-ubyte", (pictures[:, :5].mean((1, 2)) * 7 % 10).astype(np.uint8))
    data = tf.DataSet("MNIST", train_batch_size=30, test_batch_size=TEST, normalize=255.0, data_directory=folder)

x = tf.placeholder(tf.float32, [None, 28, 28, 1])
y = tf.placeholder(tf.float32, [None, 10])
weights = tf.Variable(tf.zeros([784, 10]))
logits = tf.matmul(tf.reshape(x, [-1, 784]), weights)
cost = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=logits))
train = tf.train.GradientDescentOptimizer(0.05).minimize(cost)
hits = tf.reduce_sum(tf.cast(tf.equal(tf.argmax(logits, 1), tf.argmax(y, 1)), tf.int32))

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(8):
        images, labels = data.next_train_batch()
        _, c = sess.run([train, cost], feed_dict={x: images, y: labels})
        print("step %d cost %.5f" % (step, c))
    images, labels = data.next_test_batch()
    c, right = sess.run([cost, hits], {x: images, y: labels})
    print("test cost %.5f, %d of %d right" % (c, right, TEST))
    np.save("weights.npy", weights.eval())
