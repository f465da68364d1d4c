# SPDX-License-Identifier: Apache-2.0
"""Trains from CIFAR binary files, several as one data set.

    python examples/data/make_data.py data && python examples/data/train_cifar.py data

Expected output:
    600 rows, 19 batches
    learnt: True"""
import sys

import lockstep.data
from small_model import train


def picture(data, label):
    """Colour, row, column; the example's pictures are grey and in a corner."""
    return data[:, 0, :4, :4], label


batches = lockstep.data.read(f"{sys.argv[1]}/pictures_*.bin", columns=("data", "label"), batch=32, shuffle=True, seed=0)
batches = batches.map(picture)

train(batches)
