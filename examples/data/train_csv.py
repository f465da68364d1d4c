# SPDX-License-Identifier: Apache-2.0
"""Trains from a CSV table: a label and 16 numbers in each row.

    python examples/data/make_data.py data
    python examples/data/train_csv.py data

Expected output:
    600 rows, 19 batches
    learnt: True

Under a launcher the same lines give each rank its part of each batch."""
import sys

import lockstep.data
import tensorflow as tf

PIXELS = [f"pixel{i}" for i in range(16)]


def picture(columns):
    """The columns of numbers side by side, and the label."""
    return tf.stack([columns[name] for name in PIXELS], axis=1), columns["label"]


batches = lockstep.data.read(f"{sys.argv[1]}/pictures.csv", batch=32, shuffle=True, seed=0).map(picture)

tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential([tf.keras.Input((16,)), tf.keras.layers.Rescaling(1 / 255),
                             tf.keras.layers.Dense(64, "relu"), tf.keras.layers.Dense(3)])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
history = model.fit(batches, epochs=30, verbose=0)

print(f"{sum(len(batch[1]) for batch in batches)} rows, {len(batches)} batches")
print("learnt:", history.history["accuracy"][-1] > 0.9)
