# SPDX-License-Identifier: Apache-2.0
"""Every variable has a key that is the same on all ranks, and begins with rank 0's value."""
import collections
import threading
import weakref

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.ops import resource_variable_ops

from lockstep import hooks, ops, world

_made = collections.Counter()
_lock = threading.Lock()
_local = threading.local()
_live = {}  # key: weak reference to a variable of the script

# Types that the engine moves; others travel as bytes.
_MOVED = {tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int8, tf.uint8, tf.int32, tf.int64, tf.bool}


def key(variable):
    """Name of a variable in the job: its own name, numbered where several have it, in the order they were made."""
    variable = getattr(variable, "_value", variable)  # of a Keras variable
    found = getattr(variable, "_lockstep_key", None)
    if found is None:
        found = variable._lockstep_key = _new_key(variable.name)
    return found


def _new_key(name):
    name = name.removesuffix(":0").replace("\n", " ")
    with _lock:
        _made[name] += 1
        return f"{name}#{_made[name]}" if _made[name] > 1 else name


def live():
    """The variables of the script that exist now: {key: variable}, in the order in which they were made."""
    with _lock:
        return {name: variable for name, reference in _live.items() if (variable := reference()) is not None}


def private(value, dtype, name):
    """A variable of our own, different on each rank; may be made while a function is traced."""
    _local.is_private = True
    try:
        with tf.init_scope():
            return resource_variable_ops.ResourceVariable(value, dtype=dtype, trainable=False, name=name)
    finally:
        _local.is_private = False


def agree(variables):
    """Gives the variables rank 0's values."""
    for variable in variables:
        value = variable.read_value() if hasattr(variable, "read_value") else variable.value
        agreed = from_root(value, f"initial/{key(variable)}")
        if agreed is not None and not world.is_root():
            variable.assign(agreed)


def from_root(value, name):
    """Rank 0's tensor; None for types that are no numbers (strings are made by the script, alike everywhere)."""
    if value.dtype in _MOVED:
        return ops.broadcast(value, name)
    if not (value.dtype.is_integer or value.dtype.is_complex):
        return None
    return tf.bitcast(ops.broadcast(tf.bitcast(value, tf.uint8), name), value.dtype)


def attach():
    from lockstep.slices import current, part  # which need what is above

    def make(original, self, *args, **kwargs):
        # Initial values are drawn for the variable, not for the rows of a slice, however many it has.
        with current.scope(part.WHOLE):
            original(self, *args, **kwargs)
        name = key(self)
        if not getattr(_local, "is_private", False):
            with _lock:
                _live[name] = weakref.ref(self)

    @hooks.wrap(resource_variable_ops.ResourceVariable, "__init__")
    def make_variable(original, self, *args, **kwargs):
        make(original, self, *args, **kwargs)
        if tf.executing_eagerly() and world.size > 1 and not getattr(_local, "is_private", False):
            agree([self])

    @hooks.wrap(polymorphic_function.UnliftedInitializerVariable, "__init__")
    def make_variable_in_function(original, self, *args, **kwargs):
        make(original, self, *args, **kwargs)

    @hooks.wrap(polymorphic_function.Function, "_initialize_uninitialized_variables")
    def initialize(original, self, initializers):
        original(self, initializers)
        with tf.init_scope():  # another function may be being traced, which calls this one
            if tf.executing_eagerly() and world.size > 1:
                agree([variable for variable, _ in initializers])
