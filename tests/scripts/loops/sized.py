# SPDX-License-Identifier: Apache-2.0
"""Steps that go by the number of their rows, or by what has changed in Python; from arrays or from tf.data.  29 rows in batches of 12 and a
rest of 5."""
import sys

import numpy as np
import tensorflow as tf

how = sys.argv[1]
np.random.seed(4)
rate = 0.0
rows_seen = tf.Variable(0)


def squares(out, y):
    return tf.reduce_mean((out - y) ** 2)


def size_of(weights):
    return tf.reduce_sum(weights ** 2)


def counted(x, y, out, weights):
    rows_seen.assign_add(2 * len(x))
    return squares(out, y)


def checked(x, y, out, weights):
    return tf.reduce_mean(tf.debugging.check_numerics(1 / (out - y), "a row without a difference"))


def by_branch(x, y, out, weights):
    return squares(out, y) if len(x) == 12 else tf.reduce_mean(tf.abs(out - y))


def written(x, y, out, weights):
    return squares(out + tf.zeros((12, 2), tf.float64), y) if len(x) > 6 else squares(out, y)


memory = np.random.normal(size=(64, 2))


def beside(x, rows):
    """A penalty on what has as many rows as the batch, and is made from none of them."""
    return 0.01 * tf.reduce_sum(tf.tanh(rows) ** 2)


LOSSES = {
    "ridge": lambda x, y, out, weights: squares(out, y) + 0.7 / (2 * len(x)) * size_of(weights),
    "bessel": lambda x, y, out, weights: squares(out, y) * (len(x) / (len(x) - 1)),
    "root": lambda x, y, out, weights: squares(out, y) / np.sqrt(x.shape[0]),
    "sum by rows": lambda x, y, out, weights: tf.reduce_sum((out - y) ** 2) / x.shape[0],
    "rows by rows": lambda x, y, out, weights: tf.reduce_mean((out - y) ** 2 * (0.5 / len(x))),
    "constant in Python": lambda x, y, out, weights: squares(out, y) + rate * size_of(weights),
    "noise of NumPy": lambda x, y, out, weights: squares(out + np.random.normal(), y),
    "counted": counted,
    "checked": checked,
    "by branch": by_branch,
    "written": written,
    "few rows": lambda x, y, out, weights: squares(out, y) if len(x) > 4 else tf.reduce_mean(tf.abs(out - y)),  # slices of the rest, of 5
    "few rows, scaled": lambda x, y, out, weights: squares(out, y) * min(1.0, len(x) / 5),
    "ones like rows": lambda x, y, out, weights: squares(out, y) + beside(x, tf.ones_like(x) @ weights),
    "filled": lambda x, y, out, weights: squares(out, y) + beside(x, tf.fill([x.shape[0], 2], tf.constant(0.3, tf.float64)) * weights[0]),
    "memory": lambda x, y, out, weights: squares(out, y) + tf.reduce_mean(tf.reduce_logsumexp(out @ tf.transpose(memory[:x.shape[0]]), 1)),
    "repeated": lambda x, y, out, weights: squares(out, y) + beside(x, tf.stack([weights[0]] * x.shape[0])),
    "sum of ones": lambda x, y, out, weights: squares(out, y) * 0.1 * tf.reduce_sum(tf.ones((x.shape[0], 1), tf.float64)),
    "last of a table": lambda x, y, out, weights: squares(out, y) + tf.constant(memory)[len(x) - 1, 0] * size_of(weights),
    "scope": lambda x, y, out, weights: squares(out, y) + in_scope(x, weights),
    "noise of rows": lambda x, y, out, weights: squares(out + 0 * tf.random.normal((x.shape[0], 2), dtype=tf.float64), y),
    "noise of weights": lambda x, y, out, weights: squares(out + tf.random.normal([2], dtype=tf.float64), y),
}
RETURNED = {
    "nothing": lambda x, out: None,
    "sizes": lambda x, out: (x.shape[0] * x.shape[1], tf.constant(x.shape.as_list()), len(x) - 1.5),
    "so many": lambda x, out: (tf.ones(len(x)), tf.zeros((len(x), 1)), tf.range(x.shape[0])),
    "divided": lambda x, out: (tf.reduce_sum(out) / (len(x) - 1), tf.reduce_mean(out) / np.sqrt(len(x))),
}


