# SPDX-License-Identifier: Apache-2.0
"""A linear classifier with a hand-written loop; the argument says how the loop runs."""
import sys

import numpy as np
import tensorflow as tf

how = sys.argv[1]
generator = np.random.default_rng(0)
x = generator.normal(size=(203, 20)).astype("float32")
y = (x @ generator.normal(size=(20, 3)).astype("float32")).argmax(1)
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(100, seed=4).batch(32)

weights = tf.Variable(tf.random.stateless_uniform((20, 3), (1, 2)))
bias = tf.Variable(tf.zeros(3))
mean_loss = tf.keras.metrics.Mean()
accuracy = tf.keras.metrics.SparseCategoricalAccuracy()


def train(inputs, labels):
    with tf.GradientTape() as tape:
        logits = inputs @ weights + bias
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    for variable, gradient in zip((weights, bias), tape.gradient(loss, (weights, bias))):
        variable.assign_sub(0.5 * gradient)
    mean_loss.update_state(loss)
    accuracy.update_state(labels, logits)


if how == "function":
    train = tf.function(train)
elif how == "xla":
    train = tf.function(train, jit_compile=True)


@tf.function
def train_epoch():
    for inputs, labels in data:
        train(inputs, labels)


@tf.function
def train_on(batches):
    for inputs, labels in batches:
        train(inputs, labels)


@tf.function
def train_next(iterator):
    inputs, labels = next(iterator)
    train(inputs, labels)


for epoch in range(3):
    mean_loss.reset_state()
    accuracy.reset_state()
    if how == "graph":
        train_epoch()
    elif how == "given":
        train_on(data)
    elif how == "next":
        iterator = iter(data)
        for _ in range(len(data)):
            train_next(iterator)
    else:
        for inputs, labels in data:
            train(inputs, labels)
    print(f"epoch {epoch}: loss {float(mean_loss.result()):.6f}, accuracy {float(accuracy.result()):.6f}")

right = rows = 0
for inputs, labels in data:
    guesses = tf.argmax(inputs @ weights + bias, 1)
    right += int(tf.reduce_sum(tf.cast(guesses == labels, tf.int32)))
    rows += len(labels)
print(f"{right} of {rows} right")
np.savez("weights.npz", weights=weights.numpy(), bias=bias.numpy())
