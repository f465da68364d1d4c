# SPDX-License-Identifier: Apache-2.0
"""Batches whose tensors have different numbers of rows, which no shape tells: labelled rows beside others without labels, and the
nodes and edges of a graph, one graph a step."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers

generator = np.random.default_rng(0)
rows, others = generator.normal(size=(40, 3)), generator.normal(size=(115, 3))
targets = rows.sum(1, keepdims=True)


def network():
    keras.utils.set_random_seed(1)
    return keras.Sequential([keras.Input((3,)), layers.Dense(4, activation="tanh"), layers.Dense(1)])


class HalfLabelled(keras.Model):
    def __init__(self):
        super().__init__()
        self.network = network()

    def train_step(self, data):
        loss = half_labelled_step(self.network, self.optimizer, *data)
        return {"total": loss}


def half_labelled_step(model, optimizer, labelled, unlabelled):
    inputs, outputs = labelled
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(inputs) - outputs) ** 2) + 0.3 * tf.reduce_mean(tf.abs(model(unlabelled)))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss


@tf.function
def epoch(model, optimizer, batches):
    total = tf.constant(0.0, tf.float64)
    for labelled, unlabelled in batches:
        total += half_labelled_step(model, optimizer, labelled, unlabelled)
    return total


data = tf.data.Dataset.zip((tf.data.Dataset.from_tensor_slices((rows, targets)).batch(8),
                            tf.data.Dataset.from_tensor_slices(others).batch(24)))
model = HalfLabelled()
model.compile(keras.optimizers.SGD(0.1))
history = model.fit(data, epochs=3, verbose=0)
print("fit", *(f"{loss:.12f}" for loss in history.history["total"]))
np.savez("fit.npz", *model.get_weights())

model, optimizer = network(), keras.optimizers.SGD(0.1)
optimizer.build(model.trainable_variables)
for _ in range(2):
    print(f"loop {float(epoch(model, optimizer, data)):.12f}")
np.savez("loop.npz", *model.get_weights())


def graphs():
    numbers = np.random.default_rng(3)
    for _ in range(10):
        nodes, edges = numbers.integers(4, 9), numbers.integers(9, 20)
        yield (numbers.normal(size=(nodes, 3)), numbers.integers(0, nodes, size=(edges, 2))), numbers.normal(size=(1, 1))


class OnGraph(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = layers.Dense(4, activation="tanh"), layers.Dense(1)

    def call(self, graph):
        nodes, edges = graph
        hidden = self.hidden(nodes)
        sent = tf.math.unsorted_segment_sum(tf.gather(hidden, edges[:, 0]), edges[:, 1], tf.shape(hidden)[0])
        return tf.reduce_mean(self.out(hidden + sent), axis=0, keepdims=True)


for label_rows in (1, None):
    keras.utils.set_random_seed(2)
    signature = ((tf.TensorSpec((None, 3), tf.float64), tf.TensorSpec((None, 2), tf.int64)), tf.TensorSpec((label_rows, 1), tf.float64))
    data = tf.data.Dataset.from_generator(graphs, output_signature=signature)
    model = OnGraph()
    model.compile(keras.optimizers.SGD(0.05), "mse")
    history = model.fit(data, epochs=2, verbose=0)
    print("graphs", *(f"{loss:.12f}" for loss in history.history["loss"]))
    print(f"evaluated {model.evaluate(data, verbose=0):.12f}", model.predict(data, verbose=0).shape)
    np.savez(f"graphs-{label_rows}.npz", *model.get_weights())
