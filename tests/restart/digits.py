# SPDX-License-Identifier: Apache-2.0
"""A small classifier with dropout, early stopping and a plateau; writes its last weights and history to a file."""
import json
import os
import sys
import time

import keras
import numpy as np

PACE = float(os.environ.get("PACE_S", "0"))  # seconds per batch, so that a step can be met


class Pace(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(PACE)


keras.utils.set_random_seed(3)
x = np.random.rand(300, 12).astype("float32")
y = (x.sum(1) * 2).astype("int64") % 3
model = keras.Sequential([keras.Input((12,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dropout(0.2),
                          keras.layers.BatchNormalization(), keras.layers.Dense(3)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
callbacks = [keras.callbacks.EarlyStopping(patience=3, restore_best_weights=True),
             keras.callbacks.ReduceLROnPlateau(patience=1, factor=0.5), keras.callbacks.CSVLogger("log.csv"), Pace()]
first = model.fit(x, y, batch_size=25, epochs=6, validation_split=0.2, callbacks=callbacks, verbose=0)
print("middle", model.evaluate(x, y, verbose=0))
model.compile(keras.optimizers.SGD(0.01, momentum=0.9), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
second = model.fit(x, y, batch_size=30, epochs=3, callbacks=[Pace()], verbose=0)
print("loss", second.history["loss"])
np.savez(sys.argv[1], history=json.dumps([first.history, second.history]), *[np.asarray(w) for w in model.weights],
         opt=np.concatenate([np.ravel(v) for v in model.optimizer.variables]))
