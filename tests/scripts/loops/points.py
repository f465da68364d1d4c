# SPDX-License-Identifier: Apache-2.0
"""A network that learns u'' = -u from points inside and on the boundary, fewer of these, by two kinds of steps; then points that change in number."""
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(3)
tf.keras.utils.set_random_seed(3)
model = tf.keras.Sequential([tf.keras.layers.Dense(8, "tanh"), tf.keras.layers.Dense(1)])
model.build((None, 1))
optimizer = tf.keras.optimizers.Adam(0.01)


def residual(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            u = model(x)
        slope = inner.gradient(u, x)
    return outer.gradient(slope, x) + u


@tf.function
def step(inside, boundary, values, weight):
    with tf.GradientTape() as tape:
        inner = tf.reduce_mean(residual(inside) ** 2)
        outer = tf.reduce_mean((model(boundary) - values) ** 2)
        loss = inner + weight * outer
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return {"loss": loss, "inside": inner, "boundary": outer, "sum on boundary": tf.reduce_sum(model(boundary)), "residual": residual(inside),
            "norm": tf.linalg.global_norm(gradients)}


ends = np.array([[0.0], [1.0], [2.0]])
for number in (31, 31, 31, 20, 31, 5, 2):
    points = rng.uniform(0, 2, (number, 1))
    given = step(tf.constant(points), tf.constant(ends), np.sin(ends), np.float64(2.0))
    print(number, *(f"{name} {value.shape} {float(tf.reduce_sum(tf.cos(value))):.10f}" for name, value in given.items()))

# More points on the boundary than inside.
for _ in range(4):
    given = step(rng.uniform(0, 2, (7, 1)), np.tile(ends, (5, 1)), np.sin(np.tile(ends, (5, 1))), np.float64(1.0))
    print("boundary", *(f"{name} {value.shape} {float(tf.reduce_sum(tf.cos(value))):.10f}" for name, value in given.items()))
model.save_weights("points.weights.h5")
