# SPDX-License-Identifier: Apache-2.0
"""Reduces gradients with respect to variables over all ranks.

A gradient is named after its variable.  In a graph it is handed over as soon as it exists, small ones by the handful,
while the rest of the backward pass goes on; eagerly all are there at once and travel together."""
import tensorflow as tf

from lockstep import nan, native, ops, variables, world
from lockstep.slices import current

_listeners, _variable_listeners, _step_listeners = [], [], []


def listen(function):
    """Calls function() whenever gradients are reduced, or an operator is made that will."""
    _listeners.append(function)


def listen_to_variables(function):
    """Calls function(variables) then: those with respect to which they are."""
    _variable_listeners.append(function)


def listen_to_steps(function):
    """Calls function() at the end of each step that Python sees: see note_step."""
    _step_listeners.append(function)


last_loss = None  # of the last step, as far as it can be seen


def note_step(loss=None):
    """A step is over: a call of Keras's train function; in a loop of the script, a function that trains was called, or a
    gradient was taken eagerly.  A step with several gradients may count as several."""
    global last_loss
    last_loss = loss
    for function in _step_listeners:
        function()


def is_variable(source):
    return isinstance(getattr(source, "_value", source), tf.Variable)


def reduce(grads, sources, part=None):
    """The gradients of the whole batch.  `sources` are what they are taken with respect to; only those of variables are
    reduced, and None stays None."""
    chosen = [i for i, (grad, source) in enumerate(zip(grads, sources)) if grad is not None and is_variable(source)]
    if not chosen:
        return list(grads)
    for function in _listeners:
        function()
    for function in _variable_listeners:
        function([sources[i] for i in chosen])
    if world.size == 1:
        return list(grads)
    part = part or current.now([grads[i] for i in chosen])
    names = [_name(sources[i]) for i in chosen]
    result = list(grads)
    dense = [(i, name) for i, name in zip(chosen, names) if not isinstance(grads[i], tf.IndexedSlices)]
    for i, name in zip(chosen, names):
        if isinstance(grads[i], tf.IndexedSlices):
            result[i] = _reduce_sparse(grads[i], name, part)
    reduced = _reduce_dense([_shaped(grads[i], sources[i]) for i, _ in dense], [name for _, name in dense], part)
    for (i, _), grad in zip(dense, reduced):
        result[i] = grad
    return nan.checked(result, sources)


def _name(variable):
    if not tf.executing_eagerly():
        *_, outermost = current.graphs_around(tf.compat.v1.get_default_graph())
        outermost._lockstep_gradients = True
    return current.numbered(f"{ops.GRADIENT}{variables.key(variable)}")


def _shaped(grad, variable):
    """The gradient with the shape of its variable, which TensorFlow loses where it takes rows of an unknown number together; XLA
    needs it, and so do those that travel together."""
    if grad.shape.is_fully_defined() or not variable.shape.is_fully_defined():
        return grad
    return tf.ensure_shape(grad, variable.shape)


def _reduce_dense(grads, names, part):
    wide = [part.given(_as_sent(grad)) for grad in grads]
    reduced, reduction = list(wide), part.reduction()
    for chosen in _together(wide):
        together = ops.allreduce_group([wide[i] for i in chosen], [names[i] for i in chosen], **reduction)
        for i, after in zip(chosen, together):
            after.set_shape(wide[i].shape)
            reduced[i] = after
    return [_as_received(after, before.dtype) for after, before in zip(reduced, grads)]


def _as_sent(grad):
    """The gradient in a type that the engine reduces well.

    float16 travels as float32: a gradient times the share of its slice may be too small for float16, and the sum of two
    too large, where the gradient of the batch is neither.  A complex number travels as two real ones."""
    if grad.dtype.is_complex:
        return tf.stack([tf.math.real(grad), tf.math.imag(grad)], axis=-1)
    return tf.cast(grad, tf.float32) if grad.dtype == tf.float16 else grad


def _as_received(reduced, dtype):
    return tf.complex(reduced[..., 0], reduced[..., 1]) if dtype.is_complex else tf.cast(reduced, dtype)


def _together(grads):
    """Lists of those that travel together, by their place.

    A function hands small ones over by the handful, in the order of the backward pass: each hand-over wakes the engine, on
    the core that computes, and would wait for the others of its bucket.  A v1 graph may be run for some of its
    gradients only, so there each has its own operator."""
    if tf.executing_eagerly() or ops.is_in_xla():
        return [list(range(len(grads)))]
    if not tf.compat.v1.get_default_graph().building_function:
        return [[i] for i in range(len(grads))]
    most = int(native.setting("FUSION_BYTES"))
    handfuls, room = [], 0
    for i in reversed(range(len(grads))):
        number = grads[i].shape.num_elements()
        size = most if number is None else number * grads[i].dtype.size
        if not handfuls or size > room:  # a variable may be empty
            handfuls.append([])
            room = most
        handfuls[-1].append(i)
        room -= size
    return handfuls


