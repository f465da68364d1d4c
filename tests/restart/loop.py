# SPDX-License-Identifier: Apache-2.0
"""A loop of its own, which keeps a checkpoint of each epoch and begins after the last.  Writes its last weights.

KILL=rank:epoch kills that rank in the middle of that epoch, once: a folder remembers it."""
import os
import signal
import subprocess
import sys

import keras
import numpy as np
import tensorflow as tf

RANK = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK") or "0"

keras.utils.set_random_seed(3)
x = np.random.rand(120, 6).astype("float32")
y = x.sum(1, keepdims=True)
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam(0.02)
optimizer.build(model.trainable_variables)
epoch = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, epoch=epoch)
manager = tf.train.CheckpointManager(checkpoint, "checkpoints", max_to_keep=2)
checkpoint.restore(manager.latest_checkpoint)
print("begins with epoch", int(epoch), flush=True)


@tf.function
def train(inputs, targets):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(inputs, training=True) - targets) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss


while int(epoch) < 6:
    for step, (inputs, targets) in enumerate(tf.data.Dataset.from_tensor_slices((x, y)).batch(20)):
        train(inputs, targets)
        if f"{RANK}:{int(epoch)}" == os.environ.get("KILL") and step == 3 and subprocess.call(["mkdir", "killed"]) == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    epoch.assign_add(1)
    manager.save()
np.savez(sys.argv[1], *[w.numpy() for w in model.weights], *[np.asarray(v) for v in optimizer.variables])
