# SPDX-License-Identifier: Apache-2.0
"""Writes a file in every way that Sessions have, each kind in a folder of its own."""
import os

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
for folder in ("saver", "event-writer", "graph", "monitored"):
    os.makedirs(folder)
weights = tf.get_variable("weights", (3,))
step = tf.train.get_or_create_global_step()
inputs = tf.placeholder(tf.float32, (None, 3))
loss = tf.reduce_mean(tf.square(tf.linalg.matvec(inputs, weights) - 1.0))
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
summary = tf.summary.scalar("loss", loss)
rows = [[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]]
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    writer = tf.summary.FileWriter("event-writer", session.graph)
    for number in range(2):
        session.run(train, {inputs: rows})
        writer.add_summary(session.run(summary, {inputs: rows}), number)
    writer.close()
    tf.train.Saver().save(session, "saver/model", global_step=step)
    tf.train.write_graph(session.graph, "graph", "graph.pbtxt")
    tf.saved_model.simple_save(session, "simple-save", {"inputs": inputs}, {"loss": loss})
    builder = tf.saved_model.builder.SavedModelBuilder("builder")
    builder.add_meta_graph_and_variables(session, [tf.saved_model.tag_constants.SERVING])
    builder.save()
with tf.train.MonitoredTrainingSession(checkpoint_dir="monitored", save_summaries_steps=1, save_checkpoint_steps=2) as session:
    for _ in range(3):
        session.run(train, {inputs: rows})