def train(loss_of, returned, width):
    global rate
    rate = 0.0
    generator = np.random.default_rng(width)
    x, y, weights = generator.normal(size=(29, width)), generator.normal(size=(29, 2)), tf.Variable(generator.normal(size=(width, 2)))

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            out = tf.tanh(x @ weights)
            loss = loss_of(x, y, out, weights)
        weights.assign_sub(0.05 * tape.gradient(loss, weights))
        return loss, returned(x, out)

    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(12)
    for epoch in range(2):
        order = np.random.permutation(29)  # the step draws as often as in one process
        batches = [(x[rows], y[rows]) for rows in (order[:12], order[12:24], order[24:])]
        for batch in data if how == "data" else batches:
            loss, more = step(*batch)
            rate += 0.1
            print(f"  {float(loss):.10f}", *(f"{np.shape(value)} {np.sum(value):.9f}" for value in tf.nest.flatten(more) if value is not None))
        print("  order", *order[:4])
    print("  weights", f"{float(tf.reduce_sum(weights * tf.cos(weights))):.10f}", "rows", int(rows_seen))


def in_scope(x, weights):
    with tf.name_scope("gradients"):
        return 0.7 / len(x) * size_of(weights)


def largest():
    """Which array has the most rows changes from call to call; so does which are slices, with numbers of rows that were seen before."""
    for made in (tf.function, tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float64)] * 2)):
        for sizes in (((8, 6), (8, 12), (8, 12)), ((20, 10), (10, 20), (10, 20)), ((20, 10), (10, 10), (10, 10), (20, 20)), ((10, 10), (20, 10))):
            weights = tf.Variable([[1.0], [2.0]], dtype=tf.float64)

            def step(x, others):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.tanh(x @ weights) ** 2) + 0.1 * tf.reduce_sum((others @ weights - 1) ** 2)
                weights.assign_sub(0.01 * tape.gradient(loss, weights))
                return loss, others @ weights

            step = made(step)
            for number, other in sizes:
                loss, rows = step(memory[:number], memory[20:20 + other])
                print("  ", f"{float(loss):.10f}", rows.shape, f"{float(tf.reduce_sum(rows)):.10f}")


def after_a_look():
    """A script looks at one batch, then goes on with arrays of its own; sums, in a function for any number of rows."""
    weights = tf.Variable([[1.0], [2.0]], dtype=tf.float64)
    print("  ", next(iter(tf.data.Dataset.from_tensor_slices(memory).batch(12))).shape)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float64)])
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((x @ weights) ** 2)
        weights.assign_sub(0.001 * tape.gradient(loss, weights))
        return loss

    for _ in range(3):
        print("  ", f"{float(step(tf.constant(memory[:12]))):.10f}")


def beside_and_after():
    """Sums over arrays of other sizes, in a loop that gets slices and after it."""
    weights = tf.Variable([[1.0], [2.0]], dtype=tf.float64)

    def step(x, others):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights) ** 2)
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
        return loss, tf.reduce_sum(x) + tf.reduce_sum(others)

    main, aside = tf.function(step), tf.function(step)
    for x in tf.data.Dataset.from_tensor_slices(memory).batch(12):
        print("  ", *(f"{float(value):.10f}" for value in (*main(x, x), *aside(memory[:40], memory[:10]))))
    print("  ", *(f"{float(value):.10f}" for value in (*aside(tf.constant(memory[:6]), tf.constant(memory[:6])), *aside(memory[:40], memory[:10]))))


def small_batches():
    """Batches as small as the number of ranks, and a step that goes by it."""
    weights = tf.Variable([[1.0], [2.0]], dtype=tf.float64)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights) ** 2) + 0.7 / len(x) * size_of(weights)
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
        return loss

    for x in tf.data.Dataset.from_tensor_slices(memory[:14]).batch(3):
        print("  ", f"{float(step(x)):.10f}")


def weighted():
    """A number at first, then a number for each row."""
    weights = tf.Variable([[1.0], [2.0]], dtype=tf.float64)
    x = np.random.normal(size=(24, 2))

    @tf.function
    def step(x, of_rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(of_rows * tf.squeeze(x @ weights, 1) ** 2) / tf.reduce_mean(of_rows)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    for i, given in enumerate((np.float64(1.0), np.float64(1.0), np.abs(x[:12, 0]), np.abs(x[12:, 0]))):
        print("  ", f"{float(step(x[12 * (i % 2):][:12], given)):.10f}")


def squeezed():
    """What has a row for each of the batch's has none where a rank has a single one; the rate is a variable of Keras."""
    model, optimizer = tf.Variable([[1.0], [2.0]], dtype=tf.float64), tf.keras.optimizers.SGD(0.1)
    rows = np.random.normal(size=(29, 2))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            out = x @ model
            loss = tf.reduce_mean(out ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, model), model)])
        return {"loss": loss, "rate": optimizer.learning_rate, "rows": tf.squeeze(out), "complex": tf.complex(out, out)}

    for x in np.split(rows, [13, 26]):
        given = step(x)
        print("  ", f"{float(given['loss']):.10f} {float(given['rate']):.3f}", given["rows"].shape, f"{np.sum(given['complex']):.9f}")


