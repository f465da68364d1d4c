# SPDX-License-Identifier: Apache-2.0
"""Does a function of the script do the same for a part of the rows of its batch?  After its first call, for a whole batch on every rank, all ranks
trace it for their slices, and nothing runs:

    whole call    step(x, y)    traced for 12 rows     noted: what it returns (losses/numbers.py), its graph, what was proved of it
    trial                       traced for 6 rows      the same operators and constants?  (losses/comparison.py)
                                                       the same proof, where some shapes now turn out to depend on the rows?

It cannot be traced where a batch size is written into it; it is something else where it goes by the number of rows (0.1 / len(x)), or by something
of Python that has changed.  Ranks agree: what one cannot do keeps batches whole on all.

A script's random numbers go on as if there had been no trial."""
import collections
import contextlib
import pickle
import random

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

from lockstep import host
from lockstep.losses import calls, comparison, looks, numbers
from lockstep.slices import alike, current

# What a trace has shown.  kinds: those of what is returned; None: it takes no gradient; IN_LOOP: it does in a loop or a branch; others: what is returned and no tensor, and shapes of what has
# no row for each of the batch's; problem: why calls like it must be whole; rows: of its arrays
Trace = collections.namedtuple("Trace", "kinds others problem graph rows")

IN_LOOP = ()
MOST_TRACES = 64  # of a function, that are remembered
_DRAW = ("Random", "TruncatedNormal", "ParameterizedTruncatedNormal", "Multinomial")  # operators that keep a state of their own, in each trace


def name_of(function):
    """Partial functions and objects that can be called have none."""
    return getattr(function, "__name__", "a function")


# ---- while a function is traced --------------------------------------------------------------------------------

def begin(graph):
    """A function is going to be traced."""
    if _is_outermost(graph):
        graph._lockstep_drawn = _drawn()
        vars(current.called[0][0]).pop("_lockstep_problem_of_trace", None)


def note(graph, result, kinds):
    """What the function that is being traced, and takes gradients, returns.  Gives it as it was first seen."""
    if not current.called:
        return kinds
    function, arguments = current.called[-1]
    first = alike.first_seen(function, "kinds", (graph.name, alike.kind_of(arguments), alike.kind_of(result)), kinds)
    if _is_outermost(graph):
        problem = vars(function).pop("_lockstep_problem_of_trace", None) or looks.problem_of_variables() or _problem_of_draws(function, graph)
        if problem is None and first != kinds:  # the ranks must reduce the same, also those that need not trace now
            problem = f"{name_of(function)}() returns something else than in an earlier call"
        trace = Trace(kinds, _others(result, kinds), problem, graph, rows_of(arguments))
        _remember(function, arguments, trace)
    return first


def note_other(graph):
    """The function that is being traced takes no gradient by itself."""
    if _is_outermost(graph):
        function, arguments = current.called[0]
        kinds = IN_LOOP if getattr(graph, "_lockstep_takes_gradients", False) else None
        problem = vars(function).pop("_lockstep_problem_of_trace", None)
        _remember(function, arguments, Trace(kinds, [], problem, graph, rows_of(arguments)))


def _remember(function, arguments, trace):
    traces = vars(function).setdefault("_lockstep_traces", {})
    if len(traces) >= MOST_TRACES:
        del traces[next(iter(traces))]
    traces[alike.kind_of(arguments), current.places_cut, trace.rows] = trace


def _is_outermost(graph):
    """Is it that of the function that the script has called?"""
    return len(current.called) == 1 and not graph.outer_graph.building_function and not current.is_scoped()


def _others(result, kinds):
    """Numbers of Python may be made from the number of rows, too, and so may be shapes."""
    flat = tf.nest.flatten(result)
    return [_other(value) for value, kind in zip(flat, kinds) if kind != numbers.ROWS]


def _other(value):
    if tf.is_tensor(value):
        return None if value.shape.rank is None else tuple(value.shape.as_list())
    return value if isinstance(value, (bool, int, float, str)) else None


def _drawn():
    """What tells how many random numbers of Python and NumPy were drawn."""
    return random.getstate(), np.random.get_state(legacy=False)


def _problem_of_draws(function, graph):
    """Ranks trace at other times than one process: the numbers that are drawn afterwards would be others."""
    is_same = pickle.dumps(graph._lockstep_drawn) == pickle.dumps(_drawn())
    return None if is_same else f"{name_of(function)}() draws random numbers of Python or NumPy while it is traced"


