# SPDX-License-Identifier: Apache-2.0
"""HDF5 and NetCDF beside h5py, netCDF4 and scipy, into memory that is there already.

    LOCKSTEP_LIB=build/openmpi/lib .venv/bin/python bench/read/bench_hdf5.py [--mb 128] [--rounds 5]"""
import tempfile
from pathlib import Path

import beside
import numpy as np


def lockstep(path):
    import lockstep.data

    def read():
        with lockstep.data.open(path, columns=["x"]) as source:
            return len(source.read(0, source.num_rows)[0])
    return read


def mapped(path):
    """Without a copy; every byte is touched."""
    import lockstep.data

    def read():
        with lockstep.data.open(path, columns=["x"]) as source:
            rows = source.map(0)
            return len(rows) if np.isfinite(rows.sum(dtype="float64")) else 0
    return read


def h5py(path):
    import h5py as package

    def read():
        with package.File(path) as file:
            return len(file["x"][:])
    return read


def netcdf4(path):
    import netCDF4

    def read():
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            return len(file["x"][:])
    return read


def scipy(path):
    from scipy.io import netcdf_file

    def read():
        with netcdf_file(path, mmap=False) as file:
            return len(file.variables["x"][:].astype("f4"))
    return read


SIDES = {"lockstep": lockstep, "mapped": mapped, "h5py": h5py, "netCDF4": netcdf4, "scipy": scipy}


def hdf5_files(folder, num_bytes):
    import h5py as package
    rng = np.random.default_rng(0)
    rows = num_bytes // 1024
    values = np.round(rng.normal(size=(rows, 256)), 2).astype("f4")  # rounded, so that it can be compressed
    for title, how in {"contiguous": {}, "chunked": {"chunks": (256, 256)},
                       "gzip": {"chunks": (256, 256), "compression": "gzip", "compression_opts": 1},
                       "shuffle + gzip": {"chunks": (256, 64), "compression": "gzip", "shuffle": True}}.items():
        path = Path(folder) / "x.h5"
        with package.File(path, "w") as file:
            file.create_dataset("x", data=values, **how)
        yield title, path


def netcdf_files(folder, num_bytes):
    import netCDF4
    values = np.random.default_rng(0).normal(size=(num_bytes // 1024, 256)).astype("f4")
    for title, form, records in (("one variable", "NETCDF3_64BIT_OFFSET", False), ("records", "NETCDF3_64BIT_OFFSET", True)):
        path = Path(folder) / "x.nc"
        with netCDF4.Dataset(path, "w", format=form) as file:
            file.createDimension("r", None if records else len(values))
            file.createDimension("k", 256)
            file.createVariable("x", "f4", ("r", "k"))[:] = values
            if records:
                file.createVariable("label", "i4", ("r",))[:] = np.arange(len(values))
        yield title, path


def run(options):
    num_bytes = options.mb * 10**6
    with tempfile.TemporaryDirectory() as folder:
        for title, path in hdf5_files(folder, num_bytes):
            names = ["lockstep", "h5py"] + (["mapped"] if title == "contiguous" else [])
            beside.compare(f"HDF5, {title}", num_bytes, names, [path], options.rounds)
        for title, path in netcdf_files(folder, num_bytes):
            beside.compare(f"NetCDF classic, {title}", num_bytes, ["lockstep", "netCDF4", "scipy"], [path], options.rounds)


if __name__ == "__main__":
    beside.main(__doc__, SIDES, run)
