# SPDX-License-Identifier: Apache-2.0
"""One model, trained by a loop or by fit, on every kind of tf.data pipeline."""
import sys

import keras
import numpy as np
import tensorflow as tf

how = sys.argv[1]
generator = np.random.default_rng(7)
ROWS, WIDTH = 61, 5
x = generator.normal(size=(ROWS, WIDTH)).astype("float32")
y = (x.sum(1, keepdims=True) > 0).astype("float32")
lengths = generator.integers(1, WIDTH + 1, size=ROWS)
slices = tf.data.Dataset.from_tensor_slices((x, y))


def pad(rows, label):
    rows = rows.to_tensor(shape=(None, WIDTH)) if isinstance(rows, tf.RaggedTensor) else rows
    return tf.pad(rows, [[0, 0], [0, WIDTH - tf.shape(rows)[1]]]), label


def with_width(rows, label):
    return tf.ensure_shape(rows, (None, WIDTH)), label


def twice(rows, label):
    return (rows * 2, label) if label[0] > 0 else (rows, label)


def samples():
    for row, label in zip(x, y):
        yield row, label


def sequences():
    for row, label, length in zip(x, y, lengths):
        yield row[:length], label


spec = (tf.TensorSpec((WIDTH,), tf.float32), tf.TensorSpec((1,), tf.float32))
sequence_spec = (tf.TensorSpec((None,), tf.float32), tf.TensorSpec((1,), tf.float32))


def records():
    with tf.io.TFRecordWriter("rows.tfrecord") as writer:
        for row, label in zip(x, y):
            features = {"x": tf.train.Feature(float_list=tf.train.FloatList(value=row)),
                        "y": tf.train.Feature(float_list=tf.train.FloatList(value=label))}
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(deterministic=True))
    parsed = {"x": tf.io.FixedLenFeature((WIDTH,), tf.float32), "y": tf.io.FixedLenFeature((1,), tf.float32)}
    read = tf.data.TFRecordDataset("rows.tfrecord")
    return read.map(lambda text: tf.io.parse_single_example(text, parsed)).map(lambda row: (row["x"], row["y"]))


def sequence_data():
    return tf.data.Dataset.from_generator(sequences, output_signature=sequence_spec)


PIPELINES = {
    "map shuffle batch": lambda: slices.map(lambda a, b: (a * 2, b)).shuffle(20, seed=1).batch(8),
    "shuffle map batch": lambda: slices.shuffle(20, seed=2).map(twice, num_parallel_calls=2).batch(8).prefetch(2),
    "records batch": lambda: records().batch(10, drop_remainder=True).repeat(2),
    "batch map": lambda: slices.batch(8).map(lambda a, b: (a - 1, b), num_parallel_calls=2),
    "repeat take skip": lambda: slices.batch(8, drop_remainder=True).repeat(2).skip(1).take(9),
    "repeat batch": lambda: slices.repeat(2).batch(16),
    "cache prefetch": lambda: slices.cache().batch(9).cache().prefetch(tf.data.AUTOTUNE),
    "interleave": lambda: tf.data.Dataset.range(3).interleave(lambda i: slices.shard(3, i), cycle_length=2).batch(7),
    "from_generator": lambda: tf.data.Dataset.from_generator(samples, output_signature=spec).batch(8),
    "records": lambda: records().shuffle(30, seed=3).batch(10),
    "padded": lambda: sequence_data().padded_batch(8, padded_shapes=((WIDTH,), (1,))),
    "ragged": lambda: sequence_data().ragged_batch(8).map(pad).map(with_width),
    "buckets": lambda: sequence_data().bucket_by_sequence_length(
        lambda row, _: tf.shape(row)[0], [3, 5], [8, 6, 5]).map(pad).map(with_width),
    "zip": lambda: tf.data.Dataset.zip((slices.batch(8).map(lambda a, b: a), slices.batch(8).map(lambda a, b: b))),
    "filter": lambda: slices.filter(lambda a, _: a[0] > -1).batch(8),
    "concatenate": lambda: slices.take(20).batch(6).concatenate(slices.skip(20).batch(6)),
    "mixture": lambda: tf.data.Dataset.choose_from_datasets(
        [slices.batch(8), slices.batch(4)], tf.data.Dataset.range(2).repeat(7)),
    "rebatch": lambda: slices.batch(5).rebatch(12),
    "unbatch": lambda: slices.batch(5).unbatch().batch(13),
    "dictionary": lambda: tf.data.Dataset.from_tensor_slices({"a": x, "b": y}).batch(8),
}


def by_loop(data):
    weights = tf.Variable(tf.zeros((WIDTH, 1)))

    @tf.function(reduce_retracing=True)
    def train(rows, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels, rows @ weights))
        weights.assign_sub(0.3 * tape.gradient(loss, weights))
        return loss

    for _ in range(2):
        losses = []
        for batch in data:
            rows, labels = (batch["a"], batch["b"]) if isinstance(batch, dict) else batch
            losses.append(float(train(rows, labels)))
    total = sum(float(tf.reduce_sum(batch["b"] if isinstance(batch, dict) else batch[1])) for batch in data)
    print(f"{np.mean(losses):.6f} {losses[-1]:.6f}, {len(losses)} steps, {total} labels, {float(tf.norm(weights)):.6f}")


def new_model():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((WIDTH,)), keras.layers.Dense(4, activation="tanh"),
                              keras.layers.Dense(1, activation="sigmoid")])
    model.compile(keras.optimizers.SGD(0.3), "binary_crossentropy", metrics=["accuracy"])
    return model, model.get_weights()


def by_fit(data, model, start):
    if isinstance(data.element_spec, dict):
        data = data.map(lambda row: (row["a"], row["b"]))
    model.set_weights(start)
    history = model.fit(data, epochs=2, verbose=0, validation_data=data)
    print(*(f"{name} {values[-1]:.6f}" for name, values in history.history.items()))


def odd_loops():
    """Elements that are no batches, numpy iterators, numbered batches, a batch size that is written down."""
    weights = tf.Variable(tf.zeros((WIDTH, 1)))

    def train(rows, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((rows @ weights - labels) ** 2)
        weights.assign_sub(0.05 * tape.gradient(loss, weights))
        return loss

    for row, label in slices.take(10):
        loss = train(row[None], label[None])
    print(f"one by one: {loss:.6f}")
    for _ in range(2):
        for rows, labels in slices.batch(8).as_numpy_iterator():
            loss = train(rows, labels)
    print(f"numpy: {loss:.6f}")
    for _ in range(2):
        for number, (rows, labels) in slices.batch(8).enumerate(start=3):
            loss = train(rows, labels)
    print(f"numbered: {int(number)} {loss:.6f}")
    signature = [tf.TensorSpec((10, WIDTH), tf.float32), tf.TensorSpec((10, 1), tf.float32)]
    fixed = tf.function(train, input_signature=signature)
    for _ in range(2):
        for rows, labels in slices.batch(10, drop_remainder=True):
            loss = fixed(rows, labels)
    print(f"fixed size: {loss:.6f}")

    @tf.function
    def sample(iterator):
        row, label = next(iterator)
        return train(row[None], label[None])

    iterator = iter(slices)
    for _ in range(10):
        loss = sample(iterator)
    print(f"samples of an iterator: {loss:.6f}")
    np.save("weights.npy", weights.numpy())


if how == "odd":
    odd_loops()
else:
    model, start = new_model()
    for name, make in PIPELINES.items():
        print(f"{name}: ", end="")
        by_loop(make()) if how == "loop" else by_fit(make(), model, start)
