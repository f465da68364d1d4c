# SPDX-License-Identifier: Apache-2.0
"""Which targets of a gradient are no mean over the rows of the batch: in graphs, with a model in between, and eagerly."""
import os
import sys
import weakref

import pytest
from jobs import ROOT, Mpi

tf = pytest.importorskip("tensorflow")
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("LOCKSTEP_LIB", str(Mpi("openmpi" if Mpi("openmpi").folder.is_dir() else "mpich").folder / "lib"))

from lockstep.losses import calls, counts, replay  # noqa: E402
from lockstep.losses.look import COMPARISON, FEEDS, NORMALISATION, OTHER, SUM, Look  # noqa: E402
from tensorflow.python.eager.polymorphic_function import atomic_function  # noqa: E402
from tensorflow.python.framework.func_graph import FuncGraph  # noqa: E402
from tensorflow.python.ops import array_ops  # noqa: E402

ROWS, COLUMNS = 6, 3
dense = tf.Variable(tf.ones((COLUMNS, COLUMNS)))
table = tf.Variable(tf.ones((10, COLUMNS)))


@pytest.fixture(autouse=True)
def shapes_are_noted(monkeypatch):
    for name in ("shape_internal", "size_internal"):
        original = getattr(array_ops, name)
        monkeypatch.setattr(array_ops, name, lambda tensor, *args, _original=original, **kwargs: counts.noted(_original(tensor, *args, **kwargs), tensor))


@pytest.fixture(autouse=True)
def functions_are_noted(monkeypatch):
    original = atomic_function.from_func_graph
    monkeypatch.setattr(atomic_function, "from_func_graph", lambda name, graph, *args, **kwargs: calls.noted(original(name, graph, *args, **kwargs), graph))


def problem_of(loss_of, rows):
    graph = FuncGraph("step")
    with graph.as_default():
        x, y = (tf.compat.v1.placeholder(tf.float32, [rows, COLUMNS]) for _ in range(2))
        target = loss_of(x, y)
    found = Look(graph, [x, y]).judge(target).problem
    return None if found is None else found[0]


def number_of(rows):
    return tf.cast(tf.shape(rows)[0], tf.float32)


def squares(x, y):
    return (tf.tanh(x @ dense) - y) ** 2


def attention(x, y):
    steps = tf.reshape(x @ dense, [-1, COLUMNS, 1])
    return tf.reduce_mean((tf.matmul(tf.nn.softmax(tf.matmul(steps, steps, transpose_b=True)), steps)[:, :, 0] - y) ** 2)


def convolution(x, y):
    pictures = tf.nn.conv2d(tf.reshape(x, [-1, COLUMNS, 1, 1]), tf.ones((2, 1, 1, 4)), 1, "SAME")
    return tf.reduce_mean(tf.nn.relu(pictures)) + tf.reduce_mean(y)


def normalised(x, y):
    with tf.name_scope(NORMALISATION):
        mean, variance = tf.nn.moments(x, axes=0)
        x = (x - mean) / tf.sqrt(variance + 0.1)
    return tf.reduce_mean(squares(x, y))


def penalty(x, y):
    with tf.GradientTape() as tape:
        tape.watch(x)
        out = tf.reduce_sum(tf.tanh(x @ dense), axis=1)
    return tf.reduce_mean((tf.norm(tape.gradient(out, x), axis=1) - 1) ** 2)


@tf.function
def mean_in_function(x, y):
    return tf.reduce_mean(squares(x, y)), tf.matmul(x, y, transpose_b=True)  # nobody asks for the second


@tf.function
def sum_in_function(x, y):
    return tf.reduce_sum(squares(x, y))


@tf.function
def model_in_function(x):
    return tf.tanh(x @ dense)


def in_branches(first, second):
    """Which of the two depends on weights: the same on all ranks."""
    return lambda x, y: tf.function(lambda x, y: tf.cond(table[0, 0] > 0, lambda: first(squares(x, y)), lambda: second(squares(x, y))))(x, y)


def guarded(x, y):
    loss = tf.reduce_mean(squares(x, y))
    return tf.cond(loss > 10, lambda: 10.0, lambda: loss)


def in_loop(reduce):
    @tf.function
    def added_up(x, y):
        loss = tf.constant(0.0)
        for _ in tf.range(3):
            x = tf.tanh(x @ dense)
            loss += reduce((x - y) ** 2)
        return loss
    return added_up


