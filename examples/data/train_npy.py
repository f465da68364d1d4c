# SPDX-License-Identifier: Apache-2.0
"""Trains from NumPy arrays, each in a file of its own.

    python examples/data/make_data.py data && python examples/data/train_npy.py data

Expected output:
    600 rows, 19 batches
    learnt: True"""
import sys

import lockstep.data
from small_model import train

batches = lockstep.data.read({"image": f"{sys.argv[1]}/images.npy", "label": f"{sys.argv[1]}/labels.npy"},
                             columns=("image", "label"), batch=32, shuffle=True, seed=0)

train(batches)
