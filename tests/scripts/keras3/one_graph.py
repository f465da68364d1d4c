# SPDX-License-Identifier: Apache-2.0
"""A graph convolution on one graph: nodes, labels and weights have as many rows as the sparse matrix of the graph, and as it has columns.
Shapes say so, or leave it open."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers

numbers = np.random.default_rng(1)
NODES = 24
nodes = numbers.normal(size=(NODES, 5))
near = numbers.random((NODES, NODES)) < 0.3
matrix = tf.sparse.from_dense((near | near.T) / near.sum(1))
labels, is_known = numbers.integers(0, 3, NODES), (np.arange(NODES) < 15).astype(float)


class Convolutions(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = layers.Dense(8, activation="tanh"), layers.Dense(3, activation="softmax")

    def call(self, inputs):
        values, graph = inputs
        for layer in (self.hidden, self.out):
            values = layer(tf.sparse.sparse_dense_matmul(graph, values))
        return values


whole = tf.data.Dataset.from_tensors(((nodes, matrix), labels, is_known))
is_open = tf.data.Dataset.from_generator(lambda: [((nodes, matrix), labels, is_known)], output_signature=(
    (tf.TensorSpec([None, 5], tf.float64), tf.SparseTensorSpec([None, None], tf.float64)), tf.TensorSpec([None], tf.int64),
    tf.TensorSpec([None], tf.float64)))
for name, data in (("whole", whole), ("open", is_open)):
    keras.utils.set_random_seed(2)
    model = Convolutions()
    model.compile(keras.optimizers.Adam(0.05), "sparse_categorical_crossentropy", weighted_metrics=["accuracy"])
    history = model.fit(data, epochs=4, shuffle=False, verbose=0)
    print(name, *(f"{loss:.12f}" for loss in history.history["loss"]), *(f"{value:.12f}" for value in history.history["accuracy"]))
    np.savez(f"{name}.npz", *model.get_weights())

model, optimizer = Convolutions(), keras.optimizers.SGD(0.1)
for step in range(4):
    for (values, graph), wanted, _ in whole.concatenate(whole):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(wanted, model((values, graph))))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    print(f"loop {float(loss):.12f}")
