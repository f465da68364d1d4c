# SPDX-License-Identifier: Apache-2.0
"""A two-layer net with compute_gradients, clip_by_global_norm, apply_gradients and a decaying learning rate.
The argument chooses the kind of variables."""
import sys

import numpy as np
import tensorflow as tf0

tf = tf0.compat.v1
if sys.argv[1] == "ref":
    tf.disable_v2_behavior()
else:
    tf.disable_eager_execution()
tf.set_random_seed(7)

rng = np.random.RandomState(1)
features = rng.randn(331, 12).astype("f")
targets = np.tanh(features @ rng.randn(12, 1)).astype("f") * 5

inputs = tf.placeholder(tf.float32, (None, 12), "inputs")
outputs = tf.placeholder(tf.float32, (None, 1), "outputs")
rate_scale = tf.placeholder_with_default(1.0, ())


def dense(x, units, name):
    with tf.variable_scope(name):
        w = tf.get_variable("kernel", (int(x.shape[1]), units), initializer=tf.glorot_uniform_initializer(seed=5))
        b = tf.get_variable("bias", (units,), initializer=tf.zeros_initializer())
        return tf.matmul(x, w) + b


hidden = tf.nn.tanh(dense(inputs, 16, "hidden"))
prediction = dense(hidden, 1, "out")
loss = tf.losses.mean_squared_error(outputs, prediction)

global_step = tf.train.get_or_create_global_step()
rate = tf.train.exponential_decay(0.05, global_step, 10, 0.9, staircase=True) * rate_scale
optimizer = tf.train.MomentumOptimizer(rate, 0.9)
pairs = optimizer.compute_gradients(loss)
gradients, variables = zip(*[(g, v) for g, v in pairs if g is not None])
clipped, norm = tf.clip_by_global_norm(gradients, 0.5)
train = optimizer.apply_gradients(zip(clipped, variables), global_step=global_step)

sess = tf.InteractiveSession()
tf.global_variables_initializer().run()
tf.get_default_graph().finalize()
for step in range(30):
    rows = np.arange(step * 50, step * 50 + 50) % 331
    result = sess.run({"train": train, "loss": loss, "norm": norm, "rate": rate, "step": global_step},
                      {inputs: features[rows], outputs: targets[rows], rate_scale: 1.0 if step < 20 else 0.5})
    if step % 5 == 0:
        print("step %d loss %.6f norm %.6f rate %.6f" % (step, result["loss"], result["norm"], result["rate"]))
print("final step %d loss %.6f" % (global_step.eval(), loss.eval({inputs: features, outputs: targets})))
np.savez("weights.npz", **{v.op.name.replace("/", "_"): value for v, value in zip(variables, sess.run(list(variables)))})
