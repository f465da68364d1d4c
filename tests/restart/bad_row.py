# SPDX-License-Identifier: Apache-2.0
"""Linear regression on 48 rows, one of which is bad; prints how many steps were taken and whether the weights are finite."""
import sys

import keras
import numpy as np

keras.utils.set_random_seed(1)
x = np.random.rand(48, 4).astype("float32")
x[30] = {"nan": np.nan, "large": 1e30, "scaled": 1.0}[sys.argv[1]]
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, name="line")])
optimizer = keras.optimizers.Adam(0.01)
if sys.argv[1] == "scaled":
    optimizer = keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=2.0**127)
model.compile(optimizer, "mse")
model.fit(x, x.sum(1).clip(0, 4), batch_size=8, epochs=1, shuffle=False, verbose=0)
weights = np.concatenate([np.ravel(w) for w in model.get_weights()])
print("steps", int(optimizer.iterations), "finite", bool(np.isfinite(weights).all()))
