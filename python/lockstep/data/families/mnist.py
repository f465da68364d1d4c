# SPDX-License-Identifier: Apache-2.0
"""MNIST: IDX files, plain or gzip, in ./MNIST_data or data_directory.

data: float64 (n, 28, 28, 1), divided by `normalize`; labels: one-hot float64 (n, 10).  Of the training file the last sixth
(10,000 of 60,000 rows) is for validation.  Each split is cut into contiguous blocks, one per rank."""
from lockstep.data.binding import DataError, Source
from lockstep.data.families import common

NUM_CLASSES = 10


def load(wanted, part):
    folder = common.find_folder(wanted, "MNIST_data")
    train, test = _open(folder, "train", part), _open(folder, "t10k", part)
    num_train = train[0].num_rows - train[0].num_rows // 6
    return {"train": _rows(train, part, 0, num_train, wanted.normalize),
            "validation": _rows(train, part, num_train, train[0].num_rows - num_train, wanted.normalize),
            "test": _rows(test, part, 0, test[0].num_rows, wanted.normalize)}


def _open(folder, name, part):
    sources = []
    for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"):
        path = common.find_file(folder, f"{name}-{kind}.gz", f"{name}-{kind}")
        sources.append(Source(path, part, format="idx"))
    images, labels = sources
    if images.fields[0].shape != (28, 28) or labels.fields[0].shape != () or images.num_rows != labels.num_rows:
        raise DataError(f"{folder}: the {name} files are not MNIST: images of {images.fields[0].shape} in {images.num_rows} "
                        f"rows, labels of {labels.fields[0].shape} in {labels.num_rows} rows")
    return sources


def _rows(sources, part, first, count, normalize):
    images, labels = (common.read_block(source, part, first, count)[0] for source in sources)
    if labels.max(initial=0) >= NUM_CLASSES:
        raise DataError(f"{sources[1].paths[0]}: row {first + int(labels.argmax())}: the label is {labels.max()}, not one of 0 to 9")
    return images.reshape(-1, 28, 28, 1) / float(normalize), common.one_hot(labels, NUM_CLASSES)
