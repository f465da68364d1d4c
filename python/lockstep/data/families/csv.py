# SPDX-License-Identifier: Apache-2.0
"""CSV: train_file with the label in its first column; or all files below data_directory, without labels.

data: float64; labels: one-hot float64.  Labels count from 0, or are -1 and 1, which become 0 and 1.  Each rank has a
contiguous block of the rows; the last test_pct of it are for testing, the valid_pct before them for validation."""
import numpy as np

from lockstep.data.binding import DataError, Source
from lockstep.data.families import common


def load(wanted, part):
    if wanted.data_directory is not None:
        data = _table(wanted.data_directory, wanted, part)
        return {"train": (data, None)}
    if wanted.train_file is None:
        raise DataError("CSV: name the file with train_file=, or a folder with data_directory=")
    splits = _split(*_labelled(wanted.train_file, wanted, part), wanted)
    for name, path in (("validation", wanted.validation_file), ("test", wanted.test_file)):
        if path is not None:
            data, labels, _ = _labelled(path, wanted, part)
            splits[name] = data, common.one_hot(labels, splits["train"][1].shape[1])
    return splits


def _table(path, wanted, part):
    """All columns as one array of this rank's rows."""
    with Source(path, part, format="csv", delimiter=wanted.delim) as source:
        text = [field.name for field in source.fields if field.dtype is None]
        if text:
            raise DataError(f"{source.paths[0]}: column '{text[0]}' has text, not numbers")
        columns = common.read_block(source, part, 0, source.num_rows)
    return np.stack([column.astype(np.float64) for column in columns], axis=1)


def _labelled(path, wanted, part):
    table = _table(path, wanted, part)
    labels = table[:, 0].astype(np.int64)
    if (labels != table[:, 0]).any():
        raise DataError(f"{path}: the first column must be the label, a whole number")
    low, high = _extremes(labels, part)
    if low == -1 and high == 1:
        labels, high = np.maximum(labels, 0), 1
    elif low != 0:
        raise DataError(f"{path}: labels must count from 0, or be -1 and 1; they go from {low} to {high}")
    return table[:, 1:], labels, high + 1


def _extremes(labels, part):
    """Lowest and highest label of all ranks."""
    mine = np.array([labels.min(initial=np.iinfo(np.int64).max), labels.max(initial=np.iinfo(np.int64).min)])
    if part.allgather is None:
        return int(mine[0]), int(mine[1])
    every = np.frombuffer(b"".join(part.allgather(mine.tobytes())), np.int64).reshape(-1, 2)
    return int(every[:, 0].min()), int(every[:, 1].max())


def _split(data, labels, num_classes, wanted):
    hot = common.one_hot(labels, num_classes)
    num_valid, num_test = int(len(data) * wanted.valid_pct), int(len(data) * wanted.test_pct)
    num_train = len(data) - num_valid - num_test
    if num_train <= 0:
        raise DataError(f"{wanted.train_file}: valid_pct and test_pct leave no row for training")
    splits = {"train": (data[:num_train], hot[:num_train])}
    if num_valid:
        splits["validation"] = data[num_train:num_train + num_valid], hot[num_train:num_train + num_valid]
    if num_test:
        splits["test"] = data[num_train + num_valid:], hot[num_train + num_valid:]
    return splits
