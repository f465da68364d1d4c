# SPDX-License-Identifier: Apache-2.0
"""A hand-written loop that gives random rows of NumPy arrays to a tf.function, and prints how long a step takes.

It knows nothing of ranks."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import loop  # noqa: E402
import models  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

args = loop.arguments(__doc__)

keras.utils.set_random_seed(7)
model, x, y = models.build(args.model, args.batch * 4)
weights = [variable.value for variable in model.trainable_variables]
generator = np.random.default_rng(7)


@tf.function
def train_step(inputs, labels):
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(inputs, training=True))
        loss = tf.reduce_mean(losses)
    for variable, gradient in zip(weights, tape.gradient(loss, weights)):
        variable.assign_sub(0.01 * gradient)
    return loss


def step():
    rows = generator.integers(0, len(x), args.batch)
    return float(train_step(x[rows], y[rows]))


loop.time_steps(step, args)
