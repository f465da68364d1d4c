# SPDX-License-Identifier: Apache-2.0
"""Rows are followed through what models are made of: means over the rows are known to be such.  What mixes rows on the way is not."""
import pytest

tf = pytest.importorskip("tensorflow")

from keras import layers  # noqa: E402
from lockstep.losses.look import COMPARISON, FEEDS, OTHER, SUM, UNCLEAR, WRITTEN, Look  # noqa: E402
from lockstep.losses.states import Fixed  # noqa: E402
from tensorflow.python.framework.func_graph import FuncGraph  # noqa: E402

ROWS, STEPS, COLUMNS = 6, 4, 8
dense, table = tf.Variable(tf.ones((COLUMNS, COLUMNS))), tf.Variable(tf.ones((10, COLUMNS)))


def look(loss_of, rows, steps=STEPS):
    graph = FuncGraph("step")
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, [rows, steps, COLUMNS])
        target = loss_of(x)
    found = Look(graph, [x]).judge(target).problem
    return None if found is None else found[0]


def mean_of(layer):
    return lambda x: tf.reduce_mean(layer(x) ** 2)


def picture(x):
    return tf.reshape(x, [-1, STEPS, 4, 2])


def heads(x):
    """[rows, steps, 8] -> [rows * 2, steps, 4]"""
    return tf.reshape(tf.transpose(tf.reshape(x, [-1, STEPS, 2, 4]), [0, 2, 1, 3]), [-1, STEPS, 4])


def attention_by_hand(x):
    query, key, value = (heads(x @ dense) for _ in range(3))
    seen = tf.nn.softmax(tf.matmul(query, key, transpose_b=True)) @ value
    together = tf.reshape(tf.transpose(tf.reshape(seen, [-1, 2, STEPS, 4]), [0, 2, 1, 3]), [-1, STEPS, 8])
    return tf.reduce_mean(tf.reduce_mean(together, axis=1) ** 2)


def attention_by_letters(x):
    weights = tf.nn.softmax(tf.einsum("bik,bjk->bij", x, x @ dense))
    return tf.reduce_mean(tf.einsum("bij,bjk->bik", weights, x))


def loop_over_time(x):
    def step(i, state, outputs):
        state = tf.tanh(state @ dense + by_time.read(i))
        return i + 1, state, outputs.write(i, state)

    by_time = tf.TensorArray(tf.float32, STEPS).unstack(tf.transpose(x, [1, 0, 2]))
    state = tf.zeros([tf.shape(x)[0], COLUMNS])
    _, _, outputs = tf.while_loop(lambda i, *_: i < STEPS, step, (0, state, tf.TensorArray(tf.float32, STEPS)))
    return tf.reduce_mean(tf.transpose(outputs.stack(), [1, 0, 2])[:, -1] ** 2)


def derivatives(x):
    """Of a network by its inputs, of first and second order: a differential equation."""
    x = x[:, 0, :2]
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            u = tf.tanh(tf.concat([x[:, 0:1], x[:, 1:2]], axis=1) @ dense[:2]) @ dense[:, :1]
        du = inner.gradient(u, x)
        du_dx = du[:, 0:1]
    return tf.reduce_mean((outer.gradient(du_dx, x)[:, 0:1] + u * du_dx) ** 2)


def convolution_penalty(x):
    pictures = picture(x)
    with tf.GradientTape() as tape:
        tape.watch(pictures)
        out = tf.reduce_sum(tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(pictures, tf.ones((2, 2, 2, 3)), 1, "SAME")), 2, 2, "VALID"), axis=[1, 2, 3])
    slope = tape.gradient(out, pictures)
    return tf.reduce_mean((tf.sqrt(tf.reduce_sum(slope ** 2, axis=[1, 2, 3])) - 1) ** 2)


