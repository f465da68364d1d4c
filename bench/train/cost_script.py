# SPDX-License-Identifier: Apache-2.0
"""Trains a network by turns in two ways, and writes how long a step takes in each:

  bare  no metrics, no logs, batches left alone: gradients are all that ranks share
  full  Keras's own step, with a loss and an accuracy; under ranks the batch is that of all of them, and is cut

Both are in one process, so that the machine's drift meets both.  It knows nothing of ranks but the setting that leaves
batches alone, and how many rows a batch of all of them has (--share)."""
import argparse
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import models  # noqa: E402
import tensorflow as tf  # noqa: E402
from clock import Clock  # noqa: E402


class BareModel(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.loss(y, self(x, training=True))
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return {"step": self.optimizer.iterations.value}  # a whole number is no figure of a batch


def leave_batches_alone(is_wanted):
    """A setting is read once in a process: here it changes from turn to turn."""
    os.environ["LOCKSTEP_SHARD"] = "off" if is_wanted else "on"
    if "lockstep.native" in sys.modules:
        sys.modules["lockstep.native"].setting.cache_clear()


def make(name, batch, steps, is_bare):
    """A function that trains an epoch twice and gives the milliseconds of a step of the second one: (wall clock, processor)"""
    network, x, y = models.build(name, batch * 4)
    model = BareModel(network.inputs, network.outputs[0]) if is_bare else network
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=None if is_bare else ["accuracy"])
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch, drop_remainder=True).repeat()

    def train():
        leave_batches_alone(is_bare)
        clock = Clock()
        model.fit(data, steps_per_epoch=steps, epochs=2, shuffle=False, verbose=0, callbacks=[clock])
        return [1000 * seconds / steps for seconds in clock.taken]

    return train


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(models.MODELS), required=True)
    parser.add_argument("--batch", type=int, required=True, help="rows of a process")
    parser.add_argument("--share", type=int, default=1, help="processes that share a batch")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--out", required=True, help="file for the result; %%p is the process")
    args = parser.parse_args()

    keras.utils.set_random_seed(7)
    ways = {"bare": make(args.model, args.batch, args.steps, is_bare=True),
            "full": make(args.model, args.batch * args.share, args.steps, is_bare=False)}
    turns = [{name: train() for name, train in ways.items()} for _ in range(args.turns + 1)]
    with open(args.out.replace("%p", str(os.getpid())), "w") as file:
        json.dump(turns[1:], file)  # the first one traces


main()
