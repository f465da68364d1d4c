# SPDX-License-Identifier: Apache-2.0
"""How Keras runs the steps: several per call, eagerly, compiled; those that are named, or all.  65 samples in batches of 32 leave
a batch of one.  A layer that puts rows and steps of sequences together does not know the shape of its gradient then."""
import sys

import keras
import numpy as np

generator = np.random.default_rng(60)
x = generator.normal(size=(65, 6)).astype("float32")
y = (x @ generator.normal(size=(6, 2))).argmax(1)
WAYS = {"plain": {}, "several": {"steps_per_execution": 3}, "eager": {"run_eagerly": True}, "compiled": {"jit_compile": True},
        "both": {"steps_per_execution": 2, "jit_compile": True}}

for name in sys.argv[1:] or WAYS:
    keras.utils.set_random_seed(61)
    model = keras.Sequential([keras.layers.Dense(10, activation="tanh"), keras.layers.Reshape((2, 5)), keras.layers.Dense(3, activation="tanh"),
                              keras.layers.Flatten(), keras.layers.Dense(2)])
    model.compile(optimizer=keras.optimizers.Adam(0.02), metrics=["accuracy"],
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), **WAYS[name])
    history = model.fit(x, y, batch_size=32, epochs=3, verbose=0, validation_data=(x[:33], y[:33]))
    for key, values in history.history.items():
        print(name, key, *(f"{value:.6f}" for value in values))
    print(name, "evaluate", *(f"{value:.6f}" for value in model.evaluate(x, y, batch_size=32, verbose=0)))
    np.savez(f"{name}.npz", model.predict(x, batch_size=32, verbose=0), *model.get_weights())
