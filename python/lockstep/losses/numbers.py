# SPDX-License-Identifier: Apache-2.0
"""Numbers that a step of the script returns, prints or writes as a summary.  They were made from a slice; the script shall have those of
the batch.  While the step is traced, its graph is looked at (look.py):

    SAME    made from no row: weights, rates             as it is
    MEAN    tf.reduce_mean(errors)                       the mean over the ranks, by rows
    TOTAL   tf.reduce_sum(hits), the number of rows      the sum over the ranks
    ROWS    what the model gives for each row            that of the slice; slices/step_args.py puts them together

Everything else (a maximum, a quotient of sums) has a problem: every rank computes whole batches then."""
import collections
import numbers

import tensorflow as tf

from lockstep import ops
from lockstep.losses import comparison, inputs, looks
from lockstep.losses.look import NEITHER, SIZED, UNCLEAR, Look
from lockstep.losses.states import Count, Figure, Fixed, Rows

SAME, MEAN, TOTAL, ROWS = "same", "mean", "total", "rows"
RETURNED, SHOWN = "a number that is returned is", "a number that is printed, or written as a summary, is"
_ADDED = (tf.uint8, tf.int8, tf.int32, tf.int64, tf.float16, tf.bfloat16, tf.float32, tf.float64)  # by the engine

# is_of_rows: it is, or may be, something for each row, which a loop that is given slices can use as it is
Problem = collections.namedtuple("Problem", "text is_of_rows")


def kinds_of(values, subject):
    """For each of these values of the graph that is being traced one of the above, or a Problem.  None: nobody shall look."""
    if not looks.is_on() or tf.executing_eagerly():
        return None
    tensors = [value for value in values if _is_plain(value)]
    try:
        graph = tf.compat.v1.get_default_graph()
        given = inputs.of_graph(graph)
        look = Look(graph, *given)
        kinds = _kinds(look, tensors, subject)
        comparison.remember(graph, lambda sized: _first_other(kinds, _kinds(Look(graph, *given, sized=sized), tensors, subject), subject))
        found = iter(kinds)
    except Exception as error:  # this look must not end a script that trains
        return [Problem(looks.told_of_error(subject, error), True)] * len(values)
    return [next(found) if _is_plain(value) else _kind_of_other(look, value, subject) for value in values]


def _first_other(kinds, others, subject):
    """Why what was known of these is not what is known now; None: it is."""
    pairs = [(kind, other) for kind, other in zip(kinds, others) if isinstance(kind, str) and kind != other]
    return next((other.text if isinstance(other, Problem) else looks.told(SIZED, None, subject) for _, other in pairs), None)


def _kinds(look, tensors, subject):
    """By a second look where the first does not know, as for targets of gradients."""
    kinds = [_kind(look, *pair, subject) for pair in zip(tensors, look.states_of(tensors))]
    second = None if all(isinstance(kind, str) for kind in kinds) else look.second()
    if second is None:
        return kinds
    others = [_kind(second, *pair, subject) for pair in zip(tensors, second.states_of(tensors))]
    return [other if isinstance(other, str) and not isinstance(kind, str) else kind for kind, other in zip(kinds, others)]


def first_problem(kinds, with_rows=False):
    """What keeps batches whole; None: nothing.  with_rows: also where something is made of rows that is no row for each of them, which a
    loop that is given slices may use as it is."""
    return next((kind.text for kind in kinds or () if isinstance(kind, Problem) and (with_rows or not kind.is_of_rows)), None)


def _is_plain(value):
    return isinstance(value, tf.Tensor)


def _kind(look, tensor, state, subject):
    if isinstance(state, Fixed) and not look.may_be_number_of_rows(tensor):
        return SAME
    if isinstance(state, Figure) and state.is_mean and tensor.dtype.is_floating:
        return MEAN
    if (isinstance(state, Figure) and state.totals) or (isinstance(state, Count) and None not in state):
        return TOTAL if tensor.dtype in _ADDED else Problem(looks.told(NEITHER, tensor.op, subject), False)
    if isinstance(state, Rows) and state == Rows():
        return ROWS
    is_of_rows = isinstance(state, Rows) or (not isinstance(state, (Figure, Fixed)) and look.may_have_rows(tensor))
    return Problem(looks.told(NEITHER if isinstance(state, Figure) else UNCLEAR, tensor.op, subject), is_of_rows)


def _kind_of_other(look, value, subject):
    """Of what is no tensor, and has perhaps been one row of many: a number of Python, a variable, a sparse tensor."""
    if isinstance(value, numbers.Number):
        return Problem(looks.told(UNCLEAR, None, subject), False) if look.is_number_of_rows(value) else SAME
    if value is None or isinstance(value, (str, bytes, tf.Variable)) or isinstance(getattr(value, "_value", None), tf.Variable):
        return SAME
    return Problem(looks.told(UNCLEAR, None, subject), True)


def of_batch(tensors, kinds, names, part):
    """The same, those that are means or totals brought to what they are for the batch."""
    together = list(tensors)
    for kind, reduce in ((MEAN, _means), (TOTAL, _totals)):
        chosen = [i for i, found in enumerate(kinds) if found == kind]
        reduced = reduce([tensors[i] for i in chosen], [names[i] for i in chosen], part)
        for i, number in zip(chosen, reduced):
            number.set_shape(tensors[i].shape)
            together[i] = number
    return together


def _means(tensors, names, part):
    return ops.allreduce_group([part.given(tf.stop_gradient(tensor)) for tensor in tensors], names, **part.reduction())


def _totals(tensors, names, part):
    """A row that was lent counts nothing; of rows that all ranks have those of one count."""
    counts = part.counts()
    counting = [tensor if counts is True else tf.where(counts, tensor, tf.zeros_like(tensor)) for tensor in tensors]
    return ops.allreduce_group([tf.stop_gradient(tensor) for tensor in counting], names, op=ops.SUM)
