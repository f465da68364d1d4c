# SPDX-License-Identifier: Apache-2.0
"""Calls of a function that may be treated alike, and what the first of them has shown.

A function may do something else for training=False.  So calls are alike where all arguments are the same, but for how many rows arrays
have, and what is in them."""
import weakref

import numpy as np
import tensorflow as tf

from lockstep import gradients

MOST_KINDS = 16  # of one function: a number of Python that changes makes a new one in each call


class _ThisOne:
    """An object as an argument: not one that is equal, or was later put into the same place of memory."""

    def __init__(self, item):
        self._id = id(item)
        try:
            self._get = weakref.ref(item)
        except TypeError:  # some objects have none
            self._get = lambda: item

    def __eq__(self, other):
        return isinstance(other, _ThisOne) and self._get() is not None and self._get() is other._get()

    def __hash__(self):
        return self._id


def is_array(item):
    if isinstance(item, np.ndarray):
        return item.ndim > 0
    return tf.is_tensor(item) and not gradients.is_variable(item) and item.shape.rank != 0


def kind_of(item):
    """What calls with such arguments have in common that are alike."""
    if isinstance(item, dict):
        return dict, tuple((key, kind_of(value)) for key, value in item.items())
    if isinstance(item, (list, tuple)):
        return type(item), tuple(map(kind_of, item))
    return _kind_of_argument(item)


def _kind_of_argument(item):
    if isinstance(item, (np.ndarray, np.generic)) or (tf.is_tensor(item) and not gradients.is_variable(item)):
        shape, kind = tf.TensorShape(item.shape), type(item) if tf.is_tensor(item) and not isinstance(item, tf.Tensor) else None
        return kind, item.dtype.name, shape.rank, None if shape.rank is None else tuple(shape.as_list()[1:])
    return (type(item), item) if isinstance(item, (bool, int, float, str, bytes, type(None))) else _ThisOne(item)


def first_seen(function, what, key, value):
    """What was seen with this key first.  Later traces may show something else, to ranks that need to trace: all go by the first, which all make."""
    seen = vars(function).setdefault(f"_lockstep_{what}", {})
    return seen.setdefault(key, value) if len(seen) < MOST_KINDS else seen.get(key, value)
