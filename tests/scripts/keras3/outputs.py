# SPDX-License-Identifier: Apache-2.0
"""Models that give something else than one row for each sample: a row for each token, a number of the batch, a matrix of the model,
ragged rows; and a metric of the script that keeps a maximum of as many errors as a mask leaves."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

keras.utils.set_random_seed(1)
generator = np.random.default_rng(0)
x = generator.normal(size=(50, 6, 3))
tags = generator.integers(0, 4, size=(50, 6))


def loss_of_tokens(tags, logits):
    return keras.losses.sparse_categorical_crossentropy(ops.reshape(tags, (-1,)), logits, from_logits=True)


inputs = keras.Input((6, 3))
hidden = layers.Dense(5, activation="tanh")(inputs)
model = keras.Model(inputs, ops.reshape(layers.Dense(4)(hidden), (-1, 4)))
model.compile("sgd", loss_of_tokens)
print("tokens", *(f"{loss:.12f}" for loss in model.fit(x, tags, batch_size=16, epochs=2, verbose=0).history["loss"]))
np.savez("tokens.npz", all=model.predict(x, batch_size=16, verbose=0), few=model.predict_on_batch(x[:7]),
         two=model.predict(x[:2], verbose=0),
         mapped=model.predict(tf.data.Dataset.from_tensor_slices(x).map(lambda rows: 2 * rows).batch(16), verbose=0))


class WithFigures(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = layers.Dense(2)

    def call(self, rows):
        outputs = self.dense(rows)
        return {"outputs": outputs, "size": ops.mean(outputs**2), "matrix": ops.convert_to_tensor(self.dense.kernel)}


np.savez("figures.npz", **WithFigures().predict(x[:16, 0], batch_size=16, verbose=0))


class Largest(keras.metrics.Metric):
    def __init__(self):
        super().__init__(name="largest")
        self.error, self.number = (self.add_weight(name=name, initializer="zeros") for name in ("error", "number"))

    def update_state(self, errors):
        self.error.assign(ops.maximum(self.error, ops.max(errors)))
        self.number.assign(self.number + ops.cast(ops.size(errors), self.number.dtype))

    def result(self):
        return {"error": self.error, "number": self.number}


largest = Largest()
weights = tf.Variable(generator.normal(size=(3, 2)))
for rows, targets in tf.data.Dataset.from_tensor_slices((x[:, 0], x[:, 1, :2])).batch(11):
    with tf.GradientTape() as tape:
        errors = tf.abs(rows @ weights - targets)
        loss = tf.reduce_mean(errors)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    largest.update_state(tf.boolean_mask(errors, errors > 0.2))
print("largest", *(f"{float(ops.convert_to_numpy(value)):.12f}" for value in largest.result().values()))
