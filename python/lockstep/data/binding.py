# SPDX-License-Identifier: Apache-2.0
"""lockstep_data.h for Python: a Source is an open data set, its rows come as numpy arrays."""
import ctypes
import functools
import math
import os
from dataclasses import dataclass

import numpy as np

from lockstep import native
from lockstep.data.progress import Told

MAX_DIMS = 8
OK, STOPPED = 0, -9
PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64)
ALLGATHER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
STEP_BYTES = 64 << 20  # read between two reports of progress
ROOM_BYTES = 1 << 20  # of rows of different length, read at once: they stay in the processor's cache
FIRST_ROWS, MOST_ROWS = 256, 1 << 20
LEAST_SHARED, MOST_SHARED = 4 << 20, 16 << 20  # bytes of all arrays, and of one that shares its memory with others
ALIGNMENT = 64
HEADERS = {None: 0, True: 1, False: 2}

# LS_DATA_TYPE_LIST of the header, in its order; bytes have no dtype of their own.
TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
         "bytes")


class DataError(native.LockstepError):
    """A file that cannot be read: file, record or row, byte, reason."""


class FieldStructure(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("num_dims", ctypes.c_uint),
                ("shape", ctypes.c_uint64 * MAX_DIMS), ("row_bytes", ctypes.c_uint64), ("num_rows", ctypes.c_uint64)]


class _Info(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("num_fields", ctypes.c_uint), ("fields", ctypes.POINTER(FieldStructure)),
                ("chunk_rows", ctypes.c_uint64)]


class _Part(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_uint), ("size", ctypes.c_uint), ("allgather", ALLGATHER), ("arg", ctypes.c_void_p)]


class _Options(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("columns", ctypes.POINTER(ctypes.c_char_p)), ("num_columns", ctypes.c_uint),
                ("skip_checksums", ctypes.c_int), ("part", _Part), ("progress", PROGRESS), ("progress_arg", ctypes.c_void_p),
                ("ahead", ctypes.c_void_p), ("delimiter", ctypes.c_char), ("quote", ctypes.c_char), ("header", ctypes.c_int),
                ("types", ctypes.POINTER(ctypes.c_int)), ("num_types", ctypes.c_uint),
                ("missing", ctypes.POINTER(ctypes.c_char_p)), ("num_missing", ctypes.c_uint)]


class Column(ctypes.Structure):
    _fields_ = [("field", ctypes.c_uint), ("data", ctypes.c_void_p), ("offsets", ctypes.POINTER(ctypes.c_uint64)),
                ("num_rows", ctypes.c_uint64), ("data_room", ctypes.c_size_t), ("offsets_room", ctypes.c_size_t),
                ("place", ctypes.c_void_p), ("place_arg", ctypes.c_void_p)]


@dataclass(frozen=True)
class Field:
    """One field: `shape` is that of a row, `dtype` is None for bytes of different lengths."""

    name: str
    type: str
    dtype: object
    shape: tuple
    num_rows: int


@functools.lru_cache(maxsize=None)
def _library():
    library = ctypes.CDLL(native.lib_path())
    library.ls_last_error.restype = ctypes.c_char_p
    library.ls_data_open_files.argtypes = [ctypes.POINTER(ctypes.c_char_p), ctypes.c_uint, ctypes.POINTER(_Options),
                                           ctypes.POINTER(ctypes.c_void_p)]
    library.ls_data_close.argtypes = [ctypes.c_void_p]
    library.ls_data_close.restype = None
    library.ls_data_info.argtypes = [ctypes.c_void_p]
    library.ls_data_info.restype = ctypes.POINTER(_Info)
    library.ls_data_read.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.POINTER(Column),
                                     ctypes.c_uint]
    library.ls_data_read_at.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(Column),
                                        ctypes.c_uint]
    library.ls_data_ahead_rows.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64)]
    library.ls_data_ahead_rows.restype = ctypes.c_uint64
    library.ls_data_map.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p)]
    library.ls_data_column_clear.argtypes = [ctypes.POINTER(Column)]
    library.ls_data_column_clear.restype = None
    library.ls_data_format.argtypes = [ctypes.c_uint] + 3 * [ctypes.POINTER(ctypes.c_char_p)]
    return library


def _check(status):
    if status != OK:
        raise DataError(_library().ls_last_error().decode(errors="replace"))


def formats():
    """The formats that can be read: {name: (what it is, the library that this build lacks for it, or None)}."""
    name, title, library = ctypes.c_char_p(), ctypes.c_char_p(), ctypes.c_char_p()
    found = {}
    while _library().ls_data_format(len(found), name, title, library):
        found[name.value.decode()] = (title.value.decode(), library.value.decode() if library.value else None)
    return found


def _texts(texts):
    if texts is None:
        return None, 0
    return (ctypes.c_char_p * len(texts))(*[os.fsencode(text) for text in texts]), len(texts)


