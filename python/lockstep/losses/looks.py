# SPDX-License-Identifier: Apache-2.0
"""Whether the mean over ranks of a loss of slices is that of the batch, where the script differentiates a loss of its own: in
a loop, or in a train_step.

    tf.reduce_mean(...)                     yes: each rank computes its slice
    tf.reduce_sum(...), / 64, / sum(mask)   no: a sum over the rows, or a figure that is made of sums
    tf.matmul(a, a, transpose_b=True)       no: rows are compared with each other

Where it is not, or cannot be proved to be, every rank computes whole batches: right, and no faster; one line says so and names the place in
the script.  While a function is traced, its graph is looked at (look.py) from the rows to the target of the gradient: an operator
that is in none of the tables ends in whole batches, too.  Eagerly there is no graph: what the script does with its first batch is
noted, and put into one (replay.py).

The decision is taken when a function is traced for the first time.  All ranks must take the same: in a loop they have the same
whole batch then, in Keras they agree (decide).  LOCKSTEP_LOSS=mean or sum: nothing is looked at."""
import contextlib
import os
import sys
import threading
import traceback

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import custom_gradient

from lockstep import hooks, host, native, say, summary, world
from lockstep.losses import comparison, inputs, replay
from lockstep.losses.look import COUNTING, NORMALISATION, UNCLEAR, Look  # noqa: F401
from lockstep.slices import current, weak

_local = threading.local()


class NeedsWholeBatch(Exception):
    """Ends the tracing of a step that must not be given slices."""


def is_on():
    return world.size > 1 and native.setting("LOSS") == "auto" and native.setting("SHARD") != "off" and not weak.is_on()


def settled(loss, *sources):
    """The same, marked as what is brought to a mean over the rows: a loss of Keras, if `sources`, which it was made from, are rows or sums over
    rows.  Rows are marked as what the first of their sources is, or what has its shape."""
    sources = [tensor for tensor in sources if isinstance(tensor, tf.Tensor) and tensor is not loss]
    if is_on() and isinstance(loss, tf.Tensor) and (loss.shape.rank == 0 or sources):
        if tf.executing_eagerly():
            replay.settle(loss, sources)
            return loss
        loss.graph._lockstep_settled = getattr(loss.graph, "_lockstep_settled", {}) | {loss.name: sources}
    return loss


def counting():
    """What a metric puts into its variables meanwhile will be put together by metrics.py."""
    return tf.name_scope(COUNTING) if is_on() and (replay.is_noting() or not tf.executing_eagerly()) else contextlib.nullcontext()


def attach():
    """What the script says is the gradient of something may be anything."""
    for name in ("_graph_mode_decorator", "_eager_mode_decorator"):
        @hooks.wrap(custom_gradient, name)
        def call(original, function, *args, **kwargs):
            made = original(function, *args, **kwargs)
            if is_on() and _is_of_script(function):
                _distrust([tensor for tensor in tf.nest.flatten(made) if isinstance(tensor, tf.Tensor)])
            return made


def _is_of_script(function):
    code = getattr(function, "__code__", None)
    return code is None or not {"site-packages", "dist-packages", "lockstep"} & set(code.co_filename.split(os.sep))


def _distrust(tensors):
    if tf.executing_eagerly():
        replay.distrust(tensors)
    for tensor in tensors if not tf.executing_eagerly() else ():
        tensor.graph._lockstep_distrusted = {*getattr(tensor.graph, "_lockstep_distrusted", ()), tensor.name}


# ---- where to look -------------------------------------------------------------------------------------------

def note_rows(tensors, batch):
    """These tensors of the graph being traced are rows of the batch, cut from `batch`, and what is made of them may be differentiated."""
    if is_on() and not tf.executing_eagerly():
        graph = tf.compat.v1.get_default_graph()
        graph._lockstep_rows, graph._lockstep_batch = tf.nest.flatten(tensors), tf.nest.flatten(batch, expand_composites=True)


def problem_of(target):
    """What the target of a gradient is and where, if it is no mean over the rows of the batch; otherwise None."""
    return _first_problem(_look_at, tf.nest.flatten(target))


def problem_in(rows, targets):
    """The same for a v1 graph, where the tensors `rows` are cut in a run."""
    return _first_problem(lambda target: _look_in_graph(rows, target), targets)


def problem_of_variables():
    """What was put into a variable that is different for slices; otherwise None."""
    return _problem(_look_at_variables, "a number is")


def _look_at_variables():
    if tf.executing_eagerly():
        _need_room()
        return replay.look_at_variables()
    return _look_at_this(Look.judge_variables, "a number is")


def problem_of_effects():
    """What the function being traced writes, prints or hands to Python that is different for slices; otherwise None."""
    return _problem(lambda: _look_at_this(Look.judge_effects, "what is"), "what is")


def _look_at_this(judge, subject):
    graph = tf.compat.v1.get_default_graph()
    given = inputs.of_graph(graph)
    comparison.remember(graph, lambda sized: _problem(lambda: judge(Look(graph, *given, sized=sized)), subject))
    return judge(Look(graph, *given))


def problem_of_checks(graph):
    """What a function, which was traced, checks that is different for slices; otherwise None."""
    return _problem(lambda: Look(graph, *inputs.of_graph(graph)).judge_checks(), "a tensor is")


def _first_problem(look_at, targets):
    problems = (_problem(lambda: look_at(target), "the loss is") for target in targets)
    return next((problem for problem in problems if problem is not None), None)


