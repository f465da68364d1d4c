# SPDX-License-Identifier: Apache-2.0
"""What the function that is being traced was given: which of its inputs are rows of the batch.

    for x, y in data:                           the loop knows: rows
        x = x - tf.reduce_mean(x, axis=0)       noted eagerly (replay.py): made with a figure of the batch
        step(x, y, rate)                        its arguments are those; rate was made before the batch came: fixed

A function in another one gets symbolic tensors, and captures some: what those are is asked of the graph around it."""
import inspect

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor

from lockstep.losses import replay
from lockstep.losses.look import Look
from lockstep.losses.states import Fixed, Rows, Unknown, are_same
from lockstep.slices import current


def of_graph(graph):
    """(tensors that are rows, {name of another input: what it is})"""
    noted = getattr(graph, "_lockstep_rows", None)
    if noted is not None:
        found = [(tensor, state) for tensor, state in replay.kinds_of_batch(noted) if tensor.graph is graph]
        whole = {tensor.name: Fixed() for tensor in graph._lockstep_batch if isinstance(tensor, tf.Tensor) and tensor.graph is graph}
        others = whole | {tensor.name: state for tensor, state in found if not isinstance(state, Rows)} | _captured(graph)
        return [tensor for tensor, state in found if isinstance(state, Rows)], others
    captured = {inner.name for _, inner in graph.captures}
    arguments = [tensor for tensor in graph.inputs if tensor.dtype != tf.resource and tensor.name not in captured]
    others = _captured(graph)
    given = _given_for(graph, arguments)
    if given is None:  # nobody knows what they are
        return [], others
    states = dict(zip((tensor.name for tensor in arguments), _states_of(given)))
    rows = [tensor for tensor in arguments if isinstance(states[tensor.name], Rows) and states[tensor.name] == Rows()]
    return rows, others | {name: state for name, state in states.items() if not any(tensor.name == name for tensor in rows)}


def _captured(graph):
    """{name: state} of tensors of the graph around it."""
    pairs = [(outer, inner) for outer, inner in graph.captures if not isinstance(outer, EagerTensor) and outer.dtype != tf.resource]
    return dict(zip((inner.name for _, inner in pairs), _states_of([outer for outer, _ in pairs])))


def _given_for(graph, arguments):
    """The tensors, eager or of the graphs around, that the function was called with; None: it is not known which call it is."""
    around = list(current.graphs_around(graph))[1:]
    for function, call in reversed(current.called):
        given = [item for item in tf.nest.flatten(_in_order(function, *call), expand_composites=True)
                 if isinstance(item, (np.ndarray, np.generic)) or (tf.is_tensor(item) and not isinstance(item, tf.Variable) and item.dtype != tf.resource)]
        if len(given) == len(arguments) and all(_may_be(*pair) and _is_outside(pair[0], around) for pair in zip(given, arguments)):
            return given
    return None


def _in_order(function, args, kwargs):
    """Arguments in the order of the function's parameters."""
    try:
        names = list(inspect.signature(function.python_function).parameters)
    except (TypeError, ValueError):
        names = []
    place = {name: i for i, name in enumerate(names)}
    return args, [kwargs[name] for name in sorted(kwargs, key=lambda name: (place.get(name, len(names)), name))]


def _is_outside(tensor, graphs):
    is_symbolic = isinstance(tensor, tf.Tensor) and not isinstance(tensor, EagerTensor)
    return not is_symbolic or any(tensor.graph is graph for graph in graphs)


def _may_be(given, placeholder):
    return placeholder.dtype == given.dtype and placeholder.shape.is_compatible_with(given.shape)


def _states_of(tensors):
    """What these are, eager or of one graph."""
    symbolic = [tensor for tensor in tensors if isinstance(tensor, tf.Tensor) and not isinstance(tensor, EagerTensor)]
    found = iter(_in_graph(symbolic[0].graph, symbolic) if symbolic else ())
    noted = replay.states_of([tensor for tensor in tensors if isinstance(tensor, EagerTensor)])
    eager = iter(noted or ())
    others = [tensor for tensor in tensors if hasattr(tensor, "_lockstep_part")] or [tensor for tensor in tensors if len(tensor.shape)]
    has_known = any(hasattr(tensor, "_lockstep_part") for tensor in tensors) or any(are_same(state, Rows()) for state in noted or ())
    states = []
    for tensor in tensors:
        if isinstance(tensor, tf.Tensor) and not isinstance(tensor, EagerTensor):
            states.append(next(found))
        elif current.slices_given is not None:
            states.append(next((state for one, state in current.slices_given if one is tensor), Fixed()))
        elif isinstance(tensor, EagerTensor) and noted is not None:
            states.append(next(eager))
        elif has_known and not isinstance(tensor, EagerTensor):  # where an array is from is not known, and a loop does not cut it
            states.append(Fixed())
        else:  # arrays, or nothing was noted: those with as many rows as the batch
            states.append(Rows() if len(tensor.shape) and tensor.shape[0] == others[0].shape[0] else Fixed())
    return states


def _in_graph(graph, tensors):
    if any(tensor.graph is not graph for tensor in tensors) or not graph.building_function:
        return [Unknown(None)] * len(tensors)
    rows, others = of_graph(graph)
    return Look(graph, rows, others).states_of(tensors)
