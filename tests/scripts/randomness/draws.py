# SPDX-License-Identifier: Apache-2.0
"""Numbers of every distribution for the rows of a batch, by functions of Keras and TensorFlow and by a generator, in loops whose
last batch is short; with exact numbers the result is that of one process."""
import sys

import keras
import numpy as np
import tensorflow as tf

how = sys.argv[1]
keras.utils.set_random_seed(1)
x = np.random.rand(43, 6).astype("float32")
y = np.random.rand(43, 1).astype("float32")
generator = tf.random.Generator.from_seed(5)
seeds = keras.random.SeedGenerator(3)


def stateless(rows):
    number, size = tf.shape(rows)[0], tf.shape(rows)
    seed = tf.cast(seeds.next(), tf.int32)
    return (tf.cast(keras.random.categorical(rows, 3, seed=seeds), tf.float32), keras.random.gamma(size, 2.0, seed=seeds),
            keras.random.binomial(size, 5.0, rows, seed=seeds), keras.random.beta((number, 2), 2.0, 3.0, seed=seeds),
            tf.random.stateless_gamma(size, seed, alpha=1 + rows), tf.random.stateless_poisson(size, seed, 5 * rows, tf.float32))


def stateful(rows):
    number = tf.shape(rows)[0]
    return (tf.cast(tf.random.categorical(rows, 2), tf.float32), tf.random.gamma([], 1 + rows), tf.random.gamma([number, 2], 2.0),
            tf.random.poisson([], 5 * rows), tf.random.poisson([number], 4.0)[:, None])


def generated(rows):
    number, size = tf.shape(rows)[0], tf.shape(rows)
    return (generator.normal(size), generator.uniform([number, 2]), generator.truncated_normal(size),
            generator.binomial(size, 7.0, rows, tf.float32), tf.fill([number, 1], generator.uniform([])))


WAYS = {"stateless": stateless, "stateful": stateful, "generated": generated}


def width(draw):
    return sum(part.shape[1] for part in draw(tf.constant(x[:20])))


def train(draw):
    weights = tf.Variable(tf.ones([width(draw), 1]))
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(9)

    def step(inputs, targets):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.concat(draw(inputs), 1) @ weights - targets) ** 2)
        weights.assign_sub(0.001 * tape.gradient(loss, weights))

    if how == "function":
        step = tf.function(step, input_signature=[tf.TensorSpec([None, 6]), tf.TensorSpec([None, 1])])
    for _ in range(3):
        for batch in data:
            step(*batch)
    return weights.numpy()


def fit(draw):
    class Noisy(keras.layers.Layer):
        def call(self, inputs):
            return tf.concat(draw(inputs), 1)

        def compute_output_shape(self, shape):
            return shape[0], width(draw)

    model = keras.Sequential([keras.Input((6,)), Noisy(), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.001), "mse")
    model.fit(x, y, batch_size=9, epochs=3, verbose=0)
    return model.get_weights()[0]


for name, draw in WAYS.items():
    result = fit(draw) if how == "fit" else train(draw)
    print(name, f"{result.sum():.5f}")
    np.save(f"{name}.npy", result)