def _problem(look_at, subject):
    try:
        look = look_at()
    except Exception as error:  # this look must not end a script that trains
        return told_of_error(subject, error)
    return None if look is None or look.problem is None else told(*look.problem, subject)


def told(what, op, subject):
    """One line for the user: what is the problem, and where.  op: None where there is none."""
    frames = traceback.extract_stack() if op is None or getattr(op.graph, "name", None) == replay.NAME else op.traceback
    return f"{_place(frames)}: {subject} {what}" + ("" if op is None else f" ({op.type})")


def told_of_error(subject, error):
    return f"{_place(traceback.extract_stack())}: {subject} {UNCLEAR} ({type(error).__name__}: {error})"


def _look_in_graph(rows, target):
    """What else is fed is the same on all ranks."""
    cut = {tensor.name for tensor in rows}
    target.graph._lockstep_fixed = {op.outputs[0].name for op in target.graph.get_operations()
                                    if op.type == "Placeholder" and op.outputs[0].name not in cut}
    return Look(target.graph, rows).judge(target)


def _look_at(target):
    if tf.executing_eagerly():
        _need_room()
        return replay.look_of(target)
    if not isinstance(target, tf.Tensor) or not target.graph.building_function:
        return None
    decided = None if current.is_scoped() else replay.look_at_decisions()  # of this loop, not of one before fit()
    if decided is not None and decided.problem is not None:
        return decided
    rows, others = inputs.of_graph(target.graph)
    part = current.now()
    is_slice = current.has_part() and part.is_static and part.count != part.total
    look = Look(target.graph, rows, others, is_slice).judge(target)
    comparison.remember(target.graph, lambda sized: _problem(lambda: Look(target.graph, rows, others, sized=sized).judge(target), "the loss is"))
    looks = vars(current.called[-1][0]).setdefault("_lockstep_looks", {}) if current.called and look.problem is None else {}
    return look.compare(looks.setdefault(target.name, look))


def _need_room():
    if replay.is_full():
        raise RuntimeError(f"more than {replay.MOST_OPERATORS} operators, or {replay.MOST_LOOKS} gradients, with one batch")


def _place(frames):
    """The innermost line of the script."""
    others = tuple(os.path.dirname(os.path.abspath(sys.modules[name].__file__)) + os.sep
                   for name in ("tensorflow", "keras", "tf_keras", "lockstep") if name in sys.modules)
    for frame in reversed(list(frames or ())):
        if not os.path.abspath(frame.filename).startswith(others):
            return f"{frame.filename}:{frame.lineno}"
    return "the script"


# ---- what follows --------------------------------------------------------------------------------------------

def say_whole(problem):
    summary.note_explained()
    say.once(f"{problem}: every rank computes whole batches, which is right but not faster. LOCKSTEP_LOSS=sum is for losses that are "
             "sums; with LOCKSTEP_LOSS=mean each rank computes its slice all the same")


def say_too_late(problem):
    say.once(f"warning: {problem}, and is computed on slices, as another before: not the numbers of one process. With "
             "LOCKSTEP_SHARD=off every rank computes whole batches")


@contextlib.contextmanager
def deciding():
    """The first call of a train function of Keras, on all ranks at once: decide() may end it.  An eager step is not ended, since it
    has left its traces by then: it is given the whole batch (noting), and needs_whole() says how to go on."""
    _local.is_deciding, _local.problem = True, None
    try:
        yield
    finally:
        _local.is_deciding = False


def is_noting():
    """Is this the first call of an eager train function?"""
    return getattr(_local, "is_deciding", False) and tf.executing_eagerly()


@contextlib.contextmanager
def noting(rows):
    """What is computed with these rows, eagerly, is looked at where it is differentiated."""
    replay.begin(rows)
    try:
        yield
        _local.problem = getattr(_local, "problem", None) or problem_of_variables()
    finally:
        replay.end()


def needs_whole():
    """Has the first call shown, on any rank, that an eager step needs whole batches?"""
    problem = getattr(_local, "problem", None)
    is_needed = _agreed(problem)
    if is_needed:
        say_whole(problem or "the loss is another on each rank")
    return is_needed


def _agreed(problem):
    return bool(host.allreduce(np.array([problem is not None], np.uint8), "loss/whole", op="max")[0])


def decide(target):
    """Ends the tracing of a step that is given a slice, on all ranks, if it needs the whole batch; notes it of an eager step."""
    if getattr(_local, "is_deciding", False):
        _decide(problem_of(target))


def decide_by(problem):
    """The same by what is known of a number that the step gives; None: no problem."""
    if getattr(_local, "is_deciding", False) and is_on():
        _decide(problem)


def decide_of_variables():
    """The same at the end of a step, by what it has put into variables."""
    if getattr(_local, "is_deciding", False) and is_on() and not tf.executing_eagerly():
        _decide(problem_of_variables())


def _decide(problem):
    if tf.executing_eagerly():
        _local.problem = _local.problem or problem
    elif _agreed(problem):
        say_whole(problem or "the loss is another on each rank")
        _local.gives_up = True
        raise NeedsWholeBatch(problem)


def is_giving_up():
    """Is the exception that is being handled that of decide()?"""
    return getattr(_local, "gives_up", False)


def has_given_up():
    """Was the last exception of a step that of decide()?  TensorFlow may have made another of it."""
    gives_up, _local.gives_up = getattr(_local, "gives_up", False), False
    return gives_up