def picked_actions(x):
    values = x[:, 0] @ dense
    places = tf.stack([tf.range(tf.shape(x)[0]), tf.argmax(x[:, 1], axis=1, output_type=tf.int32)], axis=1)
    return tf.reduce_mean(tf.gather_nd(values, places) ** 2)


def with_noise(x):
    return tf.reduce_mean((x + tf.random.normal(tf.shape(x))) ** 2) + tf.reduce_mean(tf.nn.dropout(x, 0.3))


def with_class_token(x):
    token = tf.tile(table[None, :1], [tf.shape(x)[0], 1, 1])
    return tf.reduce_mean(tf.concat([token, x], axis=1) @ dense)


def real_and_fake(x):
    judged = tf.concat([x, tf.tanh(x)], axis=0) @ dense
    real, fake = tf.split(judged, 2)
    return tf.reduce_mean(real) - tf.reduce_mean(fake)


MEANS = {
    "tensordot": lambda x: tf.reduce_mean(tf.tensordot(x, dense, 1) ** 2),
    "attention by hand": attention_by_hand, "attention by letters": attention_by_letters,
    "a layer of attention": (lambda x, layer=layers.MultiHeadAttention(2, 3): tf.reduce_mean(layer(x, x))),
    "LSTM": mean_of(layers.LSTM(4)), "GRU": mean_of(layers.GRU(4, return_sequences=True)),
    "both ways": mean_of(layers.Bidirectional(layers.LSTM(3, return_sequences=True))), "unrolled": mean_of(layers.SimpleRNN(3, unroll=True)),
    "each step": mean_of(layers.TimeDistributed(layers.Dense(3))), "loop over time": loop_over_time,
    "convolution 1D": mean_of(layers.Conv1D(3, 2, dilation_rate=2, padding="causal")), "norm of layers": mean_of(layers.LayerNormalization()),
    "norm of groups": lambda x, layer=layers.GroupNormalization(2): tf.reduce_mean(layer(picture(x)) ** 2),
    "separable": lambda x, layer=layers.SeparableConv2D(3, 2): tf.reduce_mean(layer(picture(x)) ** 2),
    "transposed": lambda x, layer=layers.Conv2DTranspose(3, 2, strides=2): tf.reduce_mean(layer(picture(x)) ** 2),
    "resized": lambda x: tf.reduce_mean(tf.image.resize(picture(x), [8, 8]) ** 2),
    "words": lambda x: tf.reduce_mean(tf.gather(table, tf.cast(x[:, :, 0], tf.int32)) ** 2),
    "matrices": lambda x: tf.reduce_mean(tf.linalg.logdet(tf.matmul(x, x, transpose_a=True) + tf.eye(COLUMNS))),
    "solved": lambda x: tf.reduce_mean(tf.linalg.triangular_solve(tf.eye(COLUMNS), tf.transpose(x[:, 0])) ** 2),
    "spectrum": lambda x: tf.reduce_mean(tf.abs(tf.signal.rfft(x)) ** 2),
    "turned and back": lambda x: tf.reduce_mean(tf.transpose(tf.cumsum(tf.transpose(x, [1, 2, 0])), [2, 0, 1])[:, 0]),
    "largest of a row": lambda x: tf.reduce_mean(tf.math.top_k(x, 3).values[:, :, -1]),
    "derivatives": derivatives, "penalty through convolutions": convolution_penalty, "picked actions": picked_actions, "noise": with_noise,
    "class token": with_class_token, "real and fake": real_and_fake,
    "covariance as a mean": lambda x: tf.reduce_sum(tf.matmul(x[:, 0], x[:, 1], transpose_a=True)) / tf.cast(tf.shape(x)[0], tf.float32),
}


@pytest.mark.parametrize("rows,steps", [(None, STEPS), (ROWS, STEPS)])
@pytest.mark.parametrize("name", MEANS)
def test_a_mean_is_known_to_be_one(name, rows, steps):
    assert look(MEANS[name], rows, steps) is None


