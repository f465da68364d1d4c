# SPDX-License-Identifier: Apache-2.0
"""What must agree between ranks agrees, and what must differ differs (docs/randomness.md).

When TensorFlow is imported the ranks take over rank 0's state of `random` and `numpy.random`, and agree on a seed for
whatever the script leaves without one: default_rng(), shuffles of data, tf.random.  From there on equal code draws equal
numbers on every rank: shuffles, splits, initial values, decisions.

Numbers drawn for the rows of a slice are another matter: the same ones on each rank would give different samples the same
dropout mask.  They are recognised by their shape, whose first dimension is the number of rows of the slice:

    LOCKSTEP_DROPOUT=differ   the rank goes into the seed
    LOCKSTEP_DROPOUT=exact    numbers are drawn for the whole batch, and the slice's rows are taken: each sample has those
                              that it has in one process

Seams: SeedSequence's source of entropy, below everything unseeded in NumPy; random_seed.get_seed, below every stateful
random operator and tf.data; the operators that draw uniform and normal numbers, stateful and stateless, below Keras's
dropout, noise and augmentation layers."""
import functools
import os
import random
import threading
import weakref

import numpy as np
import tensorflow as tf
from numpy.random import bit_generator
from tensorflow.python.data.ops import structured_function
from tensorflow.python.framework import random_seed, tensor_util
from tensorflow.python.ops import gen_random_ops, gen_stateless_random_ops_v2

from lockstep import hooks, native, ops, seeds, world
from lockstep.effects.once import follow, share
from lockstep.slices import current, part as parts

_STATEFUL = ("random_uniform", "random_uniform_int", "random_standard_normal", "truncated_normal")
_STATELESS = ("stateless_random_uniform_v2", "stateless_random_uniform_int_v2", "stateless_random_uniform_full_int_v2",
              "stateless_random_normal_v2", "stateless_truncated_normal_v2")
_SPREAD = 0x9e3779b97f4a7c15  # 2^64 / golden ratio: neighbouring ranks get keys far apart
_LARGEST = 2**31 - 1

_lock = threading.Lock()
_seed = None  # agreed
_stream = None  # of numbers drawn outside graphs
_stateful_listeners = []
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


def listen_to_stateful(function):
    """Calls function(name) when an operator that keeps its state to itself is to draw numbers for a slice, in a graph."""
    _stateful_listeners.append(function)


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

    for name in _STATEFUL:
        _attach_drawing(gen_random_ops, name, _with_rank_in_seed)
    for name in _STATELESS:
        if hasattr(gen_stateless_random_ops_v2, name):
            _attach_drawing(gen_stateless_random_ops_v2, name, _with_rank_in_key)


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


def _with_rank_in_seed(args, kwargs):
    seed2 = (kwargs.get("seed2") or 0) + world.rank * (_SPREAD % _LARGEST)
    return args, {**kwargs, "seed2": seed2 % _LARGEST or 1}


def _with_rank_in_key(args, kwargs):
    """The key is the first argument after the shape."""
    spread = tf.constant((world.rank * _SPREAD) % 2**64, tf.uint64)
    if "key" in kwargs:
        return args, {**kwargs, "key": tf.bitwise.bitwise_xor(kwargs["key"], spread)}
    return (tf.bitwise.bitwise_xor(args[0], spread), *args[1:]), kwargs


def _attach_drawing(module, name, with_rank):
    @hooks.wrap(module, name)
    def draw(original, shape, *args, **kwargs):
        part = current.now()
        if part.is_static and part.is_whole:
            return original(shape, *args, **kwargs)
        shape = tf.convert_to_tensor(shape)
        first = _first_dimension(shape)
        is_rows = False if first is None else _is_rows(first, part)
        if is_rows is False:
            return original(shape, *args, **kwargs)
        if with_rank is _with_rank_in_seed and not tf.executing_eagerly():
            for function in _stateful_listeners:
                function(name)
        if _is_exact(is_rows):
            return _rows_of_batch(original, shape, first, is_rows, part, args, kwargs)
        own_args, own_kwargs = with_rank(args, kwargs)
        own = original(shape, *own_args, **own_kwargs)
        return own if is_rows is True else tf.where(is_rows, own, original(shape, *args, **kwargs))


def _first_dimension(shape):
    """A number, a tensor where it is not known yet, None of a single number."""
    static = tensor_util.constant_value_as_shape(shape)
    if static.rank == 0:
        return None
    known = tf.compat.dimension_value(static[0]) if static.rank is not None else None
    return tf.cast(shape[0], tf.int64) if known is None else known


def _is_rows(first, part):
    """Are these numbers for the rows of the slice?  True, False, or a tensor that tells."""
    rows = tf.maximum(part.count, 1) if tf.is_tensor(part.count) else max(part.count, 1)
    if part.is_static and not tf.is_tensor(first):
        return first == rows
    return tf.logical_and(tf.equal(tf.cast(first, tf.int64), tf.cast(rows, tf.int64)), not part.is_whole
                          if not tf.is_tensor(part.is_whole) else ~part.is_whole)


def _is_exact(is_rows):
    if native.setting("DROPOUT") != "exact":
        return False
    if is_rows is not True and ops.is_in_xla() and not current.is_scoped():
        _warn_about_xla()
        return False
    return True


@functools.lru_cache(maxsize=None)
def _warn_about_xla():
    import warnings
    warnings.warn("lockstep: LOCKSTEP_DROPOUT=exact has no effect in a function with jit_compile=True that a loop of the script "
                  "calls: the shape of what is drawn must be known when it is compiled", stacklevel=2)


def _rows_of_batch(original, shape, first, is_rows, part, args, kwargs):
    if is_rows is True:
        whole = original(tf.concat([[tf.cast(part.total, shape.dtype)], shape[1:]], 0), *args, **kwargs)
        return whole[part.offset:part.offset + first]
    total = tf.where(is_rows, tf.cast(part.total, shape.dtype), shape[0])
    offset = tf.where(is_rows, tf.cast(part.offset, shape.dtype), 0)
    whole = original(tf.concat([[total], shape[1:]], 0), *args, **kwargs)
    return whole[offset:offset + shape[0]]
