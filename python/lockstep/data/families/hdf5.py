# SPDX-License-Identifier: Apache-2.0
"""HDF5: train_file, validation_file and test_file with one dataset per class; the label is its place in the order of names.

data as stored, labels one-hot.  Each rank has a contiguous block of each class, in an order shuffled with numpy's random
numbers, as MaTEx meant it."""
import numpy as np

from lockstep.data.binding import DataError, Source
from lockstep.data.families import common


def load(wanted, part):
    files = {"train": wanted.train_file, "validation": wanted.validation_file, "test": wanted.test_file}
    if wanted.train_file is None:
        raise DataError("HDF5: name the file with train_file=")
    return {name: _rows(path, part) for name, path in files.items() if path is not None}


def _rows(path, part):
    with Source(path, part, format="hdf5") as source:
        classes = sorted(range(len(source.fields)), key=lambda i: source.fields[i].name)
        kinds = {(source.fields[i].type, source.fields[i].shape) for i in classes}
        if len(kinds) != 1:
            raise DataError(f"{path}: the datasets, one per class, differ in type or shape of a row: {sorted(kinds)}")
        parts = [common.read_block(source, part, 0, source.fields[i].num_rows, [i])[0] for i in classes]
    data = np.concatenate(parts)
    labels = np.repeat(np.arange(len(parts)), [len(rows) for rows in parts])
    mixed = np.random.permutation(len(data))
    return data[mixed], common.one_hot(labels, len(parts))[mixed]
