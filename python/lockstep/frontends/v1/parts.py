# SPDX-License-Identifier: Apache-2.0
"""How a gradient in a v1 graph learns of the part of the batch that it was computed on.

The graph has one placeholder with a default, which says "whole"; a run on slices of the feed gives it the part.  An iterator's
batch has a switch and counts its rows itself (iterators.py).  Nothing is added to a graph when it runs: it may be finalized."""
import contextlib

import tensorflow as tf

from lockstep import native, ops, world
from lockstep.frontends.v1 import walk
from lockstep.slices.part import WHOLE, Part

_WHOLE_NUMBERS = (0, 1, 1, 1)  # offset, count, total, is it whole?


class GraphPart(Part):
    """A part whose numbers are tensors.  Gradients of a loss that is a sum were multiplied by the number of ranks where they
    are of slices (taken.py): what is left to do is a mean."""

    def reduction(self):
        return {"op": ops.MEAN} if native.setting("LOSS") == "sum" else super().reduction()

    def given(self, value):
        return value

    def share_of_gradient(self):
        if native.setting("LOSS") != "sum":
            return self.share()
        return tf.where(self.is_whole, tf.constant(float(world.is_root()), tf.float64), 1.0 / world.size)


class GraphState:
    """What is known about one graph."""

    def __init__(self):
        self.part_feed = None   # placeholder of the part
        self.feed_part = None   # the Part that it becomes
        self.groups = []        # of iterators.py: batches that can be cut
        self.datasets = []      # that iterators of the graph were made from
        self.plans = {}
        self.has_gradients = False
        self.targets = []       # of gradients with respect to variables


def state(graph):
    found = getattr(graph, "_lockstep_v1", None)
    if found is None:
        found = graph._lockstep_v1 = GraphState()
    return found


@contextlib.contextmanager
def own_ops():
    """Ops made here have names of their own, so that those of the script stay what they are, and no control inputs."""
    with tf.init_scope(), tf.name_scope("lockstep/"), tf.device("/device:CPU:0"):
        yield


def numbers(part):
    return [int(part.offset), int(part.count), int(part.total), int(part.is_whole)]


def _feed_part(known):
    if known.part_feed is None:
        with own_ops():
            known.part_feed = tf.compat.v1.placeholder_with_default(tf.constant(_WHOLE_NUMBERS, tf.int64), [4], name="part")
            offset, count, total, is_whole = tf.unstack(known.part_feed)
            known.feed_part = GraphPart(offset, count, total, is_whole > 0)
    return known.feed_part


def part_of(tensors):
    """The part that these tensors, gradients, are computed on: known when they are."""
    if tf.compat.v1.executing_eagerly_outside_functions():
        return WHOLE
    graph = walk.outermost(tf.compat.v1.get_default_graph())
    known = state(graph)
    known.has_gradients = True
    fed = _feed_part(known)
    groups = [group for group in known.groups if group.source in walk.before(tensors)] if known.groups else []
    if not groups:
        return fed
    # Where there are several, plans.py leaves all of them whole.
    cut = groups[0].part
    with tf.name_scope("lockstep/"):
        return GraphPart(
            tf.where(cut.is_whole, fed.offset, cut.offset), tf.where(cut.is_whole, fed.count, cut.count),
            tf.where(cut.is_whole, fed.total, cut.total), cut.is_whole & fed.is_whole)
