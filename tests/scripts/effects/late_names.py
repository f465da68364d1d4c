# SPDX-License-Identifier: Apache-2.0
"""Names with the time of day in them, to the nanosecond: no two processes have the same."""
import os
import shutil
import time

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(4)
name = f"run-{time.time_ns()}-{os.getpid()}"
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
model.compile(optimizer="sgd", loss="mse")
os.makedirs(name)
model.fit(np.ones((20, 3)), np.ones((20, 2)), verbose=0, callbacks=[
    keras.callbacks.TensorBoard(os.path.join(name, "board")),
    keras.callbacks.ModelCheckpoint(os.path.join(name, "model.keras"))])
print(bool(np.array_equal(keras.models.load_model(os.path.join(name, "model.keras")).get_weights()[0], model.get_weights()[0])))

checkpoint = tf.train.Checkpoint(model=model)
manager = tf.train.CheckpointManager(checkpoint, os.path.join(name, "checkpoints"), max_to_keep=1)
for _ in range(2):
    manager.save()
checkpoint.restore(manager.latest_checkpoint)
print(os.path.basename(manager.latest_checkpoint), os.path.basename(name) in os.listdir("."))
shutil.move(os.path.join(name, "model.keras"), "model.keras")
shutil.rmtree(name)
