# SPDX-License-Identifier: Apache-2.0
"""What a loop of the script computes eagerly with the first batch that it gets, as a graph that can be looked at (looks.py).

    _deliver(batch)      begin(batch): from here on every operator is noted, with its tensors
    the script's step    ...
    tape.gradient(loss)  graph_of(loss): the same operators once more, in a graph, where nothing is computed
    the next batch       end(): nothing is noted any more

Seam: tf.python.framework.op_callbacks, which TensorFlow's debugger uses."""
import threading

import tensorflow as tf
from tensorflow.python.eager import context, record
from tensorflow.python.framework import op_callbacks, op_def_library, op_def_registry
from tensorflow.python.framework.func_graph import FuncGraph

_local = threading.local()


def begin(batch):
    end()
    _local.rows = [tensor for tensor in tf.nest.flatten(batch) if isinstance(tensor, tf.Tensor) and tensor.shape.rank]
    _local.noted = []
    op_callbacks.add_op_callback(_note)


def end():
    if getattr(_local, "noted", None) is not None:
        _local.rows = _local.noted = None
        op_callbacks.remove_op_callback(_note)


def settle(loss):
    """Notes that this eager tensor is brought to a mean over the rows: see looks.settled."""
    if getattr(_local, "noted", None) is not None:
        loss._lockstep_is_settled = True


def graph_of(target):
    """(graph, rows, target) there; None: nothing was noted."""
    if not getattr(_local, "rows", None):
        return None
    graph, noted = FuncGraph("lockstep_replay"), list(_local.noted)
    with graph.as_default(), record.stop_recording():
        rows = [tf.compat.v1.placeholder(tensor.dtype, tensor.shape) for tensor in _local.rows]
        made = {id(tensor): row for tensor, row in zip(_local.rows, rows)}
        settled = set()
        for op in noted:
            for before, after in zip(op.outputs, _again(op, [made.get(id(tensor), tensor) for tensor in op.inputs])):
                made[id(before)] = after
                if hasattr(before, "_lockstep_is_settled"):
                    settled.add(after.name)
    graph._lockstep_settled = settled
    found = made.get(id(target))
    return None if found is None else (graph, rows, found)


class _Op:
    def __init__(self, type_, inputs, attrs, outputs):
        self.type, self.inputs, self.outputs = type_, list(inputs), list(outputs)
        self.attrs = dict(zip(attrs[::2], attrs[1::2]))
        self.scope = context.context().scope_name


def _note(op_type, inputs, attrs, outputs, op_name=None, graph=None):
    if graph is None:
        _local.noted.append(_Op(op_type, inputs, attrs, outputs))


def _again(op, inputs):
    """The operator's outputs in the graph, or placeholders, which nobody understands."""
    try:
        with tf.name_scope(op.scope or "step"):
            *_, made, _ = op_def_library._apply_op_helper(op.type, **_arguments(op, inputs))
        return made.outputs
    except Exception:  # a function that it calls, an operator of another library
        return [tf.compat.v1.placeholder(tensor.dtype, tensor.shape) for tensor in op.outputs]


def _arguments(op, inputs):
    """By the names of the operator's definition: a list where it takes one; attributes that do not follow from the inputs."""
    definition = op_def_registry.get(op.type)
    arguments, inferred, at = {}, set(), 0
    for given in definition.input_arg:
        number = op.attrs[given.number_attr] if given.number_attr else len(op.attrs[given.type_list_attr]) if given.type_list_attr else None
        arguments[given.name] = inputs[at] if number is None else inputs[at:at + number]
        at += 1 if number is None else number
        inferred |= {given.number_attr, given.type_attr, given.type_list_attr}
    arguments.update({attr.name: op.attrs[attr.name] for attr in definition.attr
                      if attr.name not in inferred and attr.name in op.attrs and not attr.name.startswith("_")})
    return arguments
