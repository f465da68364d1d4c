# SPDX-License-Identifier: Apache-2.0
"""Files that cannot be read, and what must be said about each.

A case makes a file and gives a pattern that the error must match behind the file's name.  `tests/badfiles/make FOLDER`
writes them all."""
import os
import struct
import zipfile
from dataclasses import dataclass
from typing import Callable

import datafiles
import numpy as np

ROWS = np.arange(60 * 28 * 28, dtype=np.uint64).astype(np.uint8).reshape(60, 28, 28)
FLOATS = np.arange(300, dtype=np.float32).reshape(100, 3)
PICTURES = np.arange(12 * 3072, dtype=np.uint64).astype(np.uint8).reshape(12, 3072)
LABELS = np.arange(12) % 10
RECORDS = [b"record %03d" % i for i in range(50)]
RECORD_BYTES = 12 + 10 + 4


@dataclass(frozen=True)
class Case:
    name: str
    error: str  # regular expression, behind "FILE: "
    content: Callable = None  # bytes of the file; or
    make: Callable = None  # make(path)
    format: str = None  # as a user who names the format
    ranks: int = 1

    def write(self, folder):
        path = folder / self.name
        if self.make is not None:
            self.make(path)
        else:
            path.write_bytes(self.content())
        return path


def replaced(data, offset, new):
    return data[:offset] + new + data[offset + len(new):]


def fifo(path):
    os.mkfifo(path)


def forbidden(path):
    path.write_bytes(datafiles.idx(ROWS))
    path.chmod(0)


def dangling(path):
    path.symlink_to(path.parent / "nowhere")


# ---- any format ---------------------------------------------------------------------------------------------------------

ANY = [
    Case("empty", r"byte 0: the file is empty", lambda: b""),
    Case("unknown", r"byte 0: it is of no known format \(it begins with 6e 6f 74 20\); known are", lambda: b"not data at all"),
    Case("nul", r"byte 0: it is of no known format \(it begins with 00 00 00 00\)", lambda: bytes(100)),
    Case("missing", r"it cannot be opened: No such file", make=lambda path: None),
    Case("dangling", r"it cannot be opened: No such file", make=dangling),
    Case("folder", r"there is no file in this folder", make=lambda path: path.mkdir()),
    Case("fifo", r"it is a device, pipe or socket, not a file", make=fifo),
    Case("no-such-*", r"no file matches this pattern", make=lambda path: None),
    Case("forbidden", r"it cannot be opened: Permission denied", make=forbidden),
    Case("strange-format", r"there is no format 'parquet'; there are npy, ", lambda: datafiles.idx(ROWS), format="parquet"),
]

# ---- IDX ------------------------------------------------------------------------------------------------------------------

IDX = [
    Case("idx-wrong-magic", r"byte 0: this is not IDX: it begins with 01 00 08 03", format="idx",
         content=lambda: replaced(datafiles.idx(ROWS), 0, b"\1")),
    Case("idx-wrong-type", r"byte 0: this is not IDX: it begins with 00 00 0f 03", format="idx",
         content=lambda: replaced(datafiles.idx(ROWS), 2, b"\x0f")),
    Case("idx-no-dimensions", r"byte 3: 0 dimensions; 1 to 8 are supported", lambda: b"\0\0\x08\0" + bytes(20), format="idx"),
    Case("idx-200-dimensions", r"byte 3: 200 dimensions; 1 to 8", lambda: b"\0\0\x08\xc8" + bytes(2000), format="idx"),
    Case("idx-cut-header", r"byte 6: the data is too short", lambda: datafiles.idx(ROWS)[:6], format="idx"),
    Case("idx-cut", r"byte 0: the header announces 47056 bytes in all, there are 46056", lambda: datafiles.idx(ROWS)[:-1000]),
    Case("idx-too-long", r"byte 0: the header announces 47056 bytes in all, there are 47057", lambda: datafiles.idx(ROWS) + b"x"),
    Case("idx-lying-rows", r"byte 0: the header announces \d+ bytes in all", lambda: replaced(datafiles.idx(ROWS), 4, b"\xff\xff\xff\xff")),
    Case("idx-overflow", r"byte 4: the dimensions multiply to more than any file can hold",
         lambda: b"\0\0\x0e\x08" + b"\xff" * 32 + bytes(100)),
    Case("idx-no-rows", r"field 'data' has no rows", lambda: datafiles.idx(ROWS[:0])),
    Case("idx-few-rows", r"field 'data' has 3 rows, fewer than the 5 ranks", lambda: datafiles.idx(ROWS[:3]), ranks=5),
]

# ---- gzip -----------------------------------------------------------------------------------------------------------------

GZ = datafiles.gz(datafiles.idx(ROWS))
STORED = datafiles.gz(datafiles.idx(ROWS), level=0)


