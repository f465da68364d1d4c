# SPDX-License-Identifier: Apache-2.0
"""tf.data does not tune itself in a rank that has one core.

There is nothing to tune there, and the end of an iterator can take long: its destructor waits for the thread that tunes,
which may have missed the call.  TensorFlow calls the thread before it sets the flag that the thread looks at; where both
share a core, the thread looks at once, finds nothing, and sleeps on until its next turn: for as long as the iterator has
lived, up to a minute.  Keras drops an iterator at the end of every epoch, and the other ranks would wait, too."""
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
