# SPDX-License-Identifier: Apache-2.0
"""HDF5 files that cannot be read.  CASES: name -> (write(folder) -> path, what the error says, options)."""
import h5py
import numpy as np

MAGIC = b"\x89HDF\r\n\x1a\n"
VALUES = np.arange(4000, dtype="f8").reshape(1000, 4)


def file(change=None, **datasets):
    """A file with these datasets (arrays, or arguments of create_dataset), its bytes changed afterwards."""
    def write(folder):
        path = folder / "bad.h5"
        with h5py.File(path, "w") as out:
            for name, value in datasets.items():
                if isinstance(value, dict):
                    out.create_dataset(name, **value)
                else:
                    out[name] = value
        if change is not None:
            path.write_bytes(change(path.read_bytes()))
        return path
    return write


def raw(content, name="bad.h5"):
    def write(folder):
        (folder / name).write_bytes(content)
        return folder / name
    return write


def damaged_chunk(**how):
    """Bytes in the middle of the second chunk are turned over."""
    def write(folder):
        path = folder / "bad.h5"
        with h5py.File(path, "w") as out:
            dataset = out.create_dataset("x", data=VALUES, chunks=(100, 4), **how)
            place = dataset.id.get_chunk_info(1)
        content = bytearray(path.read_bytes())
        for i in range(place.byte_offset + place.size // 2, place.byte_offset + place.size // 2 + 16):
            content[i] ^= 0xff
        path.write_bytes(content)
        return path
    return write


def moved_data(folder):
    """The address of contiguous data points behind the end of the file."""
    path = file(x=VALUES)(folder)
    with h5py.File(path) as opened:
        offset = opened["x"].id.get_offset()
    content = path.read_bytes().replace(offset.to_bytes(8, "little"), (1 << 40).to_bytes(8, "little"))
    path.write_bytes(content)
    return path


def grown_data(folder):
    """The shape says more rows than there are bytes."""
    path = file(x=VALUES)(folder)
    path.write_bytes(path.read_bytes().replace((1000).to_bytes(8, "little"), (1 << 33).to_bytes(8, "little"))
                     .replace((32000).to_bytes(8, "little"), (1 << 38).to_bytes(8, "little")))
    return path


def several(*rows):
    def write(folder):
        (folder / "many").mkdir()
        for number, value in enumerate(rows):
            with h5py.File(folder / "many" / f"{number}.h5", "w") as out:
                out["x"] = value
        return folder / "many"
    return write


CASES = {
    "cut in the middle": (file(lambda content: content[:len(content) // 2], x=VALUES), r"bad.h5: byte 0: .*truncated", {}),
    "the last byte is missing": (file(lambda content: content[:-1], x=VALUES), r"bad.h5: .*truncated", {}),
    "cut inside the head": (file(lambda content: content[:40], x=VALUES), r"bad.h5: byte 0: it cannot be opened as HDF5", {}),
    "only the signature": (raw(MAGIC), r"bad.h5: byte 0: it cannot be opened as HDF5", {}),
    "zeros after the signature": (raw(MAGIC + bytes(5000)), r"it cannot be opened as HDF5", {}),
    "ones after the signature": (raw(MAGIC + b"\xff" * 5000), r"it cannot be opened as HDF5", {}),
    "another format": (raw(b"this is no HDF5 file\n" * 100), r"bad.h5: byte 0: it cannot be opened as HDF5: .*signature", {}),
    "an empty file": (raw(b""), r"bad.h5: byte 0: the file is empty", {}),
    "no dataset": (file(), r"bad.h5: it holds no dataset of numbers with rows", {}),
    "only text": (file(names=[b"a", b"b"]), r"it holds no dataset of numbers with rows", {}),
    "only single numbers": (file(x=3.5), r"it holds no dataset of numbers with rows", {}),
    "text was asked for": (file(names=[b"a", b"b"], x=VALUES), r"dataset 'names' cannot be read: its elements are no numbers",
                           {"columns": ["names"]}),
    "a single number was asked for": (file(one=1, x=VALUES), r"dataset 'one' cannot be read: it has no dimension",
                                      {"columns": ["one"]}),
    "a dataset that is not there": (file(x=VALUES), r"there is no field 'y'; there are 'x'", {"columns": ["y"]}),
    "no rows": (file(x=np.zeros((0, 4))), r"field 'x' has no rows", {}),
    "a damaged gzip chunk": (damaged_chunk(compression="gzip"), r"bad.h5: row 0: dataset 'x' cannot be read here or soon after", {}),
    "a wrong checksum": (damaged_chunk(fletcher32=True), r"row 0: dataset 'x' cannot be read .*checksum", {}),
    "a filter that is not installed": (file(x={"data": VALUES, "chunks": (100, 4), "compression": "lzf"}),
                                       r"row 0: dataset 'x' cannot be read .*filter", {}),
    "data behind the end of the file": (moved_data, r"bad.h5: ", {}),
    "more rows than bytes": (grown_data, r"bad.h5: ", {}),
    "files with other shapes": (several(np.zeros((3, 2)), np.zeros((3, 4))), r"1.h5: field 'x' .* differs", {}),
    "files with other types": (several(np.zeros(3, "f4"), np.zeros(3, "f8")), r"1.h5: field 'x' .* differs", {}),
}
