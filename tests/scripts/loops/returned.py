# SPDX-License-Identifier: Apache-2.0
"""What steps return, print and write besides their loss: sums, counts, maxima, rows, rates; from arrays or from tf.data.  29 rows in
batches of 12 and a rest of 5."""
import sys

import numpy as np
import tensorflow as tf

BATCH = 12
how = sys.argv[1]
writer = tf.summary.create_file_writer("events")
scale = tf.Variable(0.5, dtype=tf.float64)
average = tf.Variable(0.0, dtype=tf.float64)
start = tf.zeros((BATCH, 2), tf.float64)


def accuracy(out, y):
    return tf.reduce_sum(tf.cast(tf.equal(tf.argmax(out, 1), tf.argmax(y, 1)), tf.int32)), tf.shape(y)[0]


def printed(out, y):
    errors = tf.abs(out - y)
    tf.print("mean", tf.reduce_mean(errors), "sum", tf.reduce_sum(errors), "rows", tf.shape(y)[0], output_stream=sys.stdout)
    return scale * 2


def printed_in_branch(out, y):
    if scale < 1:
        tf.print("error", tf.reduce_mean(tf.abs(out - y)), output_stream=sys.stdout)


def largest_printed(out, y):
    tf.print("largest", tf.reduce_max(out), output_stream=sys.stdout)


def summary(out, y):
    with writer.as_default(step=1):
        tf.summary.scalar("error", tf.reduce_mean(tf.abs(out - y)))


def histogram(out, y):
    with writer.as_default(step=2):
        tf.summary.histogram("out", out)


def kept(out, y):
    average.assign(0.9 * average + 0.1 * tf.reduce_mean(out))
    return average.read_value()


def of_python(out, y):
    seen.extend(tf.get_static_value(tf.range(3)))
    return tf.py_function(lambda rows: float(rows.numpy().max()), [out], tf.float64)


def with_start(out, y):
    return tf.reduce_mean(out + start) if out.shape[0] == BATCH else None


seen = []
RETURNED = {
    "nothing": lambda out, y: None,
    "mean and sum": lambda out, y: (tf.reduce_mean(out), tf.reduce_sum(out), 3 * tf.reduce_sum(tf.abs(out), axis=0)),
    "mean of columns": lambda out, y: tf.reduce_mean(out, axis=0),
    "largest": lambda out, y: tf.reduce_max(out),
    "median": lambda out, y: tf.sort(out[:, 0])[2],
    "quotient": lambda out, y: tf.reduce_sum(out * y) / tf.reduce_sum(y),
    "accuracy": accuracy,
    "share": lambda out, y: tf.reduce_mean(tf.cast(out > y, tf.float64)),
    "rows": lambda out, y: {"out": out, "errors": tf.reduce_mean(tf.abs(out - y), axis=1), "scale": scale, "list": [out[:, 0], 3]},
    "moved rows": lambda out, y: (tf.transpose(out), tf.reverse(out, [0]), out[:3]),
    "shape": lambda out, y: (tf.shape(out), tf.size(out), out.shape[0]),
    "constants": lambda out, y: (tf.constant(12.0), tf.constant(4), tf.ones(4), 1 / 12, tf.eye(6)),
    "gathered": lambda out, y: tf.boolean_mask(out, y[:, 0] > 0),
    "text": lambda out, y: tf.strings.format("{}", tf.reduce_mean(out)),
    "printed": printed,
    "printed in a branch": printed_in_branch,
    "largest printed": largest_printed,
    "summary": summary,
    "histogram": histogram,
    "kept": kept,
    "of Python": of_python,
    "with start": with_start,
}


def shown(value):
    value = np.asarray(value)
    if value.dtype.kind in "OS":
        return str(value[()])
    return f"{value.shape} {np.sum(value * np.cos(np.arange(value.size)).reshape(value.shape)):.10f}"


def train(returned, width):
    generator = np.random.default_rng(width)
    x, y = generator.normal(size=(29, width)), generator.normal(size=(29, 2))
    weights = tf.Variable(generator.normal(size=(width, 2)))

    @tf.function(jit_compile=how == "xla")
    def step(x, y):
        with tf.GradientTape() as tape:
            out = tf.tanh(x @ weights)
            loss = tf.reduce_mean((out - y) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss, returned(out, y)

    batches = [(x[i:i + BATCH], y[i:i + BATCH]) for i in range(0, len(x), BATCH)]
    if how == "data":
        batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)
    for epoch in range(2):
        for rows in batches:
            loss, more = step(*rows)
            print(f"  {float(loss):.10f}", *map(shown, tf.nest.flatten(more)), flush=True)
    return tf.reduce_sum(weights * tf.cos(weights))


NOT_IN_XLA = ("gathered", "text", "printed", "printed in a branch", "largest printed", "summary", "histogram", "of Python")
for number, (name, returned) in enumerate(RETURNED.items()):
    if how == "xla" and name in NOT_IN_XLA:
        continue
    if how == "data" and name in ("rows", "moved rows", "shape", "gathered", "with start"):
        continue  # the loop has slices, and these are of slices
    print(name)
    print("weights", f"{train(returned, number + 3):.12f}", flush=True)
writer.close()
