# SPDX-License-Identifier: Apache-2.0
"""A Sequence with workers whose epochs end on one rank before tf_keras looks, on the other long after: both have shuffled as often."""
import os
import time

os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np
import tensorflow as tf

import lockstep

BATCHES, EPOCHS, TOO_LATE_S = 4, 3, 0.5  # tf_keras looks every 0.1 s


class Counted(tf.keras.utils.Sequence):
    def __init__(self):
        self.epochs = 0

    def __len__(self):
        return BATCHES

    def __getitem__(self, i):
        return np.full((6, 2), i, "float32"), np.zeros((6, 1), "float32")

    def on_epoch_end(self):
        self.epochs += 1


class LateEnd(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if not lockstep.is_root():
            time.sleep(TOO_LATE_S)


model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
for steps, passes in ((None, 1), (BATCHES + 1, 2)):  # an epoch of more steps than batches needs a second pass
    data = Counted()
    model.fit(data, epochs=EPOCHS, steps_per_epoch=steps, workers=2, verbose=0, callbacks=[LateEnd()])
    assert data.epochs == passes * EPOCHS, f"rank {lockstep.rank()}: {data.epochs} shuffles in {EPOCHS} epochs of {steps or BATCHES} steps"
print(f"rank {lockstep.rank()} of {lockstep.size()} is right", flush=True)
