# SPDX-License-Identifier: Apache-2.0
"""Seeds that the script gives have to be the same on all ranks: one made from a clock or a process number gives each rank
other shuffles, and with them other batches to cut slices from; nothing else would show it.

Those given in the main thread before the first step are noted, and compared once, after it.  Other threads (generators,
workers) may be at different places on different ranks."""
import threading

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

from lockstep import gradients, hooks, native, ops, say, world
from lockstep.slices import part

_FUNCTIONS = ("random.seed", "numpy.random.seed", "numpy.random.default_rng", "tf.random.set_seed")

_given = {}  # function: text of all the seeds that it was given
_is_compared = False


def note(function, seed):
    if _is_compared or threading.current_thread() is not threading.main_thread():
        return
    if isinstance(seed, (list, tuple, np.ndarray)):
        seed = np.asarray(seed).tolist()
    if isinstance(seed, (int, float, str, bytes, list, np.number)):  # of other things the text may hold an address
        _given[function] = f"{_given.get(function, '')} {seed}"


def _hash(text):
    return native.hash_memory(text.encode(), len(text.encode()))


def _compare():
    global _is_compared
    if _is_compared or not tf.executing_eagerly():
        return
    _is_compared = True
    if part.is_left_alone():
        return
    given = {**_given, "tf.random.set_seed": str(context.global_seed())}
    own = np.array([[_hash(given.get(function, "")) for function in _FUNCTIONS]], np.uint64).view(np.int64)
    of_ranks = ops.allgather(tf.constant(own), "seeds").numpy()
    for function, hashes in zip(_FUNCTIONS, of_ranks.T):
        others = [str(rank) for rank, hashed in enumerate(hashes) if hashed != hashes[0]]
        if others:
            say.once(f"warning: {function} was given other seeds on rank{'s' if len(others) > 1 else ''} {', '.join(others)} than on "
                     f"rank 0 ({given.get(function, ' none').strip()[-60:]}): a seed from a clock or a process number gives each rank other "
                     "data. Give a number, or none at all: then Lockstep sees to it that the ranks agree")


def attach():
    if world.size == 1:
        return
    gradients.listen_to_steps(_compare)

    @hooks.wrap(np.random, "seed")
    def seed(original, seed=None):
        note("numpy.random.seed", seed)
        return original(seed)

    @hooks.wrap(np.random, "default_rng")
    def default_rng(original, seed=None):
        note("numpy.random.default_rng", seed)
        return original(seed)
