# SPDX-License-Identifier: Apache-2.0
"""Every operator on every type gives the right values, eagerly and in a tf.function."""
import os
import sys

import lockstep

assert "tensorflow" not in sys.modules, "importing lockstep imported TensorFlow"
lockstep.rank()
assert "tensorflow" not in sys.modules, "rank() imported TensorFlow"

child = os.fork()  # before TensorFlow has threads
if child == 0:
    try:
        lockstep.rank()
    except RuntimeError as error:
        os._exit(0 if "child of a rank" in str(error) else 2)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0, "a forked child must not be a rank"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from harness import (ALL_TYPES, FLOATS, NUMBERS, RANK, RANKS, SIZE, both, equal, raises, requests,  # noqa: E402
                     run_checks)

BASE = np.array([[1, 2, 3], [4, 5, 6]])


def values(rank):
    return BASE + rank


def tensor(dtype, rank=RANK):
    return tf.cast(values(rank), dtype)


STACK = np.stack([values(rank) for rank in RANKS])


def check_allreduce_of_every_type():
    expected = {"sum": STACK.sum(0), "min": STACK.min(0), "max": STACK.max(0), "product": STACK.prod(0)}
    for dtype in NUMBERS:
        for op, result in expected.items():
            if result.max() > 127:
                continue
            for reduced in both(lambda x: lockstep.allreduce(x, f"{op}/{dtype.name}", op), tensor(dtype)):
                assert reduced.dtype == dtype
                equal(reduced, result)


def check_mean_is_the_default():
    for dtype in FLOATS:
        for reduced in both(lambda x: lockstep.allreduce(x, f"mean/{dtype.name}"), tensor(dtype)):
            equal(reduced, STACK.mean(0))


def check_bool_is_or_and_and():
    mine = [RANK == 0, True, False]
    for op, expected in (("sum", [True, True, False]), ("min", [SIZE == 1, True, False])):
        for reduced in both(lambda x: lockstep.allreduce(x, f"bool/{op}", op), tf.constant(mine)):
            equal(reduced, expected)
    with raises(tf.errors.InvalidArgumentError, "bool has no mean"):
        lockstep.allreduce(tf.constant(mine), "bool/mean")


def check_weighted_mean():
    weights = [1.0 + rank for rank in RANKS]
    expected = np.average(STACK, axis=0, weights=weights)
    for reduced in both(lambda x, w: lockstep.allreduce(x, "weighted", weight=w), tensor(tf.float32),
                        tf.constant(weights[RANK])):
        equal(reduced, expected, 1e-6)
    with raises(ValueError, "goes with a mean"):
        lockstep.allreduce(tensor(tf.float32), "weighted", "sum", weight=1.0)


def check_scales():
    for dtype, tolerance in ((tf.float32, 1e-6), (tf.float64, 1e-15)):
        for reduced in both(lambda x: lockstep.allreduce(x, f"third/{dtype.name}", "sum", None, 1 / 3, 0.1), tensor(dtype)):
            equal(reduced, STACK.sum(0) / 3 * 0.1, tolerance)


def check_scalars_and_nothing():
    for reduced in both(lambda x: lockstep.allreduce(x, "scalar", "sum"), tf.constant(2.0)):
        equal(reduced, 2.0 * SIZE)
    for reduced in both(lambda x: lockstep.allreduce(x, "nothing", "sum"), tf.zeros([0, 3])):
        assert reduced.shape == (0, 3)


def check_group_of_several_types():
    names = ["group/a", "group/b", "group/c"]
    inputs = [tensor(tf.float32), tf.constant(RANK), tensor(tf.bfloat16)[:1]]
    for a, b, c in both(lambda *x: lockstep.allreduce_group(x, names, "sum"), *inputs):
        equal(a, STACK.sum(0))
        equal(b, sum(RANKS))
        equal(c, STACK.sum(0)[:1])
    assert lockstep.allreduce_group([], []) == []
    with raises(ValueError, "1 tensors, but 2 names"):
        lockstep.allreduce_group([1.0], ["x", "y"])


def check_broadcast():
    for dtype in ALL_TYPES:
        for root in RANKS:
            for result in both(lambda x: lockstep.broadcast(x, f"root{root}/{dtype.name}", root), tensor(dtype)):
                equal(result, tensor(dtype, root))
    with raises(tf.errors.InvalidArgumentError, f"root {SIZE} is not a rank of this job"):
        lockstep.broadcast(1.0, "bad root", SIZE)


