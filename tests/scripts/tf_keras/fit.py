# SPDX-License-Identifier: Apache-2.0
"""tf.keras as it was before Keras 3: fit, evaluate, predict, *_on_batch, callbacks, weights of samples and classes."""
import os
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
generator = np.random.default_rng(1)
x = generator.normal(size=(403, 10)).astype("float32")
y = (x @ generator.normal(size=(10, 3))).argmax(1)

model = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="relu", kernel_regularizer="l2"), tf.keras.layers.Dense(3)])
model.compile(optimizer=tf.keras.optimizers.Adam(0.01), metrics=["accuracy", tf.keras.metrics.SparseTopKCategoricalAccuracy(2, name="top2")],
              jit_compile="jit" in sys.argv, run_eagerly="eager" in sys.argv, steps_per_execution=3 if "several" in sys.argv else None,
              loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), weighted_metrics=["accuracy"])


def show(name, history):
    for key, values in history.history.items():
        print(name, key, *(f"{value:.6f}" for value in values))


show("arrays", model.fit(x, y, batch_size=64, epochs=3, verbose=0, validation_split=0.1,
                         callbacks=[tf.keras.callbacks.EarlyStopping(patience=1), tf.keras.callbacks.ReduceLROnPlateau(patience=1)]))
show("weights", model.fit(x, y, batch_size=50, epochs=2, verbose=0, sample_weight=generator.uniform(size=403)))
show("classes", model.fit(x, y, batch_size=50, epochs=1, verbose=0, class_weight={0: 1.0, 1: 2.0, 2: 0.3}))
is_short = "short" in sys.argv  # jit compiles for each size of a batch
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(100, seed=2).batch(30)
if not is_short:
    show("dataset", model.fit(data, epochs=2, verbose=0, steps_per_epoch=6, validation_data=data, validation_steps=3))
print("evaluate", *(f"{value:.6f}" for value in model.evaluate(x, y, verbose=0, batch_size=50)))
outputs = [model.predict(x, batch_size=64, verbose=0)]
if "several" not in sys.argv and not is_short:  # a single batch is no execution of three steps
    print("batch", *(f"{float(value):.6f}" for value in model.train_on_batch(x[:7], y[:7])),
          *(f"{float(value):.6f}" for value in model.test_on_batch(x[:5], y[:5])))
    outputs.append(model.predict_on_batch(x[:3]))
np.savez("out.npz", *outputs, *model.get_weights())
