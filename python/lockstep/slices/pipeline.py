# SPDX-License-Identifier: Apache-2.0
"""Per-element work of a tf.data pipeline only for the rows that this rank computes on.

    source -> map -> ... -> batch(8) -> prefetch           the script's pipeline; rank 1 of 2 becomes
    source -> batch(8) -> rows 4..7 -> unbatch -> map -> ... -> batch(4) -> prefetch

The (offset, count, total) of the rows travels beside them, as Rows (part.py), so nobody cuts again.  A rank without a row
gets row 0, which counts nothing.  The source, with its shuffles, is the script's own object: its order goes on from epoch to
epoch as in one process.

Only where it is certain to be the same: between source and batch there are maps without state and steps that change no
order; the elements of the source can be batched; above the batch nothing looks into batches.  Elsewhere sliced() is None,
and batches are cut when they are there."""
import tensorflow as tf
from tensorflow.python.data.util import structure

from lockstep import native, world
from lockstep.data import mark
from lockstep.slices import part as parts, weak
from lockstep.slices.batches import element_of, kind_of, unwrapped

_ABOVE = {"Prefetch", "Options", "Repeat", "Take", "Skip"}  # of batches
_BELOW = {"Map", "ParallelMap", "Prefetch", "Options", "Repeat", "Take", "Skip"}  # of elements
# Stateful for TensorFlow, but only reading: they may run for fewer elements.
_READING = {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "LookupTableFindV2", "LookupTableSizeV2", "Assert",
            "VarHandleOp", "HashTableV2", "StatefulPartitionedCall", "If", "While", "Case"}


def sliced(dataset):
    """The data set with this rank's rows of each batch, as Rows; None where that cannot be done."""
    if world.size == 1 or native.setting("SHARD") == "off" or native.setting("LOSS") == "sum":
        return None
    if weak.is_on() or mark.is_partitioned(dataset) or not tf.executing_eagerly():
        return None
    made = getattr(dataset, "_lockstep_sliced", None)
    if made is None:
        plan = _plan(dataset)
        made = dataset._lockstep_sliced = _rebuilt(dataset, *plan) if plan else False
    return made or None


# ---- what the pipeline is ------------------------------------------------------------------------------------

def _plan(dataset):
    """(steps above the batch, the batch, steps below, source), steps from the top; None where something is unknown."""
    above, dataset = _walk(dataset, _ABOVE)
    batch = unwrapped(dataset)
    if kind_of(batch) not in ("Batch", "ParallelBatch"):
        return None
    below, source = _walk(batch._input_dataset, _BELOW)
    while below and kind_of(below[-1]) not in ("Map", "ParallelMap"):
        source = below.pop()  # belongs to the source
    if not below or not all(map(_is_stateless, below)) or not _can_be_batched(source.element_spec):
        return None
    return above, batch, below, source


def _walk(dataset, kinds):
    """The steps of these kinds from the top, and what is below them."""
    steps, dataset = [], unwrapped(dataset)
    while kind_of(dataset) in kinds:
        steps.append(dataset)
        dataset = unwrapped(dataset._inputs()[0])
    return steps, dataset


def _is_stateless(step):
    if kind_of(step) not in ("Map", "ParallelMap"):
        return True
    graph = step._map_func.function.graph.as_graph_def()
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    return not any(_has_state(node.op) for node in nodes)


def _has_state(op):
    from tensorflow.python.framework import op_def_registry
    definition = op_def_registry.get(op)
    return definition is not None and definition.is_stateful and op not in _READING


def _can_be_batched(spec):
    """Plain tensors of one shape."""
    flat = tf.nest.flatten(spec)
    return bool(flat) and all(isinstance(item, tf.TensorSpec) and item.shape.is_fully_defined() for item in flat)


# ---- the new one ---------------------------------------------------------------------------------------------

def _rebuilt(dataset, above, batch, below, source):
    size = int(batch._batch_size)
    drop = bool(batch._drop_remainder)
    repeats = [step for step in below if kind_of(step) in ("Repeat", "Take", "Skip")]
    elements = source
    for step in reversed(repeats):  # the order of maps among them does not matter
        elements = _again(step, elements)
    rows = elements.batch(size, drop_remainder=drop).map(lambda *batch: _own_rows(element_of(batch, source.element_spec))).unbatch()
    for step in reversed(below):
        if kind_of(step) in ("Map", "ParallelMap"):
            rows = _mapped(rows, step)
    _, _, count = parts.static_part(size)
    made = rows.batch(count).map(_as_rows)
    for step in reversed(above):
        made = _again(step, made)
    if int(dataset.cardinality()) != tf.data.UNKNOWN_CARDINALITY:
        made = made.apply(tf.data.experimental.assert_cardinality(dataset.cardinality()))
    return made.with_options(dataset.options())


def _again(step, dataset):
    """The same step on another input."""
    kind = kind_of(step)
    if kind == "Prefetch":
        return dataset.prefetch(int(step._buffer_size))
    if kind == "Options":
        return dataset.with_options(step.options())
    return {"Repeat": dataset.repeat, "Take": dataset.take, "Skip": dataset.skip}[kind](int(step._count))


def _own_rows(batch):
    part, rows = parts.cut_dynamic(batch)
    number = tf.shape(tf.nest.flatten(rows)[0])[0]
    numbers = tf.stack([part.offset, part.count, part.total])
    return tf.tile(numbers[None], (number, 1)), rows


def _mapped(rows, step):
    """The step's function as it was traced for the script, applied to elements beside their numbers."""
    traced, spec = step._map_func, step._inputs()[0].element_spec
    options = {}
    if kind_of(step) == "ParallelMap":
        deterministic = {"true": True, "false": False}.get(str(getattr(step, "_deterministic", "default")))
        options = {"num_parallel_calls": int(step._num_parallel_calls), "deterministic": deterministic}

    def of_element(numbers, element):
        outputs = traced.function(*structure.to_tensor_list(spec, element))
        return numbers, structure.from_compatible_tensor_list(traced.output_structure, tf.nest.flatten(outputs))

    return rows.map(of_element, **options)


def _as_rows(numbers, rows):
    return parts.Rows(numbers[0], rows)
