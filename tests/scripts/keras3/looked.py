# SPDX-License-Identifier: Apache-2.0
"""Losses that need the whole batch, in a train_step of the script, and in compile() where they compare rows.  23 rows in batches
of 7 and a rest of 2."""
import keras
import numpy as np
import tensorflow as tf

generator = np.random.default_rng(8)
x, y = generator.normal(size=(23, 4)), generator.normal(size=(23, 2))


def masked(true, out):
    valid = tf.cast(true > 0, out.dtype)
    return tf.reduce_sum((true - out) ** 2 * valid) / tf.reduce_sum(valid)


def contrast(true, out):
    likeness = keras.ops.matmul(out, keras.ops.transpose(true))
    return keras.losses.sparse_categorical_crossentropy(keras.ops.arange(keras.ops.shape(out)[0]), likeness, from_logits=True)


class Stepping(keras.Model):
    def __init__(self, loss_of):
        super().__init__()
        self.loss_of, self.dense = loss_of, keras.layers.Dense(2)

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x, true = data[:2]
        with tf.GradientTape() as tape:
            loss = self.loss_of(true, self(x, training=True))
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
        return {"error": loss}


class Adversaries(keras.Model):
    """Its layers are built by the first step: it is never called.  The first of two gradients is that of a mean."""
    def __init__(self):
        super().__init__()
        self.maker, self.judge, self.other = keras.layers.Dense(4), keras.layers.Dense(1), keras.optimizers.Adam(0.05)

    def train_step(self, data):
        logs = {}
        for name, layer, optimizer, loss_of in (("judge", self.judge, self.optimizer, tf.reduce_mean),
                                                ("maker", self.maker, self.other, tf.norm)):
            with tf.GradientTape() as tape:
                logs[name] = loss_of(self.judge(data[0]) - self.judge(self.maker(data[1])))
            optimizer.apply_gradients(zip(tape.gradient(logs[name], layer.trainable_variables), layer.trainable_variables))
        return logs


def describe(name, model, losses=()):
    print(name, *(f"{loss:.12f}" for loss in losses), *(f"{np.sum(np.cos(weight) * weight):.12f}" for weight in model.get_weights()))


def fit(name, model, **compiled):
    model.compile(optimizer=keras.optimizers.SGD(0.05), **compiled)
    history = model.fit(x, y, batch_size=7, epochs=2, shuffle=False, verbose=0)
    describe(name, model, next(iter(history.history.values())))


for name, loss_of in {"sum": lambda true, out: tf.reduce_sum((true - out) ** 2), "masked": masked,
                      "contrast": lambda true, out: tf.reduce_mean(contrast(true, out)),
                      "mean": lambda true, out: tf.reduce_mean((true - out) ** 2)}.items():
    keras.utils.set_random_seed(2)
    fit(f"train_step {name}", Stepping(loss_of))
    keras.utils.set_random_seed(2)
    fit(f"train_step {name}, compiled", Stepping(loss_of), jit_compile=True)
    keras.utils.set_random_seed(2)
    fit(f"train_step {name}, eager", Stepping(loss_of), run_eagerly=True)

keras.utils.set_random_seed(2)
fit("built by the first step", Adversaries())
keras.utils.set_random_seed(2)
fit("built by the first step, compiled", Adversaries(), jit_compile=True)

keras.utils.set_random_seed(2)
fit("contrast", keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(3, use_bias=False), keras.layers.BatchNormalization(),
                                  keras.layers.Dense(2)]), loss=contrast)

keras.utils.set_random_seed(2)
fit("contrast, eager", keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2), keras.layers.Dropout(0.5)]), loss=contrast,
    run_eagerly=True)

keras.utils.set_random_seed(2)
model = Stepping(masked)
model.compile(optimizer=keras.optimizers.SGD(0.05))
losses = [model.train_on_batch(x[rows:rows + 7], y[rows:rows + 7]) for rows in range(0, 23, 7)]
describe("on batch", model, np.ravel(losses))
