# SPDX-License-Identifier: Apache-2.0
"""Arrays that the script gives to a tf.function which trains.

    for rows in order.reshape(-1, 64):
        loss = train_step(images[rows], labels[rows])     this rank's rows go in; numbers and rows of the batch come out

Whether an array is a batch is not written anywhere, and need not be known: the first call is whole on every rank, and while it is
traced the function is looked at.  Those arrays that have the most rows are cut, others (the points of a boundary, weights of classes) are not,
where all that leaves the function is known then:

    the targets of gradients     means over the rows (losses/looks.py)
    what it returns              means, sums, rows, or made from no row (losses/numbers.py)
    variables, files, prints     made from no row, or what metrics add up

After the first call all ranks try whether the function is the same for slices (trial.py).

This holds for calls that are alike (alike.py).  LOCKSTEP_STEP_ARGS=cut: all arrays have the same number of rows; what the function returns is not
looked at, numbers are taken for means and tensors with as many rows for rows."""
import collections
import contextlib

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import record

from lockstep import host, native, ops, say, summary, world
from lockstep.losses import looks, numbers, replay
from lockstep.losses.states import Rows, are_same
from lockstep.slices import alike, current, failing, part as parts, trial

# What calls have shown that are alike.  problem: why they must be whole; works: for which numbers of rows (of each array) they may be cut, and for which not;
# rows_seen: the number of rows of the first; outputs: which have a row for each, and which are to be averaged; None: not known before slices are given;
# trace: of the first, where what leaves the function is looked at
Call = collections.namedtuple("Call", "problem works rows_seen outputs trace")
Outputs = collections.namedtuple("Outputs", "rows means")

MOST_SIZES = 64  # of batches; each is traced for, on each rank


def is_on():
    is_wanted = native.setting("STEP_ARGS") == "cut" or (_is_proved() and looks.is_on())
    return is_wanted and not parts.is_left_alone() and world.size > 1


def _is_proved():
    """Is what leaves a function looked at?"""
    return native.setting("STEP_ARGS") == "auto"


def _is_other_array(item):
    """A table of pandas, say, which tf.function makes a tensor of."""
    return hasattr(item, "__array__") and not isinstance(item, np.ndarray) and not tf.is_tensor(item) and np.ndim(item) > 0


def _rows(arguments):
    """The number of rows of the arrays that may be cut; 0: there are none."""
    return max(_numbers_of_rows(arguments), default=0) if _is_proved() else _common_rows(arguments)


def _common_rows(arguments):
    """The number of rows that all arrays have; 0: there is none."""
    rows = _numbers_of_rows(arguments)
    return rows.pop() if len(rows) == 1 else 0


def _numbers_of_rows(arguments):
    flat = tf.nest.flatten(arguments)
    arrays = [item for item in flat if alike.is_array(item)]
    if any(hasattr(item, "_lockstep_part") for item in arrays):
        return set()  # of a loop over tf.data, which is loops.py's
    if any(map(_is_other_array, flat)):
        return set()
    rows = {item.shape[0] for item in arrays}
    return set() if None in rows else rows


def is_of_no_loop(arguments, has_ended):
    """A loop over tf.data was given a slice last: are these arrays others?  Not if they may have been made from it; all ranks find the same.
    has_ended: the loop has."""
    rows, part = _numbers_of_rows(arguments), current.now()
    if not rows or not part.is_static:
        return False
    return has_ended or not any(_is_size_of_slice(number, part.total) for number in rows)


