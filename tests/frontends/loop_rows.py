# SPDX-License-Identifier: Apache-2.0
"""Which rows a rank computes where a tf.function is given a data set, or an iterator, and loops over it.  Run on every rank."""
import os

import lockstep
import numpy as np
import tensorflow as tf

rank, size = lockstep.rank(), lockstep.size()
BATCH, ROWS = 10, 24
data = np.arange(2 * ROWS, dtype=np.float32).reshape(ROWS, 2)
weights = tf.Variable(np.ones((2, 1), np.float32))
seen = []


def watch(rows):
    seen.append(rows)
    return rows


def look(rows):
    tf.numpy_function(watch, [rows], tf.float32)


def train(rows):
    look(rows)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((rows @ weights) ** 2)
    weights.assign_sub(1e-5 * tape.gradient(loss, weights))


def own(batch):
    base, extra = divmod(len(batch), size)
    return batch[rank * base + min(rank, extra):][:base + (rank < extra)]


def batches():
    return tf.data.Dataset.from_tensor_slices(data).batch(BATCH)


def of_generator():
    return tf.data.Dataset.from_generator(lambda: iter([data[:4]]), output_signature=batches().element_spec)


WHOLE = [data[:10], data[10:20], data[20:]]
OWN = [own(batch) for batch in WHOLE]


@tf.function
def loop(given):
    for rows in given:
        train(rows)


@tf.function(reduce_retracing=True)
def loop_over_some(*, given):
    for _, rows in enumerate(given["batches"][0].prefetch(1).take(2)):
        train(rows)


@tf.function(input_signature=[tf.data.DatasetSpec(tf.TensorSpec((None, None), tf.float32))])
def loop_with_signature(given):
    for rows in given:
        train(rows)


@tf.function
def loop_over_pairs(one, other):
    for rows, _ in tf.data.Dataset.zip((one, other)):
        train(rows)


def loop_over_both(one, other):
    for rows in one:
        train(rows)
    for rows in other:
        look(rows)


@tf.function
def loop_over_samples(given):
    for row in given:
        train(row[None])


@tf.function
def loop_over_windows(given):
    for window in given.window(2):
        for rows in window:
            train(rows)


@tf.function
def step(given):
    train(next(given))


@tf.function
def own_iterator(given):
    iterator = iter(given)
    for _ in tf.range(3):
        train(next(iterator))


@tf.function
def through_another(function, given):
    function(given)


@tf.function
def through_another_some(given):
    loop(given.skip(1))


@tf.function
def validate(given):
    for rows in given:
        look(rows)


def steps(function):
    iterator = iter(batches())
    for _ in range(3):
        function(iterator)


def check(name, run, expected):
    """Loops that do not need each other may run at the same time: the order is left open."""
    seen.clear()
    run()
    found, expected = (sorted((rows.tolist() for rows in batches), key=lambda rows: (rows[0], len(rows))) for batches in (seen, expected))
    assert found == expected, f"rank {rank}, {name}: {found} instead of {expected}"


check("a data set", lambda: loop(batches()), OWN)
check("another data set", lambda: loop(batches().take(1)), OWN[:1])
check("in a dictionary", lambda: loop_over_some(given={"batches": [batches()]}), OWN[:2])
check("a signature", lambda: loop_with_signature(batches()), OWN)
check("two data sets", lambda: loop_over_pairs(batches(), batches()), OWN)
check("two loops", lambda: tf.function(loop_over_both)(batches(), batches()), OWN + WHOLE)
check("batches, and elements like them that may be none", lambda: tf.function(loop_over_both)(batches(), of_generator()), WHOLE + [data[:4]])
check("samples", lambda: loop_over_samples(tf.data.Dataset.from_tensor_slices(data).take(3)), [data[i:i + 1] for i in range(3)])
check("windows of batches", lambda: loop_over_windows(batches()), WHOLE)
check("an iterator", lambda: steps(step), OWN)
check("an iterator of the function's own", lambda: own_iterator(batches()), OWN)
check("a data set that another function was given", lambda: through_another(loop, batches()), OWN)
check("some batches of one that another function was given", lambda: through_another_some(batches()), OWN[1:])
check("an iterator that another function was given", lambda: steps(lambda iterator: through_another(step, iterator)), OWN)
check("a loop that does not train", lambda: validate(batches()), WHOLE)
os.write(1, f"rank {rank} of {size} is right\n".encode())
