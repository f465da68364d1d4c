# SPDX-License-Identifier: Apache-2.0
"""Writes a file in every way that Keras 3 and TensorFlow 2 have, each kind in a folder of its own."""
import bz2
import gzip
import logging
import os
import pathlib
import tarfile
import zipfile
from io import open as open_text
from os import mkdir, remove, rename
from shutil import rmtree

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(5)
x = np.random.normal(size=(40, 4)).astype("float32")
y = (x[:, :1] > 0).astype("float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="tanh"), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
for folder in ("save", "save-h5", "save-weights", "csv-logger", "model-checkpoint", "plain"):
    os.makedirs(folder, exist_ok=True)
model.fit(x, y, epochs=2, batch_size=20, verbose=0, callbacks=[
    keras.callbacks.ModelCheckpoint("model-checkpoint/{epoch}.keras"), keras.callbacks.CSVLogger("csv-logger/log.csv"),
    keras.callbacks.BackupAndRestore("backup-and-restore"), keras.callbacks.TensorBoard("tensorboard")])
model.save("save/model.keras")
model.save("save-h5/model.h5")
model.save_weights("save-weights/model.weights.h5")
model.export("export", verbose=False)

checkpoint = tf.train.Checkpoint(model=model)
checkpoint.save("checkpoint/one")
manager = tf.train.CheckpointManager(checkpoint, "checkpoint-manager", max_to_keep=1)
for _ in range(2):
    manager.save()


class Doubled(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec((None,))])
    def double(self, numbers):
        return 2 * numbers


tf.saved_model.save(Doubled(), "saved-model")
with tf.summary.create_file_writer("summary-writer").as_default(step=0):
    tf.summary.scalar("number", 1.0)
    tf.summary.flush()
os.makedirs("records")
with tf.io.TFRecordWriter("records/numbers.tfrecord") as records:
    records.write(b"1")
tf.io.write_file("write-file/text", "1")
with open("plain/text", "w") as file:
    file.write("1")
with tf.io.gfile.GFile("plain/gfile", "w") as file:
    file.write("1")
os.makedirs("archive")
with tarfile.open("archive/plain.tar.bz2", "w:bz2") as archive:
    archive.add("plain")
with tarfile.open("archive/plain.tar.bz2") as archive:
    archive.extractall("archive", filter="data")
with bz2.open("archive/text.bz2", "wt") as file:
    file.write("1")
with gzip.open("archive/text.gz", "wt") as file:
    file.write("1")
with zipfile.ZipFile("archive/plain.zip", "w") as archive:
    archive.write("plain/text")
mkdir("library")
with open_text("library/io", "w") as file:
    file.write("1")
pathlib.Path("library/pathlib").write_text("1")
rename("library/pathlib", "library/renamed")
remove("library/renamed")
mkdir("library/folder")
rmtree("library/folder")
logging.FileHandler("library/logging").emit(logging.makeLogRecord({"msg": "1"}))
os.makedirs("numpy")
np.savetxt("numpy/plain.txt", x)
np.savetxt("numpy/packed.txt.gz", x)
np.save("numpy/one.npy", x)
np.savez("numpy/more.npz", x=x, y=y)
x.tofile("numpy/bytes")
np.memmap("numpy/mapped", x.dtype, "w+", shape=x.shape)[:] = x
assert (np.loadtxt("numpy/plain.txt", dtype=x.dtype) == x).all()
