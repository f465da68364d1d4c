# SPDX-License-Identifier: Apache-2.0
"""Losses and metrics that divide a sum over the entries that count by their number; some slices have none."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

rng = np.random.default_rng(0)
words, labels = rng.integers(1, 20, (50, 7)), rng.integers(1, 20, (50, 7))
labels[np.arange(7)[None] >= rng.integers(1, 8, (50, 1))] = 0
labels[11:17] = 0
entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")


def by_number(y, predicted):
    mask = tf.cast(y != 0, predicted.dtype)
    return tf.reduce_sum(entropy(y, predicted) * mask) / tf.reduce_sum(mask)


def by_one_at_least(y, predicted):
    mask = tf.cast(y != 0, tf.int32)
    loss = tf.where(mask > 0, entropy(y, predicted), 0)
    return tf.reduce_sum(loss) / tf.maximum(tf.cast(tf.reduce_sum(mask), loss.dtype), 1)


def by_number_and_little(y, predicted):
    mask = ops.cast(ops.not_equal(y, 0), predicted.dtype)
    return ops.sum(entropy(y, predicted) * mask) / (ops.sum(mask) + 1e-3)


def without_nan(y, predicted):
    mask = tf.cast(y != 0, predicted.dtype)
    row_means = tf.map_fn(lambda row: tf.math.divide_no_nan(tf.reduce_sum(row[0]), tf.reduce_sum(row[1])),
                          (entropy(y, predicted) * mask, mask), fn_output_signature=predicted.dtype)
    row_parts = tf.vectorized_map(lambda row: tf.reduce_sum(row) / tf.reduce_sum(tf.ones_like(row)), mask)
    return tf.math.divide_no_nan(tf.reduce_sum(row_means * row_parts), tf.reduce_sum(row_parts))


def accuracy(y, predicted):
    mask = tf.cast(y != 0, predicted.dtype)
    is_right = tf.cast(tf.argmax(predicted, -1) == tf.cast(y, tf.int64), predicted.dtype)
    return tf.reduce_sum(is_right * mask) / tf.reduce_sum(mask)


class Evenness(keras.metrics.Metric):
    """Its result is a quotient of sums, too, which all ranks have."""

    def __init__(self):
        super().__init__(name="evenness")
        self.counts = self.add_weight(shape=(20,), initializer="zeros")

    def update_state(self, y, predicted, sample_weight=None):
        self.counts.assign_add(tf.cast(tf.math.bincount(tf.cast(tf.reshape(y, [-1]), tf.int32), minlength=20), self.dtype))

    def result(self):
        return tf.reduce_sum(self.counts ** 2) / tf.reduce_sum(self.counts)


class Balanced(keras.Model):
    """A step that divides sums after its gradient, as optimizers do."""

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = by_number(y, self(x, training=True))
        gradients = [tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, self.trainable_variables)]
        for variable, gradient in zip(self.trainable_variables, gradients):
            size = tf.reduce_sum(tf.abs(gradient)) / tf.reduce_sum(tf.abs(variable) + 0.1)
            variable.assign(variable - 0.01 * gradient / (size + 0.1))
        return {"loss": loss}


def model(cls=keras.Model):
    keras.utils.set_random_seed(1)
    inputs = keras.Input((7,))
    return cls(inputs, layers.Dense(20)(layers.Embedding(20, 6)(inputs)))


def report(name, trained, history):
    print(name, [float(np.abs(weights).sum()) for weights in trained.get_weights()], history.history)


for loss in (by_number, by_one_at_least, by_number_and_little, without_nan):
    trained = model()
    trained.compile("adam", loss, metrics=[accuracy, Evenness()])
    report(loss.__name__, trained, trained.fit(words, labels, batch_size=16, epochs=2, verbose=0, shuffle=False,
                                               validation_data=(words[:37], labels[:37])))
compiled = model()
compiled.compile("sgd", by_number, metrics=[accuracy], jit_compile=True)
report("compiled", compiled, compiled.fit(words, labels, batch_size=16, epochs=2, verbose=0, shuffle=False))
balanced = model(Balanced)
balanced.compile()
report("balanced", balanced, balanced.fit(words, labels, batch_size=16, epochs=2, verbose=0, shuffle=False))
