# SPDX-License-Identifier: Apache-2.0
"""The public C functions of the readers by ctypes; ranks are threads that exchange through a barrier."""
import ctypes
import os
import threading
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]

AUTO = -1
TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
         "float64", "bytes")
LIMIT_S = 60  # for ranks to meet: a rank that does not come must not hang the test

ALLGATHER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64)


class Part(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_uint), ("size", ctypes.c_uint), ("allgather", ALLGATHER), ("arg", ctypes.c_void_p)]


class Options(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("columns", ctypes.POINTER(ctypes.c_char_p)), ("num_columns", ctypes.c_uint),
                ("skip_checksums", ctypes.c_int), ("part", Part), ("progress", PROGRESS),
                ("progress_arg", ctypes.c_void_p), ("delimiter", ctypes.c_char), ("quote", ctypes.c_char),
                ("header", ctypes.c_int), ("types", ctypes.POINTER(ctypes.c_int)), ("num_types", ctypes.c_uint),
                ("missing", ctypes.POINTER(ctypes.c_char_p)), ("num_missing", ctypes.c_uint)]


class Field(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("num_dims", ctypes.c_uint),
                ("shape", ctypes.c_uint64 * 8), ("row_bytes", ctypes.c_uint64), ("num_rows", ctypes.c_uint64)]


class Info(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("num_fields", ctypes.c_uint), ("fields", ctypes.POINTER(Field)),
                ("chunk_rows", ctypes.c_uint64)]


class Column(ctypes.Structure):
    _fields_ = [("field", ctypes.c_uint), ("data", ctypes.c_void_p), ("offsets", ctypes.POINTER(ctypes.c_uint64)),
                ("num_rows", ctypes.c_uint64), ("data_room", ctypes.c_size_t), ("offsets_room", ctypes.c_size_t)]


class ReadError(RuntimeError):
    """What ls_last_error() says."""


def load():
    folder = os.environ.get("LOCKSTEP_LIB") or next(
        path for name in ("openmpi", "mpich") if (path := ROOT / "build" / name / "lib").is_dir())
    library = ctypes.CDLL(str(Path(folder) / "liblockstep.so"))
    library.ls_last_error.restype = ctypes.c_char_p
    library.ls_data_info.argtypes, library.ls_data_info.restype = [ctypes.c_void_p], ctypes.POINTER(Info)
    library.ls_data_read.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint]
    library.ls_data_map.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p]
    library.ls_data_close.argtypes = [ctypes.c_void_p]
    return library


LIBRARY = load()


def check(status):
    if status != 0:
        raise ReadError(LIBRARY.ls_last_error().decode(errors="replace"))


def c_texts(texts):
    return (ctypes.c_char_p * len(texts))(*[text.encode() for text in texts])


class Data:
    """An open data set.  `paths` is one path or several; options as in lockstep_data.h."""

    def __init__(self, paths, part=None, format=None, columns=None, types=None, delimiter="", quote="", header=None,
                 missing=None, progress=None):
        self.options = Options(part=part or Part(0, 1, ALLGATHER(), None), format=format and format.encode(),
                               delimiter=delimiter.encode() or b"\0", quote=quote.encode() or b"\0",
                               header={None: 0, True: 1, False: 2}[header])
        if columns is not None:
            self.options.columns, self.options.num_columns = c_texts(columns), len(columns)
        if types is not None:
            numbers = [AUTO if name is None else TYPES.index(name) for name in types]
            self.options.types, self.options.num_types = (ctypes.c_int * len(types))(*numbers), len(types)
        if missing is not None:
            self.options.missing, self.options.num_missing = c_texts(missing), len(missing)
        if progress is not None:
            self.options.progress = PROGRESS(progress)
        names = [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else [os.fspath(path) for path in paths]
        self.handle = ctypes.c_void_p()
        check(LIBRARY.ls_data_open_files(c_texts(names), len(names), ctypes.byref(self.options),
                                         ctypes.byref(self.handle)))
        info = LIBRARY.ls_data_info(self.handle).contents
        self.format, self.chunk_rows = info.format.decode(), info.chunk_rows
        self.fields = [info.fields[i] for i in range(info.num_fields)]
        self.names = [field.name.decode() for field in self.fields]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        LIBRARY.ls_data_close(self.handle)
        self.handle = None

    def num_rows(self, name=None):
        return self.fields[self.names.index(name) if name else 0].num_rows

    def type(self, name):
        return TYPES[self.fields[self.names.index(name)].type]

    def read(self, first=0, count=None, names=None):
        """A dictionary of numpy arrays; a list of bytes for a field of that type."""
        names = self.names if names is None else names
        count = self.num_rows(names[0]) - first if count is None else count
        columns = (Column * len(names))()
        arrays = {}
        for column, name in zip(columns, names):
            column.field = self.names.index(name)
            field = self.fields[column.field]
            if TYPES[field.type] != "bytes":
                arrays[name] = np.empty((count, *field.shape[:field.num_dims]), TYPES[field.type])
                column.data = arrays[name].ctypes.data
        try:
            check(LIBRARY.ls_data_read(self.handle, first, count, columns, len(names)))
            for column, name in zip(columns, names):
                if name not in arrays:
                    text = ctypes.string_at(column.data, column.offsets[count]) if count else b""
                    arrays[name] = [text[column.offsets[i]:column.offsets[i + 1]] for i in range(count)]
        finally:
            for column in columns:
                if TYPES[self.fields[column.field].type] == "bytes":
                    LIBRARY.ls_data_column_clear(ctypes.byref(column))
        return {name: arrays[name] for name in names}

    def map(self, name):
        """A numpy array over the file's own bytes."""
        field = self.fields[self.names.index(name)]
        rows = ctypes.c_void_p()
        check(LIBRARY.ls_data_map(self.handle, self.names.index(name), ctypes.byref(rows)))
        memory = (ctypes.c_char * (field.row_bytes * field.num_rows)).from_address(rows.value)
        return np.frombuffer(memory, TYPES[field.type]).reshape(field.num_rows, *field.shape[:field.num_dims])


def block(num_rows, size, rank):
    """What ls_data_block gives: first row and number of rows."""
    each, more = divmod(num_rows, size)
    return rank * each + min(rank, more), each + (rank < more)


def run_ranks(size, body):
    """body(part) in `size` threads; what each returned, or the exception it raised."""
    barrier, gathered, outcomes = threading.Barrier(size, timeout=LIMIT_S), [b""] * size, [None] * size

    def run(rank):
        def allgather(_, mine, num_bytes, everything):
            gathered[rank] = ctypes.string_at(mine, num_bytes)
            try:
                barrier.wait()
                is_equal = len({len(part) for part in gathered}) == 1
                if is_equal:
                    ctypes.memmove(everything, b"".join(gathered), num_bytes * size)
                barrier.wait()
            except threading.BrokenBarrierError:
                is_equal = False
            return 0 if is_equal else -3

        try:
            outcomes[rank] = body(Part(rank, size, ALLGATHER(allgather), None))
        except Exception as error:  # noqa: BLE001: the test looks at it
            outcomes[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def read_in_parts(paths, size, **options):
    """Every rank reads its block; all of it put together again."""
    def body(part):
        with Data(paths, part=part, **options) as data:
            parts = {}
            for name in data.names:
                first, count = block(data.num_rows(name), size, part.rank)
                parts.update(data.read(first, count, [name]))
            return parts

    outcomes = run_ranks(size, body)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return {name: [row for outcome in outcomes for row in outcome[name]] if isinstance(rows, list)
            else np.concatenate([outcome[name] for outcome in outcomes]) for name, rows in outcomes[0].items()}
