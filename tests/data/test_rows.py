# SPDX-License-Identifier: Apache-2.0
"""The rows that all ranks read together are exactly the file's rows, each once, as another reader sees them."""
import gzip
import pickle
import sys
import zlib

import datafiles
import lockstep.data
import numpy as np
import pytest
from lockstep.data.part import Part
from ranks import all_well, together

RANKS = [1, 2, 3, 5]
RNG = np.random.default_rng(7)


def many_rows(rows=503, shape=(7, 3), dtype="uint8"):
    values = RNG.integers(0, 120, (rows, *shape))
    values[:, 0] = np.arange(rows).reshape(rows, *[1] * (len(shape) - 1)) % 120  # rows that can be told apart
    return values.astype(dtype)


def pictures(rows=37):
    return RNG.integers(0, 256, (rows, 3, 32, 32)).astype(np.uint8)


def write_idx(folder, dtype="uint8", pack=lambda data: data):
    array = many_rows(dtype=dtype)
    path = datafiles.write(folder, "rows-idx", pack(datafiles.idx(array)))
    raw = path.read_bytes()
    raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    expected = np.frombuffer(raw, np.dtype(dtype).newbyteorder(">"), offset=16).reshape(array.shape).astype(dtype)
    return path, {"data": expected}


def write_npy(folder, dtype="float32", shape=(7, 3), version=None):
    array = many_rows(shape=shape).astype(dtype)
    path = datafiles.write(folder, "rows.npy", datafiles.npy(array, version))
    return path, {"data": np.load(path).astype(np.dtype(dtype).newbyteorder("="))}


def write_npz(folder, compressed):
    path = datafiles.write(folder, "rows.npz", datafiles.npz(compressed, x=many_rows(dtype="float64"), y=np.arange(503)))
    with np.load(path) as loaded:
        return path, dict(loaded)


def write_records(folder, num_files=1, size=lambda i: i % 97):
    tf = pytest.importorskip("tensorflow")
    paths = []
    for number in range(num_files):
        paths.append(str(folder / f"rows-{number}.tfrecord"))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for i in range(211 + number):
                writer.write(bytes([number, i % 251]) * size(i) + b"#%d" % i)
    expected = [record.numpy() for record in tf.data.TFRecordDataset(paths)]
    return folder / "rows-*.tfrecord", {"record": np.array(expected, object)}


def write_cifar_pickle(folder, protocol, fine=False):
    data, labels = pictures(), RNG.integers(0, 10, 37)
    content = (datafiles.cifar_pickle(data, fine=labels * 9, coarse=labels * 2, protocol=protocol) if fine
               else datafiles.cifar_pickle(data, labels, protocol=protocol))
    path = datafiles.write(folder, "train" if fine else "data_batch_1", content)
    loaded = {key.decode() if isinstance(key, bytes) else key: value
              for key, value in pickle.loads(content, encoding="latin1").items()}
    names = {"coarse_label": "coarse_labels", "fine_label": "fine_labels"} if fine else {"label": "labels"}
    expected = {"data": np.asarray(loaded["data"]).reshape(-1, 3, 32, 32)}
    expected.update({name: np.array(loaded[key], np.uint8) for name, key in names.items()})
    return path, expected


def write_cifar_binary(folder, num_labels, num_files=1):
    raw = []
    for number in range(num_files):
        labels = [RNG.integers(0, 10, 37) for _ in range(num_labels)]
        path = datafiles.write(folder, f"batch_{number}.bin", datafiles.cifar_binary(pictures(), *labels))
        raw.append(np.fromfile(path, np.uint8).reshape(-1, num_labels + 3072))
    raw = np.concatenate(raw)
    names = ["label"] if num_labels == 1 else ["coarse_label", "fine_label"]
    expected = {name: raw[:, i] for i, name in enumerate(names)}
    return folder / "batch_*.bin", {"data": raw[:, num_labels:].reshape(-1, 3, 32, 32), **expected}


