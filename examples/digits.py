# SPDX-License-Identifier: Apache-2.0
"""Learns to read handwritten digits: an ordinary Keras script for one process.

    python digits.py [EPOCHS]             one process
    mpirun -n 2 python digits.py [EPOCHS]  two ranks, the same numbers

The data are the 1,797 digits of 8 x 8 pixels that come with scikit-learn."""
import sys
import time

import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_digits

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 8

keras.utils.set_random_seed(42)
digits = load_digits()
pictures = (digits.images / 16.0).astype("float32")[..., np.newaxis]
labels = digits.target

model = keras.Sequential([
    layers.Input((8, 8, 1)),
    layers.Conv2D(64, 3, padding="same", activation="relu"),
    layers.Conv2D(128, 3, padding="same", activation="relu"),
    layers.MaxPooling2D(),
    layers.Conv2D(128, 3, padding="same", activation="relu"),
    layers.Flatten(),
    layers.Dense(128, activation="relu"),
    layers.Dense(10),
])
model.compile(optimizer=keras.optimizers.Adam(1e-3), metrics=["accuracy"],
              loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))


class EpochTimes(keras.callbacks.Callback):
    seconds = []

    def on_epoch_begin(self, epoch, logs=None):
        self.begin = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds.append(time.perf_counter() - self.begin)
        print(f"epoch {epoch + 1}/{EPOCHS}  loss {logs['loss']:.12f}  accuracy {logs['accuracy']:.4f}", flush=True)


history = model.fit(pictures[:1500], labels[:1500], batch_size=250, epochs=EPOCHS, verbose=0, callbacks=[EpochTimes()])
loss, accuracy = model.evaluate(pictures[1500:], labels[1500:], verbose=0)
print(f"unseen digits: loss {loss:.6f}, accuracy {accuracy:.4f}")
print(f"seconds per epoch: {np.median(EpochTimes.seconds[1:]):.3f}")
model.save_weights("digits.weights.h5")
