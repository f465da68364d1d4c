# SPDX-License-Identifier: Apache-2.0
"""Input from queues, filled by threads of the graph; run by a Supervisor, which restores what it finds."""
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

rng = np.random.RandomState(7)
features_all = rng.randn(80, 4).astype(np.float32)
targets_all = features_all.sum(1, keepdims=True)


def train(epochs):
    with tf.Graph().as_default():
        one = tf.train.slice_input_producer([features_all, targets_all], num_epochs=epochs, shuffle=False)
        features, target = tf.train.batch(one, batch_size=16, allow_smaller_final_batch=True)
        w = tf.Variable(tf.random_normal([4, 1], seed=3), name="w")
        loss = tf.reduce_mean(tf.square(tf.matmul(features, w) - target))
        step = tf.train.create_global_step()
        train_op = tf.train.MomentumOptimizer(0.05, 0.5).minimize(loss, global_step=step)
        supervisor = tf.train.Supervisor(logdir="log", global_step=step, summary_op=None, save_model_secs=0)
        with supervisor.managed_session() as sess:
            while not supervisor.should_stop():
                try:
                    _, value, at = sess.run([train_op, loss, step])
                except tf.errors.OutOfRangeError:
                    break
                print("step %d loss %.6f" % (at, value))
            print(os.path.basename(supervisor.saver.save(sess, "log/model", global_step=int(at))))
            np.save("w.npy", sess.run(w))


train(2)
time.sleep(1.1)  # names of event files have seconds in them
train(1)
