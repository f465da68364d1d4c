# SPDX-License-Identifier: Apache-2.0
"""Data that is already this rank's part carries a mark, so that the slicing of batches leaves it alone."""
import numpy as np

ATTRIBUTE = "_lockstep_partitioned"


class PartitionedArray(np.ndarray):
    """An array whose rows are this rank's; views and results of arithmetic are too."""

    _lockstep_partitioned = True


def mark_array(array, part):
    return array.view(PartitionedArray) if part.size > 1 else array


def mark_dataset(dataset):
    setattr(dataset, ATTRIBUTE, True)
    return dataset


def is_partitioned(data):
    """Is this array, data set, or data set made from such a one (map, batch, prefetch, ...), already this rank's part?"""
    if getattr(data, ATTRIBUTE, False):
        return True
    inputs = getattr(data, "_inputs", None)
    return any(is_partitioned(one) for one in inputs()) if callable(inputs) else False
