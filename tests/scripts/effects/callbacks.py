# SPDX-License-Identifier: Apache-2.0
"""A network trained with the callbacks that write files, then saved in each format and read back."""
import os

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(5)
x = np.random.normal(size=(150, 6)).astype("float32")
y = (x[:, :2].sum(1) > 0).astype("int32")

model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.Adam(0.02), loss=keras.losses.BinaryCrossentropy(from_logits=True), metrics=["accuracy"])
history = model.fit(x, y, epochs=3, batch_size=32, verbose=2, validation_split=0.2, callbacks=[
    keras.callbacks.ModelCheckpoint("checkpoints/epoch-{epoch:02d}.keras"),
    keras.callbacks.ModelCheckpoint("best.weights.h5", monitor="val_loss", save_best_only=True, save_weights_only=True),
    keras.callbacks.CSVLogger("history.csv"),
    keras.callbacks.TensorBoard("board", write_graph=False),
    keras.callbacks.BackupAndRestore("backup")])
print(sorted(os.listdir("checkpoints")), os.path.exists("backup"))
with open("history.csv") as file:
    print(len(file.readlines()), "lines of history")

best = keras.models.load_model("checkpoints/epoch-03.keras")
best.load_weights("best.weights.h5")
print(*(f"{value:.5f}" for value in best.evaluate(x, y, verbose=0)))

model.save("model.keras")
model.save("model.keras")  # again, over the one that is there
model.save("model.h5")
model.save_weights("model.weights.h5")
for path in ("model.keras", "model.h5"):
    again = keras.models.load_model(path)
    print(path, again.name, bool(np.allclose(again.get_weights()[0], model.get_weights()[0])))
again.load_weights("model.weights.h5")

model.export("served", verbose=False)
served = tf.saved_model.load("served")
print(np.array2string(served.serve(x[:2]).numpy(), precision=4))

for bad in ("missing-folder/model.keras", "history.csv/model.keras"):
    try:
        model.save(bad)
    except OSError as error:
        print(type(error).__name__)
for path in sorted(os.listdir("checkpoints"))[:-1]:
    os.remove(os.path.join("checkpoints", path))
print(sorted(os.listdir("checkpoints")), keras.layers.Dense(1).name)
