# SPDX-License-Identifier: Apache-2.0
"""Rank 0's values after an initialiser or a restore.

Values are read by the operation that reads a variable and written by its initialiser, with the value fed in its place:
nothing is added to the graph, which may be finalized."""
import threading

import numpy as np

from lockstep import host, variables, world


def initialised(sess, found):
    """Variables got a value that may differ between ranks.  Threads other than the main one come and go as they like: what
    they initialise is agreed before the next step."""
    if threading.current_thread() is threading.main_thread():
        agree(sess, found)
    else:
        pending = _pending(sess)
        pending.update({variable.op.name: variable for variable in found})


def settle(sess):
    pending = _pending(sess)
    if pending:
        agree(sess, [pending[name] for name in sorted(pending)])
        pending.clear()


def _pending(sess):
    if not hasattr(sess, "_lockstep_pending"):
        sess._lockstep_pending = {}
    return sess._lockstep_pending


def agree(sess, found):
    values = sess.run(list(found))
    agreed = [_from_root(value, variable) for value, variable in zip(values, found)]
    if not world.is_root():
        load(sess, found, agreed)


def _from_root(value, variable):
    value = np.asarray(value)
    if value.dtype.hasobject:
        return value  # texts are made by the script, alike everywhere
    return host.broadcast(value, f"initial/{variables.key(variable)}")


def load(sess, found, values):
    """Gives variables their values; some share a tensor with their initial value, and go one after another."""
    open_ones = list(zip(found, values))
    while open_ones:
        feed, ops, later = {}, [], []
        for variable, value in open_ones:
            tensor = variable.initializer.inputs[1]
            if tensor.ref() in feed:
                later.append((variable, value))
                continue
            feed[tensor.ref()] = value
            ops.append(variable.initializer)
        sess.run(ops, {ref.deref(): value for ref, value in feed.items()})
        open_ones = later
