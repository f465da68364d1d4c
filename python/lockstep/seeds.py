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

_given = {}  # function: hash of all the seeds that it was given, and the text of the last
_is_compared = False
_lock = threading.Lock()


def note(function, seed):
    if _is_compared or threading.current_thread() is not threading.main_thread():
        return
    text = _text(seed)
    if text is not None:
        before, _ = _given.get(function, (0, ""))
        _given[function] = (native.hash_text(f"{before} {text}"), text)


def _text(seed):
    """None for what has no text that is the same on all ranks, as an object with its address."""
    if isinstance(seed, (int, np.integer)):
        return hex(seed) if abs(int(seed)) >= 2**64 else str(int(seed))
    if isinstance(seed, (float, str, bytes, np.floating)):
        return str(seed)
    if isinstance(seed, np.ndarray):
        seed = seed.tolist()
    if isinstance(seed, (list, tuple)):
        parts = [_text(one) for one in seed]
        return None if None in parts else f"[{', '.join(parts)}]"
    return None


def _is_first():
    global _is_compared
    with _lock:
        is_first, _is_compared = not _is_compared, True
    return is_first


def _compare():
    if not _is_first() or part.is_left_alone() or not tf.executing_eagerly():
        return
    of_tensorflow = str(context.global_seed())
    given = {**_given, "tf.random.set_seed": (native.hash_text(of_tensorflow), of_tensorflow)}
    own = np.array([[given.get(function, (0, ""))[0] for function in _FUNCTIONS]], np.uint64).view(np.int64)
    of_ranks = ops.allgather(tf.constant(own), "seeds").numpy()
    for function, hashes in zip(_FUNCTIONS, of_ranks.T):
        others = [str(rank) for rank, hashed in enumerate(hashes) if hashed != hashes[0]]
        if others:
            say.once(f"warning: {function} was given other seeds on rank{'s' if len(others) > 1 else ''} {', '.join(others)} than on "
                     f"rank 0 ({given.get(function, (0, 'none'))[1][:60]}): a seed from a clock or a process number gives each rank other "
                     "data. Give a number, or none at all: then Lockstep sees to it that the ranks agree")


def attach():
    global _is_compared
    if world.size == 1:
        _is_compared = True
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