def rows_of(arguments):
    return tuple(item.shape[0] for item in current.leaves(arguments) if alike.is_array(item))


def trace_of(function, arguments, places):
    """What such a call runs, and what was proved of it where the arrays in these places are cut; None: nobody knows."""
    call, traces = alike.kind_of(arguments), getattr(function, "_lockstep_traces", {})
    any_rows = (trace for (kind, cut, _), trace in traces.items() if (kind, cut) == (call, places) and is_for_any_rows(trace))
    return traces.get((call, places, rows_of(arguments))) or next(any_rows, None)


def new_trace_on_slices(function):
    """What the last call in a loop was traced as, with slices; None: it was traced before."""
    traces = getattr(function, "_lockstep_traces", {})
    key = next(reversed(traces), None)
    is_new, function._lockstep_newest = key is not getattr(function, "_lockstep_newest", None), key
    return traces[key] if is_new and key[1] is None else None


def first_of(function, call):
    """The first trace of such calls, for a whole batch, that was compared with slices; None: there was none."""
    return next((trace for (kind, places, _), trace in function._lockstep_traces.items() if kind == call and places is not None), None)


def is_for_any_rows(trace):
    return any(tensor.shape.rank and tensor.shape[0] is None for tensor in trace.graph.inputs)


# ---- the trial -------------------------------------------------------------------------------------------------

def problem_with(function, arguments, whole=None, has_been_traced=True):
    """Why all ranks must go on with whole batches; None: all can be given slices like these.  whole: the trace for the whole batch, with
    which this one is compared.  has_been_traced: for as many rows, so that what the script prints then was printed."""
    with contextlib.redirect_stdout(None) if has_been_traced else contextlib.nullcontext():
        problem = own_problem(function, arguments, whole)
    is_bad = host.allreduce(np.array([problem is not None], np.uint8), f"step/{name_of(function)}/trial", op="max")[0]
    return (problem or f"{name_of(function)}() shows another rank something else") if is_bad else None


def agreed(function, number):
    """The largest of what the ranks say: what each remembers of earlier calls may differ."""
    return int(host.allreduce(np.array([number], np.uint8), f"step/{name_of(function)}/known", op="max")[0])


def own_problem(function, arguments, whole):
    """The same for this rank alone."""
    args, kwargs = arguments
    drawn = _drawn()
    current.tried.append(function)
    try:
        function.get_concrete_function(*args, **kwargs)
    except Exception as error:  # whatever the script or TensorFlow say of it: whole batches have worked
        return f"{name_of(function)}() cannot be traced for a part of the rows ({_short(error)})"
    finally:
        current.tried.pop()
        random.setstate(drawn[0])
        np.random.set_state(drawn[1])
    return None if whole is None else difference(function, whole, trace_of(function, arguments, current.places_cut))


def difference(function, whole, trace):
    if trace is None:
        return f"{name_of(function)}() was traced earlier"
    if trace is whole:  # for any number of rows
        return None
    if trace.problem is not None and whole.problem is None:
        return trace.problem
    if (trace.kinds, trace.others) != (whole.kinds, whole.others):
        return numbers.first_problem(trace.kinds, with_rows=True) or f"{name_of(function)}() returns something else for a part of the rows"
    rows = next((pair for pair in zip(whole.rows, trace.rows) if pair[0] != pair[1]), (0, 0))
    sized = comparison.difference(whole.graph, trace.graph, rows)
    if sized is None:
        return f"{name_of(function)}() does something else for a part of the rows"
    return comparison.prove(whole.graph, sized) or _problem_of_numbers_drawn(function, whole.graph, sized)


def _problem_of_numbers_drawn(function, graph, sized):
    """Each trace begins anew with the numbers that a seed gives."""
    if context.global_seed() is None or not calls.has(lambda op: _draws(op) and not _has_rows(op, sized), graph):
        return None
    return f"{name_of(function)}() draws random numbers that are of no row, after tf.random.set_seed()"


def _draws(op):
    return op.op_def.is_stateful and op.type.startswith(_DRAW)


def _has_rows(op, sized):
    return any(tensor.name in sized.get(id(op.graph), ()) for tensor in op.outputs)


def _short(error):
    """TensorFlow's texts end with what was wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text, kind = lines[-1] if lines else "", f"{type(error).__name__}: "
    return kind + text.removeprefix(kind)
