# SPDX-License-Identifier: Apache-2.0
"""Tapes in all their forms: nested, through a step, persistent, Jacobian, only looked at, custom gradients, while loops."""
import sys

import numpy as np
import tensorflow as tf

generator = np.random.default_rng(1)
x = generator.normal(size=(67, 5)).astype("float32")
y = generator.normal(size=(67, 1)).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(12)


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.hidden = tf.Variable(tf.random.stateless_normal((5, 8), (1, 1)) * 0.5, name="hidden")
        self.out = tf.Variable(tf.random.stateless_normal((8, 1), (2, 2)) * 0.5, name="out")
        self.scale = tf.Variable(1.0, dtype=tf.float64, name="scale")

    def __call__(self, inputs):
        return tf.tanh(inputs @ self.hidden) @ self.out * tf.cast(self.scale, tf.float32)


net = Net()
seen_sizes = []


@tf.custom_gradient
def dampened(value):
    return value, lambda grad: 0.3 * grad


def penalty_step(inputs, targets):
    """Gradient penalty: the inner gradient is of the inputs, sample by sample."""
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(inputs)
            guesses = net(inputs)
        slopes = inner.gradient(guesses, inputs)
        loss = tf.reduce_mean((guesses - targets) ** 2) + 0.1 * tf.reduce_mean(tf.norm(slopes, axis=1) ** 2)
    update(outer.gradient(loss, net.trainable_variables))
    return loss


def persistent_step(inputs, targets):
    with tf.GradientTape(persistent=True) as tape:
        guesses = net(inputs)
        error = tf.reduce_mean((guesses - targets) ** 2)
        size = tf.reduce_mean(guesses**2)
    first = tape.gradient(error, [net.hidden, net.scale])
    second = tape.gradient(size, net.out)
    net.hidden.assign_sub(0.1 * first[0])
    net.scale.assign_sub(0.1 * first[1])
    net.out.assign_sub(0.02 * second)
    return error


def looking_step(inputs, targets):
    """The first tape's gradients are only looked at; the second trains through a dampened gradient and recomputation."""
    with tf.GradientTape() as watching:
        watched = tf.reduce_mean(net(inputs))
    seen = watching.gradient(watched, net.hidden)
    again = tf.recompute_grad(lambda rows: net(rows))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((dampened(again(inputs)) - targets) ** 2)
    grads = tape.gradient(loss, {"out": net.out, "hidden": net.hidden})
    with tf.control_dependencies(list(grads.values())):  # in a function, TensorFlow does not wait for the recomputation to read
        update(grads)
    seen_sizes.append(seen.shape)
    return loss


def loop_step(inputs, targets):
    """A gradient inside of a while loop, and another through one."""
    def inner(i, total):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((net(inputs) - targets) ** 2)
        net.out.assign_sub(0.05 * tape.gradient(loss, net.out))
        return i + 1, total + loss

    tf.while_loop(lambda i, _: i < 2, inner, (0, 0.0))
    with tf.GradientTape() as tape:
        state = tf.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, tf.tanh(s @ net.hidden)[:, :5]), (0, inputs))[1]
        loss = tf.reduce_mean(state**2)
    net.hidden.assign_sub(0.1 * tape.gradient(loss, net.hidden))
    return loss


def ahead_step(inputs, targets):
    """Through a step of the output layer, as in meta-learning: the gradient of a gradient of weights."""
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = tf.reduce_mean((net(inputs) - targets) ** 2)
        ahead = net.out - 0.5 * inner.gradient(loss, net.out)
        later = tf.reduce_mean((tf.tanh(inputs @ net.hidden) @ ahead - targets) ** 2)
    update(dict(zip(("hidden", "out"), outer.gradient(later, (net.hidden, net.out)))))
    return later


def twice_step(inputs, targets):
    """Two gradients through the same inner one."""
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            loss = tf.reduce_mean((net(inputs) - targets) ** 2)
        slopes = inner.gradient(loss, net.out)
        first, second = tf.reduce_sum(slopes**2), tf.reduce_mean(slopes**3)
    net.hidden.assign_sub(0.02 * (outer.gradient(first, net.hidden) - 3 * outer.gradient(second, net.hidden)))
    return loss


def update(grads):
    names = {"hidden": net.hidden, "out": net.out}
    pairs = zip(grads, net.trainable_variables) if isinstance(grads, tuple) else [(grads[n], v) for n, v in names.items()]
    for grad, variable in pairs:
        variable.assign_sub(tf.cast(0.1, grad.dtype) * grad)


for step in (penalty_step, persistent_step, looking_step, loop_step, ahead_step, twice_step):
    if sys.argv[1] == "function":
        step = tf.function(step)
    for epoch in range(2):
        total = 0.0
        for inputs, targets in data:
            total += float(step(inputs, targets))
        print(epoch, f"{total:.6f}", *(f"{float(tf.reduce_sum(tf.abs(v))):.6f}" for v in net.trainable_variables))

with tf.GradientTape() as tape:
    guesses = net(x[:4])
print("Jacobian", np.round(tape.jacobian(guesses, net.out).numpy().sum(axis=(1, 2, 3)), 5))
np.savez("net.npz", *[v.numpy() for v in net.variables])
