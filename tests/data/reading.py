# SPDX-License-Identifier: Apache-2.0
"""Data sets as dictionaries of arrays: of one process, and put together from the parts of several ranks."""
import os

import numpy as np
from lockstep.data.binding import DataError, Source
from lockstep.data.part import Part
from ranks import all_well, together

__all__ = ["Data", "DataError", "read_in_parts", "together"]


class Data(Source):
    """A Source whose fields go by name."""

    def __init__(self, paths, part=None, **options):
        super().__init__(paths, part or Part(0, 1, None), **options)
        self.names = [field.name for field in self.fields]

    def field(self, name):
        return self.fields[self.names.index(name)]

    def read(self, first=0, count=None, names=None):
        names = self.names if names is None else names
        count = self.field(names[0]).num_rows - first if count is None else count
        return dict(zip(names, super().read(first, count, [self.names.index(name) for name in names])))

    def map(self, name):
        return super().map(self.names.index(name))


def read_in_parts(paths, size, **options):
    """Every rank reads its block of each field; all of it put together again."""
    def work(part):
        with Data(paths if isinstance(paths, list) else os.fspath(paths), part, **options) as data:
            blocks = {}
            for name in data.names:
                first, count = part.block(data.field(name).num_rows)
                blocks.update(data.read(first, count, [name]))
            return blocks

    parts = all_well(together(size, work))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
