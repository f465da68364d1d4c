# SPDX-License-Identifier: Apache-2.0
import time

import keras


class Clock(keras.callbacks.Callback):
    """Wall-clock and processor time of the last epoch."""

    def on_epoch_end(self, epoch, logs=None):
        now = (time.perf_counter(), time.process_time())
        if epoch > 0:
            self.taken = [end - start for start, end in zip(self.last, now)]
        self.last = now


class StepClock(keras.callbacks.Callback):
    """Wall-clock time of each step of the last epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        self.ends = [time.perf_counter()]

    def on_train_batch_end(self, batch, logs=None):
        self.ends.append(time.perf_counter())

    @property
    def taken(self):
        return [end - start for start, end in zip(self.ends, self.ends[1:])]
