# SPDX-License-Identifier: Apache-2.0
"""Tells those who look on what each step did: `lockstep run` its progress, `lockstep verify` its loss and the weights."""
import atexit
import sys

import numpy as np
import tensorflow as tf

from lockstep import audit, gradients, native, progress, record, summary, world

_step = 0
_num_steps = 0  # in all, as far as is known


def expect(number):
    """So many steps are still to come."""
    global _num_steps
    _num_steps = _step + number


def attach():
    gradients.listen_to_steps(_follow)
    if record.is_on():
        atexit.register(_record_weights)


def _number(loss):
    """A loss as a number; None where the step has none that can be seen."""
    if loss is None or not (tf.is_tensor(loss) or np.isscalar(loss)):
        return None
    # Not np.asarray, which looks into a tensor's memory: a slice's loss is read as the batch's by numpy() (reports.py).
    value = loss.numpy() if tf.is_tensor(loss) else np.asarray(loss)
    return float(value) if value.ndim == 0 else None


def _follow():
    global _step
    loss, step = gradients.last_loss, _step
    _step += 1
    progress.update(_step, samples=summary.samples, loss=lambda: _number(loss), wait_s=_waited,
                    num_steps=_num_steps if _step <= _num_steps else 0)
    if record.is_on():
        number = _number(loss)
        if number is not None and _record_loss(step, number):
            sys.exit(0)  # as many steps as were asked for; the weights are recorded on the way out
    if record.is_nudged():
        _nudge()


def _nudge():
    for variable in audit.trained_variables().values():
        if variable.dtype in (tf.float16, tf.float32, tf.float64):
            variable.assign(record.nudged(variable.numpy()))


def _record_loss(step, number):
    with world.alone():  # each rank writes its own file
        return record.record_loss(step, number)


def _waited():
    return native.counters()["ns_exposed"] / 1e9


def _record_weights():
    found = {key: variable.numpy() for key, variable in audit.found_variables().items()}
    if found:
        with world.alone():
            record.record_weights(found)