WRITERS = {
    "idx": write_idx,
    "idx int16": lambda folder: write_idx(folder, "int16"),
    "idx float64": lambda folder: write_idx(folder, "float64"),
    "idx gzip": lambda folder: write_idx(folder, pack=datafiles.gz),
    "idx gzip stored": lambda folder: write_idx(folder, pack=lambda data: datafiles.gz(data, level=0)),
    "idx gzip fixed codes": lambda folder: write_idx(folder, pack=lambda data: datafiles.gz(data, strategy=zlib.Z_FIXED)),
    "idx gzip by python": lambda folder: write_idx(folder, pack=gzip.compress),
    "idx gzip two members": lambda folder: write_idx(folder, pack=lambda data: datafiles.gz(data[:777]) + datafiles.gz(data[777:])),
    "npy": write_npy,
    "npy float16": lambda folder: write_npy(folder, "float16"),
    "npy bool": lambda folder: write_npy(folder, "bool"),
    "npy big endian": lambda folder: write_npy(folder, ">i8"),
    "npy one dimension": lambda folder: write_npy(folder, "uint16", shape=(2,)),
    "npy version 2": lambda folder: write_npy(folder, version=(2, 0)),
    "npz": lambda folder: write_npz(folder, False),
    "npz deflated": lambda folder: write_npz(folder, True),
    "tfrecord": write_records,
    "tfrecord three files": lambda folder: write_records(folder, 3),
    "tfrecord large": lambda folder: write_records(folder, 1, lambda i: 300_000 if i % 50 == 7 else 3),
    "cifar pickle": lambda folder: write_cifar_pickle(folder, None),
    "cifar pickle 3": lambda folder: write_cifar_pickle(folder, 3),
    "cifar pickle 4": lambda folder: write_cifar_pickle(folder, 4),
    "cifar pickle 5": lambda folder: write_cifar_pickle(folder, 5),
    "cifar100 pickle": lambda folder: write_cifar_pickle(folder, None, fine=True),
    "cifar10 binary": lambda folder: write_cifar_binary(folder, 1),
    "cifar10 binary three files": lambda folder: write_cifar_binary(folder, 1, 3),
    "cifar100 binary": lambda folder: write_cifar_binary(folder, 2),
}


@pytest.fixture(scope="module", params=list(WRITERS))
def written(request, tmp_path_factory):
    return WRITERS[request.param](tmp_path_factory.mktemp("rows"))


def assert_same(got, expected):
    assert set(got) == set(expected)
    for name, values in expected.items():
        assert got[name].dtype == values.dtype
        np.testing.assert_array_equal(got[name], values)


