# SPDX-License-Identifier: Apache-2.0
"""A loop of the script's own around train_on_batch, test_on_batch and predict_on_batch, with one model of two outputs."""
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(30)
generator = np.random.default_rng(30)
x = generator.normal(size=(125, 4)).astype("float32")
y = (x[:, 0] > 0).astype("int32")
inputs = keras.Input((4,))
hidden = keras.layers.Dense(8, activation="relu")(inputs)
model = keras.Model(inputs, [keras.layers.Dense(2, activation="softmax", name="kind")(hidden), keras.layers.Dense(4)(hidden)])
model.compile(optimizer="adam", loss=["sparse_categorical_crossentropy", "mse"], metrics=[["accuracy"], ["mae"]])

for epoch in range(2):
    for start in range(0, 125, 20):
        rows = slice(start, start + 20)
        logs = model.train_on_batch(x[rows], [y[rows], x[rows]])
    print("epoch", epoch, *(f"{value:.6f}" for value in logs))
    model.reset_metrics()
print("test", *(f"{value:.6f}" for value in model.test_on_batch(x[:7], [y[:7], x[:7]])))
kinds, copies = model.predict_on_batch(x[:11])
model.reset_metrics()

for a, b in tf.data.Dataset.from_tensor_slices((x, y)).batch(25):
    logs = model.train_on_batch(a, [b, a], return_dict=True, sample_weight=[tf.ones(len(a)), 2 * tf.ones(len(a))])
    print({key: round(float(value), 5) for key, value in sorted(logs.items())}, len(model.predict_on_batch(a)[0]))
both = model.predict(x, batch_size=16, verbose=0)
np.savez("outputs.npz", kinds, copies, *both, *model.get_weights())
print("one by one", [round(float(model.train_on_batch(x[i:i + 1], [y[i:i + 1], x[i:i + 1]])[0]), 5) for i in range(4)])
