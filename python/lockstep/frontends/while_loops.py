# SPDX-License-Identifier: Apache-2.0
"""tf.while_loop with gradients taken inside of it.

TensorFlow runs up to ten iterations at once where they do not need each other.  A reduction has one name in all of them, so
two ranks might add up different iterations: loops that reduce gradients run one iteration after another.

Seams: while_v2.while_loop, below every loop of TensorFlow 2; the WhileContext of v1 loops."""
import tensorflow as tf
from tensorflow.python.ops import while_v2

from lockstep import gradients, hooks

_made = 0
_ONE = tf.compat.v1.AttrValue(i=1)


def attach():
    gradients.listen(_note)

    @hooks.wrap(while_v2, "while_loop")
    def while_loop(original, *args, **kwargs):
        before = _made
        result = original(*args, **kwargs)
        if _made != before:
            _last_loop()._set_attr("parallel_iterations", _ONE)
        return result


def _last_loop():
    operations = tf.compat.v1.get_default_graph().get_operations()
    return next(op for op in reversed(operations) if op.type in ("While", "StatelessWhile"))


def _note(_sources=()):
    global _made
    _made += 1
    if tf.executing_eagerly():
        return
    graph = tf.compat.v1.get_default_graph()
    context = graph._get_control_flow_context()
    while context is not None:
        if context.IsWhileContext():
            _one_at_a_time(graph, context)
        context = context.outer_context


def _one_at_a_time(graph, context):
    context._parallel_iterations = 1
    for op in graph.get_operations():
        if op.type in ("Enter", "RefEnter") and op.get_attr("frame_name").decode() == context.name:
            op._set_attr("parallel_iterations", _ONE)
