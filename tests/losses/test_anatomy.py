# SPDX-License-Identifier: Apache-2.0
"""Which sums and means of a loss go over the rows, and which losses are left alone."""
import os
import sys

import pytest
from jobs import ROOT, Mpi

tf = pytest.importorskip("tensorflow")
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("LOCKSTEP_LIB", str(Mpi("openmpi" if Mpi("openmpi").folder.is_dir() else "mpich").folder / "lib"))

from lockstep.losses.anatomy import MEAN, MEAN_OF_SOME, SUM, SUM_BY_COUNT, Anatomy, Figure, Rows, Unclear  # noqa: E402
from tensorflow.python.framework.func_graph import FuncGraph  # noqa: E402


def look(function, *shapes):
    """The anatomy of a function of rows, by default of two matrices."""
    graph = FuncGraph("loss")
    with graph.as_default():
        rows = [tf.compat.v1.placeholder(tf.float32, shape) for shape in shapes or ([None, 3], [None, 3])]
        result = function(*rows)
    return Anatomy(graph, rows, result)


def number_of(rows):
    return tf.cast(tf.shape(rows)[0], tf.float32)


def of_masked(y, p, mask):
    return tf.reduce_mean(tf.boolean_mask(y, mask) - tf.boolean_mask(p, mask))


MEANS = {
    "mean": lambda y, p: tf.reduce_mean((y - p) ** 2),
    "mean of rows' sums": lambda y, p: tf.reduce_mean(tf.reduce_sum(tf.abs(y - p), axis=1)),
    "scaled, with a constant": lambda y, p: 3 * tf.reduce_mean(y - p) / 2 + 1,
    "two means": lambda y, p: tf.reduce_mean(y) - 0.5 * tf.reduce_mean(p),
    "sum by rows": lambda y, p: tf.reduce_sum(y - p) / number_of(y),
    "sum by elements": lambda y, p: tf.reduce_sum(y - p) / tf.cast(tf.size(y), tf.float32),
    "half of two sums by rows": lambda y, p: 0.5 * (tf.reduce_sum(y) + tf.reduce_sum(p)) / number_of(y),
    "columns": lambda y, p: tf.reduce_mean(tf.reduce_mean(y - p, axis=0)),
    "shape in another order": lambda y, p: tf.reduce_sum(y) / tf.cast(tf.stack([3, tf.shape(y)[0]])[1], tf.float32),
    "flat": lambda y, p: tf.reduce_mean(tf.reshape(y, [-1]) * tf.reshape(p, [-1])),
}


@pytest.mark.parametrize("name", MEANS)
def test_means_are_means(name):
    found = look(MEANS[name])
    assert found.result.is_mean and not found.feeds_rows


FIGURES = {
    "root": (lambda y, p: tf.sqrt(tf.reduce_mean((y - p) ** 2)), [MEAN]),
    "quotient": (lambda y, p: tf.reduce_sum(y * p) / tf.reduce_sum(p), [SUM, SUM]),
    "sum": (lambda y, p: tf.reduce_sum(y * p), [SUM]),
    "root of a sum by rows": (lambda y, p: tf.sqrt(tf.reduce_sum(y * p) / number_of(y)), [SUM_BY_COUNT]),
    "product of means": (lambda y, p: tf.reduce_mean(y) * tf.reduce_mean(p), [MEAN, MEAN]),
    "divided by a mean": (lambda y, p: 1 / tf.reduce_mean(y), [MEAN]),
    "masked": (lambda y, p: tf.reduce_mean(tf.boolean_mask(y - p, y > 0)), [MEAN_OF_SOME]),
    "same mask": (lambda y, p: of_masked(y, p, y > 0), [MEAN_OF_SOME]),
    "columns": (lambda y, p: tf.reduce_max(tf.reduce_sum(y, axis=0)), [SUM]),
    "rows above others": (lambda y, p: tf.sqrt(tf.reduce_mean(tf.concat([y, p], axis=0))), [MEAN]),
    "last column": (lambda y, p: tf.exp(tf.reduce_mean(y[:, -1] - p[..., 0])), [MEAN]),
    "kept dimensions": (lambda y, p: tf.reduce_mean((y - tf.reduce_mean(y, axis=0, keepdims=True)) ** 2), [MEAN, MEAN]),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_found(name):
    function, kinds = FIGURES[name]
    found = look(function)
    assert isinstance(found.result, Figure)
    assert found.feeds_rows or not found.result.is_mean
    assert sorted(found.kinds.values()) == sorted(kinds)


def test_tokens_of_sentences():
    def loss(labels, logits):
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast(labels, tf.int32), logits)
        mask = tf.cast(labels > 0, tf.float32)
        return tf.reduce_sum(each * mask) / tf.reduce_sum(mask)

    assert list(look(loss, [None, None], [None, None, 9]).kinds.values()) == [SUM, SUM]


