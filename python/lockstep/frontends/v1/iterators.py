# SPDX-License-Identifier: Apache-2.0
"""Cuts what v1 iterators give: one-shot, initialisable, reinitialisable and feedable ones.

Seam: Iterator.get_next.  Its tensors go through a cut with a switch, a placeholder whose default is "off": evaluation sees
every row.  A run that trains feeds "on".  Batches of a fixed size (drop_remainder) are left whole: the script may
count on their shape."""
import tensorflow as tf
from tensorflow.python.data.ops import dataset_ops, iterator_ops

from lockstep import hooks, native, say, world
from lockstep.frontends.v1 import parts
from lockstep.slices import loops, part as slices


class Group:
    """The tensors of one get_next, cut together."""

    def __init__(self, iterator, source, switch, part, tensors):
        self.iterator, self.source, self.switch, self.part, self.tensors = iterator, source, switch, part, tensors
        self.numbers = tf.stack([part.offset, part.count, part.total, tf.cast(part.is_whole, tf.int64)])

    def is_batched(self):
        """Are all data sets that this iterator may run over made of batches?  Known when the graph is complete."""
        datasets = getattr(self.iterator, "_lockstep_datasets", None) or parts.state(self.source.graph).datasets
        return bool(datasets) and all(map(loops.is_batched, datasets))


def attach():
    if native.setting("SHARD") == "off":
        return

    for name in ("_make_one_shot_iterator", "_make_initializable_iterator"):
        @hooks.wrap(dataset_ops.DatasetV1, name)
        def make_iterator(original, self, *args, **kwargs):
            iterator = original(self, *args, **kwargs)
            _note(iterator, self)
            return iterator

    @hooks.wrap(iterator_ops.Iterator, "make_initializer")
    def make_initializer(original, self, dataset, *args, **kwargs):
        _note(self, dataset)
        return original(self, dataset, *args, **kwargs)

    @hooks.wrap(iterator_ops.Iterator, "get_next")
    def get_next(original, self, *args, **kwargs):
        return _cut(self, original(self, *args, **kwargs))


def _note(iterator, dataset):
    if not isinstance(iterator, iterator_ops.Iterator):
        return  # made eagerly: slices/loops.py
    if not hasattr(iterator, "_lockstep_datasets"):
        iterator._lockstep_datasets = []
    iterator._lockstep_datasets.append(dataset)
    parts.state(tf.compat.v1.get_default_graph()).datasets.append(dataset)


def _cut(iterator, element):
    graph = tf.compat.v1.get_default_graph()
    flat = tf.nest.flatten(element)
    if graph.building_function or not flat or not all(map(_can_be_cut, flat)):
        return element
    first_dims = {_first_dim(item) for item in flat}
    if first_dims != {None}:
        if len(first_dims) == 1 and all(map(loops.is_batched, getattr(iterator, "_lockstep_datasets", [None]))):
            say.once(f"the iterator's batches have the fixed size {first_dims.pop()} in the graph (drop_remainder) and are not cut: "
                     "every rank computes the whole batch, which is right but not faster")
        return element
    source = _any_tensor(flat[0]).op
    with tf.name_scope("lockstep/"):
        switch = _switch()
        total = slices._total(flat)
        part, first, rows = slices.dynamic_part(total)
        is_whole = ~(switch & (total >= world.size) & slices.have_as_many(flat, total))
        first, rows = tf.where(is_whole, tf.zeros_like(first), first), tf.where(is_whole, slices.ALL_ROWS, rows)
        part = slices.Part(first, tf.where(is_whole, total, rows), total, is_whole)
        cut = [slices.take_rows(item, first, rows) for item in flat]
        group = Group(iterator, source, switch, part, tf.nest.flatten(cut, expand_composites=True))
    parts.state(graph).groups.append(group)
    return tf.nest.pack_sequence_as(element, cut)


def _switch():
    with parts.own_ops():
        return tf.compat.v1.placeholder_with_default(tf.constant(False), [], name="cut")


def _any_tensor(item):
    return tf.nest.flatten(item, expand_composites=True)[0]


def _first_dim(item):
    return tf.compat.dimension_value(item.shape[0]) if item.shape.rank else None


def _can_be_cut(item):
    if isinstance(item, (tf.SparseTensor, tf.RaggedTensor)):
        return True
    return isinstance(item, tf.Tensor) and item.shape.rank is not None and item.shape.rank > 0
