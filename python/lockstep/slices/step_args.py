# SPDX-License-Identifier: Apache-2.0
"""Arrays that the script gives to a tf.function which trains (LOCKSTEP_STEP_ARGS=cut).

    for rows in order.reshape(-1, 64):
        loss = train_step(images[rows], labels[rows])     this rank's rows go in; numbers and rows of the batch come out

Whether an array is a batch is not written anywhere, so it is cut only if the user asks for it, and the first call is whole on
every rank: it shows that the function takes gradients, and what it returns.  Cut is a call whose arrays all have the same number of
rows, of a function that returns nothing but floating-point numbers (means: they become those of the batch, see reports.py) and
tensors with a row for each of the batch's (which are put together again)."""
import numpy as np
import tensorflow as tf

from lockstep import gradients, native, ops, say, summary, world
from lockstep.losses import looks
from lockstep.slices import current, part as parts


def is_on():
    return native.setting("STEP_ARGS") == "cut" and not parts.is_left_alone() and world.size > 1


def _is_array(item):
    if isinstance(item, np.ndarray):
        return item.ndim > 0
    return tf.is_tensor(item) and not gradients.is_variable(item) and item.shape.rank != 0


def _is_other_array(item):
    """A table of pandas, say, which tf.function makes a tensor of."""
    return hasattr(item, "__array__") and not isinstance(item, np.ndarray) and not tf.is_tensor(item) and np.ndim(item) > 0


def _name(function):
    """Partial functions and objects that can be called have none."""
    return getattr(function, "__name__", "a function")


def _rows(arguments):
    """The number of rows that all arrays have; 0: there is none."""
    flat = tf.nest.flatten(arguments)
    arrays = [item for item in flat if _is_array(item)]
    if any(hasattr(item, "_lockstep_part") for item in arrays):
        return 0  # of a loop over tf.data, which is loops.py's
    if any(map(_is_other_array, flat)):
        return 0
    rows = {item.shape[0] for item in arrays}
    return rows.pop() if len(rows) == 1 else 0


def _can_be_put_together(value, rows):
    if not tf.is_tensor(value) or isinstance(value, (tf.RaggedTensor, tf.SparseTensor)):
        return value is None
    return value.shape[0] == rows if value.shape.rank else value.dtype.is_floating


def look(function, arguments, result):
    """After a whole call of a function that trains: may those that follow be cut?"""
    if hasattr(function, "_lockstep_args_are_cut") or not tf.executing_eagerly() or current.is_scoped():
        return
    rows = _rows(arguments)
    if not rows:
        return
    function._lockstep_rows_seen = rows
    problem = getattr(function, "_lockstep_problem", None)
    if problem is not None:
        looks.say_whole(problem)
    is_clear = all(_can_be_put_together(value, rows) for value in tf.nest.flatten(result))
    function._lockstep_args_are_cut = is_clear and problem is None
    if not is_clear:
        say.once(f"{_name(function)}() returns what cannot be put together from slices (whole numbers, ragged or sparse tensors, or "
                 f"tensors with other than {rows} rows): every rank computes whole batches")


def cut(function, arguments):
    """(part, the arguments with this rank's rows), or None where the call goes on as it is."""
    if not getattr(function, "_lockstep_args_are_cut", False) or not tf.executing_eagerly() or current.is_scoped() \
            or current.is_delivering_slices():
        return None
    rows = _rows(arguments)
    if rows < 2:
        return None
    if not hasattr(function, "_lockstep_outputs_with_rows") and _is_size_of_slice(function._lockstep_rows_seen, rows):
        del function._lockstep_args_are_cut  # look once more, at this whole call
        return None
    part, first, count = parts.static_part(rows)
    summary.count(part)
    return part, tf.nest.map_structure(lambda item: parts.take_rows(item, first, count) if _is_array(item) else item,
                                       arguments)


def _is_size_of_slice(number, rows):
    """Does a rank have so many of the rows?  A tensor of fixed size that the whole call returned would look like its rows."""
    return rows // world.size <= number <= -(-rows // world.size)


def whole(function, result, part):
    """What one process would have got."""
    flat = tf.nest.flatten(result)
    rows = _outputs_with_rows(function, flat, part)
    for i in rows:
        flat[i] = parts.gather(flat[i], part, f"step/{_name(function)}/{i}")
    for i, value in enumerate(flat):
        if i not in rows and tf.is_tensor(value) and value.shape.rank:
            flat[i] = _mean(function, i, value, part)
    return tf.nest.pack_sequence_as(result, flat)


def _outputs_with_rows(function, flat, part):
    """Which outputs have a row for each of the slice's.  That is seen once: in the whole call they had as many as the batch, which
    no slice has; later a tensor of fixed size might have a slice's rows on some ranks by chance."""
    if not hasattr(function, "_lockstep_outputs_with_rows"):
        function._lockstep_outputs_with_rows = [i for i, value in enumerate(flat) if tf.is_tensor(value) and value.shape.rank
                                                and value.shape[0] == max(part.count, 1)]
    return function._lockstep_outputs_with_rows


def _mean(function, i, value, part):
    if not value.dtype.is_floating:
        raise native.LockstepError(f"{_name(function)}() returns whole numbers that are not rows of the batch: they cannot be put "
                                   "together from slices. LOCKSTEP_STEP_ARGS=whole computes whole batches on every rank")
    return ops.allreduce(part.given(value), f"step/{_name(function)}/{i}", **part.reduction())