def test_weighted_classes():
    def loss(labels, logits):
        weight = tf.reduce_sum(labels * [1.0, 2.0, 3.0], axis=1)
        each = tf.nn.softmax_cross_entropy_with_logits(labels, logits)
        return tf.reduce_sum(each * weight) / tf.reduce_sum(weight)

    assert list(look(loss).kinds.values()) == [SUM, SUM]


def test_rows_stay_rows():
    found = look(lambda y, p: tf.reduce_sum(y * p, axis=1) / tf.reduce_sum(p, axis=1))
    assert isinstance(found.result, Rows) and not found.kinds


TABLE = [1.0, 2.0, 3.0, 4.0]
UNCLEAR = {
    "all rows with all rows": lambda y, p: tf.reduce_mean(tf.sqrt(tf.reduce_sum((y[:, None] - p[None]) ** 2, axis=-1))),
    "a column and a vector": lambda y, p: tf.sqrt(tf.reduce_mean(y[:, 0] - p[:, :1])),
    "product of matrices": lambda y, p: tf.reduce_sum(tf.matmul(y, p, transpose_b=True)),
    "rows by position": lambda y, p: tf.sqrt(tf.reduce_mean(y[:2] - p[:2])),
    "last row": lambda y, p: tf.sqrt(tf.reduce_mean(y[-1] - p[-1])),
    "every second row": lambda y, p: tf.sqrt(tf.reduce_mean(y[::2] - p[::2])),
    "pairs of rows": lambda y, p: tf.sqrt(tf.reduce_mean(tf.reduce_sum(tf.reshape(y, [-1, 2, 3]), axis=1))),
    "rows turned round": lambda y, p: tf.sqrt(tf.reduce_mean(tf.reverse(y, [0]) * p)),
    "sorted": lambda y, p: tf.sqrt(tf.reduce_mean(tf.sort(y, axis=0) * p)),
    "largest": lambda y, p: tf.reduce_sum(y) / tf.reduce_max(p),
    "different masks": lambda y, p: tf.reduce_mean(tf.boolean_mask(y, y > 0) * tf.boolean_mask(p, p > 0)),
    "a number for each row": lambda y, p: tf.sqrt(tf.reduce_mean(y * tf.constant([[1.0], [2.0]]))),
    "softmax over rows": lambda y, p: tf.sqrt(tf.reduce_mean(tf.nn.softmax(y[:, 0]))),
    "number of rows": lambda y, p: tf.sqrt(tf.reduce_mean(y)) * number_of(y),
    "sum in two ways": lambda y, p: (lambda total: total / number_of(y) + tf.sqrt(total))(tf.reduce_sum(y)),
    "places of a mask": lambda y, p: tf.reduce_sum(y) / tf.cast(tf.shape(tf.where(y[:, 0] > 0))[0], tf.float32),
    "number of places": lambda y, p: tf.reduce_sum(y) / tf.cast(tf.size(tf.where(y[:, 0] > 0)), tf.float32),
    "first places": lambda y, p: tf.sqrt(tf.reduce_mean(tf.gather(y, tf.squeeze(tf.where(y[:, 0] > 0), 1)[:2]))),
    "a table up to the number of rows": lambda y, p: tf.reduce_sum(y) / tf.reduce_sum(tf.constant(TABLE)[:tf.shape(y)[0]]),
    "the same as a slice": lambda y, p: tf.reduce_sum(y) / tf.reduce_sum(tf.slice(tf.constant(TABLE), [0], [tf.shape(y)[0]])),
    "an entry by the number of rows": lambda y, p: tf.reduce_sum(y) / tf.constant(TABLE)[tf.shape(y)[0]],
    "a column by a figure": lambda y, p: tf.reduce_sum(y, axis=0)[tf.cast(tf.reduce_sum(p), tf.int32)],
    "random": lambda y, p: tf.sqrt(tf.reduce_mean(y + tf.random.normal([3]))),
    "loop over rows": lambda y, p: tf.sqrt(tf.reduce_mean(tf.map_fn(lambda row: tf.reduce_sum(row), y))),
    "branch": lambda y, p: tf.cond(tf.reduce_sum(y) > 0, lambda: tf.reduce_mean(y), lambda: tf.reduce_mean(p)),
    "function": lambda y, p: tf.sqrt(tf.function(tf.reduce_mean)(y)),
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_the_rest_is_left_alone(name):
    with pytest.raises(Unclear):
        look(UNCLEAR[name])
