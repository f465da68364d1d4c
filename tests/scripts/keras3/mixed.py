# SPDX-License-Identifier: Apache-2.0
"""Mixed precision: the policy is the argument.  With float16 the loss is scaled, and the scale grows during the run."""
import sys

import keras
import numpy as np

keras.utils.set_random_seed(6)
keras.mixed_precision.set_global_policy(sys.argv[1])
generator = np.random.default_rng(6)
x = generator.normal(size=(230, 16)).astype("float32")
y = (x.sum(1) > 0).astype("int32")
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(24, activation="relu"),
                          keras.layers.Dense(2, dtype="float32", activation="softmax")])
optimizer = keras.optimizers.SGD(0.05)
if sys.argv[1] == "mixed_float16":
    optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=2.0**6, dynamic_growth_steps=8)
model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(x, y, batch_size=32, epochs=2, verbose=0, validation_split=0.2)
print("loss", *(f"{loss:.3f}" for loss in history.history["loss"]))
print("val_loss", *(f"{loss:.3f}" for loss in history.history["val_loss"]))
if sys.argv[1] == "mixed_float16":
    print("scale", float(optimizer.dynamic_scale.numpy()), "steps", int(optimizer.iterations.numpy()))
np.savez("weights.npz", *model.get_weights())
