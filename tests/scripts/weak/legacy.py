# SPDX-License-Identifier: Apache-2.0
"""tf.keras as it was before Keras 3: fit on arrays and on a data set with steps_per_epoch; the first argument is the batch
size."""
import os
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np
import tensorflow as tf

batch, _, steps, rate = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
generator = np.random.default_rng(4)
x = generator.normal(size=(75, 4)).astype("float32")
y = (x @ generator.normal(size=(4, 1))).astype("float32")


def new_model(optimizer):
    tf.keras.utils.set_random_seed(2)
    model = tf.keras.Sequential([tf.keras.layers.Dense(6, activation="tanh"), tf.keras.layers.Dense(1)])
    model.build((None, 4))
    model.compile(optimizer, "mse", metrics=["mae"])
    return model


def show(name, history):
    print(name, *(f"{key} {value:.6f}" for key, values in history.history.items() for value in values))


model = new_model(tf.keras.optimizers.SGD(rate))
show("arrays", model.fit(x, y, batch_size=batch, epochs=2, verbose=0, validation_split=0.2))
print("evaluate", *(f"{value:.6f}" for value in model.evaluate(x, y, batch_size=batch, verbose=0)))
np.save("predictions.npy", model.predict(x, batch_size=batch, verbose=0))
print("steps of arrays", int(model.optimizer.iterations.numpy()), f"rate {float(model.optimizer.learning_rate) / rate:.3f}")

model = new_model(tf.keras.optimizers.legacy.SGD(rate))
data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(batch)
show("data set", model.fit(data, steps_per_epoch=steps, epochs=2, verbose=0))
print("steps of the data set", int(model.optimizer.iterations.numpy()))
np.savez("weights.npz", *model.get_weights())