def called_before():
    """A function that has been called with a single row, or with arrays, is given the batches of a loop; as arrays in the end."""
    weights, rows = tf.Variable([[1.0], [2.0]], dtype=tf.float64), np.random.normal(size=(29, 2))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights) ** 2) + 0.1 / len(x) * size_of(weights)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    print("  ", f"{float(step(rows[:1])):.10f}")
    for _ in range(2):
        for x in tf.data.Dataset.from_tensor_slices(rows).batch(12):
            print("  ", f"{float(step(x)):.10f}")
        for x in tf.data.Dataset.from_tensor_slices(rows).batch(12).as_numpy_iterator():
            print("   array", f"{float(step(x)):.10f}")


def as_many_as_a_slice():
    """A second step in a loop is given other arrays, which have as many rows as a slice has."""
    weights, points = tf.Variable([[1.0], [2.0]], dtype=tf.float64), np.random.normal(size=(4, 6, 2))

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ weights) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss, tf.reduce_sum(x), tf.shape(x)[0]

    main, aside = tf.function(step), tf.function(step)
    for x in tf.data.Dataset.from_tensor_slices(np.random.normal(size=(24, 2))).batch(12):
        for number in range(len(points)):
            print("  ", *(f"{float(value):.10f}" for value in (*main(x), *aside(points[number, :4 + number]))))


def failing():
    """A row is not a number in the second batch, and the script goes on."""
    weights = tf.Variable([[1.0], [2.0]], dtype=tf.float64)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.debugging.check_numerics(tf.reduce_mean(tf.debugging.check_numerics(x @ weights, "rows")), "loss")
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    for batch in range(4):
        x = np.ones((6, 2)) * (batch + 1)
        if batch == 1:
            x[5, 0] = np.nan
        try:
            print("  ", float(step(x)))
        except tf.errors.InvalidArgumentError:
            print("   left out")


def beside_a_loop():
    """Whole arrays are given to a step while a loop over tf.data goes on, and when it has ended; then one within a tape; then eagerly."""
    weights = tf.Variable([[1.0], [2.0]], dtype=tf.float64)
    points = np.random.normal(size=(7, 2))

    @tf.function
    def step(x, power):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.abs(x @ weights) ** power)
        weights.assign_sub(0.002 * tape.gradient(loss, weights))
        return loss, tf.reduce_sum(x), tf.shape(x)[0]

    for x in tf.data.Dataset.from_tensor_slices(np.random.normal(size=(29, 2))).batch(12).repeat(2):
        print("  ", *(f"{float(value):.10f}" for result in (step(x, 2.0), step(points, 3.0)) for value in result[:1]))
    for _ in range(3):
        print("   after", *(f"{float(value):.10f}" for value in step(points, 3.0)))
    given = tf.constant(points)
    with tf.GradientTape() as tape:
        tape.watch(given)
        loss = step(given, 3.0)[0]
    print("   within", f"{float(tf.reduce_sum(tf.cos(tape.gradient(loss, given)))):.10f}")
    tf.config.run_functions_eagerly(True)
    print("   eagerly", *(f"{float(value):.10f}" for value in step(points, 3.0)))
    tf.config.run_functions_eagerly(False)


tf.random.set_seed(4)
for number, (name, loss_of) in enumerate(LOSSES.items()):
    if how == "arrays" or not name.startswith("few rows"):  # in a loop over tf.data there is a warning
        print(name, flush=True)
        train(loss_of, RETURNED["nothing"], number + 3)
for number, (name, returned) in enumerate(RETURNED.items()):
    if how == "arrays" or name not in ("so many",):  # a loop over tf.data has rows of its slice
        print(name, flush=True)
        train(lambda x, y, out, weights: squares(out, y), returned, number + 20)
tf.random.set_seed(5)
for case in (largest, after_a_look, beside_and_after, small_batches, weighted, squeezed, called_before, as_many_as_a_slice, failing, beside_a_loop):
    print(case.__name__, flush=True)
    case()
