# SPDX-License-Identifier: Apache-2.0
"""Writes small data files of each format, byte by byte, without the library under test."""
import gzip
import io
import pickle
import struct
import zlib

import numpy as np

IDX_CODES = {"uint8": 8, "int8": 9, "int16": 11, "int32": 12, "float32": 13, "float64": 14}


def idx(array):
    head = bytes([0, 0, IDX_CODES[array.dtype.name], array.ndim]) + b"".join(struct.pack(">I", n) for n in array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


def gz(data, level=6, strategy=zlib.Z_DEFAULT_STRATEGY):
    """gzip with a chosen kind of blocks: level 0 stores, strategy Z_FIXED uses the fixed codes."""
    packer = zlib.compressobj(level, zlib.DEFLATED, -15, 9, strategy)
    packed = packer.compress(data) + packer.flush()
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + packed + struct.pack("<II", zlib.crc32(data), len(data) & 0xffffffff)


def npy(array, version=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def npz(compressed=False, **arrays):
    out = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(out, **arrays)
    return out.getvalue()


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xa282ead8) & 0xffffffff)


def tfrecord(records):
    out = b""
    for record in records:
        length = struct.pack("<Q", len(record))
        out += length + masked(length) + record + masked(record)
    return out


def cifar_binary(data, *labels):
    return np.concatenate([np.stack(labels, axis=1), data.reshape(len(data), 3072)], axis=1).astype(np.uint8).tobytes()


class Python2Pickle:
    """What Python 2's cPickle wrote at protocol 2: the bytes of the files that are handed out."""

    def __init__(self):
        self.out, self.count = b"\x80\x02", 0

    def put(self):
        self.count += 1
        self.out += b"q" + bytes([self.count]) if self.count < 256 else b"r" + struct.pack("<I", self.count)

    def text(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        self.out += b"U" + bytes([len(data)]) if len(data) < 256 else b"T" + struct.pack("<I", len(data))
        self.out += data
        self.put()

    def number(self, value):
        self.out += b"K" + bytes([value]) if value < 256 else b"M" + struct.pack("<H", value)

    def items(self, values, write):
        self.out += b"]"
        self.put()
        for begin in range(0, len(values), 1000):
            self.out += b"("
            for value in values[begin:begin + 1000]:
                write(value)
            self.out += b"e"

    def array(self, array):
        self.out += b"cnumpy.core.multiarray\n_reconstruct\n"
        self.put()
        self.out += b"cnumpy\nndarray\n"
        self.put()
        self.out += b"K\0\x85"
        self.put()
        self.text("b")
        self.out += b"\x87"
        self.put()
        self.out += b"R"
        self.put()
        self.out += b"(K\1"
        for size in array.shape:
            self.number(size)
        self.out += b"\x86"
        self.put()
        self.out += b"cnumpy\ndtype\n"
        self.put()
        self.text("u1")
        self.out += b"K\0K\1\x87"
        self.put()
        self.out += b"R"
        self.put()
        self.out += b"(K\3"
        self.text("|")
        self.out += b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0t"
        self.put()
        self.out += b"b\x89"
        self.text(array.tobytes())
        self.out += b"t"
        self.put()
        self.out += b"b"

    def dictionary(self, **entries):
        self.out += b"}"
        self.put()
        self.out += b"("
        for key, value in entries.items():
            self.text(key)
            if isinstance(value, str):
                self.text(value)
            elif isinstance(value, np.ndarray):
                self.array(value)
            else:
                self.items(value, self.text if isinstance(value[0], str) else self.number)
        return self.out + b"u."


def cifar_pickle(data, labels=None, fine=None, coarse=None, protocol=None):
    """protocol None: as handed out; 3 to 5: saved again by Python 3."""
    data = data.reshape(len(data), 3072)
    names = [f"picture_{i}.png" for i in range(len(data))]
    if labels is not None:
        entries = {"batch_label": "testing", "labels": list(map(int, labels)), "data": data, "filenames": names}
    else:
        entries = {"filenames": names, "batch_label": "testing", "fine_labels": list(map(int, fine)),
                   "coarse_labels": list(map(int, coarse)), "data": data}
    if protocol is None:
        return Python2Pickle().dictionary(**entries)
    return pickle.dumps({key.encode(): value for key, value in entries.items()}, protocol=protocol)


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content)
    return path


def gunzip(path):
    return gzip.decompress(path.read_bytes())
