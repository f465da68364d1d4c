# SPDX-License-Identifier: Apache-2.0
"""A physicist's loop: random rows of NumPy arrays go into a compiled step, which gives back the loss and its residuals."""
import sys

import numpy as np
import tensorflow as tf

np.random.seed(3)
tf.keras.utils.set_random_seed(3)

x = np.random.uniform(-1, 1, (301, 2))
y = np.sin(3 * x[:, :1]) * x[:, 1:] + 0.1
weights = np.random.uniform(0.5, 1.5, (301, 1))
w1 = tf.Variable(np.random.normal(0, 0.5, (2, 16)))
b1 = tf.Variable(np.zeros(16))
w2 = tf.Variable(np.random.normal(0, 0.5, (16, 1)))
parameters = [w1, b1, w2]
optimizer = tf.keras.optimizers.Adam(0.01)


@tf.function(jit_compile="xla" in sys.argv)
def train_step(batch, importance, rate=1.0):
    points, targets = batch
    with tf.GradientTape() as tape:
        residuals = tf.tanh(points @ w1 + b1) @ w2 - targets
        loss = rate * tf.reduce_mean(importance * residuals ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, parameters), parameters))
    return loss, {"residuals": residuals, "largest": None}


worst = np.zeros(len(x))
for epoch in range(3):
    order = np.random.permutation(len(x))
    losses = []
    for begin in range(0, len(x), 64):  # the last batch has 45 rows
        rows = order[begin:begin + 64]
        loss, more = train_step((x[rows], tf.constant(y[rows])), importance=weights[rows])
        losses.append(float(loss))
        worst[rows] = np.abs(more["residuals"].numpy()[:, 0])
    print(f"epoch {epoch}: loss {np.mean(losses):.10f}, worst {worst.max():.10f} at {worst.argmax()}")
loss, more = train_step((x[:1], tf.constant(y[:1])), importance=weights[:1])
print(f"one row: {float(loss):.10f}, residuals {more['residuals'].shape}")
print("weights", " ".join(f"{np.sum(np.abs(p.numpy())):.10f}" for p in parameters))
