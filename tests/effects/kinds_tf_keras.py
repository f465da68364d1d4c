# SPDX-License-Identifier: Apache-2.0
"""Writes a file in every way that tf_keras has, each kind in a folder of its own."""
import os

import numpy as np
import tf_keras as keras

keras.utils.set_random_seed(5)
x = np.random.normal(size=(40, 4)).astype("float32")
y = (x[:, :1] > 0).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="tanh"), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
for folder in ("save", "save-h5", "save-weights", "csv-logger"):
    os.makedirs(folder)
model.fit(x, y, epochs=2, batch_size=20, verbose=0, callbacks=[
    keras.callbacks.ModelCheckpoint("model-checkpoint/{epoch}"), keras.callbacks.CSVLogger("csv-logger/log.csv"),
    keras.callbacks.BackupAndRestore("backup-and-restore"), keras.callbacks.TensorBoard("tensorboard")])
model.save("save/model.keras")
model.save("save-h5/model.h5")
model.save("save-tf")
model.save_weights("save-weights/model.weights.h5")
model.save_weights("save-weights-tf/model")
model.export("export")