def code_lengths(bits):
    """The header of a block of dynamic codes, in which all 19 lengths are the same."""
    return (5 | 15 << 13 | sum(bits << 17 + 3 * i for i in range(19))).to_bytes(50, "little")


GZIP = [
    Case("gz-cut", rf"byte {len(GZ) - 30}: the file ends in the middle of compressed data", lambda: GZ[:-30]),
    Case("gz-cut-trailer", rf"byte {len(GZ) - 3}: the file ends in the middle of the gzip checksum", lambda: GZ[:-3]),
    Case("gz-cut-header", r"byte 0: the gzip header is cut short", lambda: GZ[:5]),
    Case("gz-cut-stored", r"byte 20000: the file ends in the middle of compressed data", lambda: STORED[:20000]),
    Case("gz-header-flags", r"byte 3: unknown flags 0xe0", lambda: replaced(GZ, 3, b"\xe0")),
    Case("gz-endless-name", r"byte 0: the gzip header is cut short or too long", lambda: replaced(GZ, 3, b"\x08")[:10] + b"x" * 9000),
    Case("gz-wrong-crc", rf"byte {len(GZ) - 8}: wrong checksum: the file says CRC 0x", lambda: replaced(GZ, len(GZ) - 8, b"abcd")),
    Case("gz-wrong-length", rf"byte {len(GZ) - 4}: wrong length: the file says", lambda: replaced(GZ, len(GZ) - 4, b"abcd")),
    Case("gz-changed-data", r"byte \d+: wrong checksum", lambda: replaced(STORED, 5000, b"changed")),
    Case("gz-changed-data-two-ranks", r"byte \d+: wrong checksum", lambda: replaced(STORED, 5000, b"changed"), ranks=2),
    Case("gz-block-kind-3", r"byte 10: a block has the kind 3, which does not exist", lambda: replaced(GZ, 10, b"\x07")),
    Case("gz-stored-length", r"byte 15: the length of a stored block and its complement", lambda: replaced(STORED, 13, b"\0\0")),
    Case("gz-many-codes", r"byte 12: there are too many codes for lengths or distances", lambda: GZ[:10] + b"\x05" + b"\xff" * 500),
    Case("gz-incomplete-code", r"byte \d+: a Huffman code is incomplete", lambda: GZ[:10] + code_lengths(7)),
    Case("gz-crowded-code", r"byte \d+: a Huffman code has more codes than bits allow", lambda: GZ[:10] + code_lengths(1)),
    Case("gz-reaches-back", r"byte \d+: a match reaches back before the beginning", lambda: GZ[:10] + b"\x03\x02" + bytes(20)),
    Case("gz-garbage-after", r"byte \d+: neither the end of the file nor more gzip data", lambda: GZ + b"garbage, not gzip"),
    Case("gz-too-short", r"byte \d+: the data ends too early: it must have 47056 bytes", lambda: datafiles.gz(datafiles.idx(ROWS)[:-9])),
    Case("gz-too-long", r"byte \d+: the data has more than the expected 47056 bytes", lambda: datafiles.gz(datafiles.idx(ROWS) + b"xx")),
    Case("gz-not-idx", r"byte 0: this is not IDX inside gzip", lambda: datafiles.gz(b"some,text\n1,2\n")),
    Case("gz-empty", r"byte \d+: the data ends too early", lambda: datafiles.gz(b"")),
]

# ---- npy and npz ------------------------------------------------------------------------------------------------------------

NPY = datafiles.npy(FLOATS)


def header(text, version=1):
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + bytes(1200)


