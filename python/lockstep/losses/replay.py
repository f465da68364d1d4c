# SPDX-License-Identifier: Apache-2.0
"""What a loop of the script, or a step of Keras, computes eagerly with the first batch that it gets, as a graph that can be looked at (looks.py).

    _deliver(batch)      begin(batch): from here on every operator is noted
    the script's step    ...
    tape.gradient(loss)  graph_of(loss): the same operators once more, in a graph, where nothing is computed
    the next batch       end(): nothing is noted any more

What looks like a loop may be next(iter(data)), and no batch may follow: only so many operators are noted, and no tensor is kept
alive, but for small ones that others were computed from (axes, numbers).

Seam: tf.python.framework.op_callbacks, which TensorFlow's debugger uses."""
import collections
import threading
import weakref

import tensorflow as tf
from tensorflow.python.eager import context, record
from tensorflow.python.framework import op_callbacks, op_def_library, op_def_registry
from tensorflow.python.framework.func_graph import FuncGraph

MOST_OPERATORS = 5000
MOST_LOOKS = 8  # each puts all operators into a graph: a script may take hundreds of steps with one batch
SMALL = 64  # elements

# inputs: places in the list of all tensors, small tensors, or the specifications of others
Op = collections.namedtuple("Op", "type inputs attrs outputs scope")

_local = threading.local()


class _Notes:
    def __init__(self, rows):
        self.rows, self.ops, self.settled = [tf.TensorSpec.from_tensor(tensor) for tensor in rows], [], set()
        self.looks = 0
        self._number, self._places = 0, {}  # id of a tensor: (reference to it, its place)
        self._add(rows)

    def _add(self, tensors):
        for tensor in tensors:
            self._places[id(tensor)] = weakref.ref(tensor), self._number
            self._number += 1

    def place(self, tensor):
        """None: it was made elsewhere, perhaps after one with this id was gone."""
        reference, place = self._places.get(id(tensor), (None, None))
        return place if reference is not None and reference() is tensor else None

    def add(self, op_type, inputs, attrs, outputs):
        given = [_given(tensor, self.place(tensor)) for tensor in inputs]
        specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in outputs]
        self.ops.append(Op(op_type, given, dict(zip(attrs[::2], attrs[1::2])), specs, context.context().scope_name))
        self._add(outputs)


def _given(tensor, place):
    if place is not None:
        return place
    is_small = tensor.dtype != tf.resource and tensor.shape.num_elements() is not None and tensor.shape.num_elements() <= SMALL
    return tensor if is_small else tf.TensorSpec(tensor.shape, tensor.dtype)


def begin(batch):
    end()
    rows = [tensor for tensor in tf.nest.flatten(batch) if isinstance(tensor, tf.Tensor) and tensor.shape.rank]
    if rows:
        _local.notes = _Notes(rows)
        op_callbacks.add_op_callback(_note)


def end():
    if _notes() is not None:
        _local.notes = None
        op_callbacks.remove_op_callback(_note)


def _notes():
    return getattr(_local, "notes", None)


def _note(op_type, inputs, attrs, outputs, op_name=None, graph=None):
    notes = _notes()
    if graph is not None or notes is None:
        return
    notes.add(op_type, inputs, attrs, outputs)
    if len(notes.ops) >= MOST_OPERATORS:
        end()


def settle(loss):
    """Notes that this eager tensor is brought to a mean over the rows: see looks.settled."""
    if _notes() is not None:
        _notes().settled.add(_notes().place(loss))


def graph_of(target):
    """(graph, rows, target) there; None: nothing was noted."""
    notes = _notes()
    place = None if notes is None else notes.place(target)
    if place is None:
        return None
    notes.looks += 1
    if notes.looks >= MOST_LOOKS:
        end()
    graph = FuncGraph("lockstep_replay")
    with graph.as_default(), record.stop_recording():
        made = [tf.compat.v1.placeholder(spec.dtype, spec.shape) for spec in notes.rows]
        rows, graph._lockstep_fixed = list(made), set()
        for op in notes.ops:
            made += _again(op, [_in_graph(given, made, graph) for given in op.inputs])
    graph._lockstep_settled = {made[settled].name for settled in notes.settled if settled is not None}
    return graph, rows, made[place]


def _in_graph(given, made, graph):
    if isinstance(given, int):
        return made[given]
    if isinstance(given, tf.TensorSpec):
        given = tf.compat.v1.placeholder(given.dtype, given.shape)
        graph._lockstep_fixed.add(given.name)
    return given


def _again(op, inputs):
    """The operator's outputs in the graph, or placeholders, which nobody understands."""
    try:
        with tf.name_scope(op.scope or "step"):
            made = _outputs(op, inputs)
        for tensor, spec in zip(made, op.outputs):
            tensor.set_shape(spec.shape)
        return made
    except Exception:  # an operator of another library
        return [tf.compat.v1.placeholder(spec.dtype, spec.shape) for spec in op.outputs]


def _outputs(op, inputs):
    if op_def_registry.get(op.type) is None:  # a function, by its name
        return tf.raw_ops.StatefulPartitionedCall(args=inputs, Tout=[spec.dtype for spec in op.outputs], f=op.type)
    *_, made, _ = op_def_library._apply_op_helper(op.type, **_arguments(op, inputs))
    return made.outputs


def _arguments(op, inputs):
    """By the names of the operator's definition: a list where it takes one; attributes that do not follow from the inputs."""
    definition = op_def_registry.get(op.type)
    arguments, inferred, inputs = {}, set(), iter(inputs)
    for given in definition.input_arg:
        inferred |= {given.number_attr, given.type_attr, given.type_list_attr}
        number = op.attrs[given.number_attr] if given.number_attr else len(op.attrs[given.type_list_attr]) if given.type_list_attr else None
        arguments[given.name] = next(inputs) if number is None else [next(inputs) for _ in range(number)]
    arguments.update({attr.name: op.attrs[attr.name] for attr in definition.attr
                      if attr.name not in inferred and attr.name in op.attrs and not attr.name.startswith("_")})
    return arguments
