# SPDX-License-Identifier: Apache-2.0
"""What is in a snapshot.  Part 0 is text (JSON), the others are the memory of arrays; nothing in it is ever executed.

Variables have the same values on all ranks, so rank 0's are kept; those of metrics are sums of each rank's own samples,
and are kept from every rank."""
import json
import random

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

from lockstep import host, metrics, native, randomness, variables, world

NOT_KEPT = ("params", "model", "_model", "validation_data")
# A log file that goes on is another matter than one that begins: keras_fits.py sees to these.
KEPT_OF = {"CSVLogger": ("keys",)}


class Contents:
    """Collects the parts; `meta` becomes part 0."""

    def __init__(self, meta):
        self.meta = {"version": 1, "ranks": world.size, **meta}
        self._arrays = [None]

    def add(self, array):
        self._arrays.append(np.ascontiguousarray(array))
        return len(self._arrays) - 1

    def arrays(self):
        text = np.frombuffer(json.dumps(self.meta).encode(), np.uint8)
        return [text, *self._arrays[1:]]


# ---- plain values --------------------------------------------------------------------------------------------

class NotPlain(TypeError):
    """A value that is neither number, text, array nor made of them."""


def plain(value, contents):
    """A value as JSON; arrays go into parts."""
    if value is None or isinstance(value, (bool, int, float, str)) and type(value).__module__ == "builtins":
        return value
    if isinstance(value, (np.generic, np.ndarray)) and (value.dtype.kind not in "biuf" or value.dtype.itemsize > 8):
        raise NotPlain(value.dtype.name)  # JSON has no number for it
    if isinstance(value, np.generic):
        return {"number": [value.dtype.name, value.item()]}
    if isinstance(value, np.ndarray):
        return {"array": [contents.add(value.copy()), value.dtype.name, list(value.shape)]}  # the callback goes on with its own
    if type(value) in (list, tuple):
        items = [plain(item, contents) for item in value]
        return items if type(value) is list else {"tuple": items}
    if type(value) is dict and all(type(key) in (str, int) for key in value):
        return {"dict": [[key, plain(item, contents)] for key, item in value.items()]}
    raise NotPlain(type(value).__name__)


def unplain(value, part):
    """The value; part(i) gives the bytes of a part."""
    if isinstance(value, list):
        return [unplain(item, part) for item in value]
    if not isinstance(value, dict):
        return value
    (kind, content), = value.items()
    if kind == "number":
        return np.dtype(content[0]).type(content[1])
    if kind == "array":
        return np.frombuffer(part(content[0]), np.dtype(content[1])).reshape(content[2]).copy()
    if kind == "tuple":
        return tuple(unplain(item, part) for item in content)
    return {key: unplain(item, part) for key, item in content}


# ---- callbacks -----------------------------------------------------------------------------------------------

def _is_kept(callback, name):
    return name not in NOT_KEPT and name in KEPT_OF.get(type(callback).__name__, (name,))


def callbacks_of(callbacks, contents):
    """Fields that are plain values: the best loss so far, how long it did not improve, the history."""
    kept = []
    for callback in callbacks:
        fields = {}
        for name, value in vars(callback).items():
            if not _is_kept(callback, name):
                continue
            try:
                fields[name] = plain(value, contents)
            except NotPlain:
                continue
        kept.append({"class": type(callback).__name__, "fields": fields,
                     "is_set_up": getattr(callback, "monitor_op", None) is not None})
    return kept


def put_callbacks(callbacks, kept, part):
    classes = [type(callback).__name__ for callback in callbacks]
    if classes != [one["class"] for one in kept]:
        raise native.LockstepError(f"the snapshot was made with the callbacks {', '.join(one['class'] for one in kept)}, the script "
                                   f"now has {', '.join(classes)}: remove the folder LOCKSTEP_STATE to begin anew")
    for callback, one in zip(callbacks, kept):
        # Keras sets these up at the end of the first epoch, and turns the sign of a field then.
        if one["is_set_up"] and getattr(callback, "monitor_op", None) is None and hasattr(callback, "_set_monitor_op"):
            callback._set_monitor_op()
        for name, value in one["fields"].items():
            value = unplain(value, part)
            if _is_kept(callback, name):
                _put_field(vars(callback), name, value)


def _put_field(fields, name, value):
    """Lists and dictionaries stay the same objects: the script may look at them."""
    before = fields.get(name)
    if type(before) is type(value) is list:
        before[:] = value
    elif type(before) is type(value) is dict:
        before.clear()
        before.update(value)
    else:
        fields[name] = value