def _types(types):
    if types is None:
        return None, 0
    names = [None if one is None else "bytes" if one in (bytes, str, "bytes") else np.dtype(one).name for one in types]
    unknown = [name for name in names if name is not None and name not in TYPES]
    if unknown:
        raise ValueError(f"no column can have the type {unknown[0]}; there are {', '.join(TYPES)}")
    return (ctypes.c_int * len(names))(*[-1 if name is None else TYPES.index(name) for name in names]), len(names)


def _character(text, what):
    encoded = (text or "").encode()
    if len(encoded) > 1:
        raise ValueError(f"{what} must be one ASCII character, not {text!r}")
    return encoded or b"\0"


def _options(part, *, format=None, columns=None, skip_checksums=False, progress=None, ahead=None, delimiter=None, quote=None,
             header=None, types=None, missing=None):
    """The C structure; ctypes keeps what it points to alive as long as the structure."""
    options = _Options(skip_checksums=skip_checksums, delimiter=_character(delimiter, "delimiter"),
                       quote=_character(quote, "quote"), header=HEADERS[header])
    options.format = None if format is None else format.encode()
    options.columns, options.num_columns = _texts(None if columns is None else [str(column) for column in columns])
    options.missing, options.num_missing = _texts(missing)
    options.types, options.num_types = _types(types)
    options.part.rank, options.part.size = part.rank, part.size
    if part.allgather is not None:
        in_c = getattr(part.allgather, "in_c", None)
        options.part.allgather = ALLGATHER(in_c()) if in_c is not None else ALLGATHER(
            lambda _, mine, count, every: _gather(part.allgather, mine, count, every))
    options.ahead = None if ahead is None else ctypes.addressof(ahead.callbacks)
    if progress is not None:
        options.progress = PROGRESS(lambda _, path, done, total: progress(os.fsdecode(path), done, total))
    return options


def _gather(allgather, mine, count, every):
    """Called by C: an exception may not pass through it."""
    try:
        parts = allgather(ctypes.string_at(mine, count))
        ctypes.memmove(every, b"".join(parts), count * len(parts))
        return OK
    except Exception as error:  # noqa: BLE001
        print(f"lockstep: exchange between the ranks that read: {error}", flush=True)
        return STOPPED


class Source:
    """An open data set.  `part` says which rank this is (lockstep.data.part); the options are those of read(), and `ahead`
    (lockstep.data.ahead)."""

    def __init__(self, paths, part, **options):
        paths = [paths] if isinstance(paths, (str, bytes, os.PathLike)) else list(paths)
        self._handle = None
        self._on_close = []
        self._rooms = []  # columns of bytes that nobody uses at the moment; append and pop are atomic
        self._told = Told(options.pop("progress", None), part)
        self._options = _options(part, progress=self._told.by_library, **options)  # holds the callbacks
        handle = ctypes.c_void_p()
        names, count = _texts(paths)
        try:
            _check(_library().ls_data_open_files(names, count, self._options, handle))
        finally:
            self._told.end()
        self._told.is_open = True
        self._handle = handle
        info = _library().ls_data_info(handle).contents
        self.paths = [os.fsdecode(path) for path in paths]
        self.part = part
        self.format = info.format.decode()
        self.chunk_rows = info.chunk_rows
        self.fields = [field_of(info.fields[i]) for i in range(info.num_fields)]

    @property
    def num_rows(self):
        """Rows of the whole data set; its fields must agree."""
        counts = {field.num_rows for field in self.fields}
        if len(counts) != 1:
            rows = ", ".join(f"'{field.name}' {field.num_rows}" for field in self.fields)
            raise DataError(f"{self.paths[0]}: the fields differ in rows ({rows}); choose with columns=")
        return counts.pop()

    def read(self, first, count, fields=None):
        """Rows [first, first + count) as a list of arrays, one for each field (all, or these numbers)."""
        return self._fill(count, fields, lambda at, step, columns, num: _library().ls_data_read(
            self._open_handle(), first + at, step, columns, num))

    def read_at(self, rows, fields=None):
        """The rows with these numbers, in this order."""
        rows = np.ascontiguousarray(rows, dtype=np.uint64)
        return self._fill(len(rows), fields, lambda at, step, columns, num: _library().ls_data_read_at(
            self._open_handle(), rows.ctypes.data + at * rows.itemsize, step, columns, num))

    def ahead_rows(self):
        """(first, number) of the rows that were given to `ahead`."""
        first = ctypes.c_uint64()
        count = _library().ls_data_ahead_rows(self._open_handle(), first)
        return first.value, count

    def map(self, field=0):
        """All rows of a field without a copy, read-only.  For files that nobody cuts short meanwhile."""
        address = ctypes.c_void_p()
        _check(_library().ls_data_map(self._open_handle(), field, address))
        about = self.fields[field]
        shape = (about.num_rows, *about.shape)
        memory = (ctypes.c_char * (int(np.prod(shape)) * about.dtype.itemsize)).from_address(address.value)
        memory.source = self  # the array holds the memory, the memory holds the mapping
        array = np.frombuffer(memory, about.dtype).reshape(shape)
        array.flags.writeable = False
        return array

    def _fill(self, count, fields, call):
        """Arrays of `count` rows, filled by call(first, number, columns, number of columns) in steps: rows of different
        length pass through a buffer that stays small, and long reads tell how far they are."""
        numbers = range(len(self.fields)) if fields is None else fields
        wanted = [self.fields[number] for number in numbers]
        arrays = empty_arrays(wanted, count)
        columns = (Column * len(wanted))()
        for i, number in enumerate(numbers):
            columns[i] = self._take_room() if wanted[i].dtype is None else Column()
            columns[i].field = number
        self._open_handle()
        try:
            at, step = 0, _first_step(wanted)
            while at < count:
                step = min(step, count - at)
                _fill_rows(arrays, columns, at, step, call)
                at += step
                if at < count and self._told.is_stopped(self.paths[0], at, count):
                    raise DataError(f"{self.paths[0]}: stopped on request after {at} of {count} rows")
                step = _next_step(wanted, columns, step)
        finally:
            self._told.end()
            self._rooms += [column for column, field in zip(columns, wanted) if field.dtype is None]
        return arrays

    def _take_room(self):
        """Memory for rows of different length is used again: fresh memory costs as much as reading."""
        try:
            return self._rooms.pop()
        except IndexError:
            return Column()

    def _open_handle(self):
        if self._handle is None:
            raise DataError(f"{self.paths[0]}: it has been closed")
        return self._handle

    def on_close(self, function):
        """Called before the data set is closed: who uses it elsewhere stops there."""
        self._on_close.append(function)

    def close(self):
        if self._handle is not None:
            while self._on_close:
                self._on_close.pop()()
            while self._rooms:
                _library().ls_data_column_clear(self._rooms.pop())
            _library().ls_data_close(self._handle)
            self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None) is not None:
            self.close()