MEANS = {
    "mean in a function": lambda x, y: 2 * mean_in_function(x, y)[0],
    "model in a function": lambda x, y: tf.reduce_mean((model_in_function(x) - y) ** 2),
    "means in branches": in_branches(tf.reduce_mean, lambda rows: 0.5 * tf.reduce_mean(rows)),
    "mean or nothing": in_branches(tf.reduce_mean, lambda rows: 0.0),
    "means in a loop": in_loop(tf.reduce_mean),
    "mean": lambda x, y: tf.reduce_mean(squares(x, y)),
    "sum within rows": lambda x, y: tf.reduce_mean(tf.reduce_sum(squares(x, y), axis=1)),
    "sum by the number of rows": lambda x, y: tf.reduce_sum(squares(x, y)) / number_of(x),
    "sum by the number of elements": lambda x, y: tf.reduce_sum(squares(x, y)) / tf.cast(tf.size(y), tf.float32),
    "average": lambda x, y: tf.nn.compute_average_loss(tf.reduce_sum(squares(x, y), axis=1)),
    "with a penalty on weights": lambda x, y: tf.reduce_mean(squares(x, y)) + 0.1 * tf.reduce_sum(dense ** 2) + tf.nn.l2_loss(table),
    "two terms": lambda x, y: tf.add_n([0.3 * tf.reduce_mean(x @ dense), tf.reduce_mean(y)]),
    "classes": lambda x, y: tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tf.argmax(y, axis=1), x @ dense)),
    "words": lambda x, y: tf.reduce_mean(tf.gather(table, tf.cast(y[:, 0], tf.int32)) * x),
    "likeness of a row's halves": lambda x, y: tf.reduce_mean(tf.reduce_sum(x * y, axis=1) / (tf.norm(x, axis=1) * tf.norm(y, axis=1))),
    "a number for each row": lambda x, y: tf.reduce_mean(tf.reshape(x[:, 0], [-1, 1]) * y),
    "weights only": lambda x, y: tf.reduce_sum(dense ** 2),
    "attention": attention, "convolution": convolution, "batch normalisation": normalised, "penalty on gradients by inputs": penalty,
}


@pytest.mark.parametrize("rows", [None, ROWS])
@pytest.mark.parametrize("name", MEANS)
def test_means_over_the_rows_have_no_problem(name, rows):
    assert problem_of(MEANS[name], rows) is None


OTHERS = {
    "sum in a function": (SUM, sum_in_function),
    "rows of a function": (SUM, lambda x, y: tf.reduce_sum((model_in_function(x) - y) ** 2)),
    "sum with dropout": (SUM, lambda x, y: tf.reduce_sum(squares(tf.nn.dropout(x, 0.5), y))),
    "sum with ones": (SUM, lambda x, y: tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(tf.ones_like(x), x @ dense))),
    "sum with labels": (SUM, lambda x, y: tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(
        tf.zeros(tf.shape(x)[0], tf.int32), x @ dense))),
    "pairs in a function": (COMPARISON, lambda x, y: tf.reduce_mean(mean_in_function(x, y)[1])),
    "sums in branches": (SUM, in_branches(tf.reduce_sum, lambda rows: 0.5 * tf.reduce_sum(rows))),
    "sum in one branch": (OTHER, in_branches(tf.reduce_sum, tf.reduce_mean)),
    "a figure decides": (OTHER, tf.function(guarded)),
    "sums in a loop": (OTHER, in_loop(tf.reduce_sum)),
    "sum": (SUM, lambda x, y: tf.reduce_sum(squares(x, y))),
    "sum by a number": (SUM, lambda x, y: tf.reduce_sum(squares(x, y)) / 6),
    "mean of a sum over rows": (SUM, lambda x, y: tf.reduce_mean(tf.reduce_sum(squares(x, y), axis=0))),
    "half of a sum of squares": (SUM, lambda x, y: tf.nn.l2_loss(x @ dense - y)),
    "masked mean": (OTHER, lambda x, y: tf.reduce_sum(x * y) / tf.reduce_sum(y)),
    "root": (OTHER, lambda x, y: tf.sqrt(tf.reduce_mean(squares(x, y)))),
    "norm": (OTHER, lambda x, y: tf.norm(x @ dense - y)),
    "largest": (OTHER, lambda x, y: tf.reduce_max(squares(x, y))),
    "mean and sum": (OTHER, lambda x, y: tf.reduce_mean(squares(x, y)) + tf.reduce_sum(y)),
    "covariance": (FEEDS, lambda x, y: tf.reduce_mean((x - tf.reduce_mean(x, axis=0)) * y)),
    "contrast": (COMPARISON, lambda x, y: tf.reduce_mean(tf.nn.softmax(tf.matmul(x @ dense, y, transpose_b=True)))),
    "contrast, turned by hand": (COMPARISON, lambda x, y: tf.reduce_mean((x @ dense) @ tf.transpose(y))),
    "distances": (COMPARISON, lambda x, y: tf.reduce_mean((tf.expand_dims(x, 1) - tf.expand_dims(y, 0)) ** 2)),
    "distances with None": (COMPARISON, lambda x, y: tf.reduce_mean((x[:, None] - y[None]) ** 2)),
}


