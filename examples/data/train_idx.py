# SPDX-License-Identifier: Apache-2.0
"""Trains from IDX files, as MNIST has them: pictures in one file (gzip), labels in another.

    python examples/data/make_data.py data
    python examples/data/train_idx.py data

Expected output:
    600 rows, 19 batches
    learnt: True

Under a launcher the same lines give each rank its part of each batch."""
import sys

import lockstep.data
import tensorflow as tf

batches = lockstep.data.read({"image": f"{sys.argv[1]}/images-idx3-ubyte.gz", "label": f"{sys.argv[1]}/labels-idx1-ubyte"},
                             columns=("image", "label"), batch=32, shuffle=True, seed=0)

tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential([tf.keras.Input((4, 4)), tf.keras.layers.Rescaling(1 / 255), tf.keras.layers.Flatten(),
                             tf.keras.layers.Dense(64, "relu"), tf.keras.layers.Dense(3)])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
history = model.fit(batches, epochs=30, verbose=0)

print(f"{sum(len(batch[1]) for batch in batches)} rows, {len(batches)} batches")
print("learnt:", history.history["accuracy"][-1] > 0.9)
