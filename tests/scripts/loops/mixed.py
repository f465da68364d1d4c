# SPDX-License-Identifier: Apache-2.0
"""Losses and steps through which rows of the batch meet, in ways that no table of sums and means shows.  23 rows in batches of 8 and a rest
of 7."""
import sys

import numpy as np
import tensorflow as tf

BATCH = 8


def of_errors(function):
    return lambda true, out: function(tf.reduce_mean((true - out) ** 2, axis=1))


def folded(errors):
    return tf.foldl(lambda total, error: 0.7 * total + error, errors)


def looped(errors):
    total = tf.zeros((), errors.dtype)
    for i in tf.range(tf.shape(errors)[0]):
        total += errors[i] * tf.cast(i + 1, errors.dtype)
    return total


@tf.custom_gradient
def bounded(errors):
    return tf.identity(errors), lambda upstream: tf.clip_by_value(upstream, -0.05, 0.05)


def of_groups(true, out):
    groups = tf.cast(true[:, 0] > 0, tf.int32)
    return tf.reduce_sum(tf.math.unsorted_segment_mean(out, groups, 2) ** 2)


LOSSES = {
    "mean": of_errors(tf.reduce_mean),
    "neighbours": of_errors(lambda errors: tf.reduce_mean((errors[1:] - errors[:-1]) ** 2)),
    "turned round": lambda true, out: tf.reduce_mean((true - tf.reverse(out, [0])) ** 2),
    "rolled": lambda true, out: tf.reduce_mean(out * tf.roll(out, 1, axis=0)),
    "sorted": lambda true, out: tf.reduce_mean((tf.sort(true, axis=0) - tf.sort(out, axis=0)) ** 2),
    "largest": of_errors(lambda errors: tf.reduce_mean(tf.math.top_k(errors, 2).values)),
    "added up": of_errors(lambda errors: tf.reduce_mean(tf.cumsum(errors))),
    "softmax": of_errors(lambda errors: tf.reduce_sum(tf.nn.softmax(errors, axis=0) * errors)),
    "mapped": of_errors(lambda errors: tf.reduce_sum(tf.map_fn(tf.sqrt, errors))),
    "folded": of_errors(folded), "looped": of_errors(tf.function(looped)), "bounded": of_errors(lambda errors: tf.reduce_mean(bounded(errors))),
    "pairs": lambda true, out: tf.reduce_mean(tf.einsum("ik,jk->ij", out, out) ** 2),
    "contracted": lambda true, out: tf.sqrt(tf.reduce_sum(tf.tensordot(out, out, [[0], [0]]) ** 2)),
    "groups": of_groups, "half": of_errors(lambda errors: tf.reduce_mean(errors[:4])),
    "columns": lambda true, out: tf.reduce_mean((true - out) ** 2, axis=0),
}


def train(name, step_of, width):
    """Each has rows of another width, so that its data are told from those of the others."""
    numbers = np.random.default_rng(width)
    data = tf.data.Dataset.from_tensor_slices((numbers.normal(size=(23, width)), numbers.normal(size=(23, 3)))).batch(BATCH)
    weights, kept = tf.Variable(numbers.normal(size=(width, 3)) / width), tf.Variable(np.zeros(()))
    step = step_of(weights, kept)
    if "function" in sys.argv and step_of is not centred_before:
        step = tf.function(step)
    for _ in range(2):
        for x, y in data:
            step(x, y)
    print(name, *(f"{value:.12f}" for value in weights.numpy().ravel()), f"{kept.numpy():.12f}")


def plain(loss_of):
    def step_of(weights, kept):
        def step(x, y):
            with tf.GradientTape() as tape:
                loss = loss_of(y, tf.tanh(x @ weights))
            weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return step
    return step_of


def at_its_rate(weights, kept):
    """The worse the batch, the longer the step."""
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((y - tf.tanh(x @ weights)) ** 2)
        weights.assign_sub(0.1 * loss * tape.gradient(loss, weights))
    return step


def beside_its_average(weights, kept):
    def step(x, y):
        out = tf.tanh(x @ weights)
        kept.assign(0.8 * kept + 0.2 * tf.reduce_mean(out))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((y - tf.tanh(x @ weights) - kept) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return step


def centred_before(weights, kept):
    """Eagerly, before the function is called that trains."""
    inner = plain(lambda true, out: tf.reduce_mean((true - out) ** 2))(weights, kept)
    inner = tf.function(inner) if "function" in sys.argv else inner
    return lambda x, y: inner(x - tf.reduce_mean(x, axis=0), y)


def beside_its_slope(weights, kept):
    """The tape is asked for gradients of weights and of the batch."""
    def step(x, y):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.sqrt(tf.reduce_mean((y - tf.tanh(x @ weights)) ** 2))
        gradient, _ = tape.gradient(loss, [weights, x])
        weights.assign_sub(0.1 * gradient)
    return step


def from_its_errors(weights, kept):
    """The tape begins with what the script says."""
    def step(x, y):
        with tf.GradientTape() as tape:
            out = tf.tanh(x @ weights)
        weights.assign_sub(tape.gradient(out, weights, output_gradients=(out - y) / (10 * BATCH)))
    return step


def as_far_as_needed(weights, kept):
    def step(x, y):
        while tf.reduce_max(tf.abs(x)) > 2:
            x = x / 1.5
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((y - tf.tanh(x @ weights)) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return step


steps = {name: plain(loss_of) for name, loss_of in LOSSES.items()}
steps.update({step_of.__name__: step_of for step_of in (at_its_rate, beside_its_average, centred_before, beside_its_slope, from_its_errors, as_far_as_needed)})
for number, (name, step_of) in enumerate(steps.items()):
    train(name, step_of, number + 3)