def shape(text):
    return lambda: header("{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % text)


NUMPY = [
    Case("npy-cut-header", r"byte 9: the data is too short", lambda: NPY[:9]),
    Case("npy-cut-text", r"byte 50: the data is too short", lambda: NPY[:50]),
    Case("npy-cut", r"byte 0: the header announces 1328 bytes in all, there are 1318", lambda: NPY[:-10]),
    Case("npy-version", r"byte 0: this version of NumPy's format is not known", lambda: replaced(NPY, 6, b"\x09")),
    Case("npy-long-header", r"byte 0: the header is longer than 64 KiB", lambda: b"\x93NUMPY\2\0\xff\xff\xff\x7f" + bytes(99)),
    Case("npy-nul", r"byte 10: there is a NUL byte in the header", lambda: replaced(NPY, 30, b"\0")),
    Case("npy-no-dictionary", r"byte 10: the header is not a dictionary", lambda: header("[1, 2]")),
    Case("npy-strange-key", r"byte 11: the header has something else than", lambda: header("{'evil': __import__('os'), }")),
    Case("npy-no-shape", r"byte 50: the header lacks one of", lambda: header("{'descr': '<f4', 'fortran_order': False}")),
    Case("npy-negative-shape", r"byte \d+: the shape has something that is not a number", shape("(-5, 3)")),
    Case("npy-huge-shape", r"byte \d+: a dimension is larger than any file", shape("(99999999999999999999999,)")),
    Case("npy-overflow", r"byte \d+: the shape multiplies to more than any file", shape("(4294967296, 4294967296, 4294967296)")),
    Case("npy-lying-shape", r"byte 0: the header announces 4000000\d\d bytes in all", shape("(100000000,)")),
    Case("npy-nine-dimensions", r"byte \d+: more than 8 dimensions", shape("(1,1,1,1,1,1,1,1,1)")),
    Case("npy-objects", r"byte \d+: elements of type '\|O' are not supported", lambda: datafiles.npy(np.array([None, 1]))),
    Case("npy-complex", r"byte \d+: elements of type '<c16' are not supported", lambda: datafiles.npy(np.array([1j]))),
    Case("npy-named-fields", r"byte \d+: arrays with named fields", lambda: datafiles.npy(np.zeros(3, "i4,f4"))),
    Case("npy-fortran", r"byte \d+: the array is in Fortran's order", lambda: datafiles.npy(np.asfortranarray(FLOATS))),
    Case("npy-no-rows", r"field 'data' has no rows", lambda: datafiles.npy(FLOATS[:0])),
    Case("npy-few-rows", r"field 'data' has 2 rows, fewer than the 3 ranks", lambda: datafiles.npy(FLOATS[:2]), ranks=3),
]


def zip_with(**changes):
    """A stored .npz whose directory entry is changed: offset of the directory entry -> bytes."""
    def content():
        data = datafiles.npz(x=FLOATS)
        entry = data.index(b"PK\1\2")
        for offset, new in changes.values():
            data = replaced(data, entry + offset, new)
        return data
    return content


def zip_of_text():
    from io import BytesIO
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("readme.txt", "this is not an array, and long enough to look at")
    return out.getvalue()


NPZ_DATA = 30 + len("x.npy") + 20

NPZ = [
    Case("npz-cut", r"byte \d+: the zip directory is missing; was the file cut short", lambda: datafiles.npz(x=FLOATS)[:-100]),
    Case("npz-short", r"byte 10: the file is too short to be a zip file", lambda: datafiles.npz(x=FLOATS)[:10]),
    Case("npz-wrong-crc", r"byte \d+: wrong checksum", zip_with(crc=(16, b"abcd"))),
    Case("npz-changed-data", r"byte \d+: wrong checksum", lambda: replaced(datafiles.npz(x=FLOATS), 500, b"changed")),
    Case("npz-changed-two-ranks", r"byte \d+: wrong checksum", lambda: replaced(datafiles.npz(x=FLOATS), 500, b"changed"), ranks=2),
    Case("npz-encrypted", r"entry 0, byte \d+: the entry is encrypted, or packed in another way", zip_with(flags=(8, b"\1\0"))),
    Case("npz-method", r"entry 0, byte \d+: the entry is encrypted, or packed in another way", zip_with(method=(10, b"\x0e\0"))),
    Case("npz-lying-size", r"entry 0, byte \d+: the entry is longer than the file",
         zip_with(packed=(20, b"\xff\xff\xff\x0f"), size=(24, b"\xff\xff\xff\x0f"))),
    Case("npz-two-sizes", r"entry 0, byte \d+: a stored entry has two different sizes", zip_with(size=(24, b"\1\0\0\0"))),
    Case("npz-lying-offset", r"entry 0, byte 4294967280: the zip directory points behind the end", zip_with(local=(42, b"\xf0\xff\xff\xff"))),
    Case("npz-wrong-offset", r"entry 0, byte 5: there is no zip entry where the directory says", zip_with(local=(42, b"\5\0\0\0"))),
    Case("npz-not-npy", r"byte \d+: readme.txt: this is not NumPy's format", zip_of_text),
    Case("npz-deflate-cut", r"byte \d+: (the zip directory|the file ends)", lambda: datafiles.npz(True, x=FLOATS)[:-60]),
    Case("npz-deflate-changed", r"byte \d+: ", lambda: replaced(datafiles.npz(True, x=ROWS), 150, b"\xff\xff\xff\xff")),
]

# ---- TFRecord -------------------------------------------------------------------------------------------------------------

TF = datafiles.tfrecord(RECORDS)


def lying_length(length):
    packed = struct.pack("<Q", length)
    return lambda: replaced(TF, 20 * RECORD_BYTES, packed + datafiles.masked(packed))


TFRECORD = [
    Case("tf-cut-head", r"record 49, byte 1274: the file ends 5 bytes into the record's length", lambda: TF[:49 * RECORD_BYTES + 5]),
    Case("tf-cut-data", r"record 49, byte 1274: the record has 10 bytes, of which the file holds 4",
         lambda: TF[:49 * RECORD_BYTES + 16]),
    Case("tf-cut-two-ranks", r"record 49, byte 1274: the record has 10 bytes, of which the file holds 4 \(found by rank 0\)",
         lambda: TF[:49 * RECORD_BYTES + 16], ranks=2),
    Case("tf-length-crc", r"record 20, byte 520: the record's length has a wrong checksum",
         lambda: replaced(TF, 20 * RECORD_BYTES + 9, b"x")),
    Case("tf-data-crc", r"record 20, byte 532: the record's data has a wrong checksum",
         lambda: replaced(TF, 21 * RECORD_BYTES - 1, b"x")),
    Case("tf-changed-data", r"record 20, byte 532: the record's data has a wrong checksum",
         lambda: replaced(TF, 20 * RECORD_BYTES + 15, b"xx")),
    Case("tf-lying-length", r"record 20, byte 520: the record has 1073741824 bytes, of which the file holds", lying_length(1 << 30)),
    Case("tf-endless-length", r"record 20, byte 520: the record's length has a wrong checksum|the record has", lying_length((1 << 64) - 1)),
    Case("tf-not", r"record 0, byte 0: the record's length has a wrong checksum; this may not be TFRecord",
         lambda: b"this is a text, longer than a head", format="tfrecord"),
    Case("tf-few-records", r"field 'record' has 2 rows, fewer than the 3 ranks", lambda: datafiles.tfrecord(RECORDS[:2]), ranks=3),
]

# ---- CIFAR ----------------------------------------------------------------------------------------------------------------

PICKLE = datafiles.cifar_pickle(PICTURES, LABELS)


def pickled(**changes):
    return lambda: datafiles.Python2Pickle().dictionary(**{"labels": LABELS.tolist(), "data": PICTURES, **changes})


CIFAR = [
    Case("cifar-cut.bin", r"row 11, byte 36776: the file's 36776 bytes are not whole records", format="cifar",
         content=lambda: datafiles.cifar_binary(PICTURES, LABELS)[:-100]),
    Case("cifar-label.bin", r"row 2, byte 6146: the label is 77, not one of 0 to 9",
         lambda: replaced(datafiles.cifar_binary(PICTURES, LABELS), 2 * 3073, b"\x4d")),
    Case("cifar-first-label.bin", r"row 0, byte 0: the label is 99, not one of 0 to 9",
         lambda: replaced(datafiles.cifar_binary(PICTURES, LABELS), 0, b"\x63")),
    Case("pickle-cut", r"instruction \d+, byte \d+: the file ends in the middle of the pickle", lambda: PICKLE[:-1]),
    Case("pickle-cut-array", r"instruction \d+, byte \d+: a text or array is longer than the file", lambda: PICKLE[:20000]),
    Case("pickle-evil", r"instruction \d+, byte \d+: the pickle names a function that CIFAR's files do not use; nothing was executed",
         lambda: b"\x80\x02}(U\4datacposix\nsystem\nU\x07echo hi\x85Ru."),
    Case("pickle-other-instruction", r"instruction 2, byte 3: the pickle has the instruction 0x49",
         lambda: b"\x80\x02}I1\n."),
    Case("pickle-no-data", r"byte 0: this pickle has no array 'data'", lambda: datafiles.Python2Pickle().dictionary(labels=[1, 2])),
    Case("pickle-narrow", r"byte \d+: this pickle has no array 'data' with rows of 3072", pickled(data=PICTURES[:, :100])),
    Case("pickle-few-labels", r"row 11: there are 12 pictures, but not a list of so many labels", pickled(labels=[1] * 11)),
    Case("pickle-text-labels", r"row 0: there are 12 pictures, but not a list", pickled(labels=["a"] * 12)),
    Case("pickle-high-label", r"row 11: the label is 10, not one of 0 to 9", pickled(labels=[1] * 11 + [10])),
    Case("pickle-lying-shape", r"instruction \d+, byte \d+: an array's shape does not have two dimensions that fit",
         lambda: PICKLE.replace(b"K\x0cM\x00\x0c", b"K\x0dM\x00\x0c")),
    Case("pickle-empty-stack", r"instruction 2, byte 4: the pickle takes more from its stack", lambda: b"\x80\x02}R."),
    Case("pickle-wrong-type", r"instruction \d+, byte \d+: an array is not of type uint8", lambda: PICKLE.replace(b"u1", b"f4")),
]

CASES = [*ANY, *IDX, *GZIP, *NUMPY, *NPZ, *TFRECORD, *CIFAR]
