# SPDX-License-Identifier: Apache-2.0
"""Losses that are no mean over the rows of the batch, in a training loop: sums, quotients, roots, rows beside rows.  23 rows in
batches of 7 and a rest of 2."""
import sys

import numpy as np
import tensorflow as tf

BATCH = 7


def masked(true, out, valid):
    return tf.reduce_sum((true - out) ** 2 * valid) / tf.reduce_sum(valid)


def contrast(true, out, valid):
    likeness = tf.matmul(out, true, transpose_b=True)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.range(tf.shape(out)[0]), logits=likeness))


def covariance(true, out, valid):
    return -tf.reduce_mean((true - tf.reduce_mean(true, axis=0)) * (out - tf.reduce_mean(out, axis=0)))


@tf.function
def in_function(true, out, valid):
    return tf.reduce_sum((true - out) ** 2), tf.reduce_mean(out)


@tf.function
def in_branch(true, out, valid):
    if bound > 1:
        return tf.reduce_mean(tf.abs(true - out))
    return tf.reduce_sum(tf.abs(true - out)) / BATCH


@tf.function
def in_loop(true, out, valid):
    loss = tf.zeros((), out.dtype)
    for power in tf.range(1, 4):
        loss += tf.norm(true - out * tf.cast(power, out.dtype))
    return loss


bound = tf.Variable(0.5)
LOSSES = {
    "mean": lambda true, out, valid: tf.reduce_mean((true - out) ** 2),
    "sum": lambda true, out, valid: tf.reduce_sum((true - out) ** 2),
    "by batch": lambda true, out, valid: tf.reduce_sum((true - out) ** 2) / BATCH,
    "by rows": lambda true, out, valid: tf.reduce_sum((true - out) ** 2) / tf.cast(tf.shape(out)[0], out.dtype),
    "masked": masked,
    "root": lambda true, out, valid: tf.sqrt(tf.reduce_mean((true - out) ** 2)),
    "norm": lambda true, out, valid: tf.norm(true - out),
    "largest": lambda true, out, valid: tf.reduce_logsumexp((true - out) ** 2),
    "contrast": contrast,
    "distances": lambda true, out, valid: tf.reduce_mean((out[:, None] - out[None]) ** 2),
    "covariance": covariance,
    "in a function": lambda true, out, valid: in_function(true, out, valid)[0],
    "mean in a function": lambda true, out, valid: in_function(true, out, valid)[1],
    "in a branch": in_branch,
    "in a loop": in_loop,
}


def train(loss_of, width):
    """Each has rows of another width, so that its data are told from those of the others."""
    generator = np.random.default_rng(width)
    x, y = generator.normal(size=(23, width)), generator.normal(size=(23, 2))
    data = tf.data.Dataset.from_tensor_slices((x, y, (y > 0).astype(float))).batch(BATCH)
    weights = tf.Variable(generator.normal(size=(width, 2)), name="weights")
    bias = tf.Variable(np.zeros(2), name="bias")

    def step(x, true, valid):
        with tf.GradientTape() as tape:
            loss = loss_of(true, tf.tanh(x @ weights + bias), valid)
        for variable, gradient in zip((weights, bias), tape.gradient(loss, (weights, bias))):
            variable.assign_sub(0.05 * gradient)
        return loss

    def epoch():
        for batch in data:
            step(*batch)

    if sys.argv[1] == "function":
        step = tf.function(step)
    elif sys.argv[1] == "graph":
        epoch = tf.function(epoch)
    for _ in range(3):
        epoch()
    return weights, bias


for number, (name, loss_of) in enumerate(LOSSES.items()):
    print(name, *(f"{float(tf.reduce_sum(variable * tf.cos(variable))):.12f}" for variable in train(loss_of, number + 3)))
