# SPDX-License-Identifier: Apache-2.0
"""A hand-written loop with tf.train.Checkpoint, CheckpointManager, summaries and a SavedModel of the module that trained."""
import os

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(3)
x = rng.normal(size=(120, 7)).astype("float32")
y = (x @ rng.normal(size=(7, 1))).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(25)


class Line(tf.Module):
    def __init__(self):
        self.weights = tf.Variable(tf.zeros((7, 1)))
        self.steps = tf.Variable(0, dtype=tf.int64)

    @tf.function(input_signature=[tf.TensorSpec((None, 7))])
    def predict(self, inputs):
        return inputs @ self.weights

    @tf.function
    def train(self, inputs, targets):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self.predict(inputs) - targets))
        self.weights.assign_sub(0.1 * tape.gradient(loss, self.weights))
        self.steps.assign_add(1)


line = Line()
checkpoint = tf.train.Checkpoint(line=line, epoch=tf.Variable(0))
manager = tf.train.CheckpointManager(checkpoint, "checkpoints", max_to_keep=2)
print("found:", manager.latest_checkpoint)
writer = tf.summary.create_file_writer("events")
for epoch in range(4):
    for inputs, targets in data:
        line.train(inputs, targets)
    error = float(tf.reduce_mean(tf.square(line.predict(x) - y)))
    with writer.as_default(step=epoch):
        tf.summary.scalar("error", error)
    checkpoint.epoch.assign_add(1)
    print(manager.save(), f"{error:.6f}", [os.path.basename(path) for path in manager.checkpoints])
writer.close()
print(tf.train.latest_checkpoint("checkpoints"), sorted(os.listdir("checkpoints")))

other = Line()
restored = tf.train.Checkpoint(line=other, epoch=tf.Variable(0))
restored.restore(manager.latest_checkpoint).assert_consumed()
print("epoch", int(restored.epoch), "steps", int(other.steps), bool(np.array_equal(other.weights, line.weights)))
print(checkpoint.write("single/one"), checkpoint.save("single/many"), tf.train.list_variables("single/one")[-1])

tf.saved_model.save(line, "saved", signatures=line.predict)
loaded = tf.saved_model.load("saved")
print(bool(np.allclose(loaded.predict(x), line.predict(x))))

with tf.io.TFRecordWriter("numbers.tfrecord") as records:
    for row in x[:, 0]:
        records.write(row.tobytes())
total = sum(np.frombuffer(record.numpy(), "float32")[0] for record in tf.data.TFRecordDataset("numbers.tfrecord"))
print(f"{total:.5f}")