def field_of(field):
    name = TYPES[field.type]
    return Field(field.name.decode(errors="replace"), name, None if name == "bytes" else np.dtype(name),
                 tuple(field.shape[:field.num_dims]), field.num_rows)


def empty_arrays(fields, count):
    """Arrays for `count` rows of each field.  Many of middling size share one block of memory: numpy asks for large pages
    only for what is large itself, and small pages cost a third of the time of reading a table."""
    sizes = [0 if field.dtype is None else count * field.dtype.itemsize * math.prod(field.shape) for field in fields]
    shares = [0 < size <= MOST_SHARED for size in sizes]
    if sum(shares) < 2 or sum(sizes) < LEAST_SHARED:
        shares = [False] * len(fields)
    starts = np.cumsum([0] + [-(-size // ALIGNMENT) * ALIGNMENT if share else 0 for size, share in zip(sizes, shares)])
    block = np.empty(int(starts[-1]), np.uint8)
    return [block[start:start + size].view(field.dtype).reshape(count, *field.shape) if share
            else np.empty((count, *field.shape), object if field.dtype is None else field.dtype)
            for field, size, share, start in zip(fields, sizes, shares, starts)]


def _first_step(fields):
    """Rows to read at once: of different length few, until it is known how long they are."""
    fixed = sum(field.dtype.itemsize * math.prod(field.shape) for field in fields if field.dtype is not None)
    most = max(1, STEP_BYTES // max(1, fixed))
    return min(most, FIRST_ROWS) if any(field.dtype is None for field in fields) else most


def _next_step(fields, columns, step):
    """As many rows as fill the buffer for those of different length, after `step` rows were read into `columns`."""
    lengths = [column.offsets[step] for column, field in zip(columns, fields) if field.dtype is None]
    return step if not lengths else max(1, min(step * ROOM_BYTES // max(1, *lengths), 4 * step, MOST_ROWS))


def _fill_rows(arrays, columns, at, step, call):
    for column, array in zip(columns, arrays):
        if array.dtype != object:
            column.data = array.ctypes.data + at * array.strides[0]
    _check(call(at, step, columns, len(columns)))
    for column, array in zip(columns, arrays):
        if array.dtype == object:
            make_objects(column, array[at:at + step])


class _Objects(ctypes.Structure):
    _fields_ = [("make", ctypes.c_void_p), ("keep", ctypes.c_void_p), ("drop", ctypes.c_void_p)]


@functools.lru_cache(maxsize=None)
def _bytes_maker():
    """(ls_data_column_objects, what makes and keeps objects of bytes); called with Python's lock held, as it makes objects."""
    functions = [ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p)
                 for name in ("PyBytes_FromStringAndSize", "Py_IncRef", "Py_DecRef")]
    make = ctypes.PyDLL(native.lib_path()).ls_data_column_objects
    make.argtypes = [ctypes.POINTER(Column), ctypes.POINTER(_Objects), ctypes.c_void_p]
    return make, _Objects(*functions)


def make_objects(column, rows):
    """Rows of different length become bytes in an array of objects."""
    make, functions = _bytes_maker()
    _check(make(column, functions, rows.ctypes.data))
