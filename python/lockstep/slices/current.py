# SPDX-License-Identifier: Apache-2.0
"""Which part of a batch the code that asks works on.

  1. the scope it runs in: a front end that hands a batch to the script's code knows its part
  2. the part that was cut in the graph being traced, or in one around it: `attach`
  3. the part of the batch that a loop in Python got last: `deliver`; a tf.function finds it in a variable, since
     the function is traced once and runs for many batches; tensors of a batch given to a function or a metric say
     again which part they are, should another batch have come since: `mark`, `recall`"""
import contextlib
import threading

import tensorflow as tf
from tensorflow.python.ops.control_flow_v2_func_graphs import ControlFlowFuncGraph

from lockstep import ops
from lockstep.slices.part import WHOLE, Part

_local = threading.local()
_delivered = WHOLE
_thread = None  # that it was delivered to
_variable = None
_in_variable = None  # numbers; most batches have as many rows as the last one


def _of_graph(_):
    return WHOLE


@contextlib.contextmanager
def scope(part):
    """None: whoever opens the scope will cut batches by itself, and open another with the part."""
    stack = _scopes()
    stack.append(part)
    try:
        yield
    finally:
        stack.pop()


@contextlib.contextmanager
def no_scope():
    """As if no scope had been opened."""
    before, _local.scopes = _scopes(), []
    try:
        yield
    finally:
        _local.scopes = before


def _scopes():
    if not hasattr(_local, "scopes"):
        _local.scopes = []
    return _local.scopes


def attach(graph, part):
    """The code that is traced into this graph works on this part."""
    graph._lockstep_part = part


def graphs_around(graph):
    """A graph, and those of the functions around the one that it belongs to."""
    yield graph
    while graph.building_function and graph.outer_graph.building_function:
        graph = graph.outer_graph
        yield graph


def numbered(name):
    """A name for a collective that the code being traced may make several times; they may run at the same time, so they
    are numbered in the function that is being traced.

    Not in the function around it: how often that traces this one (twice if variables are made, again for another
    shape) may differ between ranks.  Two functions inside one have different names, as a rule."""
    if tf.executing_eagerly():
        return name
    graphs = list(graphs_around(tf.compat.v1.get_default_graph()))
    function = next((graph for graph in graphs if not isinstance(graph, ControlFlowFuncGraph)), graphs[-1])
    if function is not graphs[-1]:
        name = f"{name}@{function.name}"
    return ops.numbered_in(function, name)


def serve_graphs(function):
    """function(tensors) tells the part that tensors of a v1 graph are computed on."""
    global _of_graph
    _of_graph = function


def now(tensors=()):
    """The part; `tensors` are those whose part is asked for, where their graph is run later."""
    scopes = _scopes()
    if scopes and scopes[-1] is not None:
        return scopes[-1]
    if tf.executing_eagerly():
        return _delivered
    graph = tf.compat.v1.get_default_graph()
    for around in graphs_around(graph):
        part = getattr(around, "_lockstep_part", None)
        if part is not None:
            return part
    return _from_variable(tensors)


def is_scoped():
    return bool(_scopes())


def has_part():
    """Does the code run in a scope with a part: was its batch cut already?"""
    scopes = _scopes()
    return bool(scopes) and scopes[-1] is not None


def is_delivering_slices():
    """Does a loop in Python, outside of any scope, get slices now?"""
    return not _scopes() and tf.executing_eagerly() and not _delivered.is_whole


def is_delivered_here():
    """Is this the thread that got it?  Functions of a script may also run in threads of tf.data."""
    return _thread == threading.get_ident()


def deliver(part):
    """A loop in Python got rows of this part."""
    global _delivered, _thread, _in_variable
    _delivered, _thread = part, threading.get_ident()
    if _variable is not None and (numbers := _numbers(part)) != _in_variable:
        _variable.assign(numbers)
        _in_variable = numbers


@contextlib.contextmanager
def delivering(part):
    """As if this had been delivered last."""
    before = _delivered
    deliver(part)
    try:
        yield
    finally:
        deliver(before)


def mark(element, part):
    """Remembers the part with the tensors of a batch: a loop may fetch a batch before it uses the last one."""
    for tensor in tf.nest.flatten(element):
        if tf.is_tensor(tensor):
            tensor._lockstep_part = part


called = []  # tf.functions being called, and their arguments
slices_given = None  # (an argument among those, what it is) for each that is cut, or would be, where that is known
places_cut = None  # which of the arrays among those that is, as far as it is known
tried = []  # those that are traced to be compared (trial.py), and are not run


def leaves(arguments):
    """What lists, tuples and dictionaries contain; unlike tf.nest, of any keys."""
    if isinstance(arguments, dict):
        arguments = arguments.values()
    elif not isinstance(arguments, (list, tuple)):
        yield arguments
        return
    for item in arguments:
        yield from leaves(item)


def given(kind, spec, calls=None):
    """The data sets, or iterators, one of which a function's trace sees as its argument with these elements.  Each with the calls
    around the one that it is given in: it may itself be what the trace of one of those sees."""
    calls = called if calls is None else calls
    for level, (_, arguments) in enumerate(calls):
        for item in leaves(arguments):
            if isinstance(item, kind) and tf.data.DatasetSpec(item.element_spec).is_subtype_of(tf.data.DatasetSpec(spec)):
                yield item, calls[:level]


def recall(arguments):
    """The code about to run gets these arguments: tensors of a batch among them say which part it works on."""
    if not tf.executing_eagerly() or is_scoped():
        return
    for tensor in leaves(arguments):
        part = getattr(tensor, "_lockstep_part", None)
        if part is not None:
            if part is not _delivered:
                deliver(part)
            return


def _numbers(part):
    return [int(part.offset), int(part.count), int(part.total), int(part.is_whole)]


def _from_variable(tensors):
    global _variable, _in_variable
    if not tf.compat.v1.executing_eagerly_outside_functions():
        return _of_graph(tensors)
    if _variable is None:
        from lockstep import variables  # which needs operators; they need nothing from here
        _in_variable = _numbers(_delivered)
        _variable = variables.private(_in_variable, tf.int64, "lockstep_part")
    offset, count, total, is_whole = tf.unstack(_variable.read_value())
    return Part(offset, count, total, is_whole > 0)
