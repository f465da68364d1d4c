# SPDX-License-Identifier: Apache-2.0
"""A script as MaTEx's users wrote it: a TensorFlow 1 graph, and tf.DataSet for the data.  Nothing of it names Lockstep,
which only has to be installed: with one process, or under `lockstep run -n 2` or mpirun.

    python examples/data/matex.py

Expected output:
    50 rows to train, 10 to validate, 12 to test
    learnt: True

It writes a small MNIST_data of its own into a temporary folder; leave data_directory out to use ./MNIST_data."""
import struct
import tempfile
from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def write_mnist(folder):
    """Pictures whose brightest row tells the digit."""
    for name, rows in (("train", 60), ("t10k", 12)):
        labels = (np.arange(rows) % 10).astype(np.uint8)
        images = np.zeros((rows, 28, 28), np.uint8)
        images[np.arange(rows), 2 * labels] = 255
        for kind, array in (("images-idx3-ubyte", images), ("labels-idx1-ubyte", labels)):
            head = bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", n) for n in array.shape)
            (Path(folder) / f"{name}-{kind}").write_bytes(head + array.tobytes())


with tempfile.TemporaryDirectory() as folder:
    write_mnist(folder)
    data = tf.DataSet("MNIST", train_batch_size=20, test_batch_size=12, normalize=255.0, data_directory=folder)

x = tf.placeholder(tf.float32, [None, 28, 28, 1])
y = tf.placeholder(tf.float32, [None, 10])
weights = tf.Variable(tf.zeros([784, 10]))
logits = tf.matmul(tf.reshape(x, [-1, 784]), weights)
loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=logits))
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), tf.argmax(y, 1)), tf.float32))

with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(30):
        images, labels = data.next_train_batch()
        session.run(train, {x: images, y: labels})
    images, labels = data.next_test_batch()
    result = session.run(accuracy, {x: images, y: labels})

print(f"{len(data.training_data)} rows to train, {len(data.validation_data)} to validate, {len(data.testing_data)} to test")
print("learnt:", bool(result > 0.9))
