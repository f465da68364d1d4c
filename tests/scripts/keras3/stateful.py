# SPDX-License-Identifier: Apache-2.0
"""A recurrent network that keeps its state from batch to batch: batches of 6 sequences, in Keras 3 and tf_keras."""
import keras
import numpy as np
import tensorflow as tf
import tf_keras

generator = np.random.default_rng(0)
x = generator.normal(size=(24, 5, 2))
y = x.sum((1, 2))[:, None]

for library in (keras, tf_keras):
    library.utils.set_random_seed(3)
    inputs = library.Input(batch_shape=(6, 5, 2))
    lstm = library.layers.LSTM(4, stateful=True)
    model = library.Model(inputs, library.layers.Dense(1)(lstm(inputs)))
    model.compile("sgd", "mse", metrics=["mae"])
    for epoch in range(3):
        history = model.fit(x, y, batch_size=6, shuffle=False, verbose=0)
        print(library.__name__, epoch, *(f"{values[0]:.6f}" for values in history.history.values()))
        lstm.reset_states() if library is tf_keras else lstm.reset_state()
    batches = tf.data.Dataset.from_tensor_slices((x, y)).map(lambda rows, target: (2 * rows, target)).batch(6)
    print("batches", *(f"{loss:.6f}" for loss in model.fit(batches, epochs=2, verbose=0).history["loss"]))
    print("evaluated", *(f"{value:.6f}" for value in model.evaluate(x, y, batch_size=6, verbose=0)))
    lstm.reset_states() if library is tf_keras else lstm.reset_state()
    np.savez(f"{library.__name__}.npz", model.predict(x, batch_size=6, verbose=0), *model.get_weights())
