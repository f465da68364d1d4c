# SPDX-License-Identifier: Apache-2.0
"""A plain Keras script that trains a network on random data and prints how long a step takes.

It knows nothing of ranks."""
import argparse
import json
import os
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import models  # noqa: E402
import tensorflow as tf  # noqa: E402


STEPS_TOGETHER = 10  # an epoch: a callback at every step would cost something, in ranks more than in one process


class StepTimes(keras.callbacks.Callback):
    """The time of a step, from epochs after those that trace and warm up."""

    def __init__(self, skipped):
        super().__init__()
        self.skipped, self.times, self.last = skipped, [], None

    def on_epoch_end(self, epoch, logs=None):
        now = time.perf_counter()
        if epoch >= self.skipped:
            self.times.append((now - self.last) / STEPS_TOGETHER)
        self.last = now


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(models.MODELS), required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--out", required=True, help="file for the result; %%p is the process")
    args = parser.parse_args()

    keras.utils.set_random_seed(7)
    model, x, y = models.build(args.model, args.batch * 4)
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    times = StepTimes(skipped=2)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(args.batch, drop_remainder=True).repeat()
    model.fit(data, steps_per_epoch=STEPS_TOGETHER, epochs=max(3, args.steps // STEPS_TOGETHER), shuffle=False, verbose=0,
              callbacks=[times])
    result = {"ms": 1000 * statistics.median(times.times), "mean_ms": 1000 * statistics.mean(times.times),
              "weights": model.count_params()}
    with open(args.out.replace("%p", str(os.getpid())), "w") as file:
        json.dump(result, file)


main()
