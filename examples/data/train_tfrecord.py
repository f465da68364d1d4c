# SPDX-License-Identifier: Apache-2.0
"""Trains from TFRecord files, several as one data set, shuffled by their index.

    python examples/data/make_data.py data && python examples/data/train_tfrecord.py data

Expected output:
    600 rows, 19 batches
    learnt: True"""
import sys

import lockstep.data
import tensorflow as tf
from small_model import train


def picture(records):
    """16 bytes of picture and one of label, as make_data.py packed them."""
    values = tf.reshape(tf.io.decode_raw(records, tf.uint8), (-1, 17))
    return tf.reshape(values[:, :16], (-1, 4, 4)), values[:, 16]


batches = lockstep.data.read(f"{sys.argv[1]}/pictures-*.tfrecord", columns="record", batch=32, shuffle=True, seed=0)
batches = batches.map(picture)

train(batches)
