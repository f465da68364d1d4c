# SPDX-License-Identifier: Apache-2.0
"""A layer at the end of the model that adds its loss by itself, one number for each sample as CTC does, which Keras sums up; beside
it a mean, penalties on weights and activities.  100 samples in batches of 16."""
import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(11)
generator = np.random.default_rng(4)
x = generator.normal(size=(100, 5))
y = (x[:, :2] > 0).astype("float64")


class Endpoint(layers.Layer):
    def call(self, targets, logits):
        self.add_loss(keras.losses.binary_crossentropy(targets, logits, from_logits=True))
        self.add_loss(0.1 * ops.mean(ops.square(logits)))
        return ops.sigmoid(logits)


inputs, targets = keras.Input((5,), name="inputs"), keras.Input((2,), name="targets")
hidden = layers.Dense(7, activation="tanh", kernel_regularizer="l2", activity_regularizer=keras.regularizers.L2(0.01))(inputs)
outputs = Endpoint()(targets, layers.Dense(2)(hidden))
model = keras.Model([inputs, targets], outputs)
model.compile(keras.optimizers.SGD(0.02))
history = model.fit({"inputs": x, "targets": y}, batch_size=16, epochs=3, verbose=0, shuffle=False)
for loss in history.history["loss"]:
    print(f"loss {loss:.12f}")
print(f"evaluated {model.evaluate({'inputs': x, 'targets': y}, batch_size=16, verbose=0):.12f}")
np.savez("weights.npz", *model.get_weights())
