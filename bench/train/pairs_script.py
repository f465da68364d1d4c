# SPDX-License-Identifier: Apache-2.0
"""Trains a network by turns in three ways, and writes how long a step takes in each:

  copies  hooks are off: every process trains a model of its own, as without Lockstep
  ranks   one model, the batch is that of all ranks; with one rank: what hooks cost where they have nothing to do
  paced   copies again, which wait for each other after every step.  So long takes a step of processes that go on together,
          and do the same at the same time, if what they exchange costs nothing

All are in the same processes, a second or so each, so that the machine's drift meets all of them.  Where a model's memory lies
changes its speed by some hundredths, and who is made first has other places: --ranks-first is for every second launch."""
import argparse
import contextlib
import functools
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import models  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from clock import Clock, MeetingClock  # noqa: E402
from lockstep import ops, world  # noqa: E402

WAYS = ("copies", "ranks", "paced")


def make(name, batch, steps, scope):
    """A function that trains an epoch twice with a clock, and gives what the clock has taken of the second one"""
    with scope():
        model, x, y = models.build(name, batch * 4)
        model.compile(optimizer=keras.optimizers.SGD(0.01), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        options = tf.data.Options()
        options.autotune.enabled = False  # ranks with one core have none; its end takes long
        data = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch, drop_remainder=True).repeat().with_options(options)

    def train(clock):
        ops.barrier("turn")
        with scope():
            model.fit(data, steps_per_epoch=steps, epochs=2, shuffle=False, verbose=0, callbacks=[clock])
        return np.array(clock.taken)

    return train


def in_turns(rows, steps):
    """rows: seconds, [rank][turn][way, its wall clock and processor]
    -> for each turn {clock: {way: milliseconds of a step, mean of the ranks}}"""
    means = 1000 / steps * rows.mean(axis=0).reshape(-1, len(WAYS), 2)
    return [{clock: dict(zip(WAYS, turn[:, number].tolist())) for number, clock in enumerate(("wall clock", "processor"))}
            for turn in means]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(models.MODELS), required=True)
    parser.add_argument("--batch", type=int, required=True, help="rows of a process")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--ranks-first", action="store_true", help="make and train the model of the ranks before that of the copies")
    parser.add_argument("--out", required=True, help="file for the result")
    args = parser.parse_args()

    keras.utils.set_random_seed(7)
    makers = {"copies": lambda: make(args.model, args.batch, args.steps, world.alone),
              "ranks": lambda: make(args.model, args.batch * world.size, args.steps, contextlib.nullcontext)}
    order = ("ranks", "copies") if args.ranks_first else ("copies", "ranks")
    train = {way: makers[way]() for way in order}
    meet = functools.partial(ops.barrier, "step")

    def turn():
        taken = {way: train[way](Clock()) for way in order}
        taken["paced"] = train["copies"](MeetingClock(meet))
        return np.concatenate([taken[way] for way in WAYS])

    turns = [turn() for _ in range(args.turns + 1)]
    of_all = ops.allgather(tf.constant([turns[1:]], tf.float64), "rows").numpy()  # the first one traces
    with open(args.out, "w") as file:
        json.dump(in_turns(of_all, args.steps), file)


main()
