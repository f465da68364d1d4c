# SPDX-License-Identifier: Apache-2.0
"""What a tape gives each rank, and when gradients are handed over.  Run on every rank; the numbers of whole scripts are
compared in tests/scripts, and test_tape.py looks at the trace of the last part."""
import gc
import os
import time

import keras
import lockstep
import numpy as np
import tensorflow as tf
from lockstep import audit, gradients, ops
from lockstep.slices import part as parts

rank, size = lockstep.rank(), lockstep.size()
PAUSE_S = 0.3
STEPS = 6
WIDTH = 512  # a gradient of 1 MiB


def equal(actual, expected):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-6)


# ---- gradients with respect to inputs --------------------------------------------------------------------------

weight = tf.Variable(2.0, name="weight")
mean_of_squares = np.mean([(r + 1.0) ** 2 for r in range(size)])


def both(x):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        loss = weight * x**2
    together = tape.gradient(loss, [weight, x])
    return [*together, tape.gradient(loss, x)]


def nested(x):
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            inner.watch(x)
            guess = weight * x**2
        slope = inner.gradient(guess, x)
    return slope, outer.gradient(slope, weight)


def with_gradients(x):
    loss = weight * x**2
    return tf.gradients(loss, x) + tf.gradients(loss, [weight])


def check_gradients_of_inputs_stay_local():
    x = tf.constant([rank + 1.0])  # not a scalar: those that a function which trains returns are numbers of all ranks
    for function in (both, tf.function(both)):
        of_weight, *of_inputs = function(x)
        equal(of_weight, mean_of_squares)
        equal(of_inputs, [[4.0 * (rank + 1)]] * 2)
    for function in (nested, tf.function(nested)):
        of_input, of_weight = function(x)
        equal(of_input, [4.0 * (rank + 1)])
        equal(of_weight, np.mean([2.0 * (r + 1) for r in range(size)]))
    of_input, of_weight = tf.function(with_gradients)(x)
    equal(of_input, [4.0 * (rank + 1)])
    equal(of_weight, mean_of_squares)


# ---- float16 -------------------------------------------------------------------------------------------------------

def check_float16_gradients_are_reduced_without_loss():
    """Of slices of 2 and 1 rows: the smallest numbers of the type; of equal slices: a sum that the type does not have."""
    smallest = 2.0**-24
    variable = tf.Variable(tf.zeros([2], tf.float16), name="half")
    for is_even, expected in ((False, [smallest, 40000]), (True, [2 * smallest, 40000])):
        part = parts.Part(rank, 1, 2) if is_even else parts.Part(2 * rank, 2 - rank, 3)
        own = tf.constant([(rank + 1) * smallest, 40000], tf.float16)
        for reduce in (gradients.reduce, tf.function(gradients.reduce)):
            reduced, = reduce([own], [variable], part)
            assert reduced.dtype == tf.float16
            equal(reduced, tf.constant(expected, tf.float16))


# ---- variables without elements ------------------------------------------------------------------------------------

def check_variables_without_elements_have_gradients():
    empty, full = tf.Variable(tf.zeros([0, 3]), name="empty"), tf.Variable([1.0], name="full")
    for variables in ([full, empty], [empty, full], [empty]):
        for make in (lambda function: function, tf.function):
            reduced = make(gradients.reduce)([tf.ones_like(variable) for variable in variables], variables)
            assert [grad.shape for grad in reduced] == [variable.shape for variable in variables]


# ---- moving averages that a step copies ----------------------------------------------------------------------------

class WithTeacher(keras.Model):
    """Its teacher is the average of the model over the steps, moving averages too."""

    def __init__(self):
        super().__init__()
        self.student, self.teacher = (keras.Sequential([keras.Input((3,)), keras.layers.BatchNormalization(),
                                                        keras.layers.Dense(1)]) for _ in range(2))

    def call(self, x, training=False):
        return self.student(x, training=training)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self.student(x, training=True) - y) ** 2)
        grads = tape.gradient(loss, self.student.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.student.trainable_variables))
        for mean, weight in zip(self.teacher.weights, self.student.weights):
            mean.assign(0.5 * mean + 0.5 * weight)
        return {"loss": loss}


