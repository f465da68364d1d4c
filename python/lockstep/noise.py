# SPDX-License-Identifier: Apache-2.0
"""Random numbers for the rows of a slice: the same ones on each rank would give different samples the same dropout mask.

They are recognised by their shape, whose first dimension is the number of rows of the slice:

    LOCKSTEP_DROPOUT=differ   the rank goes into the seed
    LOCKSTEP_DROPOUT=exact    numbers are drawn for the whole batch, and the slice's rows are taken: each sample has those
                              that it has in one process

    logits, alpha, rate of the slice's rows          xxxx
    for the whole batch, others filled in        ....xxxx..    each number has its own place in the generator's sequence,
    drawn, and taken                                 xxxx      whatever the parameters of the others are

Seams: the operators that draw, stateful and stateless, below Keras's dropout, noise and augmentation layers; and by how much
a tf.random.Generator goes on, which depends on the shape and must not depend on the slice."""
import functools
import inspect
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.framework import tensor_util
from tensorflow.python.ops import (gen_random_ops, gen_stateful_random_ops, gen_stateless_random_ops, gen_stateless_random_ops_v2,
                                   stateful_random_ops)

from lockstep import hooks, native, ops, world
from lockstep.losses import looks
from lockstep.slices import current

_SPREAD = 0x9e3779b97f4a7c15  # 2^64 / golden ratio: neighbouring ranks get keys far apart
_LARGEST = 2**31 - 1

_stateful_listeners = []


class _Operator(NamedTuple):
    module: Any
    name: str
    seed: str  # the argument that the rank goes into; None: it has none
    parameters: dict = {}  # arguments that may have rows: what is filled in for those of other slices
    is_samples_first: bool = False  # the shape is that of the samples for each parameter, whose shape follows


_OPERATORS = (
    *(_Operator(gen_random_ops, name, "seed2")
      for name in ("random_uniform", "random_uniform_int", "random_standard_normal", "truncated_normal")),
    *(_Operator(gen_stateless_random_ops_v2, name, "key")
      for name in ("stateless_random_uniform_v2", "stateless_random_uniform_int_v2", "stateless_random_uniform_full_int_v2",
                   "stateless_random_normal_v2", "stateless_truncated_normal_v2")),
    _Operator(gen_random_ops, "multinomial", "seed2", {"logits": 0}),
    _Operator(gen_stateless_random_ops, "stateless_multinomial", "seed", {"logits": 0}),
    _Operator(gen_random_ops, "random_gamma", "seed2", {"alpha": 1}, is_samples_first=True),
    _Operator(gen_stateless_random_ops_v2, "stateless_random_gamma_v3", "key", {"alpha": 1}),
    _Operator(gen_random_ops, "random_poisson_v2", "seed2", {"rate": 1}, is_samples_first=True),
    _Operator(gen_stateless_random_ops, "stateless_random_poisson", "seed", {"lam": 1}),
    _Operator(gen_stateless_random_ops, "stateless_random_binomial", "seed", {"counts": 1, "probs": 0.5}),
    _Operator(gen_stateful_random_ops, "stateful_random_binomial", None, {"counts": 1, "probs": 0.5}),
)


def attach():
    for operator in _OPERATORS:
        if hasattr(operator.module, operator.name):
            _attach_drawing(operator)

    @hooks.wrap(stateful_random_ops.Generator, "_prepare_key_counter")
    def prepare(original, self, shape):
        rows = _rows_of({"shape": shape}, (), is_of_any=True)
        return original(self, shape if rows is None else rows.of_batch(tf.convert_to_tensor(shape)))


def listen_to_stateful(function):
    """Calls function(name) when an operator that keeps its state to itself is to draw numbers for a slice, in a graph."""
    _stateful_listeners.append(function)


def _attach_drawing(operator):
    signature = inspect.signature(getattr(operator.module, operator.name))

    @hooks.wrap(operator.module, operator.name)
    def draw(original, *args, **kwargs):
        part = current.now()
        if part.is_static and part.is_whole:
            return original(*args, **kwargs)
        given = signature.bind(*args, **kwargs).arguments
        rows = _rows_of(given, operator.parameters)
        if rows is None or _is_seed(operator.name, given):
            return original(*args, **kwargs)
        if operator.seed == "seed2" and not tf.executing_eagerly():
            for function in _stateful_listeners:
                function(operator.name)
        return looks.settled(_drawn(original, operator, given, rows), given["shape" if "shape" in given else next(iter(operator.parameters))])


def _drawn(original, operator, given, rows):
    if operator.seed is None or _is_exact(rows.is_certain):
        return rows.of_slice(original(**_for_batch(operator, given, rows)))
    own = _with_rank(operator.seed, given)
    if rows.is_certain is True:
        return original(**own)
    # The name may be one that a graph has once, as that of tf.random.uniform for whole numbers.
    return tf.where(rows.is_certain, original(**{**own, "name": None}), original(**given))


# ---- which rows ----------------------------------------------------------------------------------------------