def check_input_of_a_function_is_not_changed():
    mine = tf.Variable(tensor(tf.float32))
    held = tf.identity(mine)
    for _ in both(lambda x: lockstep.allreduce(x, "kept", "sum"), held):
        equal(held, values(RANK))
    sum_and_input = tf.function(lambda x: (lockstep.allreduce(x + 0.0, "kept2", "sum"), x + 0.0))
    equal(sum_and_input(held)[1], values(RANK))
    equal(mine, values(RANK))


def check_allgather_of_different_lengths():
    for dtype in ALL_TYPES:
        mine = tf.cast(np.full([RANK, 2], RANK), dtype)  # rank 0 has nothing
        expected = tf.cast(np.concatenate([np.full([rank, 2], rank) for rank in RANKS]), dtype)
        for result in both(lambda x: lockstep.allgather(x, f"gather/{dtype.name}"), mine):
            equal(result, expected)
    with raises(tf.errors.InvalidArgumentError, "'gather/scalar' has no rows"):
        lockstep.allgather(1.0, "gather/scalar")


def check_static_shapes():
    spec = tf.TensorSpec([None, 3])
    shapes = {}

    @tf.function(input_signature=[spec])
    def trace(x):
        shapes["reduce"] = lockstep.allreduce(x, "s1").shape
        shapes["gather"] = lockstep.allgather(x, "s2").shape
        shapes["scatter"] = lockstep.reduce_scatter(x, "s3").shape
        shapes["group"] = lockstep.allreduce_group([x, x[0]], ["s4", "s5"])[1].shape

    trace.get_concrete_function()
    assert all(shapes[name].as_list() == [None, 3] for name in ("reduce", "gather", "scatter")), shapes
    assert shapes["group"].as_list() == [3], shapes


def check_reduce_scatter():
    for length in (2 * SIZE, 2 * SIZE + 1, 1, 0):
        numbers = np.arange(length)
        expected = np.array_split(numbers * SIZE, SIZE)[RANK]
        for dtype in (tf.float32, tf.int32, tf.float16):
            name = f"scatter/{length}/{dtype.name}"
            for block in both(lambda x: lockstep.reduce_scatter(x, name, "sum"), tf.cast(numbers, dtype)):
                equal(block, expected)
    rows = np.arange(SIZE * 2 * 3).reshape(SIZE * 2, 3)
    for block in both(lambda x: lockstep.reduce_scatter(x, "scatter/rows"), tf.constant(rows, tf.float32)):
        equal(block, rows[RANK * 2:RANK * 2 + 2])
    if SIZE > 1:
        with raises(tf.errors.InvalidArgumentError, "'scatter/uneven'", f"{SIZE + 1} rows", f"{SIZE} ranks"):
            lockstep.reduce_scatter(tf.zeros([SIZE + 1, 3]), "scatter/uneven")


def check_alltoall():
    splits = [(RANK + to) % 3 for to in RANKS]
    mine = np.repeat([RANK * 10 + to for to in RANKS], splits)
    expected_rows = [(source + RANK) % 3 for source in RANKS]
    expected = np.repeat([source * 10 + RANK for source in RANKS], expected_rows)
    for dtype in NUMBERS:
        for result, rows in both(lambda x, s: lockstep.alltoall(x, f"to/{dtype.name}", s),
                                 tf.cast(np.stack([mine, mine], 1), dtype), tf.constant(splits)):
            equal(rows, expected_rows)
            equal(result, np.stack([expected, expected], 1))
    for bad, text in (([1] * SIZE, "add up to"), ([1] * (SIZE + 1), "instead of"), ([-1] * SIZE, "shall go to rank 0")):
        with raises(tf.errors.InvalidArgumentError, "'to/bad'", text):
            lockstep.alltoall(tf.zeros([SIZE + 1]), "to/bad", bad)


def check_barrier():
    def wait():
        lockstep.barrier("all here")

    before = requests()
    for _ in both(wait):
        pass
    assert requests() == before + 4, "a barrier in a function must not be dropped"


def check_constant_inputs_are_reduced_each_time():
    function = tf.function(lambda: lockstep.allreduce(tf.constant([1.0]), "constant", "sum"))
    function()
    before = requests()
    for _ in range(3):
        equal(function(), [SIZE])
    assert requests() == before + 3, requests() - before
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        reduced = lockstep.allreduce(tf.constant([1.0]), "constant/v1", "sum")
        session.run(reduced)
        before = requests()
        equal(session.run(reduced), [SIZE])
        assert requests() == before + 1


def check_a_loop_in_a_graph():
    @tf.function
    def loop(x):
        for _ in tf.range(5):
            x = lockstep.allreduce(x, "loop", "sum")
        return x
    equal(loop(tf.constant([1.0])), [SIZE ** 5])


run_checks(globals())
