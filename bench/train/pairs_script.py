# SPDX-License-Identifier: Apache-2.0
"""Trains a network by turns in two ways, and writes how long a step takes in each:

  copies  hooks are off: every process trains a model of its own, as without Lockstep
  ranks   one model, the batch is that of all ranks; with one rank: what hooks cost where they have nothing to do

Both are in the same processes, a second or so each, so that the machine's drift meets both."""
import argparse
import contextlib
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import models  # noqa: E402
import tensorflow as tf  # noqa: E402
from clock import Clock  # noqa: E402
from lockstep import ops, world  # noqa: E402


def make(name, batch, steps, scope):
    """A function that trains an epoch twice and gives the milliseconds of a step of the second one: (wall clock, processor)"""
    with scope():
        model, x, y = models.build(name, batch * 4)
        model.compile(optimizer=keras.optimizers.SGD(0.01), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        options = tf.data.Options()
        options.autotune.enabled = False  # ranks with one core have none; its end takes long
        data = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch, drop_remainder=True).repeat().with_options(options)

    def train():
        clock = Clock()
        ops.barrier("turn")
        with scope():
            model.fit(data, steps_per_epoch=steps, epochs=2, shuffle=False, verbose=0, callbacks=[clock])
        return [1000 * seconds / steps for seconds in clock.taken]

    return train


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(models.MODELS), required=True)
    parser.add_argument("--batch", type=int, required=True, help="rows of a process")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--out", required=True, help="file for the result")
    args = parser.parse_args()

    keras.utils.set_random_seed(7)
    ways = {"copies": make(args.model, args.batch, args.steps, world.alone),
            "ranks": make(args.model, args.batch * world.size, args.steps, contextlib.nullcontext)}
    for train in ways.values():
        train()  # traces
    turns = [{name: train() for name, train in ways.items()} for _ in range(args.turns)]
    rows = [[turn[name] for name in ("copies", "ranks")] for turn in turns]
    of_all = ops.allgather(tf.constant([rows], tf.float64), "rows").numpy()
    with open(args.out, "w") as file:
        json.dump(of_all.mean(axis=0).tolist(), file)


main()
