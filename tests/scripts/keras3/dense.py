# SPDX-License-Identifier: Apache-2.0
"""fit, evaluate and predict of a small network; 903 samples do not divide by batches or ranks."""
import sys

import keras
import numpy as np

keras.utils.set_random_seed(1)
generator = np.random.default_rng(0)
x = generator.normal(size=(1003, 20)).astype("float32")
y = (x @ generator.normal(size=(20, 3))).argmax(1)

model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(3)])
model.compile(optimizer=keras.optimizers.Adam(0.01), metrics=["accuracy"], jit_compile="jit" in sys.argv,
              run_eagerly="eager" in sys.argv, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
history = model.fit(x, y, batch_size=64, epochs=3, verbose=2, validation_split=0.1)
for name, values in history.history.items():
    print(name, *(f"{value:.6f}" for value in values))
print("evaluate", *(f"{value:.6f}" for value in model.evaluate(x, y, verbose=0, batch_size=50)))
np.save("predictions.npy", model.predict(x, batch_size=64, verbose=0))
if "eager" in sys.argv:
    model.save_weights("model.weights.h5")  # the description would have the shape of the first batch that the model saw
else:
    model.save("model.keras")
