# SPDX-License-Identifier: Apache-2.0
"""fit on arrays, fit on a data set with steps_per_epoch, and a loop; the argument is the batch size."""
import sys

import keras
import numpy as np
import tensorflow as tf

batch = int(sys.argv[1])
first_batch = int(sys.argv[2])  # of the loop: before it is known to train
steps = int(sys.argv[3])
rate = float(sys.argv[4])
keras.utils.set_random_seed(2)
generator = np.random.default_rng(4)
x = generator.normal(size=(75, 4)).astype("float32")
y = (x @ generator.normal(size=(4, 1))).astype("float32")


def new_model():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(6, activation="tanh"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(rate), "mse", metrics=["mae"])
    return model


def show(name, history):
    print(name, *(f"{key} {value:.6f}" for key, values in history.history.items() for value in values))


model = new_model()
show("arrays", model.fit(x, y, batch_size=batch, epochs=2, verbose=0, validation_split=0.2))
print("evaluate", *(f"{value:.6f}" for value in model.evaluate(x, y, batch_size=batch, verbose=0)))
np.save("predictions.npy", model.predict(x, batch_size=batch, verbose=0))
print("steps of arrays", int(model.optimizer.iterations.numpy()))

model = new_model()
data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(batch)
show("data set", model.fit(data, steps_per_epoch=steps, epochs=2, verbose=0))
print("steps of the data set", int(model.optimizer.iterations.numpy()))

weights = tf.Variable(tf.zeros((4, 1)))


@tf.function(reduce_retracing=True)
def train(rows, targets):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((rows @ weights - targets) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


rows = tf.data.Dataset.from_tensor_slices((x, y))
batches = first_batches = rows.batch(batch)
if first_batch != batch:
    first_batches = rows.take(first_batch).batch(first_batch).concatenate(rows.skip(first_batch).batch(batch))
for epoch in range(2):
    for inputs, targets in (batches if epoch else first_batches):
        print("loop", epoch, f"{train(inputs, targets):.6f}")
np.save("weights.npy", weights.numpy())
