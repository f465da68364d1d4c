# SPDX-License-Identifier: Apache-2.0
"""Loops with Keras optimizers: two of them in a GAN, accumulation by hand, embeddings, variables made in functions."""
import sys

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(3)
generator = np.random.default_rng(2)
how = sys.argv[1]


def gan():
    """The generator learns to imitate 2-dimensional points; noise comes with the data."""
    points = (generator.normal(size=(75, 2)) * [1, 0.3] + [2, -1]).astype("float32")
    noise = generator.normal(size=(75, 4)).astype("float32")
    maker = keras.Sequential([keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(2)])
    judge = keras.Sequential([keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1)])
    maker_optimizer, judge_optimizer = keras.optimizers.Adam(0.01), keras.optimizers.RMSprop(0.01)
    cross = keras.losses.BinaryCrossentropy(from_logits=True)

    @tf.function
    def train(real, seeds):
        with tf.GradientTape() as maker_tape, tf.GradientTape() as judge_tape:
            fake = maker(seeds, training=True)
            on_real, on_fake = judge(real, training=True), judge(fake, training=True)
            maker_loss = cross(tf.ones_like(on_fake), on_fake)
            judge_loss = cross(tf.ones_like(on_real), on_real) + cross(tf.zeros_like(on_fake), on_fake)
        maker_grads = maker_tape.gradient(maker_loss, maker.trainable_variables)
        judge_grads = judge_tape.gradient(judge_loss, judge.trainable_variables)
        maker_optimizer.apply_gradients(zip(maker_grads, maker.trainable_variables))
        judge_optimizer.apply(judge_grads, judge.trainable_variables)
        return maker_loss, judge_loss

    reals = tf.data.Dataset.from_tensor_slices(points).batch(16)
    seeds = tf.data.Dataset.from_tensor_slices(noise).batch(16)
    for epoch in range(3):
        for real, seed in zip(reals, seeds):
            losses = train(real, seed)
        print("gan", epoch, *(f"{loss:.5f}" for loss in losses))
    return maker


def accumulation():
    x = generator.normal(size=(90, 6)).astype("float32")
    y = (x[:, :1] > 0).astype("float32")
    model = keras.Sequential([keras.layers.Dense(5, activation="relu"), keras.layers.Dense(1, activation="sigmoid")])
    model.build((None, 6))
    optimizer = keras.optimizers.SGD(0.5, momentum=0.9)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(10)
    total = [tf.Variable(tf.zeros_like(v), trainable=False) for v in model.trainable_variables]
    mean = keras.metrics.Mean()
    for epoch in range(2):
        mean.reset_state()
        for number, (inputs, labels) in data.enumerate():
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(keras.losses.binary_crossentropy(labels, model(inputs)))
            for sum_, grad in zip(total, tape.gradient(loss, model.trainable_variables)):
                sum_.assign_add(grad / 3)
            mean.update_state(loss)
            if number % 3 == 2:
                optimizer.apply_gradients(zip([s.value() for s in total], model.trainable_variables))
                for sum_ in total:
                    sum_.assign(tf.zeros_like(sum_))
        print("accumulation", epoch, f"{float(mean.result()):.6f}")
    return model


def embedding(optimizer):
    words = generator.integers(0, 12, size=(80, 3))
    labels = (words.sum(1, keepdims=True) % 2).astype("float32")
    table = tf.Variable(tf.random.stateless_normal((12, 4), (3, 4)))
    dense = tf.Variable(tf.random.stateless_normal((4, 1), (5, 6)))

    @tf.function
    def train(ids, targets):
        with tf.GradientTape() as tape:
            rows = tf.reduce_mean(tf.nn.embedding_lookup(table, ids), 1)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(targets, rows @ dense))
        optimizer.apply_gradients(zip(tape.gradient(loss, [table, dense]), [table, dense]))
        return loss

    for _ in range(2):
        for ids, targets in tf.data.Dataset.from_tensor_slices((words, labels)).batch(14):
            loss = train(ids, targets)
    print("embedding", type(optimizer).__name__, f"{loss:.6f}", f"{tf.reduce_sum(table**2):.6f}")


def made_inside():
    """The variable is made in the function; the next batch is fetched before the step."""
    class Model(tf.Module):
        weights = None

        @tf.function
        def train(self, inputs, targets):
            if self.weights is None:
                self.weights = tf.Variable(tf.ones((inputs.shape[1], 1), tf.float64) / 10)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((inputs @ self.weights - targets) ** 2)
            self.weights.assign_sub(0.1 * tape.gradient(loss, self.weights))
            return loss

    model, x = Model(), generator.normal(size=(53, 3))
    data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(8).prefetch(1)
    for epoch in range(2):
        iterator = iter(data)
        batch = next(iterator)
        while batch is not None:
            following = next(iterator, None)
            loss = model.train(*batch)
            print("made inside", epoch, f"{loss:.6f}")
            batch = following
    return model


if how == "gan":
    gan().save_weights("maker.weights.h5")
elif how == "accumulation":
    accumulation().save_weights("model.weights.h5")
else:
    embedding(keras.optimizers.SGD(0.5))
    embedding(keras.optimizers.Adagrad(0.5))
    np.save("made.npy", made_inside().weights.numpy())