def check_moving_averages_that_a_step_copies_agree():
    x = np.random.default_rng(1).normal(size=(8, 3)).astype("float32")
    for run_eagerly in (False, True):
        model = WithTeacher()
        model.compile("sgd", run_eagerly=run_eagerly)
        model.fit(x, x[:, :1], batch_size=4, epochs=2, verbose=0)
        for i, variable in enumerate(model.weights):
            own = tf.cast(variable.value, tf.float64)
            equal(ops.allreduce(own, f"teacher/{i}", op="max"), own)


# ---- gradients that are only looked at -------------------------------------------------------------------------

def look_and_train(variable, x):
    with tf.GradientTape(persistent=True) as tape:
        loss = variable * x
        other = variable**2 * x
    looked_at = tape.gradient(other, variable)
    tape.gradient(other, variable)  # used by nobody: in a function it is not even computed
    variable.assign_sub(0.1 * tape.gradient(loss, variable))
    return looked_at


def check_gradients_only_looked_at_do_no_harm():
    x = tf.constant(rank + 1.0)
    mean = (size + 1) / 2
    for make in (lambda function: function, tf.function):
        variable = tf.Variable(1.0, name="looked_at")
        step = make(look_and_train)
        for i in range(4):
            equal(step(variable, x), 2 * (1 - 0.1 * mean * i) * mean)
        equal(variable, 1 - 0.4 * mean)


# ---- variables that are gone ------------------------------------------------------------------------------------

def check_a_variable_that_one_rank_has_freed_is_no_difference():
    """Python frees an earlier model on one rank sooner than on another: the audit compares what all have."""
    old, new = tf.Variable(1.0, name="old"), tf.Variable(1.0, name="new")
    with tf.GradientTape() as tape:
        loss = old * new
    tape.gradient(loss, [old, new])
    if rank != 0:
        del old, tape, loss
    gc.collect()
    assert ("old" in audit.found_variables()) == (rank == 0)
    audit.check()


# ---- reducing while the backward pass goes on ------------------------------------------------------------------

@tf.custom_gradient
def slow_backwards(x):
    """x; its gradient takes a while, so that those of the layers behind it are long there when those before it come."""
    def wait(value):
        time.sleep(PAUSE_S)
        return value

    return tf.identity(x), lambda grad: tf.ensure_shape(tf.numpy_function(wait, [grad], grad.dtype), grad.shape)


class Slow(keras.layers.Layer):
    def call(self, inputs):
        return slow_backwards(inputs)


def train_with_overlap():
    """Smaller gradients would travel together."""
    first, middle, last = (tf.Variable(tf.ones([WIDTH, WIDTH]) / WIDTH, name=f"function_{name}")
                           for name in ("first", "middle", "last"))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(slow_backwards(x @ first) @ middle @ last)
        for grad, variable in zip(tape.gradient(loss, [first, middle, last]), [first, middle, last]):
            variable.assign_sub(0.1 * grad)

    for _ in range(STEPS):
        step(tf.ones([4, WIDTH]))
    model = keras.Sequential([keras.Input((WIDTH,)), keras.layers.Dense(WIDTH, name="keras_first", use_bias=False), Slow(),
                              keras.layers.Dense(WIDTH, name="keras_middle", use_bias=False),
                              keras.layers.Dense(WIDTH, name="keras_last", use_bias=False)])
    model.compile("sgd", "mse")
    model.fit(np.ones((8 * STEPS, WIDTH)), np.ones((8 * STEPS, WIDTH)), batch_size=8, verbose=0)


def check_pipelines_are_tuned_only_with_several_cores():
    cores = os.sched_getaffinity(0)
    data = tf.data.Dataset.range(4).batch(2)
    os.sched_setaffinity(0, {min(cores)})
    assert iter(data)._dataset.options().autotune.enabled is False
    os.sched_setaffinity(0, cores)
    if len(cores) > 1:
        assert iter(data)._dataset.options().autotune.enabled is None


check_gradients_of_inputs_stay_local()
check_pipelines_are_tuned_only_with_several_cores()
check_gradients_only_looked_at_do_no_harm()
check_float16_gradients_are_reduced_without_loss()
check_a_variable_that_one_rank_has_freed_is_no_difference()
check_variables_without_elements_have_gradients()
check_moving_averages_that_a_step_copies_agree()
train_with_overlap()
print(f"rank {rank} of {size} is right", flush=True)
