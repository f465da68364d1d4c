# SPDX-License-Identifier: Apache-2.0
"""PNETCDF: train_file, validation_file and test_file, each with one variable of bytes (data) and one of int32 (labels).

data and labels as they are stored (bytes as uint8), without one-hot; each file is cut into contiguous blocks, one per rank."""
import numpy as np

from lockstep.data.binding import DataError, Source
from lockstep.data.families import common


def load(wanted, part):
    files = {"train": wanted.train_file, "validation": wanted.validation_file, "test": wanted.test_file}
    if wanted.train_file is None:
        raise DataError("PNETCDF: name the file with train_file=")
    return {name: _rows(path, part) for name, path in files.items() if path is not None}


def _rows(path, part):
    with Source(path, part) as source:
        data = [i for i, field in enumerate(source.fields) if field.type in ("int8", "uint8")]
        labels = [i for i, field in enumerate(source.fields) if field.type == "int32"]
        if len(data) != 1 or len(labels) != 1:
            kinds = ", ".join(f"'{field.name}' {field.type}" for field in source.fields)
            raise DataError(f"{path}: one variable of bytes and one of int32 are needed; there are {kinds}")
        rows, hot = common.read_block(source, part, 0, source.num_rows, [data[0], labels[0]])
    return rows.view(np.uint8), hot
