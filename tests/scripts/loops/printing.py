# SPDX-License-Identifier: Apache-2.0
"""A regression whose loop prints its loss at every step, in all the ways people print; 70 rows in batches of 16."""
import sys

import numpy as np
import tensorflow as tf

how = sys.argv[1]
generator = np.random.default_rng(5)
x = generator.normal(size=(70, 6)).astype("float32")
y = (x @ generator.normal(size=(6, 1))).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
weights = tf.Variable(tf.zeros((6, 1)))


def scale_of_unknown_shape():
    return tf.numpy_function(lambda: np.float32(2), [], tf.float32) if how == "function" else 2.0


class Step:
    def __call__(self, inputs, targets):
        with tf.GradientTape() as tape:
            error = inputs @ weights - targets
            loss = tf.reduce_mean(error**2)
        gradient = tape.gradient(loss, weights)
        weights.assign_sub(0.1 * gradient)
        return loss, tf.norm(gradient), scale_of_unknown_shape() * loss


step = Step()
if how == "function":
    inner = tf.function(step)

    @tf.function
    def step(inputs, targets):
        return *inner(inputs, targets), tf.reduce_mean(inputs @ weights)
elif how == "xla":
    step = tf.function(step, jit_compile=True)


@tf.function
def epoch_in_graph():
    total, steps = 0.0, 0
    for inputs, targets in data:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((inputs @ weights - targets) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        total += loss
        steps += 1
    return total / tf.cast(steps, tf.float32), steps


for epoch in range(3):
    if how == "graph":
        mean, steps = epoch_in_graph()
        print(epoch, float(mean), int(steps))
        continue
    total = 0.0
    for number, (inputs, targets) in enumerate(data):
        loss, norm, *others = step(inputs, targets)
        print(f"{epoch}.{number}: {loss:.5f} {float(loss):.5f} {loss.numpy():.5f} norm {norm:.5f}",
              *(f"{other:.5f}" for other in others if how != "eager"))
        total += loss.numpy()
        if number == 3:
            print(loss)
            print(np.array([loss, loss]).mean())
    print("mean of epoch", total / (number + 1))
np.save("weights.npy", weights.numpy())
