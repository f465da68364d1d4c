# SPDX-License-Identifier: Apache-2.0
"""Two traces of a step, for 12 and for 6 rows: are they the same work?  No ranks are needed.  That the numbers stay those of one process is
tests/scripts/loops/sized.py's."""
import itertools

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from lockstep.losses import comparison  # noqa: E402
from lockstep.losses.look import Look  # noqa: E402

WEIGHTS, OTHERS = tf.Variable(np.ones((3, 2))), tf.Variable(np.ones((3, 2)))
TABLE = np.arange(128.0).reshape(64, 2)
turn = itertools.count()


def traced(step, rows):
    return tf.function(step).get_concrete_function(tf.TensorSpec((rows, 3), tf.float64)).graph


def compared(step):
    """(graph of the whole batch, what comparison.difference says)"""
    whole, part = traced(step, 12), traced(step, 6)
    return whole, comparison.difference(whole, part, (12, 6))


SAME = {
    "mean": lambda x: tf.reduce_mean((x @ WEIGHTS) ** 2),
    "counted": lambda x: tf.reduce_sum(x) / tf.cast(tf.shape(x)[0], tf.float64),
    "reshaped": lambda x: tf.reduce_mean(tf.reshape(x, [x.shape[0] * 3])),
    "inner": lambda x: tf.function(lambda y: tf.reduce_mean(y ** 2))(x),
    "noise": lambda x: tf.reduce_mean(x + tf.random.normal((x.shape[0], 3), dtype=tf.float64)),
}
OTHER = {
    "a number": lambda x: tf.reduce_mean(x) * (0.7 / len(x)),
    "a branch": lambda x: tf.reduce_mean(x) if len(x) == 12 else tf.reduce_max(x),
    "an attribute": lambda x: tf.reduce_mean(tf.concat(tf.split(x, 2 if len(x) == 12 else 1), 0)),
    "wires": lambda x: tf.reduce_mean((x @ WEIGHTS) - TABLE[0] if len(x) == 12 else TABLE[0] - (x @ WEIGHTS)),
    "what is captured": lambda x: tf.reduce_mean(x @ (WEIGHTS if next(turn) % 2 else OTHERS)),
    "the inside of a function": lambda x: tf.function(lambda y: tf.reduce_mean(y * (0.7 / len(y))))(x),
    "a part of a table": lambda x: tf.reduce_mean(tf.matmul(x @ WEIGHTS, TABLE[:len(x)], transpose_b=True)),
    "positions": lambda x: tf.reduce_mean(x * (0.1 + len(x))),
}
SIZED = {
    "memory": lambda x: tf.reduce_mean(tf.matmul(x @ WEIGHTS, tf.constant(TABLE)[:len(x)], transpose_b=True)),
    "ones": lambda x: tf.reduce_sum(tf.ones_like(x) @ WEIGHTS) + 0 * tf.reduce_mean(x),
    "a sum of ones": lambda x: tf.reduce_mean(x) * tf.reduce_sum(tf.ones((x.shape[0], 1), tf.float64)),
}


@pytest.mark.parametrize("name", SAME)
def test_traces_are_the_same_but_for_shapes(name):
    assert compared(SAME[name])[1] is not None


@pytest.mark.parametrize("name", OTHER)
def test_traces_differ_in(name):
    assert compared(OTHER[name])[1] is None


def problem(graph, sized):
    return Look(graph, graph.inputs[:1], sized=sized).judge(graph.outputs[0]).problem


@pytest.mark.parametrize("name", ["mean", "reshaped", "noise"])
def test_a_mean_is_one_when_sizes_are_known(name):
    graph, sized = compared(SAME[name])
    assert problem(graph, sized) is None


@pytest.mark.parametrize("name", SIZED)
def test_what_has_the_size_of_the_batch_is_no_row(name):
    graph, sized = compared(SIZED[name])
    assert problem(graph, {}) is None, "the first proof sees it, so nothing is shown of the second"
    assert problem(graph, sized) is not None
