# SPDX-License-Identifier: Apache-2.0
"""Models that are saved into temporary files and folders, which have another name in each process, and read again."""
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

generator = np.random.default_rng(0)
x = generator.normal(size=(53, 6)).astype("float32")
y = x.sum(1, keepdims=True)
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")


def show(what, loaded):
    print(what, f"{float(np.sum(loaded)):.6f}")


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.keras")
    model.fit(x, y, batch_size=8, verbose=0)
    model.save(path)
    print("there", os.path.exists(path), os.path.getsize(path) > 1000)
    show("model", keras.models.load_model(path).predict(x, verbose=0))
print("there", os.path.exists(path), os.path.exists(folder))

with tempfile.TemporaryDirectory() as folder:
    best = os.path.join(folder, "best.weights.h5")
    model.fit(x, y, batch_size=8, epochs=3, verbose=0, validation_split=0.2,
              callbacks=[keras.callbacks.ModelCheckpoint(best, save_best_only=True, save_weights_only=True)])
    model.load_weights(best)
    show("best", model.predict(x, verbose=0))
    model.export(os.path.join(folder, "exported"), verbose=False)
    exported = tf.saved_model.load(os.path.join(folder, "exported"))
    show("exported", exported.serve(x))
    state = tf.train.Checkpoint(model=model)
    state.save(os.path.join(folder, "state"))
    model.fit(x, y, batch_size=8, verbose=0)
    state.restore(tf.train.latest_checkpoint(folder)).expect_partial()
    show("restored", model.predict(x, verbose=0))

handle, path = tempfile.mkstemp(suffix=".keras")
os.close(handle)
os.remove(path)
model.save(path)
show("file", keras.models.load_model(path).predict(x, verbose=0))
os.remove(path)
print("there", os.path.exists(path))
with tempfile.NamedTemporaryFile(suffix=".weights.h5") as file:
    model.save_weights(file.name, overwrite=True)
    model.load_weights(file.name)
    show("named", model.predict(x, verbose=0))
