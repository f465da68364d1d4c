# SPDX-License-Identifier: Apache-2.0
"""Trains from a CSV table: a label and 16 numbers in each row.

    python examples/data/make_data.py data && python examples/data/train_csv.py data

Expected output:
    600 rows, 19 batches
    learnt: True"""
import sys

import lockstep.data
import tensorflow as tf
from small_model import train

PIXELS = [f"pixel{i}" for i in range(16)]


def picture(columns):
    """The columns of numbers side by side, and the label."""
    return tf.stack([columns[name] for name in PIXELS], axis=1), columns["label"]


batches = lockstep.data.read(f"{sys.argv[1]}/pictures.csv", batch=32, shuffle=True, seed=0).map(picture)

train(batches, (16,))
