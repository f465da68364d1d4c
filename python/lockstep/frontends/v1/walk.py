# SPDX-License-Identifier: Apache-2.0
"""Walks through a graph: what comes before an operation, and what comes after it."""
import tensorflow as tf

from lockstep import ops

OURS = "Lockstep"
_APART = ("TensorListFromTensor", "TensorArrayScatterV3")
_FUNCTIONS = ("f", "body", "cond", "then_branch", "else_branch", "branches")


def outermost(graph):
    """The graph that a Session runs, of one that may belong to a function in it."""
    while graph.building_function and graph.outer_graph is not None:
        graph = graph.outer_graph
    return graph


def _op(item):
    return item if isinstance(item, tf.Operation) else item.op


def _flat(tensors):
    return [part for tensor in tensors for part in tf.nest.flatten(tensor, expand_composites=True) if part is not None]


def before(items, fed=()):
    """The operations that these tensors and operations need, themselves included; `fed` are ids of fed tensors.

    Tensors in the graph of a function need what the function captures, too."""
    found, open_ops = set(), [_op(item) for item in _flat(items) if id(item) not in fed]
    while open_ops:
        op = open_ops.pop()
        if op in found:
            continue
        found.add(op)
        open_ops += [tensor.op for tensor in op.inputs if id(tensor) not in fed]
        open_ops += op.control_inputs
        if not op.inputs and op.type == "Placeholder" and op.graph.building_function:
            open_ops += [outside.op for outside, inside in op.graph.captures if inside.op == op]
    return found


def after(tensors, within):
    """The operations among `within` that compute from these tensors, up to our own, whose results are global."""
    found, open_tensors = set(), list(tensors)
    while open_tensors:
        for op in open_tensors.pop().consumers():
            if op in within and op not in found and not op.type.startswith(OURS):
                found.add(op)
                open_tensors += op.outputs
    return found


def takes_rows_apart(tensors, within):
    """Does a loop go over the rows of these tensors, as over the steps of a sequence?

    Recurrent layers turn batches so that time comes first, and take that apart; rows taken apart without a transpose are
    steps of time themselves."""
    found, open_tensors = set(), list(tensors)
    while open_tensors:
        for op in open_tensors.pop().consumers():
            if op.type in _APART:
                return True
            if op in within and op not in found and op.type != "Transpose" and not op.type.startswith(OURS):
                found.add(op)
                open_tensors += op.outputs
    return False


def _function_names(op):
    for name in _FUNCTIONS:
        try:
            value = op.get_attr(name)
        except ValueError:
            continue
        for function in value if isinstance(value, list) else [value]:
            if hasattr(function, "name"):
                yield function.name


def _is_gradient(op):
    return op.type.startswith(OURS) and any(
        name.decode().startswith(ops.GRADIENT) for name in _tensor_names(op))


def _tensor_names(op):
    for attribute in ("tensor_name", "tensor_names"):
        try:
            value = op.get_attr(attribute)
        except ValueError:
            continue
        return value if isinstance(value, list) else [value]
    return []


def reduces_gradients(op, seen=None):
    """Is this, or does it call a function with, one of our reductions of a gradient?"""
    if _is_gradient(op):
        return True
    seen = set() if seen is None else seen
    for name in _function_names(op):
        if name in seen:
            continue
        seen.add(name)
        function = op.graph._get_function(name)
        graph = getattr(function, "graph", None)
        if graph is not None and any(reduces_gradients(inner, seen) for inner in graph.get_operations()):
            return True
    return False
