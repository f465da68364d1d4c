# SPDX-License-Identifier: Apache-2.0
"""A graph and a MonitoredTrainingSession, which keeps checkpoints and begins after the last.  Writes its last weights.

KILL=rank:step kills that rank at that step, once: a folder remembers it."""
import os
import signal
import subprocess
import sys

import numpy as np
import tensorflow.compat.v1 as tf

RANK = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK") or "0"

tf.disable_v2_behavior()
tf.set_random_seed(3)
rows = np.random.RandomState(3).rand(20, 6).astype("float32")
x = tf.constant(rows)
y = tf.constant(rows.sum(1, keepdims=True))
weights = tf.get_variable("weights", (6, 1))
loss = tf.reduce_mean((tf.matmul(x, weights) - y) ** 2)
step = tf.train.get_or_create_global_step()
train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, global_step=step)
hooks = [tf.train.StopAtStepHook(last_step=40)]
with tf.train.MonitoredTrainingSession(checkpoint_dir="checkpoints", save_checkpoint_steps=5, save_checkpoint_secs=None,
                                       hooks=hooks) as session:
    print("begins with step", session.run(step), flush=True)
    while not session.should_stop():
        _, at, last = session.run([train, step, weights])
        if f"{RANK}:{at}" == os.environ.get("KILL") and subprocess.call(["mkdir", "killed"]) == 0:
            os.kill(os.getpid(), signal.SIGKILL)
np.savez(sys.argv[1], last)
