# SPDX-License-Identifier: Apache-2.0
"""lockstep.DataSet: MaTEx's class, so that MaTEx's scripts run; its arrays are this rank's rows, its batches this rank's
share of the batch in the script."""
import numpy as np

from lockstep.data import mark, order
from lockstep.data import part as parts
from lockstep.data.families import cifar, csv, hdf5, mnist, pnetcdf

FAMILIES = {"MNIST": mnist.load, "CIFAR10": cifar.load_10, "CIFAR100": cifar.load_100, "CSV": csv.load,
            "PNETCDF": pnetcdf.load, "HDF5": hdf5.load}
SPLITS = ("train", "validation", "test")


class DataSet:
    """data_name is one of MNIST, CIFAR10, CIFAR100, CSV, PNETCDF, HDF5, in any case; see docs/data.md for each."""

    def __init__(self, data_name, train_batch_size=None, test_batch_size=None, normalize=1.0, train_file=None,
                 validation_file=None, test_file=None, valid_pct=0.0, test_pct=0.0, data_directory=None, delim=","):
        name = str(data_name).upper()
        if name not in FAMILIES:
            raise ValueError(f"there is no data set '{data_name}'; there are {', '.join(FAMILIES)}")
        for what, fraction in (("valid_pct", valid_pct), ("test_pct", test_pct)):
            if not 0.0 <= fraction < 1.0:
                raise ValueError(f"{what} must be a fraction from 0 to 1, not {fraction}")
        self.dataset = data_name
        self.train_batch_size, self.test_batch_size, self.normalize = train_batch_size, test_batch_size, normalize
        self.train_file, self.validation_file, self.test_file = train_file, validation_file, test_file
        self.valid_pct, self.test_pct, self.data_directory, self.delim = valid_pct, test_pct, data_directory, delim
        self._part = parts.current()
        splits = FAMILIES[name](self, self._part)
        self.training_data, self.training_labels = self._marked(splits.get("train"))
        self.validation_data, self.validation_labels = self._marked(splits.get("validation"))
        self.testing_data, self.testing_labels = self._marked(splits.get("test"))
        self._held = self._rows_of_ranks(splits)
        self._taken = dict.fromkeys(SPLITS, 0)  # rows, of all ranks together

    def _rows_of_ranks(self, splits):
        """For each split the rows that each rank holds."""
        own = np.array([len(splits[name][0]) if splits.get(name) is not None else 0 for name in SPLITS], np.int64)
        if self._part.allgather is None:
            return {name: [count] for name, count in zip(SPLITS, own.tolist())}
        every = np.frombuffer(b"".join(self._part.allgather(own.tobytes())), np.int64).reshape(-1, len(SPLITS))
        return {name: every[:, i].tolist() for i, name in enumerate(SPLITS)}

    def _marked(self, split):
        if split is None:
            return None, None
        return tuple(None if array is None else mark.mark_array(array, self._part) for array in split)

    def next_train_batch(self):
        """[data, labels]: this rank's share of the next train_batch_size rows; goes round and round."""
        if self.train_batch_size is None:
            raise UserWarning("No Training Batch Size Specified")
        return self._next("train", self.train_batch_size, self.training_data, self.training_labels)

    def next_validation_batch(self):
        if self.test_batch_size is None:
            raise UserWarning("No Testing Batch Size Specified")
        return self._next("validation", self.test_batch_size, self.validation_data, self.validation_labels)

    def next_test_batch(self):
        if self.test_batch_size is None:
            raise UserWarning("No Testing Batch Size Specified")
        return self._next("test", self.test_batch_size, self.testing_data, self.testing_labels)

    def _next(self, name, size, data, labels):
        if data is None:
            raise ValueError(f"this data set has no rows for {name}")
        held, taken = self._held[name], self._taken[name]
        self._taken[name] = taken + size
        first, end = (order.given(total, held)[self._part.rank] for total in (taken, taken + size))
        rows = [i % len(data) for i in range(first, end)]
        return [data[rows], None if labels is None else labels[rows]]
