# SPDX-License-Identifier: Apache-2.0
"""What a tensor of a loss is made of, and the table of what operators make of such.

  Rows      the elements at one place of dimension `axis` depend on one row of the batch alone, in the order of the rows.  That dimension
            may have others beside that of the rows in it: its places are before x rows x after, as in

                [rows, 5, 3] -> reshape [-1, 3]     axis 0, after 5
                concat([real, fake], axis=0)        axis 0, before 2

            A mask leaves some rows (`mask`): only tensors with the same one go together, element by element.  is_made: they may be constants,
            alike for all rows, so that a sum over them may be no sum over the batch
  Figure    a figure of the batch: a sum or mean over all rows, and what is computed from such.  is_mean: nothing
            but means, added and scaled by constants: the mean over ranks of the slices' is that of the batch.  totals: the sums that it
            is a sum or multiple of
  Count     the number of rows, or a multiple of it (before x rows x after; None: another).  A total divided by it is a mean
  Fixed     depends on no row: constants, weights
  Shape     what rows are reshaped with: for each number a Count, Fixed or None
  Indices   where a mask is true
  Positions the number of each row in the batch: 0, 1, 2 ...; with `others`, beside indices within the row
  Sparse    what a sparse tensor of rows is made of: indices, values, its shape
  List      a list of tensors that are each `item`, one for each step of a loop
  Unknown   something that depends on rows, nobody knows how, since an operator `op` made it

What the table does not have, or does not say about an operator, ends in Unclear."""
import collections

import tensorflow as tf

from lockstep.losses.sizes import ONE, Unclear, constant  # noqa: F401

Rows = collections.namedtuple("Rows", "axis before after mask is_made", defaults=(0, ONE, ONE, None, False))
Figure = collections.namedtuple("Figure", "is_mean totals", defaults=(frozenset(),))
Count = collections.namedtuple("Count", "before after", defaults=(ONE, ONE))
Fixed = collections.namedtuple("Fixed", "")
Shape = collections.namedtuple("Shape", "entries")
Indices = collections.namedtuple("Indices", "mask before after")
Positions = collections.namedtuple("Positions", "others", defaults=(False,))
Sparse = collections.namedtuple("Sparse", "")
List = collections.namedtuple("List", "item")
Unknown = collections.namedtuple("Unknown", "op")

NOTHING = List(None)  # a list without items

# How a reduction over the rows becomes that of the batch.
SUM, SUM_BY_COUNT, MEAN, MEAN_OF_SOME = "sum", "sum by count", "mean", "mean of some"


class AllWithAll(Unclear):
    """Rows meet all other rows."""


TABLE = {}


def means(*types):
    """Decorates f(anatomy, op, states of its inputs), which gives the state of the only output, or a list of all: what operators of these
    types make."""
    def enter(function):
        TABLE.update(dict.fromkeys(types, function))
        return function
    return enter


def are_same(one, other):
    """States without fields are equal as tuples."""
    return type(one) is type(other) and one == other


def joined(states):
    """What is either of these."""
    first, *others = states
    for other in others:
        first = _either(first, other)
    return first


def _either(one, other):
    if are_same(one, other):
        return one
    if isinstance(one, Fixed) or isinstance(other, Fixed):
        return _or_fixed(other if isinstance(one, Fixed) else one)
    if isinstance(one, Rows) and isinstance(other, Rows) and one._replace(is_made=True) == other._replace(is_made=True):
        return one._replace(is_made=True)
    if isinstance(one, List) and isinstance(other, List):
        return other if one.item is None else one if other.item is None else List(joined([one.item, other.item]))
    if isinstance(one, Figure) and isinstance(other, Figure):
        totals = one.totals | other.totals if one.totals and other.totals else frozenset()
        return Figure(one.is_mean and other.is_mean, totals)
    return next((state for state in (one, other) if isinstance(state, Unknown)), Unknown(None))


def _or_fixed(state):
    """What is this, or a constant: a sum over the rows no more."""
    if isinstance(state, Rows):
        return state._replace(is_made=True)
    return Figure(state.is_mean) if isinstance(state, Figure) else state


def all_rows(states):
    return all(isinstance(state, Rows) for state in states)


def only(states, *kinds):
    """Are they of no other kind than these?"""
    return all(isinstance(state, kinds) for state in states)


def need_fixed(op, states):
    if not only(states, Fixed):
        raise Unclear(op.type)


def rank_of(tensor):
    if tensor.shape.rank is None:
        raise Unclear("a tensor of unknown shape")
    return tensor.shape.rank


def dimension(tensor, place):
    """Its size; None: not known.  After disable_v2_behavior() the numbers of a shape are objects."""
    return tf.compat.dimension_value(tensor.shape[place])
