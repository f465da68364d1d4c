# SPDX-License-Identifier: Apache-2.0
"""Masks, summed losses, several outputs, sparse gradients of embeddings."""
import numpy as np
import tensorflow as tf
import tf_keras as keras
from tf_keras import layers

generator = np.random.default_rng(4)
tokens = np.where(np.arange(7) < generator.integers(1, 8, size=(107, 1)), generator.integers(1, 20, size=(107, 7)), 0)
tags, label = tokens % 3, (tokens == 5).any(1).astype("float32")


def show(name, model, history):
    for key, values in sorted(history.history.items()):
        print(name, key, *(f"{value:.6f}" for value in values))
    np.savez(f"{name}.npz", *model.get_weights())


for optimizer in "adam", "adagrad":
    keras.utils.set_random_seed(5)
    hidden = layers.LSTM(6, return_sequences=True) if optimizer == "adam" else layers.Dense(6, activation="relu")
    model = keras.Sequential([layers.Embedding(20, 6, mask_zero=True), hidden, layers.Dense(3, activation="softmax")])
    model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    show(f"masked-{optimizer}", model, model.fit(tokens, tags, batch_size=25, epochs=2, verbose=0, validation_split=0.2))

keras.utils.set_random_seed(6)
model = keras.Sequential([layers.Embedding(20, 4), layers.GlobalAveragePooling1D(), layers.Dense(1)])
model.compile(optimizer=keras.optimizers.SGD(0.01), loss=keras.losses.BinaryCrossentropy(from_logits=True, reduction="sum"), metrics=["mae"])
show("sum", model, model.fit(tokens, label, batch_size=25, epochs=2, verbose=0))

inputs = keras.Input((7,), dtype="int32")
hidden = layers.Flatten()(layers.Embedding(20, 4)(inputs))
model = keras.Model(inputs, [layers.Dense(1, name="any")(hidden), layers.Dense(7, name="all")(hidden)])
model.compile(optimizer="rmsprop", loss=["mse", "mae"], loss_weights=[2.0, 0.5], metrics={"any": ["mae", keras.metrics.AUC()], "all": "mse"})
show("outputs", model, model.fit(tokens, [label, tokens / 20], batch_size=25, epochs=2, verbose=0))
one, other = model.predict(tokens, batch_size=40, verbose=0)
np.savez("predicted.npz", one, other)
print("evaluate", {key: round(value, 5) for key, value in model.evaluate(tokens, [label, tokens / 20], batch_size=50, verbose=0, return_dict=True).items()})
