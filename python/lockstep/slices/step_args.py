# SPDX-License-Identifier: Apache-2.0
"""Arrays that the script gives to a tf.function which trains.

    for rows in order.reshape(-1, 64):
        loss = train_step(images[rows], labels[rows])     this rank's rows go in; numbers and rows of the batch come out

Whether an array is a batch is not written anywhere, and need not be known: the first call is whole on every rank, and while it is
traced the function is looked at.  It is given slices where all arrays have the same number of rows and all that leaves it is known:

    the targets of gradients     means over the rows (losses/looks.py)
    what it returns              means, sums, rows, or made from no row (losses/numbers.py)
    variables, files, prints     made from no row, or what metrics add up

Before the first slices are computed, every rank traces the function for its own: where that fails on one of them (a batch size is written into
the function), or shows something else, all go on with whole batches.

This holds for calls that are alike (alike.py).  LOCKSTEP_STEP_ARGS=cut: what the function returns is not looked at, numbers are taken
for means and tensors with as many rows for rows."""
import collections
import contextlib

import numpy as np
import tensorflow as tf

from lockstep import host, native, ops, say, summary, world
from lockstep.losses import calls, looks, numbers
from lockstep.slices import alike, current, part as parts

# What a trace of the function has shown.  call: the kind of the call (alike.py); problem: why such calls must be whole; kinds: those of what
# is returned (losses/numbers.py); operators: their types
Trace = collections.namedtuple("Trace", "call problem kinds operators")

# What a whole call has shown.  problem: why those like it must be whole; rows_seen: the number of its rows; trace: a Trace, or None; outputs:
# which have a row for each, and which are to be averaged; None: not known before slices are given; is_tried: it was traced for slices
Call = collections.namedtuple("Call", "problem rows_seen trace outputs is_tried", defaults=(False,))
Outputs = collections.namedtuple("Outputs", "rows means")

_being_tried = []  # functions that are traced for slices now


def is_on():
    is_wanted = native.setting("STEP_ARGS") == "cut" or (_is_proved() and looks.is_on())
    return is_wanted and not parts.is_left_alone() and world.size > 1


def _is_proved():
    """Is what leaves a function looked at?"""
    return native.setting("STEP_ARGS") == "auto"


def _is_other_array(item):
    """A table of pandas, say, which tf.function makes a tensor of."""
    return hasattr(item, "__array__") and not isinstance(item, np.ndarray) and not tf.is_tensor(item) and np.ndim(item) > 0


def _name(function):
    """Partial functions and objects that can be called have none."""
    return getattr(function, "__name__", "a function")


def _rows(arguments):
    """The number of rows that all arrays have; 0: there is none."""
    flat = tf.nest.flatten(arguments)
    arrays = [item for item in flat if alike.is_array(item)]
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


def is_open(arguments):
    """Are these arrays of a call that can still be kept whole, whatever it shows?"""
    return bool(_being_tried) or _is_given_whole(arguments)


def _is_given_whole(arguments):
    return is_on() and not current.is_delivering_slices() and _rows(arguments) > 0


# ---- while a function is traced --------------------------------------------------------------------------------

def note_outputs(graph, result, kinds):
    """What the function that is being traced returns: see losses/numbers.py.  Gives it as it was first seen."""
    if not current.called:
        return kinds
    function, arguments = current.called[-1]
    call = alike.kind_of(arguments)
    if _is_outermost(graph) and is_open(arguments):
        problem = vars(function).pop("_lockstep_problem_of_trace", None) or looks.problem_of_variables() or numbers.first_problem(kinds, with_rows=True)
        function._lockstep_trace = Trace(call, problem, kinds, calls.types_of(graph))
    return alike.first_seen(function, "kinds", (graph.name, call, alike.kind_of(result)), kinds)


def _is_outermost(graph):
    """Is it that of the function that the script has called?"""
    return len(current.called) == 1 and not graph.outer_graph.building_function and not current.is_scoped()


def _last_trace(function, kind):
    """That of a call like this one; None: there is none."""
    trace = getattr(function, "_lockstep_trace", None)
    return trace if trace is not None and trace.call == kind else None


# ---- around calls ----------------------------------------------------------------------------------------------

def look(function, arguments, result):
    """After a whole call of a function that trains: may those that follow be cut?"""
    if not tf.executing_eagerly() or current.is_scoped():
        return
    rows, seen = _rows(arguments), _calls_of(function)
    if rows < 2 or len(seen) >= alike.MOST_KINDS or (kind := alike.kind_of(arguments)) in seen:
        return
    problem, trace, outputs = getattr(function, "_lockstep_problem", None), _last_trace(function, kind), None
    if problem is None and _is_proved():
        problem = trace.problem if trace is not None else f"{_name(function)}() takes gradients in a loop or a branch, or was traced earlier"
        outputs = None if problem else Outputs([i for i, found in enumerate(trace.kinds) if found == numbers.ROWS], [])
    elif problem is None and not all(_can_be_put_together(value, rows) for value in tf.nest.flatten(result)):
        problem = (f"{_name(function)}() returns what cannot be put together from slices (whole numbers, ragged or sparse tensors, or "
                   f"tensors with other than {rows} rows)")
    seen[kind] = Call(problem, rows, trace, outputs)
    if problem is not None:
        _say_whole(problem, ". With LOCKSTEP_STEP_ARGS=cut each computes its slice of the arrays all the same" if _is_proved() else "")


