# SPDX-License-Identifier: Apache-2.0
"""Training is interrupted, and goes on from where BackupAndRestore says; then early stopping and best weights."""
import os

import keras
import numpy as np

keras.utils.set_random_seed(2)
x = np.random.normal(size=(96, 5)).astype("float32")
y = x @ np.array([[1.0], [2.0], [0.0], [-1.0], [0.5]], "float32")


def make():
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(optimizer=keras.optimizers.SGD(0.05), loss="mse")
    return model


class PowerCut(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 2:
            raise RuntimeError("no power")


try:
    make().fit(x, y, epochs=5, batch_size=40, verbose=0, shuffle=False,
               callbacks=[keras.callbacks.BackupAndRestore("state", delete_checkpoint=False), PowerCut()])
except RuntimeError as error:
    print("interrupted:", error, sorted(os.listdir("state")))

model = make()
history = model.fit(x, y, epochs=5, batch_size=40, verbose=0, shuffle=False,
                    callbacks=[keras.callbacks.BackupAndRestore("state")])
print("epochs done after the restart:", history.epoch, os.path.exists("state"))
print(*(f"{value:.6f}" for value in history.history["loss"]))

stopped = model.fit(x, y, epochs=30, batch_size=40, verbose=0, validation_split=0.25, callbacks=[
    keras.callbacks.EarlyStopping(monitor="val_loss", min_delta=0.01, patience=1, restore_best_weights=True)])
print("stopped after", len(stopped.epoch))
model.save_weights("final.weights.h5")
