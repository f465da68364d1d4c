# SPDX-License-Identifier: Apache-2.0
"""What a loop of the script, or a step of Keras, computes eagerly with the first batch that it gets, as a graph that can be looked at (looks.py).

    _deliver(batch)      begin(batch): from here on every operator is noted
    the script's step    ...
    tape.gradient(loss)  look_of(loss): the same operators once more, in a graph, where nothing is computed
    the next batch       end(): nothing is noted any more

What looks like a loop may be next(iter(data)), and no batch may follow: only so many operators are noted, and no tensor is kept
alive, but for small ones that others were computed from (axes, numbers).

Seam: tf.python.framework.op_callbacks, which TensorFlow's debugger uses."""
import collections
import contextlib
import threading
import weakref

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context, record
from tensorflow.python.framework import op_callbacks, op_def_library, op_def_registry
from tensorflow.python.framework import ops as framework_ops
from tensorflow.python.framework.func_graph import FuncGraph
from tensorflow.python.framework.ops import EagerTensor

from lockstep import hooks
from lockstep.losses.look import GOING_BACK, Look
from lockstep.losses.states import Fixed, Rows, Sparse, Unknown, dimension

NAME = "lockstep_replay"  # of the graph
MOST_OPERATORS = 20000
MOST_LOOKS = 16  # each puts all operators into a graph: a script may take hundreds of steps with one batch
SMALL = 64  # elements
LARGE = 1 << 20

# inputs: places in the list of all tensors, small tensors, ones, or the specifications of others
Op = collections.namedtuple("Op", "type inputs attrs outputs scope")

Alike = collections.namedtuple("Alike", "spec value")  # a tensor all of whose elements are equal

_local = threading.local()


class _Notes:
    def __init__(self, rows):
        """rows: (tensor, what it is)"""
        tensors = [tensor for tensor, _ in rows]
        self.rows, self.states, self.ops = [tf.TensorSpec.from_tensor(tensor) for tensor in tensors], [state for _, state in rows], []
        self.settled = {}  # {place of a loss: places of what it is brought to a mean from}
        self.distrusted = []  # places of what has a gradient of the script's own
        self.read = []  # places of what the script has made a number of, or has gone one way or another for
        self.has_looked, self.looks = False, 0
        self._number, self._places = 0, {}  # id of a tensor: (reference to it, its place)
        self._add(tensors)

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
        scope = context.context().scope_name or "step/"
        self.ops.append(Op(tf.compat.as_str(op_type), given, dict(zip(attrs[::2], attrs[1::2])), specs, f"{scope}{GOING_BACK}/" if is_going_back() else scope))
        self._add(outputs)


def _given(tensor, place):
    if place is not None:
        return place
    spec = tf.TensorSpec(tensor.shape, tensor.dtype)
    number = None if tensor.dtype in (tf.resource, tf.variant) else tensor.shape.num_elements()
    if number is None or number <= SMALL:
        return spec if number is None else tensor
    if number > LARGE or not tensor.dtype.is_floating:
        return spec
    value = tensor._numpy()  # where a tape begins to go back there are ones
    return Alike(spec, value.flat[0]) if np.all(value == value.flat[0]) else spec


def kinds_of_batch(items):
    """(tensor, what it is) of a batch that is cut: tensors with as many rows as the first, and what sparse and ragged tensors are made of.  Other
    tensors are not cut, so they are fixed."""
    found, first = [], next((item for item in items if isinstance(item, tf.Tensor) and item.shape.rank), None)
    for item in items:
        if isinstance(item, tf.SparseTensor):
            found += [(tensor, Sparse()) for tensor in (item.indices, item.values, item.dense_shape)]
        elif isinstance(item, tf.Tensor):
            is_cut = first is not None and item.shape.rank and dimension(item, 0) == dimension(first, 0)
            found.append((item, Rows() if is_cut else Fixed()))
        else:
            found += [(tensor, Unknown(None)) for tensor in tf.nest.flatten(item, expand_composites=True) if isinstance(tensor, tf.Tensor)]
    return found


def begin(batch):
    end()
    rows = kinds_of_batch(tf.nest.flatten(batch))
    if rows:
        _local.notes = _Notes(rows)
        op_callbacks.add_op_callback(_note)


def attach():
    """Numbers that the script reads may come back as constants, or choose what it does next."""
    for name in ("__bool__", "__int__", "__float__", "__index__", "numpy", "__array__"):
        @hooks.wrap(framework_ops._EagerTensorBase, name)
        def read(original, self, *args, **kwargs):
            note_read(self)
            return original(self, *args, **kwargs)


def end():
    _local.is_full = False
    if _notes() is not None:
        _local.notes = None
        op_callbacks.remove_op_callback(_note)


