# SPDX-License-Identifier: Apache-2.0
"""What is measured of CSV, HDF5 and NetCDF.  Text tables count their bytes, so that all kinds of column are alike."""
import os

import numpy as np

BYTES = 100_000_000  # of a file, about


# ---- CSV ------------------------------------------------------------------------------------------------------------------


def make_csv(columns, row_bytes):
    """columns(rng, rows) gives {name: values}."""
    def make(folder):
        import pandas
        path = str(folder / "table.csv")
        pandas.DataFrame(columns(np.random.default_rng(0), BYTES // row_bytes)).to_csv(path, index=False)
        return path
    return make


def full_floats(rng, rows):
    return {f"x{i}": rng.normal(size=rows) for i in range(8)}


def short_floats(rng, rows):
    return {"label": rng.integers(0, 10, rows), **{f"x{i}": np.round(rng.uniform(0, 1000, rows), 3) for i in range(10)}}


def pixels(rng, rows):
    return {f"p{i}": rng.integers(0, 256, rows) for i in range(64)}


def with_text(rng, rows):
    return {"name": rng.choice(["alpha", "beta, gamma", 'say "x"', "delta"], rows), "x": rng.normal(size=rows),
            "y": np.round(rng.normal(size=rows), 4)}


def ours_csv(path):
    import lockstep.data
    assert len(next(iter(lockstep.data.read(path, as_numpy=True).values()))) > 0
    return os.path.getsize(path)


def ours_csv_in_batches(path):
    """As training does: a fixed buffer, rows thrown away."""
    import lockstep.data
    with lockstep.data.open(path) as source:
        for first in range(0, source.num_rows, 4096):
            source.read(first, min(4096, source.num_rows - first))
    return os.path.getsize(path)


def pandas_csv(path):
    import pandas
    assert len(pandas.read_csv(path, engine="c")) > 0
    return os.path.getsize(path)


def pyarrow_csv(path):
    import pyarrow
    import pyarrow.csv
    pyarrow.set_cpu_count(1)
    assert pyarrow.csv.read_csv(path, read_options=pyarrow.csv.ReadOptions(use_threads=False)).num_rows > 0
    return os.path.getsize(path)


# ---- HDF5 and NetCDF ------------------------------------------------------------------------------------------------------


def make_hdf5(**how):
    def make(folder):
        import h5py
        values = np.round(np.random.default_rng(0).normal(size=(BYTES // 1024, 256)), 2).astype("f4")  # can be compressed
        with h5py.File(folder / "x.h5", "w") as file:
            file.create_dataset("x", data=values, **how)
        return str(folder / "x.h5")
    return make


def make_netcdf(is_record):
    def make(folder):
        from scipy.io import netcdf_file
        values = np.random.default_rng(0).normal(size=(BYTES // 1024, 256)).astype("f4")
        with netcdf_file(folder / "x.nc", "w", version=2) as file:
            file.createDimension("r", None if is_record else len(values))
            file.createDimension("k", 256)
            file.createVariable("x", "f4", ("r", "k"))[:] = values
            if is_record:
                file.createVariable("label", "i4", ("r",))[:] = np.arange(len(values))
        return str(folder / "x.nc")
    return make


def ours_x(path):
    import lockstep.data
    return lockstep.data.read(path, "x", as_numpy=True).nbytes


def ours_mapped(path):
    """Without a copy; the sum touches every byte."""
    import lockstep.data
    rows = lockstep.data.read(path, "x", as_numpy=True, zero_copy=True)
    rows.sum()
    return rows.nbytes


def h5py_x(path):
    import h5py
    with h5py.File(path) as file:
        return file["x"][:].nbytes


def h5py_sum(path):
    import h5py
    with h5py.File(path) as file:
        rows = file["x"][:]
    rows.sum()
    return rows.nbytes


def netcdf4_x(path):
    import netCDF4
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        return file["x"][:].nbytes


FORMS = (("17 digits", full_floats, 160), ("3 decimals", short_floats, 80), ("bytes", pixels, 230), ("with text", with_text, 44))

# name, make, ours, peer, name of the peer, least ratio of speeds
CASES = [
    *[(f"CSV, {name}", make_csv(columns, row), ours_csv, peer, peer_name, target) for name, columns, row in FORMS
      for peer, peer_name, target in ((pandas_csv, "pandas", 3.0), (pyarrow_csv, "pyarrow", 1.0))],
    ("CSV, in batches", make_csv(full_floats, 160), ours_csv_in_batches, pyarrow_csv, "pyarrow", 1.0),
    ("HDF5 contiguous", make_hdf5(), ours_x, h5py_x, "h5py", 0.9),
    ("HDF5 mapped, summed", make_hdf5(), ours_mapped, h5py_sum, "h5py", 0.9),
    ("HDF5 chunked", make_hdf5(chunks=(256, 256)), ours_x, h5py_x, "h5py", 0.9),
    ("HDF5 gzip", make_hdf5(chunks=(256, 256), compression="gzip", compression_opts=1), ours_x, h5py_x, "h5py", 0.9),
    ("HDF5 shuffle + gzip", make_hdf5(chunks=(256, 64), compression="gzip", shuffle=True), ours_x, h5py_x, "h5py", 0.9),
    ("NetCDF", make_netcdf(False), ours_x, netcdf4_x, "netCDF4", 0.9),
    ("NetCDF records", make_netcdf(True), ours_x, netcdf4_x, "netCDF4", 0.9),
]
