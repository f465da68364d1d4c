# SPDX-License-Identifier: Apache-2.0
"""Trains from TFRecord files, several as one data set, shuffled by their index.

    python examples/data/make_data.py data
    python examples/data/train_tfrecord.py data

Expected output:
    600 rows, 19 batches
    learnt: True

Under a launcher the same lines give each rank its part of each batch."""
import sys

import lockstep.data
import tensorflow as tf

def picture(records):
    """16 bytes of picture and one of label, as make_data.py packed them."""
    values = tf.reshape(tf.io.decode_raw(records, tf.uint8), (-1, 17))
    return tf.reshape(values[:, :16], (-1, 4, 4)), values[:, 16]


batches = lockstep.data.read(f"{sys.argv[1]}/pictures-*.tfrecord", columns="record", batch=32, shuffle=True, seed=0)
batches = batches.map(picture)

tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential([tf.keras.Input((4, 4)), tf.keras.layers.Rescaling(1 / 255), tf.keras.layers.Flatten(),
                             tf.keras.layers.Dense(64, "relu"), tf.keras.layers.Dense(3)])
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
history = model.fit(batches, epochs=30, verbose=0)

print(f"{sum(len(batch[1]) for batch in batches)} rows, {len(batches)} batches")
print("learnt:", history.history["accuracy"][-1] > 0.9)
