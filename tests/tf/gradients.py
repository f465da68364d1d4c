# SPDX-License-Identifier: Apache-2.0
"""Gradients of every operator are those of the sum of all ranks' losses; also inside functions compiled by XLA."""
import lockstep
import numpy as np
import tensorflow as tf
from harness import RANK, RANKS, SIZE, both, equal, raises, requests, run_checks

X = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
# The loss of rank r is (r + 1) * sum(y * K): what comes from above differs per rank and element.
K = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)
FACTORS = [rank + 1.0 for rank in RANKS]


def gradient_of(forward, x, factors):
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(forward(x) * factors)
        return tape.gradient(loss, x)
    return both(run, tf.constant(x))


def check_sum_and_mean():
    for op, scale in (("sum", 1.0), ("mean", 1.0 / SIZE)):
        for grad in gradient_of(lambda x: lockstep.allreduce(x, f"g/{op}", op), X, K * FACTORS[RANK]):
            equal(grad, K * sum(FACTORS) * scale, 1e-6)


def check_scales_count():
    for grad in gradient_of(lambda x: lockstep.allreduce(x, "g/scaled", "sum", prescale=2.0, postscale=0.25), X,
                            K * FACTORS[RANK]):
        equal(grad, K * sum(FACTORS) * 0.5, 1e-6)


def check_weighted_mean():
    weights = [2.0 + rank for rank in RANKS]
    for grad in gradient_of(lambda x: lockstep.allreduce(x, "g/weighted", weight=weights[RANK]), X, K * FACTORS[RANK]):
        equal(grad, K * sum(FACTORS) * weights[RANK] / sum(weights), 1e-6)


def check_group():
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            a, b = lockstep.allreduce_group([x, x * 2.0], ["g/group/a", "g/group/b"], "sum")
            loss = tf.reduce_sum(a * K) + tf.reduce_sum(b)
        return tape.gradient(loss, x)
    for grad in both(run, tf.constant(X)):
        equal(grad, SIZE * (K + 2.0), 1e-6)


def check_broadcast():
    root = SIZE - 1
    for grad in gradient_of(lambda x: lockstep.broadcast(x, "g/broadcast", root), X, K * FACTORS[RANK]):
        equal(grad, K * sum(FACTORS) if RANK == root else 0 * K)


def check_allgather_of_different_lengths():
    mine = np.ones([RANK + 1, 2], np.float32)
    total = sum(rank + 1 for rank in RANKS)
    above = np.arange(total * 2, dtype=np.float32).reshape(total, 2)
    begin = sum(rank + 1 for rank in range(RANK))
    for grad in gradient_of(lambda x: lockstep.allgather(x, "g/gather"), mine, above * FACTORS[RANK]):
        equal(grad, above[begin:begin + RANK + 1] * sum(FACTORS), 1e-6)


def check_reduce_scatter():
    for op, scale in (("sum", 1.0), ("mean", 1.0 / SIZE)):
        x = np.ones([2 * SIZE, 3], np.float32)
        above = np.full([2, 3], FACTORS[RANK], np.float32)
        for grad in gradient_of(lambda x: lockstep.reduce_scatter(x, f"g/scatter/{op}", op), x, above):
            equal(grad, np.repeat(FACTORS, 2)[:, None] * np.ones([1, 3]) * scale, 1e-6)


def check_alltoall():
    splits = [to + 1 for to in RANKS]
    x = np.ones([sum(splits), 2], np.float32)
    for grad in gradient_of(lambda x: lockstep.alltoall(x, "g/to", splits)[0], x, FACTORS[RANK]):
        equal(grad, np.repeat(FACTORS, splits)[:, None] * np.ones([1, 2]))


def check_gradient_of_a_gradient():
    def run(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                loss = tf.reduce_sum(lockstep.allreduce(x, "g/twice", "sum") ** 3)
            first = inner.gradient(loss, x)  # n * 3 * (sum x)^2
        return outer.gradient(first, x)  # n * n * 6 * (sum x), summed once more over ranks
    for grad in both(run, tf.constant([2.0])):
        equal(grad, [SIZE * SIZE * 6 * (2.0 * SIZE)], 1e-6)


def check_what_has_no_gradient_says_so():
    with raises(LookupError, "'g/max'", "op='max' has no gradient"):
        next(gradient_of(lambda x: lockstep.allreduce(x, "g/max", "max"), X, K))


def check_v1_graph():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None, 2])
        grad, = tf.compat.v1.gradients(lockstep.allreduce(x, "g/v1", "sum") * K * FACTORS[RANK], x)
        for _ in range(2):
            equal(session.run(grad, {x: X}), K * sum(FACTORS))


def check_xla_values():
    @tf.function(jit_compile=True)
    def run(x, weight):
        y = x * 2.0
        a = lockstep.allreduce(y, "xla/a")
        b, c = lockstep.allreduce_group([y + 1.0, tf.cast(y, tf.int32)], ["xla/b", "xla/c"], "sum")
        d = lockstep.allreduce(y, "xla/d", weight=weight)
        return a, b, c, d, lockstep.allreduce(tf.reduce_sum(x), "xla/scalar", "sum", prescale=1 / 3)

    mean = np.mean(FACTORS)
    for _ in range(3):
        a, b, c, d, e = run(tf.constant(X * FACTORS[RANK]), tf.constant(FACTORS[RANK]))
        equal(a, 2 * X * mean, 1e-6)
        equal(b, 2 * X * mean * SIZE + SIZE, 1e-6)
        equal(c, 2 * X * mean * SIZE)
        equal(d, 2 * X * np.average(FACTORS, weights=FACTORS), 1e-6)
        equal(e, X.sum() * sum(FACTORS) / 3, 1e-6)


def check_xla_gradient():
    @tf.function(jit_compile=True)
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(lockstep.allreduce(x, "xla/g") * K * FACTORS[RANK])
        return tape.gradient(loss, x)
    before = requests()
    for _ in range(2):
        equal(run(tf.constant(X)), K * np.mean(FACTORS), 1e-6)
    assert requests() > before, "nothing was reduced"


def check_tape_around_a_compiled_function():
    compiled = tf.function(lambda x: lockstep.allreduce(x * x, "xla/taped", "sum"), jit_compile=True)
    x = tf.Variable(X)
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(compiled(x))
        equal(tape.gradient(loss, x), 2 * X * SIZE, 1e-6)


def check_xla_calls_of_ranks_in_another_order():
    """XLA orders calls as it likes; what is in one list does not wait for each other."""
    names = [f"xla/order/{i}" for i in range(4)]
    order = [(i + RANK) % 4 for i in range(4)]

    @tf.function(jit_compile=True)
    def run(x):
        reduced = lockstep.allreduce_group([x * i for i in order], [names[i] for i in order], "sum")
        return [reduced[order.index(i)] for i in range(4)]
    for i, result in enumerate(run(tf.constant([1.0]))):
        equal(result, [i * SIZE])


def check_xla_error():
    if SIZE == 1:
        return

    @tf.function(jit_compile=True)
    def run(x):
        return lockstep.allreduce(x, "xla/mismatch")
    with raises(tf.errors.OpError, "xla/mismatch", f"[{2}]"):
        run(tf.zeros([2 + min(RANK, 1)]))


run_checks(globals())
