# SPDX-License-Identifier: Apache-2.0
"""What a job is and was, one line each, from rank 0 on standard error; and a word where the work is not shared out."""
import atexit
import sys
import time

import tensorflow as tf

from lockstep import audit, gradients, native, variables, world

_samples = 0  # of loops in Python
_variable = None  # of steps in graphs
_begin = None
_was_cut = False
_was_warned = False
WHOLE_STEPS = 3  # a loop's first batch is whole in any case


def _say(text):
    print(f"lockstep: {text}", file=sys.stderr, flush=True)


def _is_on():
    return world.is_root() and native.setting("SUMMARY") == "on"


def note_sliced():
    """Ranks compute on different rows."""
    global _begin, _was_cut
    _was_cut = True
    if _begin is None:
        _begin = time.monotonic()


def count(part):
    """A step on this part of a batch is run, or traced.  Called where batches are cut."""
    global _samples, _variable
    if part.is_static and part.is_whole:
        return
    note_sliced()
    if not _is_on():
        return
    if tf.executing_eagerly():
        _samples += int(part.total)
        return
    if _variable is None:
        _variable = variables.private(0, tf.int64, "lockstep_samples")
    _variable.assign_add(tf.cast(part.total, tf.int64))


def samples():
    """Of all ranks, since the start."""
    return _samples + (int(_variable.numpy()) if _variable is not None else 0)


def _start_line():
    batch = "the script's batch is cut into slices" if native.setting("BATCH") == "global" else "each rank has the script's batch"
    if native.setting("SHARD") == "off":
        batch = "batches are not cut"
    nodes = native.num_nodes()
    _say(f"{world.size} ranks on {nodes} node{'s' if nodes > 1 else ''}, TensorFlow {tf.__version__}, {native.transport()}; {batch}")


def _end_line():
    if not world.on() or audit.steps == 0:
        return
    elapsed = time.monotonic() - (_begin or time.monotonic())
    counters = native.counters()
    together, exposed = counters["ns_open"], counters["ns_exposed"]
    parts = [f"{audit.steps} steps"]
    if samples() and elapsed:
        parts.append(f"{samples() / elapsed:.0f} samples/s")
    if elapsed:
        share = [f"{number / 1e9 / elapsed:.1%}" for number in (together, together - exposed, exposed)]
        parts.append("communication {} of the time: {} hidden, {} exposed".format(*share))
        parts.append(f"audit {audit.seconds / elapsed:.2%}")
    _say(", ".join(parts))


def _look_at_step():
    """Steps are taken, one after another, and no batch was cut: every rank does all the work."""
    global _was_warned, _begin
    if _begin is None:
        _begin = time.monotonic()
    if _was_warned or _was_cut or audit.steps < WHOLE_STEPS or not world.is_root() or native.setting("SHARD") == "off":
        return
    _was_warned = True
    _say("every rank computes the whole batch: to share the work, feed the loop from tf.data, or give the arrays of a batch, all "
         "with the same number of rows, to a tf.function that takes the gradients")


def note_explained():
    """The user was told why batches are whole."""
    global _was_warned
    _was_warned = True


def attach():
    if world.size == 1:
        return
    gradients.listen_to_steps(_look_at_step)
    if _is_on():
        _start_line()
        atexit.register(_end_line)
