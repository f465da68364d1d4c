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


class MeetingClock(Clock):
    """The same where the processes wait for each other after every step: meet() is a barrier."""

    def __init__(self, meet):
        super().__init__()
        self.meet = meet

    def on_train_batch_end(self, batch, logs=None):
        self.meet()