@pytest.mark.parametrize("name", ["tensordot", "LSTM", "GRU", "both ways", "norm of layers", "noise", "convolution 1D"])
def test_sentences_may_have_any_length(name):
    assert look(MEANS[name], None, None) is None


def first(x):
    return x[:, 0]


def looped_sum(x):
    total = tf.constant(0.0)
    for i in tf.range(ROWS):
        total += tf.reduce_sum(x[i] ** 2)
    return total


def inner_derivative_of_mean(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        mean = tf.reduce_mean(x ** 3)
    return tf.reduce_mean(tape.gradient(mean, x) ** 2)


def number_of(x):
    return tf.cast(tf.shape(x)[0], tf.float32)


def masked_in_another_order(x):
    rows, mask = tf.reshape(tf.transpose(x, [1, 0, 2]), [-1, COLUMNS]), tf.reshape(x[:, :, 0] > 0, [-1])
    return tf.reduce_sum(tf.boolean_mask(rows, mask) ** 2) / number_of(x)


def weights_or_rows(x):
    """Which of the two is known to the graph alone."""
    return tf.cond(table[0, 0] > 0, lambda: tf.reduce_sum(dense ** 2), lambda: tf.reduce_sum(x ** 2)) / number_of(x)


def up_to_the_longest(x):
    return tf.reduce_mean(x[:, :tf.reduce_max(tf.cast(x[:, 0, 0], tf.int32))] ** 2)


def replaced_gradient(x):
    with tf.compat.v1.get_default_graph().gradient_override_map({"Identity": "SomethingElse"}):
        return tf.reduce_mean(tf.identity(x))


OTHERS = {
    "masked in another order": (UNCLEAR, masked_in_another_order), "weights or rows": (UNCLEAR, weights_or_rows),
    "rows, or weights as rows": (UNCLEAR, lambda x: tf.reduce_sum(tf.cond(table[0, 0] > 0, lambda: first(x), lambda: dense * 1.0)) / number_of(x)),
    "up to the longest": (UNCLEAR, up_to_the_longest), "a gradient of its own": (UNCLEAR, replaced_gradient),
    "as often as there are rows": (UNCLEAR, lambda x: tf.reduce_sum(tf.tile(x, [tf.shape(x)[0], 1, 1]) ** 2) / number_of(x)),
    "beside each other, as often": (UNCLEAR, lambda x: tf.reduce_mean(tf.reduce_sum(tf.tile(x[:, :1], [1, tf.shape(x)[0], 1]), axis=1) ** 2)),
    "rows beside more rows": (UNCLEAR, lambda x: tf.reduce_mean(tf.split(tf.concat([tf.reshape(x[:, :3], [-1, COLUMNS]), x[:, 0]], 0), 2)[0] ** 2)),
    "columns of a system for each row": (OTHER, lambda x: tf.reduce_mean(tf.reduce_max(tf.linalg.triangular_solve(
        tf.ones((5, COLUMNS, COLUMNS)), tf.transpose(x[:, 0])), axis=2))),
    "whether there are rows": (UNCLEAR, lambda x: tf.reduce_sum(x) / tf.cast(tf.cast(tf.shape(x)[0], tf.bool), tf.float32)),
    "as many items": (UNCLEAR, lambda x: tf.reduce_mean(x) * tf.cast(tf.shape(tf.TensorArray(tf.float32, tf.shape(x)[0]).stack())[0], tf.float32)),
    "tensordot over rows": (SUM, lambda x: tf.reduce_sum(tf.tensordot(first(x), first(x), [[0], [0]]))),
    "its root": (OTHER, lambda x: tf.sqrt(tf.reduce_sum(tf.tensordot(first(x), first(x), [[0], [0]])))),
    "pairs by tensordot": (COMPARISON, lambda x: tf.reduce_mean(tf.tensordot(first(x), first(x), [[1], [1]]))),
    "pairs by letters": (COMPARISON, lambda x: tf.reduce_mean(tf.einsum("ik,jk->ij", first(x), first(x)))),
    "first rows": (UNCLEAR, lambda x: tf.reduce_mean(x[:3])), "every second": (UNCLEAR, lambda x: tf.reduce_mean(x[::2] ** 2)),
    "neighbours": (UNCLEAR, lambda x: tf.reduce_mean((x[1:] - x[:-1]) ** 2)), "turned round": (UNCLEAR, lambda x: tf.reduce_mean(x * tf.reverse(x, [0]))),
    "rolled": (UNCLEAR, lambda x: tf.reduce_mean(x * tf.roll(x, 1, 0))), "shuffled": (UNCLEAR, lambda x: tf.reduce_mean(x * tf.random.shuffle(x))),
    "sorted": (UNCLEAR, lambda x: tf.reduce_mean(tf.sort(x, axis=0) ** 2)), "added up": (UNCLEAR, lambda x: tf.reduce_mean(tf.cumsum(x) ** 2)),
    "softmax over rows": (UNCLEAR, lambda x: tf.reduce_mean(tf.nn.softmax(x, axis=0) ** 2)),
    "largest rows": (UNCLEAR, lambda x: tf.reduce_mean(tf.math.top_k(x[:, 0, 0], 3).values)),
    "mapped, added up": (UNCLEAR, lambda x: tf.reduce_sum(tf.map_fn(lambda row: tf.reduce_sum(row ** 2), x))),
    "folded": (UNCLEAR, lambda x: tf.foldl(lambda total, row: total + tf.reduce_sum(row), x, 0.0)), "loop over rows": (UNCLEAR, tf.function(looped_sum)),
    "segments": (UNCLEAR, lambda x: tf.reduce_mean(tf.math.unsorted_segment_mean(first(x), tf.cast(x[:, 0, 0], tf.int32), 3) ** 2)),
    "halves": (UNCLEAR, lambda x: tf.reduce_mean((tf.split(x, 2)[0] - tf.split(x, 2)[1]) ** 2)),
    "rows in a row": (UNCLEAR, lambda x: tf.reduce_mean(tf.reduce_sum(tf.reshape(x, [-1, 2, STEPS, COLUMNS]), axis=1) ** 2)),
    "another number of rows": (UNCLEAR, lambda x: tf.reduce_mean(x) * tf.cast(tf.shape(x)[0], tf.float32)),
    "the number of each row": (UNCLEAR, lambda x: tf.reduce_mean(x[:, 0, 0] * tf.cast(tf.range(tf.shape(x)[0]), tf.float32))),
    "norm by hand": (FEEDS, lambda x: tf.reduce_mean(((x - tf.reduce_mean(x, 0)) / tf.math.reduce_std(x, 0)) ** 4)),
    "fused norm": (FEEDS, lambda x: tf.reduce_mean(tf.compat.v1.nn.fused_batch_norm(picture(x), tf.ones(2), tf.ones(2))[0] ** 3)),
    "rows repeated as pairs": (UNCLEAR, lambda x: tf.reduce_mean((tf.repeat(x, ROWS, axis=0) - tf.tile(x, [ROWS, 1, 1])) ** 2)),
    "a figure of its derivative": (FEEDS, inner_derivative_of_mean),
    "columns of means": (OTHER, lambda x: tf.reduce_mean(x, axis=0)), "time first": (OTHER, lambda x: tf.transpose(x[:, :, 0])),
    "python": (UNCLEAR, lambda x: tf.numpy_function(lambda value: value.mean(), [x], tf.float32)),
}


@pytest.mark.parametrize("rows", [None, ROWS])
@pytest.mark.parametrize("name", OTHERS)
def test_what_mixes_rows_is_no_mean(name, rows):
    what, loss_of = OTHERS[name]
    found = look(loss_of, rows)
    assert found == what or found in (UNCLEAR, COMPARISON)  # which of them comes first is not the point
    assert found is not None


def test_a_number_of_a_slice_in_a_variable_is_found():
    kept = tf.Variable(0.0)

    def problem_of(value_of):
        graph = FuncGraph("step")
        with graph.as_default():
            x = tf.compat.v1.placeholder(tf.float32, [None, COLUMNS])
            kept.assign(value_of(x))
        found = Look(graph, [x]).judge_variables().problem
        return found and found[1].type

    assert problem_of(lambda x: 0.9 * kept + 0.1) is None
    assert problem_of(lambda x: 0.9 * kept + 0.1 * tf.reduce_mean(x)) == "AssignVariableOp"
    assert problem_of(lambda x: kept + tf.cast(tf.shape(x)[0], tf.float32)) == "AssignVariableOp"
    inner = tf.function(lambda x: kept.assign_add(tf.reduce_max(x)))
    assert problem_of(lambda x: inner(x)) is not None


def test_other_inputs_are_what_they_are_said_to_be():
    graph = FuncGraph("step")
    with graph.as_default():
        x, rate = tf.compat.v1.placeholder(tf.float32, [None, COLUMNS]), tf.compat.v1.placeholder(tf.float32, [])
        target = rate * tf.reduce_mean(x)
    assert Look(graph, [x], {rate.name: Fixed()}).judge(target).problem is None
    assert Look(graph, [x]).judge(target).problem[0] == UNCLEAR


@pytest.mark.parametrize("reduce,what", [(tf.reduce_mean, None), (tf.reduce_sum, SUM)])
def test_a_recurrent_network_of_tensorflow_1_is_followed(reduce, what):
    with tf.Graph().as_default() as graph:
        tf.compat.v1.disable_control_flow_v2()
        try:
            x = tf.compat.v1.placeholder(tf.float32, [None, STEPS, COLUMNS])
            weights = tf.constant(0.1, shape=[COLUMNS, COLUMNS])
            by_time = tf.TensorArray(tf.float32, STEPS).unstack(tf.transpose(x, [1, 0, 2]))
            _, state = tf.while_loop(lambda i, _: i < STEPS, lambda i, state: (i + 1, tf.tanh(state @ weights + by_time.read(i))),
                                     (0, tf.zeros([tf.shape(x)[0], COLUMNS])))
            target = reduce(state ** 2)
        finally:
            tf.compat.v1.enable_control_flow_v2()
    assert "NextIteration" in {op.type for op in graph.get_operations()}
    found = Look(graph, [x]).judge(target).problem
    assert (found and found[0]) == what


@pytest.mark.parametrize("scale", [lambda x: float(ROWS), lambda x: float(x.shape[0]), lambda x: 1 / x.shape[0]])
def test_a_mean_times_what_may_be_the_number_of_rows_is_not_known(scale):
    assert look(lambda x: tf.reduce_mean(x ** 2) * scale(x), ROWS) == UNCLEAR
    assert look(lambda x: tf.reduce_mean(scale(x) * x ** 2), ROWS) == UNCLEAR


def test_a_number_of_rows_that_is_written_into_a_reshape_shows_with_a_slice():
    def look_at(rows, first):
        graph = FuncGraph("step")
        with graph.as_default():
            x = tf.compat.v1.placeholder(tf.float32, [rows, COLUMNS])
            target = tf.reduce_mean(tf.reduce_sum(tf.reshape(x, [first, -1]) ** 2, axis=1))
        return Look(graph, [x]).judge(target)

    assert look_at(6, 6).problem is None
    assert look_at(3, 3).compare(look_at(6, 6)).problem is None
    assert look_at(3, 6).compare(look_at(6, 6)).problem[0] == WRITTEN


def test_equal_rows_added_up_over_and_over_are_looked_at_once():
    def doubled(x):
        rows = tf.ones([ROWS, STEPS, COLUMNS])
        for _ in range(40):
            rows = rows + rows
        return tf.reduce_mean(x * rows)

    assert look(doubled, ROWS) is None