def _say_whole(problem, advice=""):
    summary.note_explained()
    say.once(f"{problem}: every rank computes whole batches, which is right but not faster{advice}")


def _calls_of(function):
    return vars(function).setdefault("_lockstep_calls_seen", {})


def cut(function, arguments):
    """(kind of call, part, the arguments with this rank's rows), or None where the call goes on as it is."""
    if not _calls_of(function) or not tf.executing_eagerly() or current.is_scoped() or current.is_delivering_slices():
        return None
    rows = _rows(arguments)
    kind = alike.kind_of(arguments) if rows > 1 else None
    call = _calls_of(function).get(kind)
    if call is None or call.problem is not None or getattr(function, "_lockstep_problem", None) is not None:
        return None
    if call.outputs is None and _is_size_of_slice(call.rows_seen, rows):
        del _calls_of(function)[kind]  # look once more, at this whole call
        return None
    part, first, count = parts.static_part(rows)
    return kind, part, tf.nest.map_structure(lambda item: parts.take_rows(item, first, count) if alike.is_array(item) else item, arguments)


@contextlib.contextmanager
def given(function, part, arguments):
    """The function is called with these rows meanwhile."""
    before, current.called[-1] = current.called[-1], (function, arguments)
    current.deliver(part)
    try:
        yield
    finally:
        current.called[-1] = before
        current.deliver(parts.WHOLE)


def works(function, kind, arguments):
    """Can the function be given slices?  Before the first ones all ranks trace it for theirs."""
    call = _calls_of(function)[kind]
    if not call.is_tried:
        problem = _problem_of_slices(function, call.trace, arguments)
        is_bad = host.allreduce(np.array([problem is not None], np.uint8), f"step/{_name(function)}/tried", op="max")[0]
        call = call._replace(is_tried=True, problem=(problem or f"{_name(function)}() shows another rank something else") if is_bad else None)
        _calls_of(function)[kind] = call
        if is_bad:
            _say_whole(call.problem)
    return call.problem is None


def _problem_of_slices(function, whole_trace, arguments):
    args, kwargs = arguments
    vars(function).pop("_lockstep_problem_of_trace", None)
    _being_tried.append(function)
    try:
        function.get_concrete_function(*args, **kwargs)
    except Exception as error:  # whatever the script or TensorFlow say of it: whole batches have worked
        return f"{_name(function)}() cannot be traced for a part of the rows ({_short(error)})"
    finally:
        _being_tried.pop()
    if not _is_proved():
        return None
    trace = _last_trace(function, whole_trace.call)
    if trace.problem is None and (trace.kinds, trace.operators) != (whole_trace.kinds, whole_trace.operators):
        return f"{_name(function)}() does something else for a part of the rows"
    return trace.problem


def _short(error):
    """TensorFlow's texts end with what was wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text, kind = lines[-1] if lines else "", f"{type(error).__name__}: "
    return kind + text.removeprefix(kind)


def _is_size_of_slice(number, rows):
    """Does a rank have so many of the rows?  A tensor of fixed size that the whole call returned would look like its rows."""
    return rows // world.size <= number <= -(-rows // world.size)


def whole(function, kind, result, part):
    """What one process would have got."""
    flat = tf.nest.flatten(result)
    call = _calls_of(function)[kind]
    if call.outputs is None:
        call = _calls_of(function)[kind] = call._replace(outputs=_outputs_by_size(flat, part))
    for i in call.outputs.rows:
        flat[i] = parts.gather(flat[i], part, f"step/{_name(function)}/{i}")
    for i in call.outputs.means:
        flat[i] = _mean(function, i, flat[i], part)
    return tf.nest.pack_sequence_as(result, flat)


def _outputs_by_size(flat, part):
    """Which outputs have a row for each of the slice's.  That is seen once: in the whole call they had as many as the batch, which
    no slice has; later a tensor of fixed size might have a slice's rows on some ranks by chance."""
    tensors = [i for i, value in enumerate(flat) if tf.is_tensor(value) and value.shape.rank]
    rows = [i for i in tensors if flat[i].shape[0] == max(part.count, 1)]
    return Outputs(rows, [i for i in tensors if i not in rows])


def _mean(function, i, value, part):
    if not value.dtype.is_floating:
        raise native.LockstepError(f"{_name(function)}() returns whole numbers that are not rows of the batch: they cannot be put "
                                   "together from slices. LOCKSTEP_STEP_ARGS=whole computes whole batches on every rank")
    return ops.allreduce(part.given(value), f"step/{_name(function)}/{i}", **part.reduction())
