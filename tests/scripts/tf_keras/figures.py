# SPDX-License-Identifier: Apache-2.0
"""Losses and metrics that are figures of the batch: a root, a masked mean, a correlation.  Batches of 7 with a rest of 2."""
import numpy as np
import tensorflow as tf
import tf_keras as keras
from tf_keras import backend as K, layers

generator = np.random.default_rng(22)
x = generator.normal(size=(23, 4)).astype("float32")
y = (generator.normal(size=(23, 2)) + np.linspace(-1, 2, 23)[:, None]).astype("float32")


def root(true, out):
    return K.sqrt(K.mean(K.square(true - out)))


def masked(true, out):
    mask = tf.cast(true > 0.5, out.dtype)
    return tf.reduce_sum(tf.abs(true - out) * mask) / tf.reduce_sum(mask)


def correlation(true, out):
    true, out = true - K.mean(true), out - K.mean(out)
    return 1 - K.sum(true * out) / (K.sqrt(K.sum(K.square(true)) * K.sum(K.square(out))) + 1e-6)


def with_error(true, out):
    return keras.losses.MeanSquaredError()(true, out) + root(true, out)


def mean(true, out):
    return tf.reduce_mean(tf.square(true - out))


for loss in root, masked, correlation, with_error:
    keras.utils.set_random_seed(4)
    model = keras.Sequential([layers.Input((4,)), layers.Dense(6, activation="tanh"), layers.Dense(2)])
    model.compile(optimizer=keras.optimizers.SGD(0.05), loss=loss, metrics=[root, masked])
    history = model.fit(x, y, batch_size=7, epochs=2, verbose=0, sample_weight=np.linspace(0, 2, 23) if loss is root else None)
    for key, values in sorted(history.history.items()):
        print(loss.__name__, key, *(f"{value:.6f}" for value in values))
    print(loss.__name__, "evaluate", *(f"{value:.6f}" for value in model.evaluate(x, y, batch_size=11, verbose=0)))
    np.savez(f"{loss.__name__}.npz", *model.get_weights())

# A mask of the model weighs what one number is computed from, in the loss and in the metric.
keras.utils.set_random_seed(5)
model = keras.Sequential([layers.Input((5, 4)), layers.Masking(), layers.Dense(2)])
model.compile(optimizer=keras.optimizers.SGD(0.05), loss=mean, metrics=[mean])
steps_in = np.repeat(x[:, None], 5, 1) * (np.arange(5) < generator.integers(1, 6, size=(23, 1)))[:, :, None]
history = model.fit(steps_in, np.repeat(y[:, None], 5, 1), batch_size=7, epochs=2, verbose=0)
for key, values in sorted(history.history.items()):
    print("mask", key, *(f"{value:.6f}" for value in values))
np.savez("mask.npz", *model.get_weights())
