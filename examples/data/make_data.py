# SPDX-License-Identifier: Apache-2.0
"""Makes the small data set that the examples of this folder train from, in each format.

    python examples/data/make_data.py FOLDER

Expected output:
    wrote 12 files: 600 pictures of 4 x 4, in 3 classes

The pictures are noise with one bright row, column or diagonal; the class says which."""
import gzip
import struct
import sys
from pathlib import Path

import numpy as np

CLASSES, ROWS = 3, 600


def pictures():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, ROWS)
    images = rng.integers(0, 100, (ROWS, 4, 4))
    for image, label, place in zip(images, labels, rng.integers(0, 4, ROWS)):
        if label == 0:
            image[place] = 250
        elif label == 1:
            image[:, place] = 250
        else:
            np.fill_diagonal(image if place % 2 else image[:, ::-1], 250)
    return images.astype(np.uint8), labels.astype(np.uint8)


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + b"".join(struct.pack(">I", n) for n in array.shape) + array.tobytes()


def cifar(images, labels):
    """CIFAR's binary records: a label, then 3 x 32 x 32 bytes; here with the picture in a corner."""
    wide = np.zeros((len(images), 3, 32, 32), np.uint8)
    wide[:, :, :4, :4] = images[:, None]
    return np.concatenate([labels[:, None], wide.reshape(len(images), -1)], axis=1).tobytes()


def write_records(path, images, labels):
    import tensorflow as tf
    with tf.io.TFRecordWriter(str(path)) as writer:
        for image, label in zip(images, labels):
            writer.write(image.tobytes() + bytes([label]))


def write_table(path, images, labels):
    """A row for each picture: its label, then 16 numbers."""
    lines = ["label," + ",".join(f"pixel{i}" for i in range(16))]
    lines += [",".join(map(str, [label, *image.ravel()])) for image, label in zip(images, labels)]
    path.write_text("\n".join(lines) + "\n")


def write_hdf5(path, images, labels):
    import h5py
    with h5py.File(path, "w") as file:
        file.create_dataset("image", data=images, chunks=(64, 4, 4), compression="gzip")
        file["label"] = labels


def write_netcdf(path, images, labels):
    from scipy.io import netcdf_file
    with netcdf_file(path, "w") as file:
        file.createDimension("record", None)
        file.createDimension("side", 4)
        file.createVariable("image", "i2", ("record", "side", "side"))[:] = images
        file.createVariable("label", "i4", ("record",))[:] = labels


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    images, labels = pictures()
    (folder / "images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
    (folder / "labels-idx1-ubyte").write_bytes(idx(labels))
    np.save(folder / "images.npy", images)
    np.save(folder / "labels.npy", labels)
    np.savez_compressed(folder / "pictures.npz", image=images, label=labels)
    write_table(folder / "pictures.csv", images, labels)
    write_hdf5(folder / "pictures.h5", images, labels)
    write_netcdf(folder / "pictures.nc", images, labels)
    for number in range(2):
        half = slice(number * ROWS // 2, (number + 1) * ROWS // 2)
        (folder / f"pictures_{number}.bin").write_bytes(cifar(images[half], labels[half]))
        write_records(folder / f"pictures-{number}.tfrecord", images[half], labels[half])
    print(f"wrote {len(list(folder.iterdir()))} files: {ROWS} pictures of 4 x 4, in {CLASSES} classes")


if __name__ == "__main__":
    main()
