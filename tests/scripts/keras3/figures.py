# SPDX-License-Identifier: Apache-2.0
"""Losses and metrics that are figures of the batch: roots, quotients, correlations.  Batches of 7 with a rest of 2."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

generator = np.random.default_rng(21)
x = generator.normal(size=(23, 4))
y = generator.normal(size=(23, 3)) + np.linspace(-1, 2, 23)[:, None]
words = generator.integers(1, 9, size=(23, 6)) * (np.arange(6) < generator.integers(0, 7, size=(23, 1)))
words[7:10] = 0  # a slice without a word
rows_weight = np.linspace(0, 2, 23)


def root(true, out):
    return ops.sqrt(ops.mean(ops.square(true - out)))


def roots_of_columns(true, out):
    return tf.sqrt(tf.reduce_mean(tf.square(true - out), axis=0))


def root_by_rows(true, out):
    return tf.sqrt(tf.reduce_sum(tf.square(true - out)) / tf.cast(tf.shape(true)[0], out.dtype))


def relative(true, out):
    return tf.norm(true - out) / tf.norm(true)


def of_positive(true, out):
    valid = true > 0
    return tf.reduce_mean(tf.abs(tf.boolean_mask(true, valid) - tf.boolean_mask(out, valid)))


def errors_of_positive(true, out):
    valid = true[:, 0] > 0
    return keras.losses.mean_squared_error(true[valid], out[valid])


def summed(true, out):
    return tf.reduce_sum(tf.square(true - out)) / 10.0


def mean(true, out):
    return tf.reduce_mean(tf.square(true - out))


def correlation(true, out):
    true, out = true - tf.reduce_mean(true, axis=0), out - tf.reduce_mean(out, axis=0)
    return 1 - tf.reduce_mean(tf.reduce_sum(true * out, 0) / tf.sqrt(tf.reduce_sum(true ** 2, 0) * tf.reduce_sum(out ** 2, 0) + 1e-6))


def dice(true, out):
    true, out = ops.reshape(ops.sigmoid(true), (-1,)), ops.reshape(ops.sigmoid(out), (-1,))
    return 1 - (2 * ops.sum(true * out) + 1) / (ops.sum(true) + ops.sum(out) + 1)


def with_dice(true, out):
    return keras.losses.MeanSquaredError()(true, out) + dice(true, out)


class Spread(keras.losses.Loss):
    def call(self, true, out):
        return tf.math.reduce_std(out - true) + tf.abs(tf.reduce_mean(out[:, 0] - true[:, 0]))


class Warming(keras.losses.Loss):
    """Counts its calls."""
    def __init__(self):
        super().__init__()
        self.steps = tf.Variable(0.0, dtype=tf.float64)

    def call(self, true, out):
        self.steps.assign_add(1)
        return root(true, out) * self.steps / (5 + self.steps)


class Keeping(keras.losses.Loss):
    """Keeps something of its last call, for a metric."""
    def call(self, true, out):
        self.error, self.bias = mean(true, out), tf.reduce_mean(true - out)
        return self.error + self.bias


def bias(true, out):
    return keeping.bias


def masked_words(true, out):
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast(true, tf.int64), out)
    mask = tf.cast(true != 0, loss.dtype)
    return tf.reduce_sum(loss * mask) / tf.reduce_sum(mask)


def mean_of_words(true, out):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast(true, tf.int64), out))


def masked_accuracy(true, out):
    right = tf.cast(tf.argmax(out, axis=-1) == tf.cast(true, tf.int64), tf.float64)
    mask = tf.cast(true != 0, tf.float64)
    return tf.reduce_sum(right * mask) / tf.reduce_sum(mask)


def tversky(true, out):
    true, out = tf.one_hot(tf.cast(true, tf.int32), 9, dtype=out.dtype), tf.nn.softmax(out)
    hits, missed, wrong = (tf.reduce_sum(part, axis=[0, 1]) for part in (true * out, true * (1 - out), (1 - true) * out))
    return tf.reduce_mean((1 - (hits + 0.1) / (hits + 0.7 * missed + 0.3 * wrong + 0.1)) ** 0.75)


def show(name, model, history):
    for key, values in sorted(history.history.items()):
        print(name, key, *(f"{value:.12f}" for value in values))
    np.savez(f"{name}.npz", *model.get_weights())


def fit_numbers(loss, weight=None, **options):
    keras.utils.set_random_seed(4)
    model = keras.Sequential([keras.Input((4,)), layers.Dense(6, activation="tanh"), layers.Dense(3)])
    model.compile(optimizer=keras.optimizers.SGD(0.05), loss=loss, **options)
    name = getattr(loss, "__name__", type(loss).__name__)
    show(name, model, model.fit(x, y, sample_weight=weight, batch_size=7, epochs=2, verbose=0))
    for key, value in sorted(model.evaluate(x, y, batch_size=11, verbose=0, return_dict=True).items()):
        print(name, "evaluate", key, f"{value:.12f}")


all_metrics = [root, root_by_rows, relative, of_positive, summed, mean, correlation, dice, with_dice]
fit_numbers(root, metrics=all_metrics)
fit_numbers(correlation, rows_weight)
fit_numbers(with_dice)
fit_numbers(mean, rows_weight)
fit_numbers(of_positive)
fit_numbers(errors_of_positive, metrics=[errors_of_positive])
fit_numbers(roots_of_columns)
fit_numbers(summed)
fit_numbers(Spread())
fit_numbers(Warming())
keeping = Keeping()
fit_numbers(keeping, metrics=[bias])

for loss, has_mask in (masked_words, False), (tversky, False), (mean_of_words, True):
    keras.utils.set_random_seed(5)
    model = keras.Sequential([keras.Input((6,), dtype="int32"), layers.Embedding(9, 5, mask_zero=has_mask), layers.Dense(9)])
    model.compile(optimizer=keras.optimizers.SGD(0.5), loss=loss, metrics=[] if has_mask else [masked_accuracy])
    show(loss.__name__, model, model.fit(words, np.roll(words, -1, 1), batch_size=7, epochs=2, verbose=0))
