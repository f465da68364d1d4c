# SPDX-License-Identifier: Apache-2.0
"""What is measured: a file, how we read it, how a user would read it otherwise; both must return the same bytes.

make(folder) writes the file and gives its path; ours(path) and peer(path) read all of it and return the number of bytes."""
import functools
import gzip
from dataclasses import dataclass
from typing import Callable

import numpy as np
import tables

BATCH = 256
NEEDS = {"TFRecordDataset": ("tensorflow",), "pandas": ("pandas",), "pyarrow": ("pandas", "pyarrow"), "h5py": ("h5py",),
         "netCDF4": ("netCDF4", "scipy")}


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable
    ours: Callable
    peer: Callable
    peer_name: str
    target: float  # ours / peer, in speed

    @property
    def needs(self):
        """Modules that write the file or are the peer."""
        return NEEDS.get(self.peer_name, ())


def strokes(rows):
    """Pictures like MNIST's: a line on an empty ground, grey at its borders; they compress about as well."""
    rng = np.random.default_rng(0)
    pictures = np.zeros((rows, 28, 28), np.uint8)
    steps = np.clip(np.cumsum(rng.normal(0, 0.9, (rows, 45, 2)), axis=1) + 14, 4, 23).astype(int)
    every = np.arange(rows)
    for step in range(steps.shape[1]):
        y, x = steps[:, step, 0], steps[:, step, 1]
        pictures[every, y, x] = 254
        pictures[every, y, x + 1] = rng.integers(1, 255, rows)
        pictures[every, y + 1, x] = rng.integers(1, 255, rows)
    return pictures


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return str(path)


def idx_bytes(array):
    return bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape) + array.tobytes()


def make_idx_gz(folder):
    return write(folder, "strokes-idx3-ubyte.gz", gzip.compress(idx_bytes(strokes(60_000)), 9))


def make_idx(folder):
    return write(folder, "strokes-idx3-ubyte", idx_bytes(strokes(60_000)))


def floats():
    return np.random.default_rng(0).normal(size=(400_000, 64)).astype(np.float32)


def make_npy(folder):
    np.save(folder / "floats.npy", floats())
    return str(folder / "floats.npy")


def make_npz(folder):
    np.savez(folder / "floats.npz", x=floats())
    return str(folder / "floats.npz")


def make_npz_deflated(folder):
    np.savez_compressed(folder / "strokes.npz", x=strokes(60_000))
    return str(folder / "strokes.npz")


def make_records(record_bytes, total):
    def make(folder):
        import tensorflow as tf
        path = str(folder / f"records-{record_bytes}.tfrecord")
        noise = np.random.default_rng(0).bytes(record_bytes * 2)
        with tf.io.TFRecordWriter(path) as writer:
            for i in range(total // record_bytes):
                writer.write(noise[i % record_bytes:i % record_bytes + record_bytes])
        return path
    return make


# ---- reading --------------------------------------------------------------------------------------------------------------


def ours_numpy(path):
    import lockstep.data
    return sum(array.nbytes for array in lockstep.data.read(path, as_numpy=True).values())


def gzip_numpy(path):
    with gzip.open(path) as file:
        data = file.read()
    return np.frombuffer(data, np.uint8, offset=16).reshape(-1, 28, 28).nbytes


def plain_numpy(path):
    return np.fromfile(path, np.uint8, offset=16).reshape(-1, 28, 28).nbytes


def numpy_load(path):
    return np.load(path).nbytes


def numpy_load_npz(path):
    with np.load(path) as arrays:
        return sum(arrays[name].nbytes for name in arrays)


def ours_records_numpy(path):
    import lockstep.data
    with lockstep.data.open(path) as source:
        rows = source.num_rows
        return sum(len(record) for first in range(0, rows, BATCH)
                   for record in source.read(first, min(BATCH, rows - first))[0])


@functools.lru_cache(maxsize=None)
def our_dataset(path):
    import lockstep.data
    return lockstep.data.read(path, "record", batch=BATCH)


@functools.lru_cache(maxsize=None)
def peer_dataset(path):
    import tensorflow as tf
    return tf.data.TFRecordDataset(path).batch(BATCH)


@functools.lru_cache(maxsize=None)
def counter(dataset_of, path):
    """Counts the bytes of an epoch inside TensorFlow, as a step that trains takes its batches."""
    import tensorflow as tf
    dataset = dataset_of(path)

    def add(total, batch):
        return total + tf.reduce_sum(tf.cast(tf.strings.length(batch), tf.int64))

    return tf.function(lambda: dataset.reduce(tf.constant(0, tf.int64), add))


def ours_records_tf(path):
    """An epoch; the data set is made once."""
    return int(counter(our_dataset, path)())


def peer_records_tf(path):
    return int(counter(peer_dataset, path)())


def peer_records_numpy(path):
    return sum(len(record) for batch in peer_dataset(path) for record in batch.numpy())


CASES = [
    Case("IDX gzip", make_idx_gz, ours_numpy, gzip_numpy, "gzip + numpy", 1.5),
    Case("IDX plain", make_idx, ours_numpy, plain_numpy, "numpy.fromfile", 0.9),
    Case("npy", make_npy, ours_numpy, numpy_load, "numpy.load", 0.9),
    Case("npz stored", make_npz, ours_numpy, numpy_load_npz, "numpy.load", 0.9),
    Case("npz deflated", make_npz_deflated, ours_numpy, numpy_load_npz, "numpy.load", 1.5),
    *[Case(f"TFRecord {size // 1000} KB, to {where}", make_records(size, 200_000_000), ours, peer, "TFRecordDataset", 2.0)
      for where, ours, peer in (("numpy", ours_records_numpy, peer_records_numpy), ("tf.data", ours_records_tf, peer_records_tf))
      for size in (1000, 100_000)],
    *[Case(*case) for case in tables.CASES],
]
