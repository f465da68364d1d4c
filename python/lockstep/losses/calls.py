# SPDX-License-Identifier: Apache-2.0
"""Operators of a graph that call functions: a tf.function of the script within another, the branches of a condition, the body of
a loop.  What they give follows from what goes on inside.

    loss = own_loss(x, y)                     what own_loss gives, of what x and y are
    tf.cond(is_late, one_loss, other_loss)    what both branches give in common
    for step in tf.range(3): loss += ...      what the body gives, of what it gave before: again until nothing changes

Graphs of TensorFlow 1 have no such functions: Switch goes into one branch or the other, Merge comes out of it.  Their loops are not
followed."""
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import function_def_to_graph

from lockstep.losses.anatomy import Figure, Fixed, Rows, Unclear, Unknown

CALLS, CONDITIONS, LOOPS = ("PartitionedCall", "StatefulPartitionedCall"), ("If", "StatelessIf", "Case", "StatelessCase"), ("While", "StatelessWhile")
SWITCHES = ("Switch", "Merge")
TYPES = CALLS + CONDITIONS + LOOPS + SWITCHES
MOST_PASSES = 8  # through the body of a loop


def outputs_of(op, states, inside):
    """What the operator gives.  inside(graph, states of its inputs, are all outputs of it wanted) does it for one function."""
    if op.type in SWITCHES:
        return [states[0]] * 2 if op.type == "Switch" else [joined(states), Fixed()]
    if op.type in CALLS:
        return inside(_graph_of(op, op.get_attr("f")), states, False)
    if op.type in LOOPS:
        return _after_loop(_graph_of(op, op.get_attr("body")), states, inside)
    names = op.get_attr("branches") if op.type.endswith("Case") else [op.get_attr("then_branch"), op.get_attr("else_branch")]
    return [joined(branches) for branches in zip(*(inside(_graph_of(op, name), states[1:], False) for name in names))]


def _after_loop(body, states, inside):
    for _ in range(MOST_PASSES):
        after = [joined(pair) for pair in zip(states, inside(body, states, True))]
        if all(_are_same(*pair) for pair in zip(states, after)):
            return after
        states = after
    return [Unknown()] * len(states)


def joined(states):
    """What is either of these."""
    first, *others = states
    for other in others:
        first = _either(first, other)
    return first


def _either(one, other):
    if _are_same(one, other) or isinstance(other, Fixed):
        return one
    if isinstance(one, Fixed):
        return other
    if isinstance(one, Figure) and isinstance(other, Figure):
        totals = one.totals | other.totals if one.totals and other.totals else frozenset()
        return Figure(one.is_mean and other.is_mean, totals)
    if isinstance(one, Rows) and isinstance(other, Rows) and one.mask == other.mask:
        return Rows(min(one.inner, other.inner), one.mask)
    return Unknown()


def _are_same(one, other):
    """States without fields are equal as tuples."""
    return type(one) is type(other) and one == other


def _graph_of(op, attribute):
    """The graph of a function that the operator calls.  Eager operators (replay.py) call those that the context knows."""
    found = op.graph._get_function(attribute.name)
    if found is not None:
        return found.graph
    try:
        return function_def_to_graph.function_def_to_graph(context.context().get_function_def(attribute.name))
    except (tf.errors.NotFoundError, ValueError) as error:
        raise Unclear(f"{op.type}: {error}") from error
