# SPDX-License-Identifier: Apache-2.0
"""Do two traces of a function, for other numbers of rows, compute the same?  The same operators, and the same constants: one that follows from
the number of rows, as 0.1 / len(x), is another in each, and so is what the script has changed in Python meanwhile.

Constants may differ where they are but shapes, where TensorFlow has measured a tensor or goes back through one, and where Keras made them."""
import os
import re
import sys

import numpy as np
import tensorflow as tf

from lockstep.losses import calls
from lockstep.losses.look import GOING_BACK

# The inputs of operators that say how large something is, or where it begins and ends: what becomes of rows by that is asked elsewhere.
_SIZES = {"Reshape": (1,), "Fill": (0,), "BroadcastTo": (1,), "Tile": (1,), "StridedSlice": (1, 2, 3), "Slice": (1, 2), "RandomUniform": (0,),
          "RandomStandardNormal": (0,), "TruncatedNormal": (0,), "StatelessRandomUniformV2": (0,), "StatelessRandomNormalV2": (0,),
          "StatelessTruncatedNormalV2": (0,), "BroadcastGradientArgs": (0, 1), "TensorListReserve": (0, 1), "TensorListFromTensor": (1,)}
_MADE_SIZES = ("Pack", "ConcatV2")  # shapes are made of numbers by these
_GOES_BACK = re.compile(f"(^|/)({GOING_BACK}|gradients)/")
_PARTS_OF_KERAS_FOR_SCRIPTS = ("src/ops", "src/backend", "src/utils")


def are_same(one, other):
    """Is this so of these graphs?"""
    ops, others = one.get_operations(), other.get_operations()
    return [op.type for op in ops] == [op.type for op in others] and all(map(_is_same, ops, others))


def _is_same(op, other):
    if op.type == "Const":
        return _is_same_constant(op, other)
    return all(map(are_same, calls.graphs_of(op), calls.graphs_of(other)))


def _is_same_constant(op, other):
    value, changed = (tf.get_static_value(item.outputs[0]) for item in (op, other))
    if value is None or changed is None or np.array_equal(value, changed, equal_nan=value.dtype.kind in "fc"):
        return True
    if value.ndim > 1 and value.shape != changed.shape and value.size and np.all(value == value.flat[0]) and np.all(changed == value.flat[0]):
        return True  # zeros for each row
    if _GOES_BACK.search(op.name) or op.outputs[0].name in getattr(op.graph, "_lockstep_measured", {}) or not _is_of_script(op):
        return True
    return value.dtype.kind in "iu" and _is_size(op.outputs[0])


def _is_size(tensor):
    """Is it used for nothing but sizes?"""
    uses = [(user, i) for user in tensor.consumers() for i, given in enumerate(user.inputs) if given is tensor]
    return bool(uses) and all(i in _SIZES.get(user.type, ()) or (user.type in _MADE_SIZES and _is_size(user.outputs[0])) for user, i in uses)


def _is_of_script(op):
    """Does a line of the script say it, or of a library that is used by it?  Not one of Keras's layers."""
    folders = {name: os.path.dirname(os.path.abspath(sys.modules[name].__file__)) + os.sep
               for name in ("tensorflow", "lockstep", "keras", "tf_keras") if name in sys.modules}
    keras = tuple(folders[name] for name in ("keras", "tf_keras") if name in folders)
    passed = (folders["tensorflow"], folders["lockstep"], *(folder + part for folder in keras for part in _PARTS_OF_KERAS_FOR_SCRIPTS))
    innermost = next((path for path in (os.path.abspath(frame.filename) for frame in reversed(list(op.traceback or ()))) if not path.startswith(passed)), "")
    return not innermost.startswith(keras)
