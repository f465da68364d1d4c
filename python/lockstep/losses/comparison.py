# SPDX-License-Identifier: Apache-2.0
"""Do two traces of a function, for other numbers of rows, compute the same?  The same operators, given the same, with the same attributes and
constants: one that follows from the number of rows, as 0.1 / len(x), is another in each, and so is what the script has changed in Python meanwhile.

Constants may differ where they are but shapes, where TensorFlow has measured a tensor or goes back through one, and where Keras made them.  So
there are tensors whose shapes differ.  Those that are made of rows do, and others that the script has made with the number of rows:

    tf.ones((len(x), 1))      12 x 1    6 x 1       ones for each row, perhaps
    memory[:len(x)]           12 x 5    6 x 5       the same six on all ranks: nothing for each row

What those mean for a loss is asked of a second proof (prove), which knows them."""
import os
import re
import sys

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor

from lockstep.losses import calls
from lockstep.losses.look import GOING_BACK, goes_back
from lockstep.slices import current

# The inputs of operators that say how large something is, or where it begins and ends: what becomes of rows by that is asked elsewhere.
_SIZES = {"Reshape": (1,), "Fill": (0,), "BroadcastTo": (1,), "Tile": (1,), "StridedSlice": (1, 2, 3), "Slice": (1, 2), "RandomUniform": (0,),
          "RandomUniformInt": (0,), "RandomStandardNormal": (0,), "TruncatedNormal": (0,), "StatelessRandomUniformV2": (0,),
          "StatelessRandomNormalV2": (0,), "StatelessTruncatedNormalV2": (0,), "BroadcastGradientArgs": (0, 1), "TensorListReserve": (0, 1),
          "TensorListFromTensor": (1,)}
_MADE_SIZES = ("Pack", "ConcatV2", "Cast")  # shapes are made of numbers by these
_IN_TAPE = re.compile(f"(^|/){GOING_BACK}/")
_PARTS = ("StridedSlice", "Slice")
_PARTS_OF_KERAS_FOR_SCRIPTS = ("src/ops", "src/backend", "src/utils")
_OTHER_ATTRIBUTES = ("value", "shape", "shared_name", "container", "seed", "seed2", "output_shapes", "config", "config_proto", "executor_type")
LARGEST_CAPTURED = 1024  # elements of a tensor from outside, whose values are compared


def difference(one, other, rows):
    """None: these graphs compute something else.  Otherwise {id of a graph of `one`: {name of a tensor: the place of the dimension in which it differs;
    None: it differs in another way}}.  rows: the numbers of rows that they were traced for."""
    found = {}
    return found if _compare(one, other, rows, found) else None


def _compare(one, other, rows, found):
    ops, others = one.get_operations(), other.get_operations()
    if [op.type for op in ops] != [op.type for op in others] or not _have_same_captures(one, other):
        return False
    places = {op.name: i for i, op in enumerate(ops)}, {op.name: i for i, op in enumerate(others)}
    sized = found.setdefault(id(one), {})
    for op, its in zip(ops, others):
        if not _is_same(op, its, places, rows, found):
            return False
        if not _IN_TAPE.search(op.name):
            sized.update((tensor.name, _place_of_rows(tensor, item, rows)) for tensor, item in zip(op.outputs, its.outputs) if _differs(tensor, item))
            if op.type in _PARTS and op.outputs[0].name not in sized and not all(map(_is_same_value, op.inputs[1:], its.inputs[1:])):
                sized[op.outputs[0].name] = None  # another part, as large
    return True


def _is_same_value(tensor, its):
    return np.array_equal(tf.get_static_value(tensor), tf.get_static_value(its))


def _have_same_captures(one, other):
    """Do they take the same from outside?  Not one network of the script in one trace, and another in the other."""
    pairs, others = ([outer for outer, _ in graph.captures] for graph in (one, other))
    return len(pairs) == len(others) and all(map(_is_same_captured, pairs, others))


def _is_same_captured(outer, its):
    if outer is its or not isinstance(outer, EagerTensor) or not isinstance(its, EagerTensor):
        return outer is its or not (isinstance(outer, EagerTensor) or isinstance(its, EagerTensor))
    if outer.dtype in (tf.resource, tf.variant) or outer.shape != its.shape or outer.shape.num_elements() > LARGEST_CAPTURED:
        return False
    return outer.dtype == its.dtype and np.array_equal(outer._numpy(), its._numpy())


