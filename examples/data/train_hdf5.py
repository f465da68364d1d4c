# SPDX-License-Identifier: Apache-2.0
"""Trains from datasets of an HDF5 file, compressed in chunks.

    python examples/data/make_data.py data && python examples/data/train_hdf5.py data

Expected output:
    600 rows, 19 batches
    learnt: True"""
import sys

import lockstep.data
from small_model import train

batches = lockstep.data.read(f"{sys.argv[1]}/pictures.h5", columns=("image", "label"), batch=32, shuffle=True, seed=0)

train(batches)
