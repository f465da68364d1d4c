# SPDX-License-Identifier: Apache-2.0
"""Dropout, noise and augmentation in a network, and in a hand-written loop; with exact masks the result is that of one
process."""
import sys

import keras
import numpy as np
import tensorflow as tf

how = sys.argv[1]
keras.utils.set_random_seed(1)
x = np.random.rand(67, 8, 8, 3).astype("float32")
y = np.random.randint(0, 3, 67)


def train_network():
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((8, 8, 3)), layers.RandomFlip(), layers.RandomTranslation(0.2, 0.2), layers.GaussianNoise(0.1),
        layers.Conv2D(4, 3), layers.SpatialDropout2D(0.3), layers.Flatten(), layers.Dropout(0.4), layers.Dense(3)])
    if "jit" in sys.argv:  # XLA has no image transformations on a processor
        model = keras.Sequential(model.layers[2:])
    model.compile(keras.optimizers.SGD(0.05), keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  jit_compile="jit" in sys.argv)
    history = model.fit(x, y, batch_size=16, epochs=3, verbose=0)
    print(*(f"{loss:.6f}" for loss in history.history["loss"]))
    model.save_weights("model.weights.h5")


def train_by_hand():
    weights = tf.Variable(tf.random.normal([192, 3]))
    data = tf.data.Dataset.from_tensor_slices((x.reshape(67, -1), y)).shuffle(67).batch(16)

    def step(inputs, labels):
        with tf.GradientTape() as tape:
            hidden = tf.nn.dropout(inputs, 0.4) + tf.random.normal(tf.shape(inputs), stddev=0.1)
            if tf.random.uniform([]) < 0.5:
                hidden *= 2
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, hidden @ weights))
        weights.assign_sub(0.1 * tape.gradient(loss, weights))

    if how == "function":
        step = tf.function(step, input_signature=[tf.TensorSpec([None, 192]), tf.TensorSpec([None], tf.int64)])
    for _ in range(2):
        for inputs, labels in data:
            step(inputs, labels)
    print(f"{float(tf.reduce_sum(weights)):.4f}")
    np.save("weights.npy", weights.numpy())


train_network() if how == "keras" else train_by_hand()
