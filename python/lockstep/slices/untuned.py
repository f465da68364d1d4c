# SPDX-License-Identifier: Apache-2.0
"""tf.data does not tune itself in a rank that has one core.

There is nothing to tune there, and the end of an iterator can take long.  Seen, with and without Lockstep, in processes
bound to one core: when Keras drops the iterator of an epoch, nothing is computed for about as long as the iterator has lived.
Ranks without tuning do not wait.  It looks as if the thread that tunes misses the call to end and sleeps on; the other ranks
would wait, too."""
import os

import tensorflow as tf


def on_one_core(dataset):
    """The data set, without tuning where this rank has one core."""
    return untuned(dataset) if len(os.sched_getaffinity(0)) == 1 and tf.executing_eagerly() else dataset


def untuned(dataset):
    """Without tuning, unless the script has decided about it."""
    if dataset.options().autotune.enabled is not None:
        return dataset
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
