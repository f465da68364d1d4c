# SPDX-License-Identifier: Apache-2.0
"""Digits, with a loop that computes loss and accuracy anew, by hand, when it is time to print them; 300 rows in batches of 64, and 22 to
test, as many as one of three slices of 64 has."""
import sys

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

digits = load_digits()
x = (digits.data[:300] / 16).astype("float32")
y = digits.target[:300]
test_x, test_y = (digits.data[300:322] / 16).astype("float32"), digits.target[300:322]
keras.utils.set_random_seed(3)
hidden = tf.Variable(tf.random.normal((64, 32), stddev=0.1))
out = tf.Variable(tf.zeros((32, 10)))
optimizer = keras.optimizers.SGD(0.5)
measure = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def network(inputs):
    return tf.nn.relu(inputs @ hidden) @ out


def cross_entropy(logits, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def accuracy(logits, labels):
    correct = tf.equal(tf.argmax(logits, 1), tf.cast(labels, tf.int64))
    return tf.reduce_mean(tf.cast(correct, tf.float32), axis=-1)


@tf.custom_gradient
def centred(logits):
    """Its derivative subtracts the mean over the rows."""
    return tf.identity(logits), lambda upstream: upstream - 0.0 * tf.reduce_mean(upstream, axis=0, keepdims=True)


def train(inputs, labels):
    with tf.GradientTape() as tape:
        logits = centred(network(inputs))
        loss = cross_entropy(logits, labels)
    optimizer.apply(tape.gradient(loss, [hidden, out]), [hidden, out])
    return logits


def centre(pixels):
    """In Python, in a thread of the pipeline: 32 numbers in two columns."""
    pixels = tf.reshape(pixels, (32, 2))
    return tf.reshape(pixels - 0.1 * tf.reduce_mean(pixels), (64,))


def prepare(pixels, label):
    return tf.ensure_shape(tf.py_function(centre, [pixels], tf.float32), (64,)), label


step = tf.function(train) if sys.argv[1] == "function" else train
data = tf.data.Dataset.from_tensor_slices((x, y)).map(prepare).batch(64).prefetch(1)
total = 0.0
for epoch in range(3):
    for number, (inputs, labels) in enumerate(data):
        before = step(inputs, labels)
        after = network(inputs)
        loss = cross_entropy(after, labels)
        total += accuracy(before, labels)
        kept = tf.reduce_mean(tf.boolean_mask(after, labels < 5))  # of more rows in one part of the batch than in another
        assert np.isfinite(kept)
        print("%d.%d: loss %.5f and %.5f, accuracy %.5f before, %.5f after; rms %.5f, mean of pixels %.5f" % (
            epoch, number, loss, measure(labels, after), accuracy(before, labels), accuracy(after, labels),
            tf.sqrt(tf.reduce_mean(after**2)), keras.ops.mean(inputs)))
        print("  test %.5f, weights %.5f, columns %.5f" % (accuracy(network(test_x), test_y), tf.reduce_mean(hidden),
                                                          np.abs(tf.reduce_mean(inputs, 0)).max()))
print("mean accuracy", float(total) / 15)
np.save("out.npy", out.numpy())