@contextlib.contextmanager
def suspended():
    """Nothing is noted meanwhile, and nothing known of what was."""
    notes, _local.notes = _notes(), None
    try:
        yield
    finally:
        _local.notes = notes


def _notes():
    return getattr(_local, "notes", None)


def _note(op_type, inputs, attrs, outputs, op_name=None, graph=None):
    notes = _notes()
    if graph is not None or notes is None:
        return
    notes.add(op_type, inputs, attrs, outputs)
    if len(notes.ops) >= MOST_OPERATORS:
        end()
        _local.is_full = True


@contextlib.contextmanager
def going_back():
    """A tape computes a gradient meanwhile."""
    before, _local.goes_back = is_going_back(), True
    try:
        yield
    finally:
        _local.goes_back = before


def is_going_back():
    return getattr(_local, "goes_back", False)


def settle(loss, sources):
    """Notes that this eager tensor is brought to a mean over the rows: see looks.settled."""
    if _notes() is not None:
        places = [_notes().place(tensor) for tensor in sources]
        _notes().settled[_notes().place(loss)] = [place for place in places if place is not None]


def distrust(tensors):
    """These eager tensors have a gradient that the script computes by itself."""
    if _notes() is not None:
        _notes().distrusted += [place for place in map(_notes().place, tensors) if place is not None]


def knows(tensors):
    """Was one of these eager tensors made of a batch that is noted now?"""
    return _notes() is not None and any(_notes().place(tensor) is not None for tensor in tensors)


def note_read(tensor):
    """The script has read the value of this eager tensor, before it has taken a gradient."""
    place = None if _notes() is None or _notes().has_looked else _notes().place(tensor)
    if place is not None:
        _notes().read.append(place)


def is_noting():
    return _notes() is not None


def is_full():
    """Were there more operators than are noted?"""
    return getattr(_local, "is_full", False)


def look_of(target):
    """What is to be said of an eager target of a gradient; None: it was not made from what is noted."""
    notes = _notes()
    place = None if notes is None else notes.place(target)
    if place is None:
        return None
    notes.looks += 1
    look, made = _look(notes)
    look = look.judge(made[place])
    if notes.looks >= MOST_LOOKS:
        end()
        _local.is_full = True
    return look.judge_decisions([made[read] for read in notes.read])


def states_of(tensors):
    """What these eager tensors are; None: nothing is noted now.  What was not made meanwhile is fixed."""
    notes = _notes()
    if notes is None:
        return None
    places = [notes.place(tensor) for tensor in tensors]
    look, made = _look(notes)
    found = iter(look.states_of([made[place] for place in places if place is not None]))
    return [Fixed() if place is None else next(found) for place in places]


def look_at_variables():
    """Has anything that is different for slices been put into a variable?  None: nothing was noted."""
    notes = _notes()
    return None if notes is None else _look(notes)[0].judge_variables()


def look_at_decisions():
    """Has the script read what is different for slices?  None: nothing was noted."""
    notes = _notes()
    if notes is None or not notes.read:
        return None
    look, made = _look(notes)
    return look.judge_decisions([made[read] for read in notes.read])


def _look(notes):
    """(a look at the same operators in a graph, all tensors there)"""
    notes.has_looked = True
    graph = FuncGraph(NAME)
    with graph.as_default(), record.stop_recording():
        made = [tf.compat.v1.placeholder(spec.dtype, spec.shape) for spec in notes.rows]
        graph._lockstep_fixed = set()
        for op in notes.ops:
            with tf.name_scope(op.scope):
                is_agreed = op.type.startswith("Lockstep")  # the same on all ranks
                made += [_in_graph(given, made, graph) for given in op.outputs] if is_agreed else _again(op, made, graph)
    graph._lockstep_settled = {made[loss].name: [made[source] for source in sources] for loss, sources in notes.settled.items() if loss is not None}
    graph._lockstep_distrusted = {made[place].name for place in notes.distrusted}
    rows = [tensor for tensor, state in zip(made, notes.states) if isinstance(state, Rows)]
    return Look(graph, rows, {tensor.name: state for tensor, state in zip(made, notes.states) if not isinstance(state, Rows)}), made


def _in_graph(given, made, graph):
    if isinstance(given, int):
        return made[given]
    if isinstance(given, EagerTensor) and given.dtype not in (tf.resource, tf.variant):
        return tf.constant(given._numpy(), given.dtype)
    if isinstance(given, Alike):
        return tf.fill(given.spec.shape, tf.constant(given.value, given.spec.dtype))
    if isinstance(given, tf.TensorSpec):
        given = tf.compat.v1.placeholder(given.dtype, given.shape)
        graph._lockstep_fixed.add(given.name)
    return given


def _again(op, made, graph):
    """The operator's outputs in the graph, or placeholders, which nobody understands."""
    try:
        made = _outputs(op, [_in_graph(given, made, graph) for given in op.inputs])
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
