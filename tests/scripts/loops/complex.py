# SPDX-License-Identifier: Apache-2.0
"""Variables of complex numbers: a matrix and a table of phases, trained by hand."""
import sys

import numpy as np
import tensorflow as tf

generator = np.random.default_rng(5)
signals = generator.normal(size=(53, 4)) + 1j * generator.normal(size=(53, 4))
kinds = generator.integers(0, 5, 53)
strengths = np.abs(signals[:, :1]) + 0.1 * generator.normal(size=(53, 1))
data = tf.data.Dataset.from_tensor_slices((signals, kinds, strengths)).batch(8)

matrix = tf.Variable(generator.normal(size=(4, 1)) + 1j * generator.normal(size=(4, 1)), name="matrix")
phases = tf.Variable(np.exp(1j * generator.normal(size=(5, 1))), name="phases")


def step(signal, kind, strength):
    with tf.GradientTape() as tape:
        received = tf.matmul(signal, matrix) * tf.gather(phases, kind) + tf.gather(phases, kind)
        loss = tf.reduce_mean((tf.abs(received) - strength) ** 2)
    of_matrix, of_phases = tape.gradient(loss, [matrix, phases])
    matrix.assign_sub(0.05 * of_matrix)
    phases.assign_sub(0.05 * tf.convert_to_tensor(of_phases))
    return loss


if sys.argv[1] == "function":
    step = tf.function(step)
for epoch in range(3):
    print(f"epoch {epoch}:", *[f"{float(step(*batch)):.12f}" for batch in data])
np.savez("weights.npz", *[part for variable in (matrix, phases) for part in (variable.numpy().real, variable.numpy().imag)])
