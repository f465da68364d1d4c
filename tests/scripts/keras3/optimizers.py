# SPDX-License-Identifier: Apache-2.0
"""What Keras optimizers do with gradients: clip, accumulate, decay, average weights."""
import keras
import numpy as np

generator = np.random.default_rng(4)
x = generator.normal(size=(250, 10)).astype("float32")
y = 3 * np.sin(x[:, :2]).astype("float32")
OPTIMIZERS = {
    "clipnorm": keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True, clipnorm=0.2),
    "global_clipnorm": keras.optimizers.Adam(0.01, global_clipnorm=0.1),
    "accumulation": keras.optimizers.Adam(0.02, gradient_accumulation_steps=3),
    "ema": keras.optimizers.SGD(0.05, clipvalue=0.05, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=7),
    "decay": keras.optimizers.AdamW(keras.optimizers.schedules.CosineDecay(0.02, 20), weight_decay=0.01),
    "lion": keras.optimizers.Lion(0.005),
    "adafactor": keras.optimizers.Adafactor(0.02),
}

for name, optimizer in OPTIMIZERS.items():
    keras.utils.set_random_seed(8)
    model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(9, activation="tanh"), keras.layers.Dense(2)])
    model.compile(optimizer=optimizer, loss="mse")
    losses = model.fit(x, y, batch_size=40, epochs=3, verbose=0).history["loss"]
    print(name, *(f"{loss:.6f}" for loss in losses), "steps", int(optimizer.iterations.numpy()))
    np.savez(f"{name}.npz", *model.get_weights())
