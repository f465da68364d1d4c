# SPDX-License-Identifier: Apache-2.0
"""Which rows a rank computes in a v1 graph: its slice when it trains, all of them when it does not.  Run on every rank."""
import os

import lockstep
import numpy as np
import tensorflow
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
rank, size = lockstep.rank(), lockstep.size()
seen = []
data = np.arange(20, dtype=np.float32).reshape(10, 2)
base, extra = divmod(10, size)
own = data[rank * base + min(rank, extra):][:base + (rank < extra)]


def watch(rows):
    seen.append(rows)
    return rows


def model(x):
    """(loss, train op) of a model that tells which rows it gets"""
    with tf.control_dependencies([tf.py_func(watch, [x], tf.float32, stateful=True)]):
        rows = tf.ensure_shape(tf.identity(x), [None, 2])
    w = tf.Variable(np.ones((2, 1), np.float32))
    loss = tf.reduce_mean(tf.square(tf.matmul(rows, w)))
    return loss, tf.train.GradientDescentOptimizer(1e-3).minimize(loss)


def check(run, expected):
    seen.clear()
    run()
    assert len(seen) == 1 and np.array_equal(seen[0], expected), f"rank {rank}: {seen} instead of {expected}"


def check_feed(shape, trained_on):
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, shape)
        loss, train = model(x)
        sess.run(tf.global_variables_initializer())
        check(lambda: sess.run(loss, {x: data}), data)
        check(lambda: sess.run([train, loss], {x: data}), trained_on)
        check(lambda: sess.run([loss], {x: data}), data)


def check_batch_size_in_graph():
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 2])
        _, train = model(tf.reshape(x, [10, 2]))
        sess.run(tf.global_variables_initializer())
        check(lambda: sess.run(train, {x: data}), data)


def check_iterator():
    with tf.Graph().as_default(), tf.Session() as sess:
        dataset = tf.data.Dataset.from_tensor_slices(data).repeat().batch(10)
        loss, train = model(tf.data.make_one_shot_iterator(dataset).get_next())
        sess.run(tf.global_variables_initializer())
        check(lambda: sess.run(loss), data)
        check(lambda: sess.run([train, loss]), own)


def check_few_rows():
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 2])
        _, train = model(x)
        sess.run(tf.global_variables_initializer())
        check(lambda: sess.run(train, {x: data[:1]}), data[:1])


def check_graph_def():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 2])
        w = tf.Variable(np.ones((2, 1), np.float32))
        table = tf.Variable(np.ones((4, 2), np.float32))
        rows = tf.nn.embedding_lookup(table, tf.cast(x[:, 0], tf.int32) % 4)
        tf.train.AdamOptimizer().minimize(tf.reduce_mean(tf.matmul(rows, w)))
        assert any(op.type.startswith("Lockstep") for op in graph.get_operations())
        exported = graph.as_graph_def()
        functions = [node for function in exported.library.function for node in function.node_def]
        assert not any(node.op.startswith("Lockstep") for node in [*exported.node, *functions])
    with tf.Graph().as_default():
        tf.import_graph_def(exported)


def check_input_gradient():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 2])
        tf.gradients(tf.reduce_sum(x * x), x)
        assert not any(op.type.startswith("Lockstep") for op in graph.get_operations())


def check_public_gradients():
    """tensorflow.compat.v1, as imported here, is another module than tensorflow's attribute compat.v1."""
    for module in (tf, tensorflow, tensorflow.compat.v1):
        with tf.Graph().as_default() as graph:
            w = tf.Variable(np.ones((2, 1), np.float32))
            module.gradients(tf.reduce_sum(w * w), w)
            assert any(op.type.startswith("Lockstep") for op in graph.get_operations()), module.__name__


check_public_gradients()
check_feed([None, 2], own)
check_feed(None, own)
check_feed([10, 2], data)
check_batch_size_in_graph()
check_iterator()
check_few_rows()
check_input_gradient()
check_graph_def()
tf.enable_control_flow_v2()  # sparse gradients are reduced in a conditional, whose branches are functions then
check_graph_def()
os.write(1, f"rank {rank} of {size} is right\n".encode())
