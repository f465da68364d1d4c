# SPDX-License-Identifier: Apache-2.0
"""One function for training and validation, called in turns from one line; sums and counts of the validation are made by hand.  Then
data sets that are made anew for each epoch."""
import keras
import numpy as np
import tensorflow as tf

generator = np.random.default_rng(0)
x = generator.normal(size=(75, 4))
y = (x.sum(1) > 0).astype("int64")
data = {"train": tf.data.Dataset.from_tensor_slices((x[:50], y[:50])).batch(16),
        "test": tf.data.Dataset.from_tensor_slices((x[50:], y[50:])).batch(16)}
weights = tf.Variable(generator.normal(size=(4, 2)))
cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train(rows, labels):
    with tf.GradientTape() as tape:
        loss = cross_entropy(labels, rows @ weights)
    weights.assign_sub(tape.gradient(loss, weights))
    return loss


@tf.function
def test(rows, labels):
    logits = rows @ weights
    return cross_entropy(labels, logits), tf.reduce_sum(tf.cast(tf.argmax(logits, 1) == labels, tf.int32))


def run(phase, batches):
    total, correct = 0.0, 0
    for rows, labels in batches:
        if phase == "train":
            loss = train(rows, labels)
        else:
            loss, right = test(rows, labels)
            correct += int(right)
        total += float(loss)
    return total, correct


for epoch in range(3):
    for phase in ("train", "test"):
        total, correct = run(phase, data[phase])
        print(f"{epoch} {phase}: loss {total:.12f}, {correct} correct")

for epoch in range(4):
    losses = [float(train(rows, labels)) for rows, labels in data["train"].shuffle(4, seed=epoch).take(3)]
    print(f"anew {epoch}:", *(f"{loss:.12f}" for loss in losses))
np.save("weights.npy", weights.numpy())