@pytest.mark.parametrize("rows", [None, ROWS])
@pytest.mark.parametrize("name", OTHERS)
def test_what_needs_the_whole_batch_is_found(name, rows):
    what, loss_of = OTHERS[name]
    assert problem_of(loss_of, rows) == what


@pytest.mark.parametrize("reduce,what", [(tf.reduce_mean, None), (tf.reduce_sum, OTHER)])
def test_branches_of_tensorflow_1_are_followed(reduce, what):
    with tf.Graph().as_default() as graph:
        tf.compat.v1.disable_control_flow_v2()
        try:
            x = tf.compat.v1.placeholder(tf.float32, [None, COLUMNS])
            target = tf.cond(tf.constant(1.0) > 0, lambda: reduce(x ** 2), lambda: tf.reduce_mean(x))
        finally:
            tf.compat.v1.enable_control_flow_v2()
    assert "Merge" in {op.type for op in graph.get_operations()}
    found = Look(graph, [x]).judge(target).problem
    assert (found and found[0]) == what


@pytest.mark.parametrize("number,what", [(ROWS, None), (2 * ROWS, SUM)])
def test_a_sum_by_the_rows_of_a_slice_is_a_mean(number, what):
    """Keras divides penalties on activities by the number of rows that their shape says."""
    graph = FuncGraph("step")
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [ROWS, COLUMNS])
        target = tf.reduce_sum(x ** 2) / tf.cast(tf.constant(number), tf.float32)
    found = Look(graph, [x], is_slice=True).judge(target).problem
    assert (found and found[0]) == what


@pytest.mark.parametrize("name", [*MEANS, *OTHERS])
def test_what_was_computed_eagerly_is_seen_like_a_graph(name):
    loss_of = MEANS.get(name) or OTHERS[name][1]
    x, y = tf.random.uniform((ROWS, COLUMNS)), tf.random.uniform((ROWS, COLUMNS))
    replay.begin((x, y))
    try:
        target = loss_of(x, y)
        found = replay.look_of(target).problem
    finally:
        replay.end()
    # Eagerly tf.size() is a number like any other.
    expected = SUM if name == "sum by the number of elements" else OTHERS[name][0] if name in OTHERS else None
    assert (found and found[0]) == expected


def test_nothing_is_noted_after_the_end():
    replay.begin(tf.ones((2, 2)))
    replay.end()
    assert replay.look_of(tf.reduce_sum(tf.ones((2, 2)))) is None


def test_noting_ends_by_itself_and_keeps_nothing_alive(monkeypatch):
    monkeypatch.setattr(replay, "MOST_OPERATORS", 5)
    x = tf.random.uniform((ROWS, 100))
    replay.begin(x)
    made = x * 2
    alive = weakref.ref(made)
    del made
    assert alive() is None
    sums = [tf.reduce_sum(x) for _ in range(5)]
    assert replay.look_of(sums[0]) is None


def test_noting_ends_after_many_gradients():
    x = tf.random.uniform((ROWS, COLUMNS))
    replay.begin(x)
    found = [replay.look_of(tf.reduce_sum(x)) is not None for _ in range(replay.MOST_LOOKS + 1)]
    assert found == [True] * replay.MOST_LOOKS + [False]
