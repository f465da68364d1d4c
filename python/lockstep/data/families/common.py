# SPDX-License-Identifier: Apache-2.0
"""What several families of data sets need."""
from pathlib import Path

import numpy as np

from lockstep.data.binding import DataError


def one_hot(labels, num_classes):
    """float64, as MaTEx gave them."""
    return np.eye(num_classes)[np.asarray(labels, dtype=np.int64).reshape(-1)]


def find_folder(wanted, usual, inner=None):
    """The folder of the data: data_directory or MaTEx's usual place, or the folder `inner` in it."""
    folder = Path(wanted.data_directory or usual)
    for candidate in ([folder / inner, folder] if inner else [folder]):
        if candidate.is_dir():
            return candidate
    raise DataError(f"{folder}: there is no such folder; nothing is downloaded, put the files of {wanted.dataset} there or "
                    "name another with data_directory=")


def find_file(folder, *names):
    """The first of these files that is there."""
    for name in names:
        if (folder / name).exists():
            return folder / name
    raise DataError(f"{folder}: there is no {' and no '.join(names)}; nothing is downloaded")


def read_block(source, part, first, count, fields=None):
    """This rank's block of rows [first, first + count)."""
    offset, length = part.block(count)
    return source.read(first + offset, length, fields)


