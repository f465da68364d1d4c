# SPDX-License-Identifier: Apache-2.0
"""The model that the examples of this folder train: pictures of 4 x 4 bytes, three kinds."""
import tensorflow as tf


def train(batches, shape=(4, 4)):
    """Fits a model to batches of (pictures, labels) and says whether it learnt."""
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.Input(shape), tf.keras.layers.Rescaling(1 / 255), tf.keras.layers.Flatten(),
                                 tf.keras.layers.Dense(64, "relu"), tf.keras.layers.Dense(3)])
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    history = model.fit(batches, epochs=30, verbose=0)
    print(f"{sum(len(batch[1]) for batch in batches)} rows, {len(batches)} batches")
    print("learnt:", history.history["accuracy"][-1] > 0.9)