@pytest.mark.parametrize("size", RANKS)
def test_the_parts_of_all_ranks_are_the_rows_of_the_file(written, size):
    path, expected = written
    parts = all_well(together(size, lambda part: lockstep.data.read(path, as_numpy=True, part=part)))
    num_rows = len(next(iter(expected.values())))
    for rank, part in enumerate(parts):
        assert {len(array) for array in part.values()} == {num_rows // size + (rank < num_rows % size)}
    assert_same({name: np.concatenate([np.asarray(part[name]) for part in parts]) for name in parts[0]}, expected)


@pytest.mark.parametrize("size", RANKS)
def test_shuffled_parts_are_the_rows_of_the_file_in_another_order(written, size):
    path, expected = written
    parts = all_well(together(size, lambda part: lockstep.data.read(path, as_numpy=True, shuffle=True, seed=5, part=part)))
    got = {name: np.concatenate([np.asarray(part[name]) for part in parts]) for name in parts[0]}
    assert sorted(rows_as_bytes(got)) == sorted(rows_as_bytes(expected))
    assert rows_as_bytes(got) != rows_as_bytes(expected)


def rows_as_bytes(columns):
    names = sorted(columns)
    return [b"|".join(bytes(row) if isinstance(row, bytes) else np.asarray(row).tobytes() for row in rows)
            for rows in zip(*[columns[name] for name in names])]


def test_any_rows_in_any_order(written):
    path, expected = written
    with lockstep.data.open(path) as source:
        num_rows = source.num_rows
        wanted = RNG.integers(0, num_rows, 200)
        wanted[:3] = [num_rows - 1, 0, num_rows - 1]
        got = dict(zip([field.name for field in source.fields], source.read_at(wanted)))
        assert_same(got, {name: values[wanted] for name, values in expected.items()})
        for first, count in ((num_rows - 1, 1), (3, 0), (num_rows, 0), (11, 13)):
            for field, array in zip(source.fields, source.read(first, count)):
                np.testing.assert_array_equal(array, expected[field.name][first:first + count])
        with pytest.raises(lockstep.data.DataError, match="rows"):
            source.read(num_rows - 1, 2)


def test_one_column_alone(written):
    path, expected = written
    name = list(expected)[-1]
    np.testing.assert_array_equal(lockstep.data.read(path, columns=name, as_numpy=True), expected[name])
    with pytest.raises(lockstep.data.DataError, match="there is no field 'nothing'; there are"):
        lockstep.data.read(path, columns=["nothing"], as_numpy=True)


@pytest.mark.parametrize("kind", ["idx", "npy", "npy one dimension"])
def test_a_mapped_file_is_not_copied(tmp_path, kind):
    path, expected = WRITERS[kind](tmp_path)
    got = lockstep.data.read(path, as_numpy=True, zero_copy=True, part=(1, 3))["data"]
    first, count = Part(1, 3).block(len(expected["data"]))
    np.testing.assert_array_equal(got, expected["data"][first:first + count])
    assert not got.flags.owndata and not got.flags.writeable


@pytest.mark.parametrize("kind", ["idx int16", "idx gzip", "npz", "tfrecord"])
def test_what_cannot_be_mapped_says_so(tmp_path, kind):
    path, _ = WRITERS[kind](tmp_path)
    with pytest.raises(lockstep.data.DataError, match="mapped|copied"):
        lockstep.data.read(path, as_numpy=True, zero_copy=True)


def large_idx(folder):
    """Larger than the pieces and marks of compressed data."""
    array = np.repeat(RNG.integers(0, 256, (3000, 100)).astype(np.uint8), 20, axis=1)
    return datafiles.write(folder, "large-idx.gz", datafiles.gz(datafiles.idx(array))), array


def test_compressed_data_is_read_from_the_middle(tmp_path):
    path, array = large_idx(tmp_path)
    with lockstep.data.open(path) as source:
        assert source.chunk_rows > 1
        for first in (2900, 10, 1500, 2999, 0, 700, 2300):
            np.testing.assert_array_equal(source.read(first, 1)[0], array[first:first + 1])
        np.testing.assert_array_equal(source.read(0, 3000)[0], array)


@pytest.mark.parametrize("size", [1, 3])
def test_shuffled_chunks_are_the_rows_of_the_file(tmp_path, size):
    path, array = large_idx(tmp_path)
    parts = all_well(together(size, lambda part: lockstep.data.read(path, "data", as_numpy=True, shuffle=True, seed=1, part=part)))
    got = np.concatenate(parts)
    assert sorted(rows_as_bytes({"data": got})) == sorted(rows_as_bytes({"data": array}))
    assert (got != array).any()


def test_a_record_that_looks_like_a_file_does_not_mislead_the_ranks(tmp_path):
    """A TFRecord inside a TFRecord: a rank that begins in its middle finds records there which are none."""
    inner = datafiles.tfrecord([b"false %d" % i * 10 for i in range(40)])
    records = [b"a", inner, b"b", inner, inner, b"c" * 50]
    path = datafiles.write(tmp_path, "nested.tfrecord", datafiles.tfrecord(records))
    for size in (1, 2, 3, 5):
        parts = all_well(together(size, lambda part: lockstep.data.read(path, "record", as_numpy=True, part=part)))
        assert [record for part in parts for record in part] == records


def test_files_side_by_side(tmp_path):
    images, labels = many_rows(), np.arange(503).astype(np.int32)
    paths = {"image": datafiles.write(tmp_path, "images-idx", datafiles.idx(images)),
             "label": datafiles.write(tmp_path, "labels.npy", datafiles.npy(labels))}
    x, y = lockstep.data.read(paths, columns=("image", "label"), as_numpy=True, shuffle=True, seed=0)
    np.testing.assert_array_equal(x, images[y])
    datafiles.write(tmp_path, "labels.npy", datafiles.npy(labels[:-1]))
    with pytest.raises(lockstep.data.DataError, match="502 rows, but 503"):
        lockstep.data.read(paths, as_numpy=True)


def test_a_folder_is_its_files_in_the_order_of_their_names(tmp_path):
    rows = many_rows()
    for name, part in (("b.npy", rows[100:300]), ("a.npy", rows[:100]), ("c.npy", rows[300:])):
        datafiles.write(tmp_path, name, datafiles.npy(part))
    datafiles.write(tmp_path, ".hidden", b"not data")
    np.testing.assert_array_equal(lockstep.data.read(tmp_path, "data", as_numpy=True), rows)
    datafiles.write(tmp_path, "d.npy", datafiles.npy(rows.astype("float32")))
    with pytest.raises(lockstep.data.DataError, match="d.npy: field 'data' .*float32.* differs"):
        lockstep.data.read(tmp_path, as_numpy=True)


def test_equal_short_rows_are_one_object_and_none_is_kept(tmp_path):
    records = [b"same"] * 1000 + [b"", b"x" * 65, b"x" * 65] + [b"%d" % i for i in range(3000)]
    path = datafiles.write(tmp_path, "a.tfrecord", datafiles.tfrecord(records))
    rows = lockstep.data.read(path, "record", as_numpy=True)
    assert rows.tolist() == records
    same, longer = rows[300], rows[1001]
    assert rows[301] is same and rows[1002] is not longer
    assert sys.getrefcount(same) > 500
    del rows
    assert sys.getrefcount(same) == 2 and sys.getrefcount(longer) == 2


def test_progress_is_reported_and_can_stop_the_work(tmp_path):
    array = np.zeros((40_000, 1000), np.uint8)
    path = datafiles.write(tmp_path, "zeros-idx.gz", datafiles.gz(datafiles.idx(array), level=1))
    seen = []
    lockstep.data.open(path, part=(0, 2), progress=lambda *args: seen.append(args)).close()
    assert len(seen) >= 2 and seen[0][0] == str(path) and seen[0][1] < seen[1][1] <= seen[1][2]
    with pytest.raises(lockstep.data.DataError, match="stopped on request"):
        lockstep.data.open(path, part=(0, 2), progress=lambda *args: True)


def test_show_says_what_is_in_a_file(tmp_path):
    path = datafiles.write(tmp_path, "rows.npy", datafiles.npy(np.arange(10.0).reshape(5, 2)))
    text = lockstep.data.show(path, ranks=2)
    assert text.splitlines() == [f"{path}: npy", "  data: 5 rows of float64 2", "  data[0] = [0. 1.]", "  data[1] = [2. 3.]",
                                 "  data[2] = [4. 5.]", "  rank 0: rows 0 to 2", "  rank 1: rows 3 to 4"]


def test_arrays_that_share_memory_do_not_meet(tmp_path):
    """Large tables: many arrays lie in one block of memory."""
    given = {f"c{i}": np.arange(i, i + 100_001, dtype=dtype) for i, dtype in enumerate(["f8", "u1", "i2", "f4"] * 6)}
    path = datafiles.write(tmp_path, "many.npz", datafiles.npz(**given))
    read = lockstep.data.read(path, as_numpy=True)
    block = read["c0"].base
    assert block is not None and all(array.base is block for array in read.values())
    for name, array in read.items():
        assert array.flags.aligned and array.flags.writeable
        np.testing.assert_array_equal(array, given[name])
        array[:] = 0
        given[name][:] = 0