def problem_with_batch(function, arguments, of_loop, rows):
    """After a whole call in the first batch, of so many rows, of a loop over tf.data, which gave these of the arguments: why the loop must not be
    given slices."""
    if not of_loop:
        others = {item.shape[0] for item in current.leaves(arguments) if alike.is_array(item)}
        mistaken = next((number for number in sorted(others) if _is_size_of_slice(number, rows)), None)
        return mistaken and f"{trial.name_of(function)}() is given arrays of {mistaken} rows in a loop over batches of {rows}: as many as a slice has"
    trace, problem = trial.trace_of(function, arguments, _places(arguments, of_loop)), None
    if trace is None:
        problem = f"{trial.name_of(function)}() was traced earlier"
    elif trace.kinds is not None:
        problem = trace.problem
    known = trial.agreed(function, 2 if problem is not None else 1 if trace.kinds is None else 0)
    if known > 0:
        return (problem or f"{trial.name_of(function)}() shows another rank something else") if known > 1 else None
    part, slices = _twice(arguments, of_loop, rows) if rows < 2 * world.size else _cut(arguments, of_loop, rows)
    with replay.suspended(), given(function, part, *slices):
        return trial.problem_with(function, slices.arguments, trace)


def problem_with_later(function, arguments, part):
    """A function was called with slices in a loop, and traced for so many rows: is that what it does for whole batches?"""
    trace = trial.new_trace_on_slices(function)
    if trace is None or trace.kinds is None or trial.is_for_any_rows(trace) or 1 in trace.rows or not part.is_static:
        return None  # TensorFlow goes back another way through a single row
    first = trial.first_of(function, alike.kind_of(arguments))
    if first is not None:
        return trial.difference(function, first, trace)
    of_loop = [item for item in current.leaves(arguments) if alike.is_array(item) and item.shape[0] == max(part.count, 1)]
    whole = _with_other_rows(arguments, of_loop, lambda item: np.resize(np.arange(item.shape[0]), part.total))
    with given(function, part, *whole):
        return trial.own_problem(function, whole.arguments, trace) if of_loop else None


def arrays_of_loop(arguments, rows):
    """Those that a loop over batches of so many rows gave, or that were made of what it gave.  NumPy arrays only where there is nothing else: nobody
    knows where those are from."""
    arrays = [item for item in current.leaves(arguments) if alike.is_array(item) and item.shape[0] == rows]
    tensors = [item for item in arrays if isinstance(item, tf.Tensor)]
    states = replay.states_of(tensors) or [None] * len(tensors)
    made = [item for item, state in zip(tensors, states) if are_same(state, Rows())]
    known = [item for item in arrays if hasattr(item, "_lockstep_part") or any(item is one for one in made)]
    return known or [item for item in arrays if not tf.is_tensor(item)]


def _can_be_put_together(value, rows):
    if not tf.is_tensor(value) or isinstance(value, (tf.RaggedTensor, tf.SparseTensor)):
        return value is None
    return value.shape[0] == rows if value.shape.rank else value.dtype.is_floating


def is_open(arguments):
    """Are these arrays of a call that can still be kept whole, whatever it shows?"""
    return bool(current.tried) or (is_on() and not current.is_delivering_slices() and _rows(arguments) > 0)


def look(function, arguments, result):
    """After a whole call of a function that trains: may those that follow be cut?"""
    if not tf.executing_eagerly() or current.is_scoped() or current.is_delivering_slices():
        return
    rows, seen = _rows(arguments), _calls_of(function)
    chosen = _with_rows(arguments, rows)
    if rows < 2 * world.size or (kind := _kind(arguments, chosen)) in seen:  # what a single row shows may be something else
        return
    if len(seen) >= alike.MOST_KINDS:
        _say_whole(f"{trial.name_of(function)}() was called with other arguments {len(seen)} times (a number that changes is better a tensor)")
        return
    trace = trial.trace_of(function, arguments, _places(arguments, chosen))
    is_idle = trace is not None and trace.kinds is None  # with training=False, say, it takes no gradient
    with _knowing(arguments, chosen):
        problem, advice = None if is_idle else _problem(function, trace, rows, result), ""
    known = trial.agreed(function, 2 if problem is not None else 1 if is_idle else 0)
    if known == 1:
        seen[kind] = Call("it takes no gradient", {}, rows, None, None)
        return
    if known == 2:
        problem = problem or f"{trial.name_of(function)}() shows another rank something else"
        advice = ". With LOCKSTEP_STEP_ARGS=cut each computes its slice of the arrays all the same" if _is_proved() else ""
    else:
        part, slices = _cut(arguments, chosen, rows)
        with given(function, part, *slices):
            problem = trial.problem_with(function, slices.arguments, trace if _is_proved() else None)
    outputs = Outputs([i for i, found in enumerate(trace.kinds) if found == numbers.ROWS], []) if problem is None and _is_proved() else None
    seen[kind] = Call(problem, {trial.rows_of(arguments): True}, rows, outputs, trace if _is_proved() else None)
    if problem is not None:
        _say_whole(problem, advice)


