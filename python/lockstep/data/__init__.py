# SPDX-License-Identifier: Apache-2.0
"""Data sets read in C, each rank its part: read() for tf.data and numpy, open() for rows, DataSet as MaTEx had it."""
from lockstep.data.binding import DataError, Source, formats  # noqa: F401
from lockstep.data.mark import is_partitioned  # noqa: F401
from lockstep.data.read import open, read  # noqa: F401
from lockstep.data.show import show  # noqa: F401

__all__ = ["DataError", "DataSet", "Source", "formats", "is_partitioned", "open", "read", "show"]


def __getattr__(name):
    if name == "DataSet":
        from lockstep.data.dataset import DataSet
        return DataSet
    raise AttributeError(f"module 'lockstep.data' has no attribute '{name}'")
