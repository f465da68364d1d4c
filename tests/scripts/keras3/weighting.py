# SPDX-License-Identifier: Apache-2.0
"""Weights of samples, classes and outputs; summed losses; penalties.  Batches of 37 with a rest of 9."""
import keras
import numpy as np
from keras import layers

generator = np.random.default_rng(9)
numbers = generator.normal(size=(231, 6)).astype("float32")
colours = generator.integers(0, 5, size=(231, 1))
price = (numbers[:, :1] + colours).astype("float32")
kind = (numbers[:, 0] + 0.3 * colours[:, 0] > 0.5).astype("int32")
weight = generator.uniform(0.1, 3, size=231).astype("float32")
weight[40:60] = 0


def show(name, model, history):
    for key, values in sorted(history.history.items()):
        print(name, key, *(f"{value:.6f}" for value in values))
    np.savez(f"{name}.npz", *model.get_weights())


def classifier(**options):
    keras.utils.set_random_seed(2)
    model = keras.Sequential([keras.Input((6,)), layers.Dense(12, activation="relu", kernel_regularizer="l2"),
                              layers.ActivityRegularization(l1=1e-3) if options.pop("activity", False) else layers.Identity(),
                              layers.Dense(1, activation="sigmoid")])
    model.compile(optimizer=keras.optimizers.Adam(0.01), **options)
    return model


model = classifier(loss="binary_crossentropy", metrics=["accuracy"], weighted_metrics=["accuracy", "auc"])
show("sample_weight", model, model.fit(numbers, kind, sample_weight=weight, batch_size=37, epochs=2, verbose=0,
                                       validation_data=(numbers[:70], kind[:70], weight[:70])))
model = classifier(loss=lambda true, out: keras.ops.abs(true - out), metrics=["accuracy", lambda true, out: keras.ops.mean(out)])
show("class_weight", model, model.fit(numbers, kind[:, None].astype("float32"), class_weight={0: 0.4, 1: 2.5}, batch_size=37,
                                      epochs=2, verbose=0))
model = classifier(loss=keras.losses.BinaryCrossentropy(reduction="sum"))
show("sum", model, model.fit(numbers, kind, batch_size=37, epochs=2, verbose=0))
print("evaluate sum", f"{model.evaluate(numbers, kind, batch_size=50, verbose=0):.5f}")
model = classifier(loss=keras.losses.BinaryCrossentropy(reduction="mean_with_sample_weight"))
show("weighted_mean", model, model.fit(numbers, kind, sample_weight=weight, batch_size=37, epochs=2, verbose=0))

keras.utils.set_random_seed(5)
first, second = keras.Input((6,), name="numbers"), keras.Input((1,), name="colour", dtype="int32")
merged = layers.Concatenate()([first, layers.Flatten()(layers.Embedding(5, 3)(second))])
hidden = layers.Dense(10, activation="relu")(merged)
model = keras.Model([first, second], {"price": layers.Dense(1, name="price")(hidden),
                                      "kind": layers.Dense(1, activation="sigmoid", name="kind")(hidden)})
model.compile(optimizer="rmsprop", loss={"price": "mse", "kind": "binary_crossentropy"},
              loss_weights={"price": 0.3, "kind": 2.0}, metrics={"price": ["mae"], "kind": ["accuracy", "auc"]})
data = {"numbers": numbers, "colour": colours}
history = model.fit(data, {"price": price, "kind": kind}, batch_size=37, epochs=3, verbose=0, validation_split=0.15)
show("outputs", model, history)
for key, value in sorted(model.evaluate(data, {"price": price, "kind": kind}, batch_size=40, verbose=0, return_dict=True).items()):
    print("evaluate", key, f"{value:.6f}")
predicted = model.predict(data, batch_size=50, verbose=0)
np.savez("predicted.npz", **predicted)
