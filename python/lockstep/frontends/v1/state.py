# SPDX-License-Identifier: Apache-2.0
"""Variables that a run on slices changes other than by a gradient.

  counts (of tf.metrics, and whole numbers that are added to): after the run, what all ranks added is added everywhere
  others (moving averages of batch normalisation): differ between ranks while they train, and are made the mean of all ranks'
  before the next run that is not on slices: an evaluation, a save"""
import threading

import numpy as np
import tensorflow as tf

from lockstep import host, say
from lockstep.frontends.v1 import weights

_COLLECTIONS = ("global_variables", "local_variables", "trainable_variables", "model_variables", "metric_variables")


def _variables(graph, handles):
    """The variables of these operations, as far as some collection knows them."""
    known = {}
    for collection in _COLLECTIONS:
        key = getattr(tf.compat.v1.GraphKeys, collection.upper())
        known.update({variable.op.name: variable for variable in graph.get_collection_ref(key) if hasattr(variable, "op")})
    for handle in handles:
        if handle.name not in known:
            say.once(f"variable {handle.name} is changed by each rank's slice and is in no collection: it is left as it is")
    return [known[handle.name] for handle in handles if handle.name in known]


def before(sess, effects):
    """The counts before a run: (variables, values)"""
    found = _variables(sess.graph, effects.summed) if effects.summed else []
    return found, sess.run(found) if found else []


def after(sess, effects, counts):
    found, old = counts
    if found:
        new = sess.run(found)
        weights.load(sess, found, [_added(variable, a, b) for variable, a, b in zip(found, old, new)])
    if effects.averaged:
        _diverged(sess).update({handle.name: handle for handle in effects.averaged})


def _added(variable, old, new):
    old, new = np.asarray(old), np.asarray(new)
    return old + host.allreduce((new - old).astype(np.float64), f"count/{variable.op.name}", "sum").astype(new.dtype)


def _diverged(sess):
    if not hasattr(sess, "_lockstep_diverged"):
        sess._lockstep_diverged = {}
    return sess._lockstep_diverged


def forget(sess, found):
    """These have new values."""
    for variable in found:
        _diverged(sess).pop(variable.op.name, None)


def settle(sess):
    """Makes one value of what differs.  Other threads than the main one come at any time: they see this rank's values."""
    diverged = _diverged(sess)
    if not diverged or threading.current_thread() is not threading.main_thread():
        return
    found = [variable for variable in _variables(sess.graph, [diverged[name] for name in sorted(diverged)])
             if variable.dtype.base_dtype.is_floating]
    diverged.clear()
    if found:
        values = [np.asarray(value) for value in sess.run(found)]
        means = [host.allreduce(value.astype(np.float64), f"state/{variable.op.name}").astype(value.dtype)
                 for variable, value in zip(found, values)]
        weights.load(sess, found, means)
