# SPDX-License-Identifier: Apache-2.0
"""Looks, every LOCKSTEP_AUDIT_STEPS steps and at the end, whether all ranks have the same weights.

Compared are the variables whose gradients were reduced, and the variables of the optimizers of Keras models.  Each rank
hashes their memory (in C); two numbers travel: the largest hash, and the largest complement, which is the smallest hash.
Only where these differ do the ranks tell each other all hashes, to name the variable.

A step is what Python sees of one (gradients.note_step); the comparison is made between two."""
import atexit
import ctypes
import sys
import time
import weakref

import numpy as np
import tensorflow as tf

from lockstep import gradients, native, ops, variables, world

_watched = {}  # key: weak reference to a variable
_models = weakref.WeakSet()
_interval = 0
_next = 0

steps = 0  # since the start
seconds = 0.0  # spent here


def watch(source):
    """A gradient with respect to this variable is reduced."""
    variable = getattr(source, "_value", source)
    key = variables.key(variable)
    if key not in _watched:
        _watched[key] = weakref.ref(variable)


def watch_model(model):
    """Also its optimizer's variables, once they exist."""
    _models.add(model)


def _step():
    global steps, _next
    steps += 1
    if _interval and steps >= _next:
        _next = steps + _interval
        check()


def _watch_all(sources):
    for source in sources:
        watch(source)


def trained_variables():
    """Those whose gradients were reduced: {key: variable}"""
    return {key: variable for key, reference in _watched.items() if (variable := reference()) is not None}


def found_variables():
    """What is to be compared: {key: variable}"""
    found = trained_variables()
    for model in list(_models):
        optimizer = getattr(model, "optimizer", None)
        own = getattr(optimizer, "variables", ())
        for variable in own() if callable(own) else own:
            variable = getattr(variable, "_value", variable)
            if isinstance(variable, tf.Variable) and variable.dtype.is_floating:
                found[variables.key(variable)] = variable
    return found


def _hash(variable):
    if not variable.is_initialized():
        return 0
    values = np.ascontiguousarray(variable.read_value()._numpy_internal())
    return native.hash_memory(values.ctypes.data, values.nbytes)


def check():
    """Raises on all ranks if two have different weights.  All ranks call it at the same step."""
    global seconds
    if world.size == 1 or not tf.executing_eagerly():
        return
    begin = time.monotonic()
    found = found_variables()
    keys = sorted(found)
    hashes = np.array([_hash(found[key]) for key in keys], np.uint64)
    together = native.hash_memory(hashes.ctypes.data, hashes.nbytes) ^ native.hash_text("\n".join(keys))
    own = ctypes.c_int64(together).value
    extremes = ops.allreduce(tf.constant([own, ~own], tf.int64), "audit", op="max").numpy()
    seconds += time.monotonic() - begin
    if extremes[0] != ~extremes[1]:
        difference = _difference(keys, hashes)
        if difference is not None:
            raise native.LockstepError(difference)


def _difference(keys, hashes):
    """Which variables, on which ranks.  The majority is taken to be right; of two ranks, rank 0.

    None where those that all ranks have are equal: Python frees what the script no longer uses, as an earlier model, on one
    rank sooner than on another."""
    rows = np.array([native.hash_text(key) for key in keys] + hashes.tolist(), np.uint64).view(np.int64)
    lengths = ops.allgather(tf.constant([len(keys)], tf.int64), "audit/number").numpy()
    flat = ops.allgather(tf.constant(rows, tf.int64), "audit/hashes").numpy().view(np.uint64)
    tables, at = [], 0
    for length in lengths:
        tables.append(dict(zip(flat[at:at + length].tolist(), flat[at + length:at + 2 * length].tolist())))
        at += 2 * length
    lines = [f"after step {steps} the ranks do not have the same weights"]
    for key in keys:
        seen = [table.get(native.hash_text(key)) for table in tables]
        if None in seen:
            continue
        usual = max(seen, key=lambda value: (seen.count(value), value == seen[0]))
        others = [rank for rank, value in enumerate(seen) if value != usual]
        if others:
            lines.append(f"  {key}: rank{'s' if len(others) > 1 else ''} {', '.join(map(str, others))} "
                         f"differ{'' if len(others) > 1 else 's'} from the others")
    if len(lines) == 1:
        return None
    lines.append("Something in the script gives each rank other values: what is random, read from a clock, a host or a rank's "
                 "own files, and then assigned or used in an update that is not a gradient. LOCKSTEP_AUDIT_STEPS=0 would go on.")
    return "\n".join(lines[:20] + lines[-1:] if len(lines) > 20 else lines)


def _at_end():
    if not world.on() or hasattr(sys, "last_type") or steps == 0:
        return
    try:
        check()
    except native.LockstepError as error:
        print(f"lockstep: {error}", file=sys.stderr, flush=True)
        native.leave_with_failure()


def attach():
    global _interval, _next
    _interval = _next = int(native.setting("AUDIT_STEPS"))
    gradients.listen_to_variables(_watch_all)
    gradients.listen_to_steps(_step)
    if _interval:
        atexit.register(_at_end)
