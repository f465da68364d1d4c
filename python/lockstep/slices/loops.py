# SPDX-License-Identifier: Apache-2.0
"""Batches of tf.data that the script iterates by itself.

A loop that trains may be given slices; a loop that collects labels, or computes an accuracy by hand, must see every row.
Which of the two a loop is shows when it takes a gradient:

    for x, y in data:        batch 0: whole, on every rank (the mean of equal gradients is that gradient)
        train(x, y)                   a gradient was reduced: this loop trains
                             batch 1: this rank's slice, and so on

The place is remembered, so the loop of the next epoch begins with slices.  Loops without gradients stay whole.

Inside a tf.function the loop is traced before anything runs: rows are cut by a variable that says whether the loop
trains, and which is set when a gradient is traced in it."""
import sys

import tensorflow as tf
from tensorflow.python.autograph import operators
from tensorflow.python.autograph.operators import control_flow
from tensorflow.python.data.ops import dataset_ops, iterator_ops
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from lockstep import gradients, hooks, native, variables, world
from lockstep.data import mark
from lockstep.slices import current, own, part as parts

FRAMES_OF_A_PLACE = 3

# Transformations whose elements are batches if those of their input are, and those that make batches.
_KEEP = ("DatasetV1Adapter", "Map", "ParallelMap", "Prefetch", "Options", "Take", "Skip", "Repeat", "Cache", "Shuffle", "Filter", "Zip",
         "Enumerate", "Concatenate", "IgnoreErrors", "Shard", "TakeWhile", "Snapshot", "AssertCardinality",
         "MaxIntraOpParallelism", "PrivateThreadPool")
_MAKE = ("Batch", "ParallelBatch", "PaddedBatch", "DenseToRaggedBatch", "RaggedBatch", "Rebatch", "MapAndBatch",
         "DenseToSparseBatch")

_training_places = set()
_loop = None  # the iterator that delivered last
_functions = []  # tf.functions being called


def is_batched(dataset):
    """Are its elements batches?  Only where the pipeline says so."""
    if mark.is_partitioned(dataset):
        return False
    kind = type(dataset).__name__.strip("_").removesuffix("V2").removesuffix("Dataset")
    if kind in _MAKE:
        return True
    if kind not in _KEEP:
        return False
    inputs = dataset._inputs()
    return bool(inputs) and all(map(is_batched, inputs))


def _place():
    """Where the script starts to iterate: the lines of its innermost functions."""
    frame, lines = sys._getframe(2), []
    while frame is not None and len(lines) < FRAMES_OF_A_PLACE:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(("tensorflow.", "lockstep.", "keras.")):
            lines.append((frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    return tuple(lines)


class _Loop:
    """What is known about one iterator."""

    def __init__(self, dataset):
        self.place = (_place(), repr(dataset.element_spec))
        self.trains = self.place in _training_places

    def note_gradient(self):
        self.trains = True
        _training_places.add(self.place)


def note_gradient():
    """A gradient was reduced, or will be by the function that is being traced."""
    if current.is_scoped():
        return  # a front end that cuts by itself
    if _loop is not None:
        _loop.note_gradient()
    for function in _functions:
        function._lockstep_trains = True
    if not tf.executing_eagerly():
        for graph in current.graphs_around(tf.compat.v1.get_default_graph()):
            switch = getattr(graph, "_lockstep_switch", None)
            if switch is not None:
                with tf.init_scope():
                    switch.assign(True)


def _deliver(iterator, element):
    """An element that a loop in Python got."""
    global _loop
    if current.is_scoped():
        return element
    _loop = getattr(iterator, "_lockstep_loop", None)
    if own.is_own(iterator):
        current.deliver(own.part_of(element))
        return element
    if _loop is None or not _loop.trains:
        current.deliver(parts.WHOLE)
        return element
    part, element = parts.cut(element)
    current.deliver(part)
    return element


def cut_in_graph(element):
    """Cuts an element of a loop inside a function, if the loop turns out to train."""
    if current.is_scoped():
        return element
    graph = tf.compat.v1.get_default_graph()
    switch = variables.private(False, tf.bool, "lockstep_loop_trains")
    trains = switch.read_value()
    flat = tf.nest.flatten(element)
    if not flat or not all(parts._is_batched(item) for item in flat):
        return element
    total = parts._total(flat)
    if total is None:
        return element
    part, first, rows = parts.dynamic_part(tf.convert_to_tensor(total, tf.int64))
    total = tf.convert_to_tensor(total, tf.int64)
    first, rows = tf.where(trains, first, 0), tf.where(trains, rows, total)
    current.attach(graph, parts.Part(first, tf.where(trains, part.count, total), total, ~trains))
    graph._lockstep_switch = switch
    return tf.nest.pack_sequence_as(element, [parts.take_rows(item, first, rows) for item in flat])


def _own_in_graph(element):
    """An element of a loop inside a function that is this rank's part already."""
    if not current.is_scoped():
        current.attach(tf.compat.v1.get_default_graph(), own.part_of(element))
    return element


def attach():
    if world.size == 1 or native.setting("SHARD") == "off":
        return
    gradients.listen(note_gradient)

    @hooks.wrap(iterator_ops.OwnedIterator, "_create_iterator")
    def create_iterator(original, self, dataset):
        original(self, dataset)
        own.note(self, dataset)
        if is_batched(dataset):
            self._lockstep_loop = _Loop(dataset)

    @hooks.wrap(iterator_ops.OwnedIterator, "_next_internal")
    def next_internal(original, self):
        element = original(self)
        if tf.executing_eagerly():
            return _deliver(self, element)
        return cut_in_graph(element)

    for module in (operators, control_flow):
        _attach_for(module)

    @hooks.wrap(polymorphic_function.Function, "__call__")
    def call(original, self, *args, **kwargs):
        _functions.append(self)
        try:
            result = original(self, *args, **kwargs)
        finally:
            _functions.pop()
        if getattr(self, "_lockstep_trains", False):
            note_gradient()
        return result


def _attach_for(module):
    """`for x in data` in a tf.function, which never calls data.__iter__."""
    @hooks.wrap(module, "for_stmt")
    def for_stmt(original, iterated, extra_test, body, *args):
        if not tf.executing_eagerly() and mark.is_partitioned(iterated):
            return original(iterated, extra_test, lambda element: body(_own_in_graph(element)), *args)
        if tf.executing_eagerly() or not _gives_batches(iterated):
            return original(iterated, extra_test, body, *args)
        return original(iterated, extra_test, lambda element: body(cut_in_graph(element)), *args)


def _gives_batches(iterated):
    if isinstance(iterated, dataset_ops.DatasetV2):
        return is_batched(iterated)
    return isinstance(iterated, iterator_ops.OwnedIterator)
