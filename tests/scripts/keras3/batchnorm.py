# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation after convolutions and dense layers, with masks, with a last batch of 3."""
import sys

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(80)
generator = np.random.default_rng(80)
images = generator.normal(size=(131, 8, 8, 3)).astype("float32") + generator.normal(size=(131, 1, 1, 1)).astype("float32")
labels = (images.mean((1, 2, 3)) > 0).astype("int32")
model = keras.Sequential([layers.Conv2D(6, 3, use_bias=False), layers.BatchNormalization(momentum=0.8), layers.ReLU(), layers.Flatten(),
                          layers.Dense(8), layers.BatchNormalization(momentum=0.8, scale=False), layers.Dense(2)])
model.compile(optimizer=keras.optimizers.SGD(0.05, momentum=0.9), metrics=["accuracy"], jit_compile="jit" in sys.argv,
              loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
history = model.fit(images, labels, batch_size=32, epochs=3, verbose=0, validation_split=0.2)
for name, values in history.history.items():
    print(name, *(f"{value:.6f}" for value in values))
np.savez("weights.npz", *model.get_weights())
np.save("predicted.npy", model.predict(images[:20], verbose=0))

tokens = np.where(np.arange(7) < generator.integers(1, 8, size=(50, 1)), generator.integers(1, 9, size=(50, 7)), 0)
model = keras.Sequential([layers.Embedding(9, 4, mask_zero=True), layers.BatchNormalization(momentum=0.5), layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
print("masked", *(f"{loss:.6f}" for loss in model.fit(tokens, tokens[..., None] / 9, batch_size=16, epochs=2, verbose=0).history["loss"]))
np.savez("masked.npz", *model.get_weights())
