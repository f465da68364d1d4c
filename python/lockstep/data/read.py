# SPDX-License-Identifier: Apache-2.0
"""lockstep.data.read: files in, this rank's rows out."""
import secrets

import numpy as np

from lockstep.data import mark, order, part as parts
from lockstep.data.ahead import Ahead
from lockstep.data.binding import DataError, Source

ROWS_AT_ONCE = 4096  # without batch=: rows that travel together


def open(path, part=None, **options):  # noqa: A001
    """A Source: fields, number of rows, read(first, count), read_at(rows), map().  Options as in read()."""
    return Source(path, parts.given(part), **options)


def read(path, columns=None, batch=None, shuffle=False, seed=None, as_numpy=False, *, drop_remainder=False, zero_copy=False,
         part=None, **options):
    """This rank's rows of a data set, as a tf.data.Dataset, or as numpy arrays with as_numpy=True.

    path       file, folder, pattern or list of these; {name: path} puts files with the same rows side by side
    columns    a name: elements are tensors; a list of names: tuples in this order; None: dictionaries of all fields
    batch      rows of a batch of the whole job, as in one process: each rank gets its share.  None: single rows
    shuffle    another order each epoch, across all ranks, from `seed` (None: rank 0 draws one)
    zero_copy  numpy only: arrays that are views of the mapped file, where the format allows it; do not cut the file
    part       (rank, size) instead of this process's place in its job
    Further: format, skip_checksums, progress(path, done, total); for text tables delimiter, quote, header, types, missing.

    Errors (DataError) name the file, the record or row, the byte and the reason."""
    own = parts.given(part)
    if batch is not None and batch < 1:
        raise ValueError(f"batch must be at least 1, not {batch}")
    if as_numpy and not (shuffle or zero_copy or isinstance(path, dict)):
        return _read_block(path, columns, own, options)
    sources, fields, structure = _open_columns(path, columns, own, options)
    num_rows = sources[0].num_rows
    for source in sources[1:]:
        if source.num_rows != num_rows:
            raise DataError(f"{source.paths[0]}: {source.num_rows} rows, but {num_rows} in {sources[0].paths[0]}, which is "
                            "read side by side with it")
    agreed = _agreed_seed(seed, own) if shuffle else None
    if as_numpy:
        arrays = _numpy(sources, own, agreed, zero_copy)
        return structure([mark.mark_array(array, own) for array in arrays])
    from lockstep.data.stream import Batches, to_dataset
    batches = Batches(sources, own, batch or ROWS_AT_ONCE * own.size, agreed, drop_remainder and batch is not None)
    return to_dataset(batches, fields, structure, batch is not None)


def _read_block(path, columns, part, options):
    ahead = Ahead(part)
    try:
        (source,), _, structure = _open_columns(path, columns, part, {**options, "ahead": ahead})
    finally:
        ahead.callbacks = None
    with source:
        return structure([mark.mark_array(array, part) for array in ahead.block(source)])


def _open_columns(path, columns, part, options):
    """(sources, fields in the order of their arrays, what makes an element of the arrays)"""
    wanted = [columns] if isinstance(columns, str) else columns
    if not isinstance(path, dict):
        source = Source(path, part, columns=wanted, **options)
        names = [field.name for field in source.fields]
        return [source], source.fields, _structure(columns, names)
    names = list(path) if wanted is None else list(wanted)
    unknown = [name for name in names if name not in path]
    if unknown:
        raise DataError(f"there is no column '{unknown[0]}'; there are {', '.join(path)}")
    sources = [_open_single(path[name], name, part, options) for name in names]
    return sources, [source.fields[0] for source in sources], _structure(columns, names)


def _open_single(path, name, part, options):
    source = Source(path, part, **options)
    if len(source.fields) == 1:
        return source
    source.close()
    return Source(path, part, columns=[name], **options)


def _structure(columns, names):
    if isinstance(columns, str):
        return lambda arrays: arrays[0]
    if columns is None:
        return lambda arrays: dict(zip(names, arrays))
    return tuple


def _agreed_seed(seed, part):
    """Rank 0's seed on every rank; with `part` given by hand there is nobody to ask."""
    if part.allgather is None:
        if seed is None and part.size > 1:
            raise ValueError("shuffle with part=(rank, size) needs a seed that all ranks give alike")
        return secrets.randbits(32) if seed is None else int(seed)
    mine = secrets.randbits(32) if seed is None else int(seed)
    return int.from_bytes(part.allgather(mine.to_bytes(16, "little", signed=False))[0], "little")


def _numpy(sources, part, seed, zero_copy):
    first, count = part.block(sources[0].num_rows)
    if zero_copy:
        if seed is not None:
            raise ValueError("zero_copy gives the rows in the order of the file; leave out shuffle")
        return [source.map(field)[first:first + count] for source in sources for field in range(len(source.fields))]
    if seed is None:
        arrays = [array for source in sources for array in source.read(first, count)]
    elif max(source.chunk_rows for source in sources) == 1:
        rows = order.rows(sources[0].num_rows, seed, 0)[first:first + count]
        arrays = [array for source in sources for array in source.read_at(rows)]
    else:
        from lockstep.data.stream import Batches
        windows = list(Batches(sources, part, sources[0].num_rows, seed, False).epoch())
        arrays = [np.concatenate(column) for column in zip(*windows)]
    for source in sources:
        source.close()
    return arrays


