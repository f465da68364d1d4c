# SPDX-License-Identifier: Apache-2.0
"""A loop whose ranks do not take the same branch: one asks for the gradient of another variable."""
import lockstep
import tensorflow as tf

first, second = tf.Variable(1.0, name="first"), tf.Variable(1.0, name="second")
for step in range(5):
    chosen = second if step == 3 and lockstep.rank() == 1 else first
    with tf.GradientTape() as tape:
        loss = chosen**2
    chosen.assign_sub(0.1 * tape.gradient(loss, chosen))
print("done")
