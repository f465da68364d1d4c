# SPDX-License-Identifier: Apache-2.0
"""A physics-informed network: u'' = -sin, fed points of the boundary first and points inside after them, which the loss tells
apart by their position.  Then L-BFGS from the gradients that a run fetches.

  boundary.py slice|gather|split    how the loss takes them"""
import sys

import numpy as np
import scipy.optimize
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.set_random_seed(4)
how = sys.argv[1]
rng = np.random.default_rng(4)
boundary = np.array([[0.0], [np.pi]])
points = np.concatenate([boundary, rng.uniform(0, np.pi, (13, 1))])

x = tf.placeholder(tf.float64, [None, 1])
first = tf.get_variable("first", initializer=rng.normal(size=(1, 8)))
offset = tf.get_variable("offset", initializer=np.zeros(8))
last = tf.get_variable("last", initializer=rng.normal(size=(8, 1)))
u = tf.matmul(tf.tanh(tf.matmul(x, first) + offset), last)
residual = tf.gradients(tf.gradients(u, x)[0], x)[0] + tf.sin(x)
if how == "slice":
    outside, inside = u[:2], residual[2:]
elif how == "gather":
    outside, inside = tf.gather(u, [0, 1]), tf.gather(residual, np.arange(2, 15))
else:
    outside, inside = tf.split(u, [2, -1])[0], tf.split(residual, [2, -1])[1]
losses = [tf.reduce_mean(tf.square(inside)), tf.reduce_mean(tf.square(outside))]
loss = tf.add_n(losses)
train = tf.train.AdamOptimizer(0.01).minimize(loss)
weights = tf.trainable_variables()
gradients = tf.gradients(loss, weights)

with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(10):
        _, parts = session.run([train, losses], {x: points})
        print(step, *[f"{part:.12g}" for part in parts])

    def put(flat):
        at = 0
        for weight in weights:
            shape = weight.shape.as_list()
            weight.load(flat[at:at + np.prod(shape)].reshape(shape), session)
            at += np.prod(shape)

    def loss_and_gradient(flat):
        put(flat)
        value, grads = session.run([loss, gradients], {x: points})
        return value, np.concatenate([grad.ravel() for grad in grads])

    begin = np.concatenate([value.ravel() for value in session.run(weights)])
    found = scipy.optimize.minimize(loss_and_gradient, begin, jac=True, method="L-BFGS-B", options={"maxiter": 8})
    put(found.x)
    print("after L-BFGS", found.nit, f"{found.fun:.10g}", np.round(session.run(u, {x: points[:4]}).ravel(), 8))
