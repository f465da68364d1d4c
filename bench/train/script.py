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


class StepTimes(keras.callbacks.Callback):
    def __init__(self, skipped):
        super().__init__()
        self.skipped, self.times = skipped, []

    def on_train_batch_begin(self, batch, logs=None):
        self.begin = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        if batch >= self.skipped:
            self.times.append(time.perf_counter() - self.begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(models.MODELS), required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--out", required=True, help="file for the result; %%p is the process")
    args = parser.parse_args()

    keras.utils.set_random_seed(7)
    model, x, y = models.build(args.model, args.batch * 4)
    model.compile(optimizer=keras.optimizers.SGD(0.01, momentum=0.9),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    times = StepTimes(skipped=max(4, args.steps // 5))
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(args.batch, drop_remainder=True).repeat()
    model.fit(data, steps_per_epoch=args.steps, epochs=1, verbose=0, callbacks=[times])
    result = {"ms": 1000 * statistics.median(times.times), "mean_ms": 1000 * statistics.mean(times.times),
              "weights": model.count_params()}
    with open(args.out.replace("%p", str(os.getpid())), "w") as file:
        json.dump(result, file)


main()
