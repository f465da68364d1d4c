# SPDX-License-Identifier: Apache-2.0
"""Sequences of different lengths: masks from the embedding, a loss per token, embeddings that get sparse gradients."""
import keras
import numpy as np
from keras import layers

generator = np.random.default_rng(12)
lengths = generator.integers(1, 9, size=157)
tokens = np.where(np.arange(9) < lengths[:, None], generator.integers(1, 30, size=(157, 9)), 0)
tags = tokens % 4
label = (tokens == 7).any(1).astype("int32")

for optimizer in "adam", "adagrad", "sgd":
    keras.utils.set_random_seed(13)
    hidden = layers.LSTM(8, return_sequences=True) if optimizer == "adam" else layers.Dense(8, activation="relu")
    model = keras.Sequential([layers.Embedding(30, 8, mask_zero=True), hidden, layers.Dense(4, activation="softmax")])
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"], weighted_metrics=[])
    history = model.fit(tokens, tags, batch_size=31, epochs=2, verbose=0, validation_split=0.2)
    for name, values in history.history.items():
        print("tags", optimizer, name, *(f"{value:.6f}" for value in values))
    np.savez(f"tags-{optimizer}.npz", *model.get_weights())

keras.utils.set_random_seed(14)
inputs = keras.Input((None,), dtype="int32")
hidden = layers.GRU(6)(layers.Embedding(30, 8, mask_zero=True)(inputs))
model = keras.Model(inputs, layers.Dense(1)(hidden))
model.compile(optimizer=keras.optimizers.Adam(0.02, global_clipnorm=1.0),
              loss=keras.losses.BinaryCrossentropy(from_logits=True), metrics=[keras.metrics.BinaryAccuracy(threshold=0)])
weight = np.where(label, 2.0, 0.5)
history = model.fit(tokens, label, sample_weight=weight, batch_size=31, epochs=3, verbose=0)
for name, values in history.history.items():
    print("label", name, *(f"{value:.6f}" for value in values))
np.save("label.npy", model.predict(tokens, batch_size=64, verbose=0))
