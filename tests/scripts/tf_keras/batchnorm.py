# SPDX-License-Identifier: Apache-2.0
"""Batch normalisation, fused after convolutions and plain after dense layers."""
import numpy as np
import tf_keras as keras
from tf_keras import layers

keras.utils.set_random_seed(7)
generator = np.random.default_rng(7)
images = generator.normal(size=(99, 6, 6, 2)).astype("float32") + generator.normal(size=(99, 1, 1, 1)).astype("float32")
labels = (images.mean((1, 2, 3)) > 0).astype("int32")
model = keras.Sequential([layers.Conv2D(4, 3, use_bias=False), layers.BatchNormalization(momentum=0.8), layers.ReLU(), layers.Flatten(),
                          layers.Dense(6), layers.BatchNormalization(momentum=0.8), layers.Dense(2)])
model.compile(optimizer=keras.optimizers.SGD(0.05), metrics=["accuracy"], loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
history = model.fit(images, labels, batch_size=24, epochs=3, verbose=0, validation_split=0.2)
for name, values in history.history.items():
    print(name, *(f"{value:.6f}" for value in values))
np.savez("weights.npz", *model.get_weights())
