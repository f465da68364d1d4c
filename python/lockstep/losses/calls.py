# SPDX-License-Identifier: Apache-2.0
"""Operators of a graph that call functions: a tf.function of the script within another, the branches of a condition, the body of
a loop.  What they give follows from what goes on inside.

    loss = own_loss(x, y)                     what own_loss gives, of what x and y are
    tf.cond(is_late, one_loss, other_loss)    what both branches give in common
    for step in tf.range(3): loss += ...      what the body gives, of what it gave before: again until nothing changes

Graphs of TensorFlow 1 have no such functions: Switch goes into one branch or the other, Merge comes out of it.  Their loops go round
through Enter, Merge, Switch, the body, NextIteration and Merge again."""
import contextlib
import weakref

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import atomic_function
from tensorflow.python.framework import function_def_to_graph

from lockstep import hooks
from lockstep.losses.anatomy import MOST_PASSES
from lockstep.losses.states import Fixed, Unclear, Unknown, are_same, joined

CALLS, CONDITIONS, LOOPS = ("PartitionedCall", "StatefulPartitionedCall"), ("If", "StatelessIf", "Case", "StatelessCase"), ("While", "StatelessWhile")
SWITCHES = ("Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "RefSwitch", "RefMerge", "RefEnter", "RefExit", "RefNextIteration")
TYPES = CALLS + CONDITIONS + LOOPS + SWITCHES


_graphs = weakref.WeakValueDictionary()  # of functions, by their names: what is made anew from a definition has lost the shapes of variables


def attach():
    @hooks.wrap(atomic_function, "from_func_graph")
    def from_func_graph(original, name, graph, *args, **kwargs):
        return noted(original(name, graph, *args, **kwargs), graph)


def noted(function, graph):
    _graphs[tf.compat.as_str(function.name)] = graph
    return function


def outputs_of(op, tensors, states, inside, decide):
    """What the operator gives.  tensors: its inputs; states: what they are.  inside(graph, tensors, states, is used) does it for the outputs of one
    function; decide(state) is told which way is taken by what."""
    if op.type in SWITCHES:
        return _in_one_graph(op, states, decide)
    if op.type in CALLS:
        return inside(_graph_of(op, op.get_attr("f")), tensors, states, False)
    if op.type in LOOPS:
        return _after_loop(op, tensors, states, inside, decide)
    decide(states[0])
    names = op.get_attr("branches") if op.type.endswith("Case") else [op.get_attr("then_branch"), op.get_attr("else_branch")]
    return [joined(branches) for branches in zip(*(inside(_graph_of(op, name), tensors[1:], states[1:], False) for name in names))]


def _in_one_graph(op, states, decide):
    if op.type.endswith("Switch"):
        decide(states[1])
        return [states[0]] * 2
    if op.type.endswith("Merge"):
        return [joined([state for state in states if state is not None]), Fixed()]
    return states[:1]


def _after_loop(op, tensors, states, inside, decide):
    body, condition = (_graph_of(op, op.get_attr(name)) for name in ("body", "cond"))
    for _ in range(MOST_PASSES):
        after = [joined(pair) for pair in zip(states, inside(body, tensors, states, True))]
        if all(are_same(*pair) for pair in zip(states, after)):
            decide(inside(condition, tensors, after, True)[0])
            return after
        states = after
    return [Unknown(op)] * len(states)


_FUNCTIONS = {**dict.fromkeys(CALLS, ("f",)), **dict.fromkeys(("If", "StatelessIf"), ("then_branch", "else_branch")), **dict.fromkeys(LOOPS, ("body",))}


def graphs_of(op):
    """Of the functions that an operator calls; those whose graphs are not to be had are left out."""
    names = op.get_attr("branches") if op.type.endswith("Case") and op.type in CONDITIONS else [op.get_attr(name) for name in _FUNCTIONS.get(op.type, ())]
    found = []
    for name in names:
        with contextlib.suppress(Unclear):
            found.append(_graph_of(op, name))
    return found


_ACTS_ON_NOTHING = ("Assert", "NoOp", "DeleteIterator", "DestroyResourceOp")


def assigns(op):
    """Does it give a variable a value?"""
    return bool(op.inputs) and op.inputs[0].dtype == tf.resource and op.type.startswith(("Assign", "ResourceApply", "ResourceScatter", "ResourceSparse",
                                                                                        "ResourceStrided"))


def acts(op):
    """Does it print, write, or call Python?"""
    if op.type in ("EagerPyFunc", "PyFunc"):
        return True
    return op.op_def.is_stateful and not op.outputs and not assigns(op) and op.type not in (*TYPES, *_ACTS_ON_NOTHING)


def checks(op):
    """May it end the step?"""
    return op.type in ("Assert", "CheckNumerics", "CheckNumericsV2")


def has(is_chosen, graph):
    """Is one of its operators, or of the functions that it calls, chosen?"""
    return any(is_chosen(op) or any(has(is_chosen, called) for called in graphs_of(op)) for op in graph.get_operations())


def _graph_of(op, attribute):
    """The graph of a function that the operator calls.  Eager operators (replay.py) call those that the context knows."""
    if attribute.name in _graphs:
        return _graphs[attribute.name]
    found = op.graph._get_function(attribute.name)
    if found is not None:
        return found.graph
    try:
        return function_def_to_graph.function_def_to_graph(context.context().get_function_def(attribute.name))
    except (tf.errors.NotFoundError, ValueError) as error:
        raise Unclear(f"{op.type}: {error}") from error