class _Rows:
    """Numbers that are for the rows of the slice.  is_certain: True, or a tensor that tells whether they are."""

    def __init__(self, part, first, is_certain):
        self.part, self.first, self.is_certain = part, first, is_certain

    def _if_certain(self, value, other, dtype):
        if self.is_certain is True:
            return value
        return tf.where(self.is_certain, tf.cast(value, dtype), tf.cast(other, dtype))

    def total(self, dtype=tf.int64):
        return self._if_certain(self.part.total, self.first, dtype)

    def offset(self, dtype=tf.int64):
        return self._if_certain(self.part.offset, 0, dtype)

    def of_batch(self, shape):
        """This shape with the rows of the whole batch"""
        return tf.concat([[tf.cast(self.total(shape.dtype), shape.dtype)], shape[1:]], 0)

    def of_slice(self, drawn):
        offset = self.offset()
        return drawn[offset:offset + self.first]

    def filled(self, parameter, filler):
        """These values with others before and behind them, for the rows of the whole batch"""
        before, behind = self.offset(), self.total() - self.offset() - self.first

        def fill(number):
            shape = tf.concat([[tf.cast(number, tf.int32)], tf.shape(parameter)[1:]], 0)
            return tf.fill(shape, tf.cast(filler, parameter.dtype))

        return tf.concat([fill(before), parameter, fill(behind)], 0)


def _rows_of(given, parameters, is_of_any=False):
    """None where the numbers that are drawn with these arguments are not for the rows of the slice; is_of_any: of the slice of
    some rank, so that all ranks answer alike."""
    part = current.now()
    if part.is_static and part.is_whole:
        return None
    first = _first_dimension(given, parameters)
    if first is None:
        return None
    sizes = [part.count, part.total // world.size, -(-part.total // world.size)] if is_of_any else [part.count]
    if part.is_static and not tf.is_tensor(first):
        return _Rows(part, first, True) if first in [max(size, 1) for size in sizes] else None
    is_cut = ~part.is_whole if tf.is_tensor(part.is_whole) else not part.is_whole
    sizes = tf.maximum(tf.stack([tf.cast(size, tf.int64) for size in sizes]), 1)
    return _Rows(part, first, tf.logical_and(tf.reduce_any(tf.equal(tf.cast(first, tf.int64), sizes)), is_cut))


def _first_dimension(given, parameters):
    """Of what is drawn: a number, a tensor where it is not known yet, None of a single number."""
    if "shape" in given:
        given["shape"] = tf.convert_to_tensor(given["shape"])
        first = _known_or_tensor(tensor_util.constant_value_as_shape(given["shape"]), given["shape"])
        if first is not None:
            return first
    for name in parameters:
        given[name] = tf.convert_to_tensor(given[name])
        first = _known_or_tensor(given[name].shape, tf.shape(given[name]))
        if first is not None:
            return first
    return None


def _is_seed(name, given):
    """Two whole numbers of the full range are a seed for stateless operators, also where a slice has two rows."""
    if name not in ("random_uniform_int", "stateless_random_uniform_full_int_v2"):
        return False
    static = tensor_util.constant_value_as_shape(given["shape"])
    if static.rank != 1 or static.as_list() != [2]:
        return False
    if name == "random_uniform_int":
        least = tf.convert_to_tensor(given["minval"])
        return tf.get_static_value(least) == least.dtype.min
    return True


def _known_or_tensor(static, shape):
    if static.rank == 0:
        return None
    known = tf.compat.dimension_value(static[0]) if static.rank is not None else None
    return tf.cast(shape[0], tf.int64) if known is None else known


# ---- numbers of one process ----------------------------------------------------------------------------------

def _is_exact(is_certain):
    if native.setting("DROPOUT") != "exact":
        return False
    if is_certain is not True and ops.is_in_xla() and not current.is_scoped():
        _warn_about_xla()
        return False
    return True


@functools.lru_cache(maxsize=None)
def _warn_about_xla():
    import warnings
    warnings.warn("lockstep: LOCKSTEP_DROPOUT=exact has no effect in a function with jit_compile=True that a loop of the script "
                  "calls: the shape of what is drawn must be known when it is compiled", stacklevel=2)


def _for_batch(operator, given, rows):
    """The arguments for all rows of the batch"""
    has_shape = "shape" in given and given["shape"].shape.rank is not None and given["shape"].shape[0] != 0
    changed = {"shape": rows.of_batch(given["shape"])} if has_shape else {}
    if not (has_shape and operator.is_samples_first):
        dimensions = given["shape"].shape[0] if has_shape else None
        changed.update({name: rows.filled(value, filler) for name, filler in operator.parameters.items()
                        if _has_rows(value := tf.convert_to_tensor(given[name]), rows.first, dimensions)})
    return {**given, **changed}


def _has_rows(parameter, first, dimensions):
    """Or is it broadcast: of fewer dimensions than the result, or one value for all rows"""
    if parameter.shape.rank == 0 or dimensions not in (None, parameter.shape.rank):
        return False
    known = tf.compat.dimension_value(parameter.shape[0]) if parameter.shape.rank is not None else None
    return known is None or tf.is_tensor(first) or known == first


# ---- numbers that differ -------------------------------------------------------------------------------------

def _with_rank(seed, given):
    """The arguments with the rank in this one"""
    if seed == "seed2":
        number = (given.get(seed) or 0) + world.rank * (_SPREAD % _LARGEST)
        return {**given, seed: number % _LARGEST or 1}
    value = tf.convert_to_tensor(given[seed])
    if seed == "key":
        spread = tf.constant((world.rank * _SPREAD) % 2**64, value.dtype)
    else:
        spread = tf.constant([0, (world.rank * _SPREAD) % _LARGEST], value.dtype)
    return {**given, seed: tf.bitwise.bitwise_xor(value, spread)}
