# SPDX-License-Identifier: Apache-2.0
"""Layers that look at all of the data before training."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(50)
generator = np.random.default_rng(50)
words = np.array("red green blue cold warm old new big small".split())
texts = np.array([" ".join(generator.choice(words, size=generator.integers(2, 6))) for _ in range(140)])
label = np.array(["red" in text for text in texts]).astype("float32")
sizes = (generator.normal(size=(140, 3)) * [1, 10, 100] + [5, 0, 3]).astype("float32")

data = tf.data.Dataset.from_tensor_slices(texts).batch(16)
vectorize = layers.TextVectorization(max_tokens=12, output_mode="int", output_sequence_length=6)
vectorize.adapt(data)
print(vectorize.get_vocabulary())
normalize = layers.Normalization()
normalize.adapt(tf.data.Dataset.from_tensor_slices(sizes).batch(20))
bins = layers.Discretization(num_bins=4)
bins.adapt(sizes[:, 1])
print("bins", np.round(np.asarray(bins.bin_boundaries), 4))
lookup = layers.StringLookup()
lookup.adapt(tf.data.Dataset.from_tensor_slices(texts).map(lambda text: tf.strings.split(text)[0]).batch(10))
print(lookup.get_vocabulary())

text, size = keras.Input((6,), dtype="int64"), keras.Input((3,))
merged = layers.Concatenate()([layers.GlobalAveragePooling1D()(layers.Embedding(12, 4)(text)), normalize(size)])
model = keras.Model([text, size], layers.Dense(1, activation="sigmoid")(merged))
model.compile(optimizer=keras.optimizers.Adam(0.05), loss="binary_crossentropy", metrics=["accuracy"])
train = tf.data.Dataset.from_tensor_slices(((texts, sizes), label)).shuffle(140, seed=3).batch(24)
history = model.fit(train.map(lambda both, y: ((vectorize(both[0]), both[1]), y)), epochs=3, verbose=0)
print({name: [round(float(value), 5) for value in values] for name, values in history.history.items()})
np.savez("weights.npz", mean=normalize.mean, variance=normalize.variance, **{f"w{i}": w for i, w in enumerate(model.get_weights())})
