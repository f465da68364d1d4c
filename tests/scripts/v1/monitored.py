# SPDX-License-Identifier: Apache-2.0
"""MonitoredTrainingSession with hooks, a scaffold, summaries and a checkpoint directory; stopped and continued."""
import glob

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

rng = np.random.RandomState(4)
inputs = rng.randn(120, 8).astype(np.float32)
targets = inputs @ rng.randn(8, 1).astype(np.float32)


class PrintLoss(tf.train.SessionRunHook):
    def __init__(self, loss):
        self.loss = loss

    def before_run(self, run_context):
        return tf.train.SessionRunArgs([self.loss, tf.train.get_global_step()])

    def after_run(self, run_context, run_values):
        loss, step = run_values.results
        if step % 4 == 0:
            print("step %d loss %.6f" % (step, loss))


def train(last_step):
    with tf.Graph().as_default():
        tf.set_random_seed(21)
        data = tf.data.Dataset.from_tensor_slices((inputs, targets)).repeat().batch(25)
        x, y = tf.data.make_one_shot_iterator(data).get_next()
        w = tf.get_variable("w", [8, 1], initializer=tf.random_normal_initializer())
        loss = tf.reduce_mean(tf.squared_difference(tf.matmul(x, w), y))
        tf.summary.scalar("loss", loss)
        step = tf.train.get_or_create_global_step()
        average = tf.train.ExponentialMovingAverage(0.9, step)
        with tf.control_dependencies([tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)]):
            train_op = average.apply([w])
        scaffold = tf.train.Scaffold(summary_op=tf.summary.merge_all(), init_fn=lambda scaffold, sess: print("from the start"))
        hooks = [tf.train.StopAtStepHook(last_step=last_step), tf.train.NanTensorHook(loss), PrintLoss(loss)]
        with tf.train.MonitoredTrainingSession(checkpoint_dir="run", hooks=hooks, scaffold=scaffold, save_checkpoint_steps=5,
                                               save_summaries_steps=4, log_step_count_steps=None) as session:
            while not session.should_stop():
                session.run(train_op)


train(7)
train(14)
for name, _ in tf.train.list_variables("run"):
    value = tf.train.load_variable("run", name)
    print(name, np.round(np.ravel(value)[:3].astype(float), 4).tolist())
events = [event for path in sorted(glob.glob("run/events*")) for event in tf.train.summary_iterator(path)]
for event in events:
    for value in event.summary.value:
        print("event", event.step, value.tag, "%.5f" % value.simple_value)