# ---- sparse gradients ----------------------------------------------------------------------------------------

def _reduce_sparse(grad, name, part):
    """IndexedSlices of all ranks.

    Rows are gathered in the order of the batch, scaled by the rank's share: what one process would have.  Optimizers
    that treat equal rows one by one (Keras 3's Adagrad squares each) then do the same as in one process."""
    how = native.setting("SPARSE")
    if how == "dense" or ops.is_in_xla() or grad.dtype.is_complex:
        dense = tf.convert_to_tensor(grad)
        return _reduce_dense([dense], [name], part)[0]
    if how == "sum" or (how == "auto" and not _keeps_equal_rows()):
        return _fewest_bytes(_sum_equal_rows(grad), name, part)
    together = _gather(grad, name, part)
    return tf.IndexedSlices(*_once_for_batch(together.values, together.indices, part), grad.dense_shape)


def _keeps_equal_rows():
    """Keras 3 gives optimizers the rows as they are; tf_keras and v1 optimizers sum equal ones first."""
    import sys
    return "tf_keras" not in sys.modules and tf.compat.v1.executing_eagerly_outside_functions()


def _sum_equal_rows(grad):
    rows, position = tf.unique(grad.indices)
    values = tf.math.unsorted_segment_sum(grad.values, position, tf.size(rows))
    return tf.IndexedSlices(values, rows, grad.dense_shape)


def _gather(grad, name, part):
    values, indices = tf.convert_to_tensor(grad.values), grad.indices
    counts = part.counts()
    if tf.is_tensor(counts) or not counts:
        rows = tf.where(counts, tf.shape(indices)[0], 0)
        values, indices = values[:rows], indices[:rows]
    values *= ops.exact(part.share_of_gradient(), values.dtype)
    return tf.IndexedSlices(ops.allgather(values, name + "/values"), ops.allgather(indices, name + "/rows"),
                            grad.dense_shape)


def _once_for_batch(values, indices, part):
    """Positions 0, 1, 2, ... and other rows that do not come from samples are the same on every rank, and one process has
    them once for the whole batch: there the ranks' values are summed."""
    if part.is_static and part.is_whole:
        return values, indices
    number = tf.shape(indices, out_type=tf.int64)[0]
    total = tf.cast(part.total, tf.int64)
    ranks = tf.minimum(total, world.size)
    length = number // ranks
    own = indices[:length]

    def summed():
        return tf.reduce_sum(tf.reshape(values, tf.concat([[ranks, length], tf.shape(values, tf.int64)[1:]], 0)), 0), own

    # Samples may be all alike too (a feature that is 0 everywhere): then the rows repeat from sample to sample.
    is_of_samples = tf.logical_and(_repeats(indices, number, number // total), ~tf.reduce_all(own[1:] > own[:-1]))
    is_once = tf.logical_and(tf.logical_and(_repeats(indices, number, length), length > 1), ~is_of_samples)
    if not part.is_static:
        is_once = tf.logical_and(is_once, ~part.is_whole)
    merged, rows = tf.cond(is_once, summed, lambda: (values, indices))
    merged.set_shape(values.shape)
    return merged, rows


def _repeats(indices, number, period):
    """Do the first `period` indices come again and again?"""
    is_multiple = tf.equal(tf.math.floormod(number, tf.maximum(period, 1)), 0)
    return tf.logical_and(is_multiple, tf.reduce_all(tf.equal(indices[period:], indices[:number - period])))


def _fewest_bytes(grad, name, part):
    """Gathers n rows each, or reduces the dense tensor: all ranks decide alike, by the sum of their rows."""
    if grad.dense_shape is None:
        return _gather(grad, name, part)
    rows = ops.allreduce(tf.shape(grad.indices, out_type=tf.int64)[0], name + "/number", op=ops.SUM)

    def gathered():
        together = _sum_equal_rows(_gather(grad, name, part))
        return together.values, together.indices

    def dense():
        whole = tf.convert_to_tensor(grad)
        reduced = _reduce_dense([whole], [name + "/dense"], part)[0]
        return reduced, tf.range(tf.shape(reduced)[0], dtype=grad.indices.dtype)

    few = rows < tf.cast(grad.dense_shape[0], tf.int64)
    values, indices = tf.cond(few, gathered, dense) if tf.is_tensor(few) else (gathered() if few else dense())
    return tf.IndexedSlices(values, indices, grad.dense_shape)
