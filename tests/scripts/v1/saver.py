# SPDX-License-Identifier: Apache-2.0
"""Saver: save every epoch, keep two, restore and go on; then the same from the meta graph, and a SavedModel."""
import os

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()

rng = np.random.RandomState(0)
x_train = rng.rand(70, 4).astype(np.float32)
y_train = x_train.mean(1, keepdims=True) * 3

x = tf.placeholder("float", [None, 4], name="x")
y = tf.placeholder("float", [None, 1], name="y")
w = tf.Variable(tf.random_normal([4, 1]), name="w")
b = tf.Variable(0.0, name="b")
guess = tf.add(tf.matmul(x, w), b, name="guess")
cost = tf.reduce_mean(tf.square(guess - y), name="cost")
train = tf.train.AdamOptimizer(0.05).minimize(cost, name="train")
tf.summary.scalar("cost", cost)
merged = tf.summary.merge_all()
saver = tf.train.Saver(max_to_keep=2)


def epoch(sess):
    for start in range(0, 70, 16):
        sess.run(train, {x: x_train[start:start + 16], y: y_train[start:start + 16]})


with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run([w.assign([[0.1], [0.2], [0.3], [0.4]])])
    writer = tf.summary.FileWriter("logs", sess.graph)
    for number in range(4):
        epoch(sess)
        text, value = sess.run([merged, cost], {x: x_train, y: y_train})
        writer.add_summary(text, number)
        path = saver.save(sess, "saved/model", global_step=number)
        print("cost %.6f saved %s" % (value, path))
    writer.close()
    print([os.path.basename(name) for name in saver.last_checkpoints])

with tf.Session() as sess:
    saver.restore(sess, tf.train.latest_checkpoint("saved"))
    epoch(sess)
    print("continued: cost %.6f" % cost.eval({x: x_train, y: y_train}))
    builder = tf.saved_model.Builder("exported")
    signature = tf.saved_model.predict_signature_def({"x": x}, {"guess": guess})
    builder.add_meta_graph_and_variables(sess, ["serve"], {"serving_default": signature})
    builder.save()

with tf.Graph().as_default(), tf.Session() as sess:
    again = tf.train.import_meta_graph("saved/model-3.meta")
    again.restore(sess, "saved/model-3")
    epoch_feed = {"x:0": x_train[:16], "y:0": y_train[:16]}
    sess.run("train", epoch_feed)
    print("imported: cost %.6f" % sess.run("cost:0", {"x:0": x_train, "y:0": y_train}))

with tf.Graph().as_default(), tf.Session() as sess:
    tf.saved_model.load(sess, ["serve"], "exported")
    np.save("guesses.npy", sess.run("guess:0", {"x:0": x_train}))

for folder, _, names in sorted(os.walk(".")):
    if not folder.startswith(("./rank", "./logs")):
        print(folder, sorted(name for name in names if "data-" not in name))
events = sorted(os.listdir("logs"))
print(len(events), "event file")
costs = [value.simple_value for event in tf.train.summary_iterator(os.path.join("logs", events[0])) for value in event.summary.value]
print("costs in it", *("%.6f" % value for value in costs))
