# SPDX-License-Identifier: Apache-2.0
"""Batches of tf.data that the script iterates by itself.

A loop that trains may be given slices; a loop that collects labels, or computes an accuracy by hand, must see every row.
Which of the two a loop is shows when it takes a gradient:

    for x, y in data:        batch 0: whole, on every rank (the mean of equal gradients is that gradient)
        train(x, y)                   a gradient was reduced: this loop trains
                             batch 1: this rank's slice, and so on

The place and the data set are remembered, so the loop of the next epoch begins with slices.  Loops without gradients stay whole.
Not the place alone: one line of the script may iterate the training data and, in its next turn, those for validation.  A script may
also make its data set anew for each epoch; where two of them have trained, and none has not, the next is expected to.

Inside a tf.function the loop is traced before anything runs: rows are cut by a variable that says whether the loop
trains, and which is set when a gradient is traced in it."""
import collections
import contextlib
import sys
import weakref

import tensorflow as tf
from tensorflow.python.autograph import operators
from tensorflow.python.autograph.operators import control_flow
from tensorflow.python.data.ops import dataset_ops, iterator_ops
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from lockstep import gradients, hooks, native, say, summary, variables, world
from lockstep.data import mark
from lockstep.losses import looks, replay
from lockstep.slices import alike, current, failing, own, part as parts, pipeline, step_args, trial, untuned, weak
from lockstep.slices.batches import is_batched

FRAMES_OF_A_PLACE = 3

_fetched = []  # loops that delivered since the last gradient
_trained = []  # those before
_last = None  # that delivered


