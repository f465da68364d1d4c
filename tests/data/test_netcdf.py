# SPDX-License-Identifier: Apache-2.0
"""NetCDF: what the reader gives is what netCDF4 (all forms) and scipy (CDF-1, 2) give; each row once, whatever the parts."""
import numpy as np
import pytest
from lockstep.data import formats
from reading import Data, DataError, read_in_parts, together

netCDF4 = pytest.importorskip("netCDF4")
from scipy.io import netcdf_file  # noqa: E402

PARTS = (1, 2, 3, 5)
CLASSIC = ("NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA")
NEW = ("NETCDF4", "NETCDF4_CLASSIC") if formats()["hdf5"][1] is None else ()  # these are HDF5
FORMS = (*CLASSIC, *NEW)
TYPES = ("i1", "i2", "i4", "f4", "f8")
NEW_TYPES = ("u1", "u2", "u4", "i8", "u8")  # of CDF-5 and NetCDF-4 only


def values(shape, dtype="f8"):
    return (np.random.default_rng(5).normal(size=shape) * 50).astype(dtype)


def write(path, form, variables, num_records=37):
    """variables: name -> (dtype, dimensions); t is the record dimension."""
    lengths = {"t": num_records, "x": 5, "y": 3}
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.title = "odd"
        for name in ("t", "x", "y"):
            file.createDimension(name, None if name == "t" else lengths[name])
        for name, (dtype, dimensions) in variables.items():
            variable = file.createVariable(name, dtype, dimensions, fill_value=False)
            variable.units = "metres"
            if dimensions:
                variable[:] = values(tuple(lengths[dimension] for dimension in dimensions), dtype)
    return path


def same_as_netcdf4(path, got):
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        return all(np.array_equal(got[name], file[name][:]) for name in got)


@pytest.mark.parametrize("form", FORMS)
def test_parts_together_are_what_netcdf4_reads(tmp_path, form):
    path = write(tmp_path / "data.nc", form, {
        "a": ("f4", ("t", "x", "y")), "label": ("i4", ("t",)), "byte": ("i1", ("t", "y")), "short": ("i2", ("t", "y")),
        "fixed": ("f8", ("x", "y")), "t": ("f8", ("t",)), "scalar": ("f8", ())})
    for parts in PARTS:
        got = read_in_parts(path, parts)
        assert sorted(got) == ["a", "byte", "fixed", "label", "short"]
        assert same_as_netcdf4(path, got), f"{parts} parts"


@pytest.mark.parametrize("form, dtype", [(form, dtype) for form in FORMS for dtype in TYPES] +
                         [(form, dtype) for form in ("NETCDF3_64BIT_DATA", *NEW[:1]) for dtype in NEW_TYPES])
def test_types(tmp_path, form, dtype):
    path = write(tmp_path / "types.nc", form, {"one": (dtype, ("t",)), "two": (dtype, ("x", "y"))})
    got = read_in_parts(path, 2)
    assert got["one"].dtype == dtype and same_as_netcdf4(path, got)


@pytest.mark.parametrize("dtype", ("i1", "i2", "f4"))
def test_a_single_record_variable_has_no_padding(tmp_path, dtype):
    path = write(tmp_path / "single.nc", "NETCDF3_CLASSIC", {"only": (dtype, ("t", "y"))}, num_records=101)
    for parts in PARTS:
        assert same_as_netcdf4(path, read_in_parts(path, parts))


@pytest.mark.parametrize("version", (1, 2))
def test_files_of_another_writer(tmp_path, version):
    path = tmp_path / "scipy.nc"
    with netcdf_file(path, "w", version=version) as file:
        file.createDimension("r", None)
        file.createDimension("k", 7)
        for name, dtype in (("data", "b"), ("labels", "i")):
            variable = file.createVariable(name, dtype, ("r", "k") if name == "data" else ("r",))
            variable[:] = values((40, 7) if name == "data" else 40, variable.typecode())
    got = read_in_parts(path, 3)
    with netcdf_file(path, mmap=False) as file:
        assert all(np.array_equal(got[name], file.variables[name][:]) for name in ("data", "labels"))


@pytest.mark.parametrize("form", ("NETCDF3_CLASSIC", *NEW[:1]))
def test_coordinates_are_read_when_they_are_asked_for(tmp_path, form):
    path = write(tmp_path / "coordinates.nc", form, {"a": ("f4", ("t", "x")), "t": ("f8", ("t",)), "x": ("f4", ("x",))})
    assert Data(path).names == ["a"]
    with Data(path, columns=["t", "a"]) as data:
        assert data.names == ["t", "a"] and same_as_netcdf4(path, data.read())


def test_long_rows_with_others_in_between(tmp_path):
    path = tmp_path / "long.nc"
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("t", None)
        file.createDimension("wide", 10000)
        for name in ("one", "two"):
            file.createVariable(name, "f4", ("t", "wide"))[:] = values((11, 10000), "f4")
        file.createVariable("number", "i4", ("t",))[:] = np.arange(11)
    assert same_as_netcdf4(path, read_in_parts(path, 3))


def test_the_number_of_records_may_be_unknown(tmp_path):
    path = write(tmp_path / "stream.nc", "NETCDF3_CLASSIC", {"a": ("f4", ("t", "x")), "b": ("i2", ("t",))})
    content = bytearray(path.read_bytes())
    content[4:8] = b"\xff" * 4  # STREAMING
    path.write_bytes(content)
    got = read_in_parts(path, 2)
    assert len(got["a"]) == 37 and np.array_equal(got["a"], values((37, 5), "f4"))


def test_bytes_are_mapped_without_a_copy(tmp_path):
    path = write(tmp_path / "map.nc", "NETCDF3_CLASSIC", {"fixed": ("i1", ("x", "y")), "swapped": ("f4", ("x",))})
    with Data(path, columns=["fixed", "swapped"]) as data:
        assert np.array_equal(data.map("fixed"), values((5, 3), "i1"))
        with pytest.raises(DataError, match="another byte order"):
            data.map("swapped")


def test_an_error_is_the_error_of_all_ranks(tmp_path):
    path = write(tmp_path / "cut.nc", "NETCDF3_CLASSIC", {"a": ("f4", ("t", "x"))})
    path.write_bytes(path.read_bytes()[:-1])
    outcomes = together(3, lambda part: Data(path, part=part))
    assert all(isinstance(outcome, DataError) and "cut short" in str(outcome) for outcome in outcomes)