def _kind(arguments, chosen):
    return alike.kind_of(arguments), _places(arguments, chosen)


def _problem(function, trace, rows, result):
    """What the whole call has shown."""
    name = trial.name_of(function)
    if hasattr(function, "_lockstep_problem"):
        return function._lockstep_problem
    if _is_proved() and (trace is None or trace.kinds == trial.IN_LOOP):
        return f"{name}() takes gradients in a loop or a branch, or was traced earlier"
    if _is_proved():
        return (trace.problem or numbers.first_problem(trace.kinds, with_rows=True) or _problem_of_types(function, trace, result)
                or looks.problem_of_checks(trace.graph))
    if not all(_can_be_put_together(value, rows) for value in tf.nest.flatten(result)):
        return (f"{name}() returns what cannot be put together from slices (whole numbers, ragged or sparse tensors, or tensors with other "
                f"than {rows} rows)")
    return None


def _problem_of_types(function, trace, result):
    """Rows of some types cannot be gathered."""
    rows = (value for value, kind in zip(tf.nest.flatten(result), trace.kinds) if kind == numbers.ROWS)
    other = next((value.dtype.name for value in rows if value.dtype.name not in host.DTYPES), None)
    return other and f"{trial.name_of(function)}() returns rows of the type {other}, which are not put together"


def _say_whole(problem, advice=""):
    summary.note_explained()
    say.once(f"{problem}: every rank computes whole batches, which is right but not faster{advice}")


def _calls_of(function):
    return vars(function).setdefault("_lockstep_calls_seen", {})


def call_on_slices(function, arguments, call):
    """call(arguments) with this rank's rows, put together again; None where it goes on with whole arrays."""
    if not _calls_of(function) or not tf.executing_eagerly() or tf.config.functions_run_eagerly() or record.could_possibly_record():
        return None
    if current.is_scoped() or current.is_delivering_slices() or hasattr(function, "_lockstep_problem"):
        return None
    rows = _rows(arguments)
    chosen = _with_rows(arguments, rows)
    kind = _kind(arguments, chosen) if rows > 1 else None
    seen, sizes = _calls_of(function).get(kind), trial.rows_of(arguments)
    if seen is None or seen.problem is not None or not seen.works.get(sizes, len(seen.works) < MOST_SIZES):
        return None
    if seen.outputs is None and _is_size_of_slice(seen.rows_seen, rows):
        del _calls_of(function)[kind]  # look once more, at this whole call
        return None
    part, slices = _cut(arguments, chosen, rows)
    with given(function, part, *slices):
        if sizes not in seen.works:
            problem = trial.problem_with(function, slices.arguments, seen.trace, has_been_traced=False)
            seen.works[sizes] = problem is None
            if problem is not None:
                _say_whole(problem)
        if not seen.works[sizes]:
            return None
        summary.count(part)
        with failing.on_slices(function):
            result = call(slices.arguments)
        return _Whole(_put_together(function, kind, result, part))


_Whole = collections.namedtuple("_Whole", "result")


Slices = collections.namedtuple("Slices", "arguments cut")  # cut: those of them that are slices


