# SPDX-License-Identifier: Apache-2.0
"""What the scripts of this folder share.  They run on every rank; a check that fails ends the rank, and with it the
job, since the others would wait for it."""
import contextlib
import ctypes
import os
import sys
import traceback

import lockstep
import numpy as np
import tensorflow as tf
from lockstep import native

tf.get_logger().setLevel("ERROR")  # the checks make many functions of one shape

RANK, SIZE = lockstep.rank(), lockstep.size()
RANKS = range(SIZE)

FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
INTEGERS = (tf.int32, tf.int64, tf.int8, tf.uint8)
NUMBERS = FLOATS + INTEGERS
ALL_TYPES = NUMBERS + (tf.bool,)


def requests():
    """How many requests the engine of this rank has taken."""
    counters = (ctypes.c_uint64 * 64)()
    library = native._library()
    context = library.ls_process_get()
    library.ls_counters(ctypes.c_void_p(context), counters)
    library.ls_process_put(context)
    return counters[0]


def equal(actual, expected, tolerance=0.0):
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    assert actual.shape == expected.shape, f"shape {actual.shape} instead of {expected.shape}"
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=0)


def both(function, *inputs):
    """What a function gives eagerly and in a tf.function; twice each, since the second round repeats the first."""
    compiled = tf.function(function)
    for run in (function, compiled):
        for _ in range(2):
            yield run(*inputs)


@contextlib.contextmanager
def raises(kind, *texts):
    try:
        yield
    except kind as error:
        for text in texts:
            assert text in str(error), f"'{text}' is not in: {error}"
    else:
        raise AssertionError(f"no {kind.__name__}")


def run_checks(names):
    """Runs all functions of the caller's globals that begin with check_; prints the closing line."""
    checks = [value for name, value in names.items() if name.startswith("check_")]
    for check in checks:
        try:
            check()
        except BaseException:
            print(f"rank {RANK}: {check.__name__} failed", file=sys.stderr)
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    lockstep.stop()
    os.write(1, f"rank {RANK}: {len(checks)} checks passed\n".encode())  # whole lines, whatever the other ranks write