# ---- random states -------------------------------------------------------------------------------------------

def _generators():
    """random.Random objects of TensorFlow and of ours; None where there is none."""
    return {"eager": getattr(context.context(), "_rng", None), "stream": randomness.stream()}


def random_states():
    kind, numbers, *rest = np.random.get_state()
    states = {"python": _listed(random.getstate()), "numpy": [kind, numbers.tolist(), *rest]}
    return {**states, **{name: _listed(one.getstate()) for name, one in _generators().items() if one is not None}}


def put_random_states(states):
    random.setstate(_tupled(states["python"]))
    kind, numbers, *rest = states["numpy"]
    np.random.set_state((kind, np.array(numbers, np.uint32), *rest))
    for name, generator in _generators().items():
        if generator is not None and name in states:
            generator.setstate(_tupled(states[name]))


def _listed(state):
    version, numbers, gauss = state
    return [version, list(numbers), gauss]


def _tupled(state):
    version, numbers, gauss = state
    return version, tuple(numbers), gauss


# ---- variables -----------------------------------------------------------------------------------------------

def _is_number(variable):
    dtype = variable.dtype
    return dtype.is_floating or dtype.is_integer or dtype.is_bool or dtype.is_complex


def _value(variable):
    """The memory that the variable has now.  TensorFlow does not write into memory that somebody else holds: the next
    update of the variable makes new."""
    return variable.read_value()._numpy_internal()


def own_variables(model):
    """{key: variable} of a model's metrics that sum, which differ between ranks."""
    found = {}
    for metric in filter(metrics.is_sum, model.metrics):
        for variable in metric.variables:
            variable = getattr(variable, "_value", variable)
            if isinstance(variable, tf.Variable) and _is_number(variable):
                found[variables.key(variable)] = variable
    return found


def needed_variables(model):
    """Those without which a model cannot go on: its own and its optimizer's."""
    optimizer = getattr(model, "optimizer", None)
    own = getattr(optimizer, "variables", ())
    every = [*model.variables, *(own() if callable(own) else own)]
    return [value for one in every if isinstance(value := getattr(one, "_value", one), tf.Variable) and _is_number(value)]


def add_variables(contents, model):
    """All ranks call it; contents is None on those that keep nothing."""
    own = own_variables(model)
    kept = []
    for key in sorted(own):
        together, _ = host.allgather(np.atleast_1d(np.asarray(_value(own[key]))).reshape(1, -1).view(np.uint8), f"snapshot/{key}")
        if contents is not None:
            kept.append(_described(key, own[key], contents.add(together), world.size))
    if contents is None:
        return
    for key, variable in variables.live().items():
        if key not in own and _is_number(variable) and variable.is_initialized():
            kept.append(_described(key, variable, contents.add(_value(variable)), 0))
    contents.meta["variables"] = kept


def _described(key, variable, part, ranks):
    return {"key": key, "dtype": variable.dtype.name, "shape": variable.shape.as_list(), "part": part, "ranks": ranks}


def put_variables(kept, part, model):
    """Gives the variables their values.  All ranks call it; part(i), which they call together, gives the bytes of a part."""
    live = variables.live()
    own = own_variables(model)
    for one in kept:
        data = part(one["part"])
        variable = live.get(one["key"])
        if variable is not None:
            _put(variable, one, data, one["key"] in own)
    _check_complete(kept, model)


def _put(variable, one, data, is_own):
    if variable.dtype.name != one["dtype"] or variable.shape.as_list() != one["shape"]:
        raise native.LockstepError(
            f"variable '{one['key']}' is {variable.dtype.name} {variable.shape}, in the snapshot it is {one['dtype']} "
            f"{tuple(one['shape'])}: the script has changed; remove the folder LOCKSTEP_STATE to begin anew")
    value = np.frombuffer(data, variable.dtype.as_numpy_dtype)
    if one["ranks"]:
        value = value.reshape(one["ranks"], -1)
        if one["ranks"] == world.size:
            value = value[world.rank]
        else:  # other ranks than before: the sum is what counts
            value = value.sum(0, dtype=value.dtype) * (1 if world.is_root() else 0) if is_own else value[0]
    variable.assign(value.reshape(one["shape"]).astype(variable.dtype.as_numpy_dtype))


def _check_complete(kept, model):
    there = {one["key"] for one in kept}
    for variable in needed_variables(model):
        if variables.key(variable) not in there:
            raise native.LockstepError(f"the snapshot has no variable '{variables.key(variable)}': the script has changed; "
                                       "remove the folder LOCKSTEP_STATE to begin anew")
