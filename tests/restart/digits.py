# SPDX-License-Identifier: Apache-2.0
"""A small classifier: two fits, dropout, early stopping, a plateau, a log file.  Writes its last weights and history.

KILLS=rank:fit:epoch:batch,... kills that rank there, each only once: a folder remembers it."""
import json
import os
import signal
import subprocess
import sys
import time

if os.environ.get("LIBRARY") == "tf_keras":
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    import tf_keras as keras
else:
    import keras
import numpy as np
import tensorflow as tf

PACE_S = float(os.environ.get("PACE_S", "0"))  # per batch, so that a test can meet one
RANK = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK") or "0"


class Accidents(keras.callbacks.Callback):
    fit = 0

    def on_train_begin(self, logs=None):
        Accidents.fit += 1

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(PACE_S)
        here = f"{RANK}:{Accidents.fit}:{self.epoch}:{batch}"
        if here in os.environ.get("KILLS", "").split(",") and subprocess.call(["mkdir", f"killed-{here}"], stderr=subprocess.DEVNULL) == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def data(kind, x, y, batch):
    if kind == "dataset":
        return {"x": tf.data.Dataset.from_tensor_slices((x, y)).shuffle(200).batch(batch)}
    if kind == "generator":
        def batches():
            order = np.random.RandomState(5)
            while True:
                rows = order.permutation(len(x))[:batch]
                yield x[rows], y[rows]
        return {"x": batches(), "steps_per_epoch": 9}
    return {"x": x, "y": y, "batch_size": batch}


if os.environ.get("SEEDED", "1") == "1":
    keras.utils.set_random_seed(3)
x = np.random.rand(240, 12).astype("float32")
y = (x.sum(1) * 2).astype("int64") % 3
dropout = [] if os.environ.get("LIBRARY") == "tf_keras" else [keras.layers.Dropout(0.2)]
by_rank = [*dropout, keras.layers.BatchNormalization()]  # these depend on which rows a rank has
model = keras.Sequential([keras.Input((12,)), keras.layers.Dense(16, activation="relu"),
                          *([] if os.environ.get("PLAIN") == "1" else by_rank), keras.layers.Dense(3)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
train = data(os.environ.get("DATA", "arrays"), x[:200], y[:200], 25)
callbacks = [keras.callbacks.EarlyStopping(patience=3, min_delta=0.01, restore_best_weights=True),
             keras.callbacks.ReduceLROnPlateau(patience=1, factor=0.5), keras.callbacks.CSVLogger("log.csv"), Accidents()]
first = model.fit(**train, epochs=5, validation_data=(x[200:], y[200:]), callbacks=callbacks, verbose=0)
between = model.evaluate(x, y, verbose=0)
model.compile(keras.optimizers.SGD(0.01, momentum=0.9), loss)
if os.environ.get("DATA") == "generator":  # how far the first was read ahead is chance
    train = data("generator", x[:200], y[:200], 25)
second = model.fit(**train, epochs=3, callbacks=[Accidents()], verbose=0)
optimizer = model.optimizer.variables
numbers = {"history": [first.history, second.history], "between": np.asarray(between).tolist(),
           "log": open("log.csv").read(), "random": np.random.rand()}
np.savez(sys.argv[1], numbers=json.dumps(numbers, default=float), *[w.numpy() for w in model.weights],
         *[np.asarray(v) for v in (optimizer() if callable(optimizer) else optimizer)])
print("done", flush=True)
