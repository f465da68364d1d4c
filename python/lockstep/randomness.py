# SPDX-License-Identifier: Apache-2.0
"""What must agree between ranks agrees, and what must differ differs (docs/randomness.md).

When TensorFlow is imported the ranks take over rank 0's state of `random` and `numpy.random`, and agree on a seed for
whatever the script leaves without one: default_rng(), shuffles of data, tf.random.  From there on equal code draws equal
numbers on every rank: shuffles, splits, initial values, decisions.

Numbers drawn for the rows of a slice are another matter: noise.py.

Seams: SeedSequence's source of entropy, below everything unseeded in NumPy; random_seed.get_seed, below every stateful
random operator and tf.data."""
import os
import random
import threading
import weakref

import numpy as np
import tensorflow as tf
from numpy.random import bit_generator
from tensorflow.python.data.ops import structured_function
from tensorflow.python.framework import random_seed

from lockstep import hooks, native, noise, seeds, world
from lockstep.effects.once import follow, share
from lockstep.slices import current, part as parts

_lock = threading.Lock()
_seed = None  # agreed
_stream = None  # of numbers drawn outside graphs
_drawn = weakref.WeakKeyDictionary()  # graph: how many operators in it had no seed


def attach():
    global _seed, _stream
    goes_on = bool(native.setting("STATE"))
    if world.size == 1 and not goes_on:
        return
    _seed = share(once_drawn() if goes_on and world.is_root() else int.from_bytes(os.urandom(16), "little"), "seed")
    _stream = random.Random(_seed)
    if goes_on:  # what the script draws first, too, is drawn again by a start that goes on
        random.seed(_seed)
        np.random.seed(_seed % 2**32)
    _attach_python()
    _attach_numpy()
    _attach_tensorflow()


def once_drawn():
    """A seed that a job that is started again finds in its folder."""
    from lockstep.restart import folder
    state = native.setting("STATE")
    with world.alone():
        folder.make(state)
        job = folder.get_text(state, folder.JOB)
        if not job:
            job = {"seed": int.from_bytes(os.urandom(16), "little")}
            folder.put_text(state, folder.JOB, job)
    return job["seed"]


def stream():
    """Where numbers come from that the script draws without a seed; None where they are as TensorFlow draws them."""
    return _stream


def _next(bits):
    with _lock:
        return _stream.getrandbits(bits)


# ---- Python and NumPy ----------------------------------------------------------------------------------------

def _attach_python():
    def put(state):
        version, numbers, gauss = state
        random.setstate((version, tuple(numbers), gauss))

    def get():
        version, numbers, gauss = random.getstate()
        return [version, list(numbers), gauss]

    put(share(get(), "state of random"))
    follow("random", get, put)

    @hooks.wrap(random, "seed")
    def seed(original, a=None, *args, **kwargs):
        seeds.note("random.seed", a)
        return original(_next(128) if a is None else a, *args, **kwargs)


def _attach_numpy():
    def put(state):
        kind, numbers, *rest = state
        np.random.set_state((kind, np.array(numbers, np.uint32), *rest))

    def get():
        kind, numbers, *rest = np.random.get_state()
        return [kind, numbers.tolist(), *rest]

    put(share(get(), "state of numpy.random"))
    follow("numpy", get, put)

    @hooks.wrap(bit_generator, "randbits")
    def randbits(original, bits):
        return _next(bits)


# ---- TensorFlow ----------------------------------------------------------------------------------------------

def _attach_tensorflow():
    @hooks.wrap(random_seed, "get_seed")
    def get_seed(original, op_seed):
        seeds = original(op_seed)
        return seeds if seeds[0] is not None else _agreed_seeds()

    # A function of tf.data works on elements before they are a batch: no rank has a slice there.
    @hooks.wrap(structured_function.StructuredFunctionWrapper, "__init__")
    def wrap_function(original, self, *args, **kwargs):
        with current.scope(parts.WHOLE):
            return original(self, *args, **kwargs)

    noise.attach()


def _agreed_seeds():
    """Seeds for an operator of which the script gave none.

    In a graph they come from the name of the function and a number: ranks may trace a function more or less often (a
    short slice is traced again), so what they have drawn so far must not matter."""
    if tf.executing_eagerly():
        return _next(30) + 1, _next(30) + 1
    graph = tf.compat.v1.get_default_graph()
    number = _drawn[graph] = _drawn.get(graph, 0) + 1
    chosen = random.Random(f"{_seed}/{getattr(graph, 'name', '')}/{number}")
    return chosen.getrandbits(30) + 1, chosen.getrandbits(30) + 1