def _place():
    """Where the script starts to iterate: the lines of its innermost functions."""
    frame, lines = sys._getframe(2), []
    while frame is not None and len(lines) < FRAMES_OF_A_PLACE:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(("tensorflow.", "lockstep.", "keras.")):
            lines.append((frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    return tuple(lines)


class _Place:
    """What the loops that began at one place did."""

    def __init__(self):
        self._trained, self._number = weakref.WeakSet(), 0  # data sets that trained; how many it were
        self._has_idle = False  # one has ended without a gradient
        self.problem = None  # why batches must be whole

    def note(self, dataset):
        if dataset not in self._trained:
            self._trained.add(dataset)
            self._number += 1

    def forget(self, dataset):
        self._trained.discard(dataset)
        self._has_idle = True

    def will_train(self, dataset):
        return self.problem is None and (dataset in self._trained or (self._number > 1 and not self._has_idle))


_places = collections.defaultdict(_Place)


class _Loop:
    """What is known about one iterator; it holds this, and we hold it no longer than the script does."""

    def __init__(self, dataset):
        self.lines, self._dataset = _place(), dataset
        self._place = _places[self.lines, repr(dataset.element_spec)]
        self.is_batched = is_batched(dataset)
        self.trains = self.is_batched and self._place.will_train(dataset)
        self.is_own = mark.is_partitioned(dataset)
        self.has_ended = self._has_trained = self.has_given_slices = False
        self.rows = None  # of the first batch
        self._is_first = self.is_batched and not self.trains and not self.is_own and self._place.problem is None

    def takes_first(self):
        """Is the batch that it gives now its first, which may show what it does with batches?"""
        is_first, self._is_first = self._is_first, False
        return is_first

    def may_be_cut(self):
        """Is this its first batch, after which it will be given slices?"""
        return self.rows is not None and not self.has_given_slices and not self.is_own and self._place.problem is None

    def keep_whole(self, problem):
        if self.has_given_slices:  # for another loss, which was taken first
            looks.say_too_late(problem)
        elif self.is_batched:
            self.trains, self._place.problem = False, problem
            looks.say_whole(problem)

    def note_cut(self, part):
        self.has_given_slices = True
        if part is parts.WHOLE:
            summary.note_explained()
            world.say_once(f"{self.where()}: batches with tensors that have different numbers of rows, or a sparse matrix of a graph: every rank "
                           "computes whole ones, which is right but not faster")

    def note_gradient(self):
        if self._place.problem is None and self.is_batched:
            self.trains = self._has_trained = True
            self._place.note(self._dataset)
        elif not self.is_batched and not self.is_own:
            world.say_once(f"{self.where()}: this loop trains on elements that are not known to be batches; every rank "
                           "computes all of each. With .batch() in the pipeline each computes its slice")

    def end(self):
        _end_of_noted()
        self.has_ended = True
        if self._has_trained:
            return
        self._place.forget(self._dataset)
        if self.trains:
            world.say_once(f"{self.where()}: this loop got slices, as the one that trained here before did, and took no gradient: sums "
                           "and counts that it made by hand are those of this rank's rows")

    def where(self):
        file, _, line = self.lines[0] if self.lines else ("?", "", 0)
        return f"{file}:{line}"


def note_gradient():
    """A gradient was reduced, or will be by the function that is being traced."""
    if current.is_scoped():
        return  # a front end that cuts by itself
    for function, _ in current.called:
        function._lockstep_trains = True
    if tf.executing_eagerly() or not current.called:
        _note_loops()  # otherwise after the call: more than one gradient may be taken in it
    for graph in _graphs_with_switch():
        with tf.init_scope():
            graph._lockstep_switch.assign(not hasattr(graph, "_lockstep_problem"))


def _graphs_with_switch():
    graphs = () if tf.executing_eagerly() else current.graphs_around(tf.compat.v1.get_default_graph())
    return [graph for graph in graphs if hasattr(graph, "_lockstep_switch")]


def keep_whole(problem):
    """A gradient will be taken of a loss whose slices cannot be averaged: `problem` says why.  What is traced later for batches of
    another size changes nothing: not all ranks need to trace then."""
    if tf.executing_eagerly():
        for loop in _alive(_fetched) + _alive(_trained):
            loop.keep_whole(problem)
        return
    for graph in _graphs_with_switch():
        graph._lockstep_problem = problem
        looks.say_whole(problem)
    for function, _ in current.called[:1]:
        function._lockstep_problem_of_trace = problem
    for function, arguments in () if current.tried else current.called:
        if not hasattr(function, "_lockstep_was_called") and _has_rows(arguments):
            function._lockstep_problem = problem
        elif not hasattr(function, "_lockstep_problem") and looks.UNCLEAR not in problem and not step_args.is_open(arguments):
            looks.say_too_late(problem)


def _has_rows(arguments):
    """Some do: what a single row shows in a first call may be something else."""
    sizes = [item.shape[0] for item in current.leaves(arguments) if alike.is_array(item)]
    return not sizes or max(size or 2 for size in sizes) > 1


def _alive(references):
    return [loop for loop in (reference() for reference in references) if loop is not None and not loop.has_ended]


def _note_loops():
    """The loops whose batches may be in this gradient train: all that delivered since the last one and go on.  One that
    has ended, or that the script has forgotten, was a loop inside the loop: a validation."""
    loops = _alive(_fetched)
    if not loops:
        return
    fixed = [function for function, _ in current.called if _has_fixed_rows(function)]
    if fixed:
        name = getattr(fixed[0], "__name__", "a function")
        world.say_once(f"{name}() has a batch size in its input_signature: every rank computes whole batches. With None "
                       "in its place each computes its slice")
        return
    problem = next((function._lockstep_problem for function, _ in current.called if hasattr(function, "_lockstep_problem")), None)
    for loop in loops:
        if problem is not None:
            loop.keep_whole(problem)
        loop.note_gradient()
    _trained[:], _fetched[:] = [weakref.ref(loop) for loop in loops], []


def _has_fixed_rows(function):
    signature = function.input_signature
    return signature is not None and any(
        getattr(spec, "shape", None) is not None and spec.shape.rank and (spec.shape[0] or 0) > 1
        for spec in tf.nest.flatten(signature))


def _deliver(iterator, element):
    """An element that a loop in Python got."""
    global _last
    if current.is_scoped():
        return element
    loop = getattr(iterator, "_lockstep_loop", None)
    _last = None if loop is None else weakref.ref(loop)
    if loop is not None and not any(reference() is loop for reference in _fetched):
        _fetched.append(weakref.ref(loop))
    part = parts.WHOLE
    _end_of_noted()
    if own.is_own(iterator):
        summary.note_sliced()
        part = own.part_of(element)
    elif loop is not None and loop.trains:
        part, element = parts.cut(element)
        loop.note_cut(part)
        summary.count(part)
    elif loop is not None and loop.takes_first() and looks.is_on():
        loop.rows = _rows_of(element)
        replay.begin(element)
    current.deliver(part)
    current.mark(element, part)
    return element


def _has_ended():
    """Has the loop that was given a slice last?"""
    loop = None if _last is None else _last()
    return loop is None or loop.has_ended


def _rows_of(element):
    """The number of rows that a batch has; None: there is no such number."""
    first = next((item for item in tf.nest.flatten(element) if tf.is_tensor(item) and item.shape.rank), None)
    return None if first is None else first.shape[0]


def _end_of_noted():
    """A first batch was used: has it put something into a variable that would be different for slices?"""
    is_noted = replay.is_noting() or replay.is_full()
    loops = [loop for loop in _alive(_trained) if loop.trains and not loop.has_given_slices] if is_noted else []
    problem = looks.problem_of_variables() if loops else None
    replay.end()
    for loop in loops if problem is not None else ():
        loop.keep_whole(problem)


def _takes_groups(iterator):
    """Does one step of this loop take a batch for each rank?"""
    if not weak.is_on() or not tf.executing_eagerly() or current.is_scoped() or own.is_own(iterator):
        return False
    return getattr(getattr(iterator, "_lockstep_loop", None), "trains", False)


def cut_in_graph(element):
    """Cuts an element of a loop inside a function, if the loop turns out to train."""
    if current.is_scoped():
        return element
    graph = tf.compat.v1.get_default_graph()
    if isinstance(element, parts.Rows):
        part, rows = parts.of_rows(element)
        current.attach(graph, part)
        summary.count(part)
        return rows
    if weak.is_on():
        world.say_once("LOCKSTEP_BATCH=per-rank: batches fetched inside of a tf.function are cut into slices; fetch them in "
                       "Python and give them to the function to have whole batches on each rank")
    switch = variables.private(False, tf.bool, "lockstep_loop_trains")
    trains = switch.read_value()
    flat = tf.nest.flatten(element)
    batched = [item for item in flat if parts._is_batched(item)]
    total = parts._total(batched) if batched else None
    if total is None:
        return element
    trains = tf.logical_and(trains, parts.have_as_many(batched, total))
    total = tf.convert_to_tensor(total, tf.int64)
    part, first, rows = parts.dynamic_part(total)
    first, rows = tf.where(trains, first, 0), tf.where(trains, rows, parts.ALL_ROWS)
    part = parts.Part(first, tf.where(trains, part.count, total), total, ~trains)
    current.attach(graph, part)
    summary.count(part)
    graph._lockstep_switch = switch
    sliced = [parts.take_rows(item, first, rows) if parts._is_batched(item) else item for item in flat]
    looks.note_rows(sliced, flat)
    return tf.nest.pack_sequence_as(element, sliced)


def _own_in_graph(element):
    """An element of a loop inside a function that is this rank's part already."""
    if not current.is_scoped():
        summary.note_sliced()
        current.attach(tf.compat.v1.get_default_graph(), own.part_of(element))
    return element


def attach():
    gradients.listen(note_gradient)
    _attach_functions()
    if world.size == 1 or native.setting("SHARD") == "off":
        return

    @hooks.wrap(iterator_ops.OwnedIterator, "_create_iterator")
    def create_iterator(original, self, dataset):
        self._lockstep_loop = _Loop(dataset)
        own.note(self, dataset)
        if self._lockstep_loop.trains and not current.is_scoped():
            dataset = pipeline.sliced(dataset) or dataset
        original(self, untuned.on_one_core(dataset))

    @hooks.wrap(iterator_ops.OwnedIterator, "_next_internal")
    def next_internal(original, self):
        try:
            element = weak.next_group(lambda: original(self)) if _takes_groups(self) else original(self)
        except (StopIteration, tf.errors.OutOfRangeError):
            if hasattr(self, "_lockstep_loop"):
                self._lockstep_loop.end()
            raise
        if tf.executing_eagerly():
            return _deliver(self, element)
        take = _take_of(self)
        return element if take is None else take(element)

    for module in (operators, control_flow):
        _attach_for(module)


def _attach_functions():
    """Also where nothing is cut: a call of a function that trains is a step, which is counted and recorded."""
    cuts_args, cuts_loops = step_args.is_on(), world.size > 1 and not parts.is_left_alone() and not weak.is_on() and looks.is_on()

    def called(original, self, args, kwargs):
        if len(current.called) > 1 or not cuts_args:
            return original(self, *args, **kwargs)
        return _call_on_slices(original, self, args, kwargs)

    @hooks.wrap(polymorphic_function.Function, "__call__")
    def call(original, self, *args, **kwargs):
        current.recall((args, kwargs))
        current.called.append((self, (args, kwargs)))
        try:
            if len(current.called) == 1 and not current.is_scoped() and tf.executing_eagerly():
                result = _called_by_script(self, (args, kwargs), lambda: called(original, self, args, kwargs), cuts_loops)
            else:
                result = called(original, self, args, kwargs)
                if _trains(self):
                    note_gradient()
            self._lockstep_was_called = True
            return result
        finally:
            current.called.pop()


def _trains(function):
    return getattr(function, "_lockstep_trains", False)


def _called_by_script(function, arguments, run, cuts_loops):
    loops = [loop for loop in _alive(_fetched) + _alive(_trained) if loop.may_be_cut()] if cuts_loops else []
    if current.is_delivering_slices():
        result = _called_among_slices(function, arguments, run)
    elif loops:
        result = _called_in_first_batch(function, arguments, run, loops)
    else:
        result = run()
    if _trains(function):
        note_gradient()
        gradients.note_step(_first_number(result))
    return result


def _called_among_slices(function, arguments, run):
    if step_args.is_of_no_loop(arguments, _has_ended()):
        with current.delivering(parts.WHOLE):
            return run()
    with failing.on_slices(function) if _trains(function) else contextlib.nullcontext():
        result = run()
    if _trains(function) and looks.is_on():
        problem = step_args.problem_with_later(function, arguments, current.now())
        if problem is not None:
            looks.say_too_late(problem)
    return result


def _called_in_first_batch(function, arguments, run, loops):
    """The first batch of these loops is whole: would a slice have done, too?"""
    given = {item.shape[0] for item in current.leaves(arguments) if alike.is_array(item) and hasattr(item, "_lockstep_part")}
    rows = given.pop() if len(given) == 1 else loops[-1].rows
    with step_args.first_batch(arguments, rows) as of_loop:
        result = run()
    if not _trains(function) or hasattr(function, "_lockstep_problem") or _has_fixed_rows(function) or tf.config.functions_run_eagerly():
        return result
    tried, kind = vars(function).setdefault("_lockstep_tried", {}), (alike.kind_of(arguments), trial.rows_of(arguments), rows)
    if kind not in tried and len(tried) < alike.MOST_KINDS:
        of_several = len(given) > 1 and len({loop.rows for loop in loops}) > 1
        tried[kind] = (f"{trial.name_of(function)}() is given batches of several loops, with different numbers of rows" if of_several else
                       step_args.problem_with_batch(function, arguments, of_loop, rows))
    if tried.get(kind) is not None:
        function._lockstep_problem = tried[kind]
        for loop in loops:
            loop.keep_whole(tried[kind])
    return result


def _call_on_slices(original, function, args, kwargs):
    """With this rank's rows of the arrays among the arguments, where it may be."""
    cut = step_args.call_on_slices(function, (args, kwargs), lambda slices: original(function, *slices[0], **slices[1]))
    if cut is not None:
        return cut.result
    with step_args.whole_call((args, kwargs)):
        result = original(function, *args, **kwargs)
    if getattr(function, "_lockstep_trains", False) and not _has_fixed_rows(function):
        step_args.look(function, (args, kwargs), result)
    return result


def _first_number(result):
    """Of what a function that trains returns: mostly its loss."""
    for value in tf.nest.flatten(result):
        if tf.is_tensor(value) and value.dtype.is_floating and value.shape.rank == 0:
            return value
    return None


def _attach_for(module):
    """`for x in data` in a tf.function, which never calls data.__iter__."""
    @hooks.wrap(module, "for_stmt")
    def for_stmt(original, iterated, extra_test, body, *args):
        if tf.executing_eagerly() or current.is_scoped():
            return original(iterated, extra_test, body, *args)
        take = _take_of(iterated)
        return original(iterated, extra_test, body if take is None else _body_on(take, body), *args)


def _body_on(take, body):
    """The loop's body on what `take` makes of an element.  It is traced as a function of tf.data, which is otherwise one of
    elements that are no batch yet (randomness.py): that scope is not the body's."""
    def body_on(element):
        with current.no_scope():
            result = body(take(element))
        _look_at_variables()
        return result

    return body_on


def _look_at_variables():
    """The same at the end of the body of a loop inside a function."""
    graph = tf.compat.v1.get_default_graph()
    if hasattr(graph, "_lockstep_switch") and not hasattr(graph, "_lockstep_problem") and looks.is_on():
        problem = looks.problem_of_variables()
        if problem is not None:
            keep_whole(problem)
            with tf.init_scope():
                graph._lockstep_switch.assign(False)


def _take_of(iterated):
    """What a loop inside a function makes of the elements of a data set or an iterator; None: it leaves them alone."""
    if not isinstance(iterated, (dataset_ops.DatasetV2, iterator_ops.OwnedIterator)):
        return None
    if own.is_own(iterated):
        return _own_in_graph
    return cut_in_graph if _gives_batches(iterated) else None


def _gives_batches(iterated, calls=None):
    if isinstance(iterated, dataset_ops.DatasetV2):
        return is_batched(iterated, calls)
    loop = getattr(iterated, "_lockstep_loop", None)
    if loop is not None:
        return loop.is_batched
    # The argument of a function, as its trace sees it.
    given = list(current.given(iterator_ops.OwnedIterator, iterated.element_spec, calls))
    return bool(given) and all(_gives_batches(item, earlier) for item, earlier in given)
