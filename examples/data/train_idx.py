# SPDX-License-Identifier: Apache-2.0
"""Trains from IDX files, as MNIST has them: pictures in one file (gzip), labels in another.

    python examples/data/make_data.py data && python examples/data/train_idx.py data

Expected output:
    600 rows, 19 batches
    learnt: True"""
import sys

import lockstep.data
from small_model import train

batches = lockstep.data.read({"image": f"{sys.argv[1]}/images-idx3-ubyte.gz", "label": f"{sys.argv[1]}/labels-idx1-ubyte"},
                             columns=("image", "label"), batch=32, shuffle=True, seed=0)

train(batches)
