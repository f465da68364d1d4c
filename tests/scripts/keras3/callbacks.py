# SPDX-License-Identifier: Apache-2.0
"""Callbacks that decide: on the figures of an epoch, on those of a batch, and on the clock."""
import time

import keras
import numpy as np

generator = np.random.default_rng(70)
x = generator.normal(size=(190, 6)).astype("float32")
y = (x[:, :1] ** 2 + 0.5 * generator.normal(size=(190, 1))).astype("float32")


class StopBelow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if logs["loss"] < self.params["epochs"] / 8:
            print("below after batch", batch)
            self.model.stop_training = True


class TimeLimit(keras.callbacks.Callback):
    """Different processes see different clocks; the first epoch, which compiles, does not count."""

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.01)

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 0:
            self.end = time.monotonic() + 0.4
        elif time.monotonic() > self.end:
            self.model.stop_training = True


keras.utils.set_random_seed(71)
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(24, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.SGD(0.05), loss="mse")
start = model.get_weights()


def train(callbacks, epochs):
    keras.utils.set_random_seed(72)
    model.set_weights(start)
    model.optimizer.learning_rate = 0.05
    return model.fit(x, y, batch_size=32, epochs=epochs, verbose=0, validation_split=0.3, callbacks=callbacks)


def show(name, history):
    for key, values in history.history.items():
        print(name, key, *(f"{value:.6f}" for value in values))


early = keras.callbacks.EarlyStopping(patience=1, restore_best_weights=True, min_delta=0.05)
history = train([early], 12)
show("early", history)
print("stopped", early.stopped_epoch, "best", early.best_epoch)
np.savez("best.npz", *model.get_weights())
history = train([keras.callbacks.ReduceLROnPlateau(patience=1, factor=0.3, min_delta=0.1)], 10)
show("plateau", history)
history = train([keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.7)], 4)
show("schedule", history)
history = train([StopBelow(), keras.callbacks.TerminateOnNaN()], 10)
show("below", history)
history = train([TimeLimit()], 1000)
print("time limit: some epochs", 1 < len(history.history["loss"]) < 1000)
