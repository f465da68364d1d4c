# SPDX-License-Identifier: Apache-2.0
"""Embeddings of tokens, of their positions and of their kind (which is 0 everywhere): the gradient of the second has rows that come
from no sample.  100 texts of 12 tokens in batches of 16."""
import keras
import numpy as np
from keras import layers, ops

generator = np.random.default_rng(2)
texts = generator.integers(0, 30, size=(100, 12))
labels = (texts[:, 3] > texts[:, 8]).astype("int64")


class Embed(layers.Layer):
    def __init__(self):
        super().__init__()
        self.token, self.position, self.kind = layers.Embedding(30, 4), layers.Embedding(12, 4), layers.Embedding(2, 4)

    def call(self, tokens):
        positions = ops.arange(0, ops.shape(tokens)[-1])
        return self.token(tokens) + self.position(positions) + self.kind(ops.zeros_like(tokens))


for name in ("adam", "adagrad"):
    keras.utils.set_random_seed(1)
    inputs = keras.Input((12,), dtype="int64")
    x = layers.Dense(5, activation="tanh")(Embed()(inputs))
    outputs = layers.Dense(2, activation="softmax")(layers.Flatten()(x))
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.get({"class_name": name, "config": {"learning_rate": 0.02}}),
                  "sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(texts, labels, batch_size=16, epochs=3, verbose=0)
    for loss, accuracy in zip(history.history["loss"], history.history["accuracy"]):
        print(f"{name}: loss {loss:.12f} accuracy {accuracy:.4f}")
    np.savez(f"{name}.npz", *model.get_weights())
