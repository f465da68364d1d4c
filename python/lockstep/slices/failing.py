# SPDX-License-Identifier: Apache-2.0
"""A step that fails for the rows of one rank: a label that no class has, a matrix that is not positive definite.

In one process the script may catch that, and leave the batch out.  Here other ranks may have gone on: a rank that left its slice out would be a
step behind, and gradients of different batches would be put together.  So the job ends as after an error that nobody catches:

    step(x, y)                        rank 0                              rank 1
    except InvalidArgumentError       waits for rank 1's gradient         says why, and ends: so does rank 0"""
import contextlib
import sys

import tensorflow as tf

from lockstep import native, world


@contextlib.contextmanager
def on_slices(function):
    """A function that trains is called on this rank's rows meanwhile."""
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        problem = (f"{getattr(function, '__name__', 'a function')}() has failed on rank {world.rank} for its rows of the batch, and other ranks may have gone "
                   "on, so that the job cannot. With LOCKSTEP_SHARD=off every rank computes whole batches: a script that catches this error goes on then")
        _end(error, problem)


def _end(error, problem):
    try:
        raise native.LockstepError(problem) from error
    except native.LockstepError:
        sys.excepthook(*sys.exc_info())
    native.end_with_failure()
