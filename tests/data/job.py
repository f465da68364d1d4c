# SPDX-License-Identifier: Apache-2.0
"""Runs on each rank of an MPI job: reads the files of a folder and prints what this rank got, one JSON line each."""
import ctypes
import json
import sys
from pathlib import Path

import lockstep
import lockstep.data
from lockstep import native

FOLDER = Path(sys.argv[1])


def say(what, value):
    print(json.dumps({"rank": lockstep.rank(), "what": what, "value": value}), flush=True)


def error_of(path):
    try:
        lockstep.data.read(path, as_numpy=True)
    except lockstep.data.DataError as error:
        return str(error)
    return "no error"


def exchanged(rank):
    """What the C function gives when lengths agree, and its status when they do not."""
    library = ctypes.CDLL(native.lib_path())
    library.ls_process_allgather.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]
    room = ctypes.create_string_buffer(100)
    well = library.ls_process_allgather(None, b"%02d" % rank, 2, room)
    return [well, room.value.decode(), library.ls_process_allgather(None, b"1234", 1 + rank % 2, room) != 0]


def main():
    for name in ("numbers.npy", "numbers-idx.gz", "numbers.csv", "numbers.h5", "numbers.nc"):
        if not (FOLDER / name).exists():  # built without HDF5
            continue
        say(name, lockstep.data.read(FOLDER / name, "data", as_numpy=True).tolist())
    records = lockstep.data.read(FOLDER / "numbers.tfrecord", "record", as_numpy=True)
    say("numbers.tfrecord", [int(record) for record in records])
    say("shuffled", lockstep.data.read(FOLDER / "numbers.npy", "data", as_numpy=True, shuffle=True).tolist())
    say("exchanged", exchanged(lockstep.rank()))
    say("bad", error_of(FOLDER / "bad.tfrecord"))
    say("bad table", error_of(FOLDER / "bad.csv"))
    say("only on one rank", error_of(FOLDER / ("numbers.npy" if lockstep.rank() == 0 else "missing.npy")))
    say("few", error_of(FOLDER / "few.npy"))
    batch = lockstep.DataSet("MNIST", 10, data_directory=FOLDER).next_train_batch()
    say("mnist", batch[1].argmax(axis=1).tolist())


if __name__ == "__main__":
    main()