def _with_rows(arguments, rows):
    return [item for item in tf.nest.flatten(arguments) if alike.is_array(item) and item.shape[0] == rows]


def _places(arguments, chosen):
    """Which of the arrays are chosen"""
    return tuple(any(item is one for one in chosen) for item in current.leaves(arguments) if alike.is_array(item))


def _cut(arguments, chosen, rows):
    """(part, the arguments with this rank's rows of the chosen ones)"""
    part, first, count = parts.static_part(rows)
    return part, _replaced(arguments, chosen, lambda item: parts.take_rows(item, first, count))


def _twice(arguments, chosen, rows):
    """The same with more rows, where slices would have a single one."""
    part, *_ = parts.static_part(rows)
    return part, _with_other_rows(arguments, chosen, lambda item: np.resize(np.arange(item.shape[0]), 2 * rows))


def _with_other_rows(arguments, chosen, numbers_of):
    return _replaced(arguments, chosen, lambda item: item[numbers_of(item)] if isinstance(item, np.ndarray) else tf.gather(item, numbers_of(item)))


def _replaced(arguments, chosen, replace):
    replaced = []

    def of_item(item):
        if not any(item is one for one in chosen):
            return item
        replaced.append(replace(item))
        return replaced[-1]

    return Slices(tf.nest.map_structure(of_item, arguments), replaced)


@contextlib.contextmanager
def given(function, part, arguments, cut):
    """The function is called with these arguments meanwhile, some of which are cut."""
    before, current.called[-1] = current.called[-1], (function, arguments)
    try:
        with current.delivering(part), _knowing(arguments, cut):
            yield
    finally:
        current.called[-1] = before


@contextlib.contextmanager
def _knowing(arguments, cut):
    before = current.slices_given, current.places_cut
    current.slices_given, current.places_cut = [pair for item in cut for pair in _states_of(item)], _places(arguments, cut)
    try:
        yield
    finally:
        current.slices_given, current.places_cut = before


def _states_of(item):
    return [(item, Rows())] if isinstance(item, np.ndarray) else replay.kinds_of_batch([item])


@contextlib.contextmanager
def whole_call(arguments):
    """The function is called with whole arrays meanwhile, which may be cut later."""
    rows = 0 if current.is_delivering_slices() or len(current.called) > 1 or not is_on() else _rows(arguments)
    if not rows or replay.knows([item for item in current.leaves(arguments) if isinstance(item, tf.Tensor)]):
        yield
        return
    with replay.suspended(), _knowing(arguments, _with_rows(arguments, rows)):
        yield


@contextlib.contextmanager
def first_batch(arguments, rows):
    """The function is called in the first batch of a loop over tf.data meanwhile.  Gives those of the arguments that the loop gave."""
    of_loop = arrays_of_loop(arguments, rows)
    before, current.places_cut = current.places_cut, _places(arguments, of_loop)
    try:
        yield of_loop
    finally:
        current.places_cut = before


def _is_size_of_slice(number, rows):
    """Does a rank have so many of the rows?  A tensor of fixed size that the whole call returned would look like its rows."""
    return rows // world.size <= number <= -(-rows // world.size)


def _put_together(function, kind, result, part):
    """What one process would have got."""
    flat = tf.nest.flatten(result)
    call = _calls_of(function)[kind]
    if call.outputs is None:
        call = _calls_of(function)[kind] = call._replace(outputs=_outputs_by_size(flat, part))
    for i in call.outputs.rows:
        flat[i] = parts.gather(flat[i], part, f"step/{trial.name_of(function)}/{i}")
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
        raise native.LockstepError(f"{trial.name_of(function)}() returns whole numbers that are not rows of the batch: they cannot be put "
                                   "together from slices. LOCKSTEP_STEP_ARGS=whole computes whole batches on every rank")
    return ops.allreduce(part.given(value), f"step/{trial.name_of(function)}/{i}", **part.reduction())
