# SPDX-License-Identifier: Apache-2.0
"""Rows that a loss takes by their position in the batch: `outputs[:20]` are points of the boundary, `outputs[20:]` those inside.

A slice of the batch has other rows there, or none: such batches stay whole.  Constant positions are looked for between the batch
and the reduced gradients; what a summary picks (`images[:3]`) does not matter."""
import tensorflow as tf

from lockstep.frontends.v1 import walk

_NO_ROWS = ("Shape", "ShapeN", "Size", "Rank")  # what comes out tells of rows, and is none


def picks(tensors, within):
    """The first operation found that takes rows of these tensors by a constant position, or None."""
    found, open_tensors = set(), list(tensors)
    while open_tensors:
        tensor = open_tensors.pop()
        for op in tensor.consumers():
            if op not in within or op.type.startswith(walk.OURS) or _ends(op):
                continue
            if _has_open_rows(tensor) and _takes_apart(op, tensor):
                return op
            if op not in found:
                found.add(op)
                open_tensors += op.outputs
    return None


def _ends(op):
    """Is the first dimension of what comes out another one?"""
    if op.type == "Transpose":
        order = tf.get_static_value(op.inputs[1])
        return order is None or order[0] != 0
    return op.type in _NO_ROWS


def _has_open_rows(tensor):
    return tensor.shape.rank is None or (tensor.shape.rank > 0 and tf.compat.dimension_value(tensor.shape[0]) is None)


def _takes_apart(op, tensor):
    position, is_by_constant = _PICKING.get(op.type, (0, None))
    return is_by_constant is not None and op.inputs[position] is tensor and is_by_constant(op)


def _is_strided_slice(op):
    """x[2:5], x[3], x[1:], x[::2]; not x[:, 1], x[..., 0], x[None], nor x[:n] where the graph computes n."""
    new_axis, ellipsis, open_begin, open_end = (
        op.get_attr(name) for name in ("new_axis_mask", "ellipsis_mask", "begin_mask", "end_mask"))
    begin, end, strides = map(tf.get_static_value, op.inputs[1:])
    if strides is None:
        return False
    first = next((i for i in range(len(strides)) if not new_axis >> i & 1), None)
    if first is None or ellipsis >> first & 1:
        return False
    begins = not open_begin >> first & 1 and begin is not None and begin[first] != 0
    ends = not open_end >> first & 1 and end is not None
    return begins or ends or strides[first] != 1


def _is_slice(op):
    begin, size = map(tf.get_static_value, op.inputs[1:])
    return (begin is not None and begin[0] != 0) or (size is not None and size[0] != -1)


def _is_gather(op):
    _, indices, axis = map(tf.get_static_value, op.inputs)
    return indices is not None and axis == 0


def _is_split(op):
    return tf.get_static_value(op.inputs[0 if op.type == "Split" else 2]) == 0


# Which input is taken apart, and whether that is by constant rows.
_PICKING = {
    "StridedSlice": (0, _is_strided_slice),
    "Slice": (0, _is_slice),
    "GatherV2": (0, _is_gather),
    "Split": (1, _is_split),
    "SplitV": (0, _is_split),
}
