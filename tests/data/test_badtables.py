# SPDX-License-Identifier: Apache-2.0
"""Bad CSV, HDF5 and NetCDF files end in an error that names the file, the place and the reason, on every rank."""
import os
import re
from contextlib import contextmanager

import pytest
from badfiles import csv_cases as csv
from badfiles import netcdf_cases as netcdf
from lockstep.data import formats
from reading import Data, DataError, read_in_parts, together

pytest.importorskip("h5py")
from badfiles import hdf5_cases as hdf5  # noqa: E402

NOBODY = 65534
CASES = {f"{title}: {name}": case for title, module in (("csv", csv), ("hdf5", hdf5), ("netcdf", netcdf))
         for name, case in module.CASES.items()}


@contextmanager
def without_root():
    """Root may read everything; nobody may not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def error_of(path, size, options):
    """The messages of all ranks that fail, opening or reading."""
    def work(part):
        with Data(str(path), part, **options) as data:
            for name in data.names:
                first, count = part.block(data.field(name).num_rows)
                data.read(first, count, [name])

    return [outcome for outcome in together(size, work) if outcome is not None]


@pytest.mark.parametrize("title", CASES)
def test_the_error_says_what_is_wrong_where(tmp_path, title):
    if title.startswith("hdf5") and formats()["hdf5"][1] is not None:
        pytest.skip("built without HDF5")
    write, message, options = CASES[title]
    path = write(tmp_path)
    if "must not be read" in title:
        tmp_path.chmod(0o755)
        with without_root():
            errors = error_of(path, 1, options)
    else:
        errors = error_of(path, 1, options)
    assert errors and all(isinstance(error, DataError) for error in errors), errors
    assert re.search(message, str(errors[0])), str(errors[0])


@pytest.mark.parametrize("title", [title for title in CASES if "must not be read" not in title and "huge" not in title])
def test_ranks_fail_together_when_they_open(tmp_path, title):
    if title.startswith("hdf5") and formats()["hdf5"][1] is not None:
        pytest.skip("built without HDF5")
    write, _, options = CASES[title]
    path = write(tmp_path)

    def work(part):
        Data(str(path), part, **options).close()

    outcomes = together(3, work)
    assert len({str(outcome) for outcome in outcomes}) == 1, outcomes  # all well (then reading fails), or all the same error


def test_good_files_of_the_generator_are_good(tmp_path):
    """Otherwise the bad ones would be bad for another reason."""
    for version in (1, 2, 5):
        path = netcdf.raw(netcdf.good(version))(tmp_path)
        assert read_in_parts(path, 2)["x"].shape == (4, 2)
    if formats()["hdf5"][1] is None:
        assert (read_in_parts(hdf5.file(x=hdf5.VALUES)(tmp_path), 2)["x"] == hdf5.VALUES).all()
    assert len(read_in_parts(csv.late(5, "1,2")(tmp_path), 2)["a"]) == csv.ROWS