def _is_same(op, its, places, rows, found):
    if op.type == "Const":
        return _is_same_constant(op, its)
    if _wires(op, places[0]) != _wires(its, places[1]) or not _have_same_attributes(op, its):
        return False
    graphs, others = calls.graphs_of(op), calls.graphs_of(its)
    return len(graphs) == len(others) and all(_compare(graph, other, rows, found) for graph, other in zip(graphs, others))


def _wires(op, places):
    return [(places[tensor.op.name], tensor.value_index) for tensor in op.inputs]


def _have_same_attributes(op, its):
    """But for names and shapes."""
    if op.type.startswith("Lockstep"):
        return True
    return all(_is_same_attribute(name, value, its.node_def.attr[name]) for name, value in op.node_def.attr.items())


def _is_same_attribute(name, value, other):
    if name.startswith("_") or name in _OTHER_ATTRIBUTES or value.WhichOneof("value") in ("func", "shape", "tensor"):
        return True
    is_list_of_names = value.WhichOneof("value") == "list" and (value.list.func or value.list.shape or value.list.tensor)
    return bool(is_list_of_names) or value == other


def _differs(tensor, its):
    return tensor.shape.rank is not None and tensor.shape.as_list() != (its.shape.as_list() if its.shape.rank is not None else None)


def _place_of_rows(tensor, its, rows):
    if its.shape.rank != tensor.shape.rank:
        return None
    sizes = list(zip(tensor.shape.as_list(), its.shape.as_list()))
    places = [place for place, (size, other) in enumerate(sizes) if size != other]
    return places[0] if len(places) == 1 and sizes[places[0]] == tuple(rows) else None


def _is_same_constant(op, its):
    value, changed = (tf.get_static_value(item.outputs[0]) for item in (op, its))
    if value is None or changed is None or np.array_equal(value, changed, equal_nan=value.dtype.kind in "fc"):
        return True
    if value.ndim and value.shape != changed.shape and value.size and np.all(value == value.flat[0]) and np.all(changed == value.flat[0]):
        return True  # zeros for each row: asked by the second proof
    if goes_back(op) or op.outputs[0].name in getattr(op.graph, "_lockstep_measured", {}) or not _is_of_script(op):
        return True
    return value.dtype.kind in "iu" and _is_size(op.outputs[0])


def _is_size(tensor):
    """Is it used for nothing but sizes?"""
    uses = [(user, i) for user in tensor.consumers() for i, given in enumerate(user.inputs) if given is tensor]
    return bool(uses) and all(i in _SIZES.get(user.type, ()) or (user.type in _MADE_SIZES and _is_size(user.outputs[0])) for user, i in uses)


def _is_of_script(op):
    """Does a line of the script say it, or of a library that is used by it?  Not one of Keras's layers, nor where noise is made for slices."""
    folders = {name: os.path.dirname(os.path.abspath(sys.modules[name].__file__)) + os.sep
               for name in ("tensorflow", "lockstep", "keras", "tf_keras") if name in sys.modules}
    keras = tuple(folders[name] for name in ("keras", "tf_keras") if name in folders)
    passed = (folders["tensorflow"], folders["lockstep"], *(folder + part for folder in keras for part in _PARTS_OF_KERAS_FOR_SCRIPTS))
    innermost = next((path for path in (os.path.abspath(frame.filename) for frame in reversed(list(op.traceback or ()))) if not path.startswith(passed)), "")
    is_for_noise = any(os.path.basename(frame.filename) == "noise.py" and frame.filename.startswith(folders["lockstep"]) for frame in op.traceback or ())
    return not innermost.startswith(keras) and not is_for_noise


# ---- the second proof ----------------------------------------------------------------------------------------

def remember(graph, proof):
    """While a function is traced something was proved: proof(sized) does it again, and gives the problem, if there is one."""
    if not current.called or current.is_scoped():
        return  # nobody traces it again for a comparison
    *_, outermost = current.graphs_around(graph)
    outermost._lockstep_proofs = [*getattr(outermost, "_lockstep_proofs", ()), proof]


def prove(graph, sized):
    """What is a problem of this function, now that it is known what has other shapes in another trace?"""
    return next((problem for problem in (proof(sized) for proof in getattr(graph, "_lockstep_proofs", ())) if problem is not None), None)
