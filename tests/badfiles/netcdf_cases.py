# SPDX-License-Identifier: Apache-2.0
"""NetCDF files that cannot be read.  CASES: name -> (write(folder) -> path, what the error says, options)."""
import struct

DIMENSION, VARIABLE, ATTRIBUTE = 10, 11, 12
BYTE, CHAR, SHORT, INT, FLOAT, DOUBLE = range(1, 7)


def number(value, wide=False):
    return struct.pack(">q" if wide else ">i", value)


def name(text, wide=False):
    raw = text if isinstance(text, bytes) else text.encode()
    return number(len(raw), wide) + raw + bytes(-len(raw) % 4)


def entries(tag, items, count=None, wide=False):
    count = len(items) if count is None else count
    return struct.pack(">i", tag if count else 0) + number(count, wide) + b"".join(items)


def variable(title, ids, kind=FLOAT, begin=None, attributes=(), num_ids=None, size=0, version=1):
    """begin None: right after the header; header() puts it in."""
    wide = version == 5
    place = b"<begin>!" if begin is None else struct.pack(">q" if version > 1 else ">I", begin)
    return (name(title, wide) + number(len(ids) if num_ids is None else num_ids, wide) +
            b"".join(number(one, wide) for one in ids) + entries(ATTRIBUTE, attributes, wide=wide) + struct.pack(">i", kind) +
            number(size, wide) + place)


def header(dimensions, variables, records=0, version=1, magic=b"CDF", num_dimensions=None, num_variables=None, attributes=(),
           num_attributes=None):
    """dimensions: (name, length) pairs, length 0 for records."""
    wide = version == 5
    head = magic + bytes([version]) + (records if isinstance(records, bytes) else number(records, wide))
    head += entries(DIMENSION, [name(title, wide) + number(length, wide) for title, length in dimensions], num_dimensions, wide)
    head += entries(ATTRIBUTE, attributes, num_attributes, wide)
    head += entries(VARIABLE, variables, num_variables, wide)
    width = 8 if version > 1 else 4
    length = len(head) - (8 - width) * head.count(b"<begin>!")
    return head.replace(b"<begin>!", struct.pack(">q" if version > 1 else ">I", length))


def good(version=1):
    """Four rows of two floats and four labels in records."""
    dimensions = [("r", 0), ("k", 2)]
    return header(dimensions, [variable("x", (0, 1), version=version)], 4, version) + bytes(32)


def raw(content, title="bad.nc"):
    def write(folder):
        (folder / title).write_bytes(content)
        return folder / title
    write.content = content
    return write


X = variable("x", (0,))

CASES = {
    "an empty file": (raw(b""), r"bad.nc: byte 0: the file is empty", {}),
    "only the first bytes": (raw(b"CDF\x01"), r"bad.nc: byte 4: the file ends inside its header", {}),
    "another format": (raw(b"CSV,1,2\n" * 20), r"bad.nc: byte 0: it does not begin with CDF", {}),
    "a version that does not exist": (raw(b"CDF\x03" + good()[4:]), r"byte 0: it does not begin with CDF and 1, 2 or 5", {}),
    "cut inside the list of dimensions": (raw(good()[:34]), r"byte \d+: the file ends inside its header", {}),
    "cut inside the list of variables": (raw(good()[:70]), r"byte \d+: .*(the file ends inside its header|more than the file)", {}),
    "the last byte is missing": (raw(good()[:-1]), r"row 3, byte \d+: variable 'x' begins at this byte and has 4 rows", {}),
    "no data at all": (raw(good()[:-32]), r"variable 'x' .* cut short", {}),
    "more records than bytes": (raw(header([("r", 0)], [X], 1 << 30) + bytes(64)), r"has 1073741824 rows, which need more", {}),
    "a negative number of records": (raw(header([("r", 0)], [X], -2) + bytes(64)), r"rows, which need more", {}),
    "a dimension longer than the file": (raw(header([("r", 1 << 30)], [X]) + bytes(64)), r"has 1073741824 rows", {}),
    "dimensions whose product overflows": (raw(header([("a", 2**31 - 1), ("b", 2**31 - 1), ("c", 2**31 - 1)],
                                                      [variable("x", (0, 1, 2))]) + bytes(64)), r"'x' is larger than any file", {}),
    "a dimension of negative length": (raw(header([("r", -5)], [X]) + bytes(64)), r"is negative in this format", {}),
    "two record dimensions": (raw(header([("r", 0), ("s", 0)], [X], 1) + bytes(64)), r"dimension 's' is a second one", {}),
    "records in the second place": (raw(header([("r", 0), ("k", 2)], [variable("x", (1, 0))], 1) + bytes(64)),
                                    r"'x' has the record dimension in another place", {}),
    "a dimension that is not there": (raw(header([("r", 2)], [variable("x", (7,))]) + bytes(64)),
                                      r"'x' has dimension 7, but there are 1", {}),
    "a type that does not exist": (raw(header([("r", 2)], [variable("x", (0,), kind=99)]) + bytes(64)),
                                   r"type 99 just before this byte is none of CDF-1", {}),
    "a type of CDF-5 in CDF-1": (raw(header([("r", 2)], [variable("x", (0,), kind=10)]) + bytes(64)), r"type 10 .* none of CDF-1", {}),
    "a list with another mark": (raw(good()[:8] + b"\0\0\0\x0d" + good()[12:]), r"a list of dimensions should begin", {}),
    "more dimensions than bytes": (raw(header([("r", 2)], [X], num_dimensions=1 << 29) + bytes(64)),
                                   r"536870912 dimensions should follow", {}),
    "more variables than bytes": (raw(header([("r", 2)], [X], num_variables=1 << 29) + bytes(64)),
                                  r"536870912 variables should follow", {}),
    "more attributes than bytes": (raw(header([("r", 2)], [X], num_attributes=1 << 29) + bytes(64)),
                                   r"536870912 attributes should follow", {}),
    "an attribute longer than the file": (raw(header([("r", 2)], [X], attributes=[
        name("note") + struct.pack(">ii", CHAR, 1 << 30)]) + bytes(64)), r"1073741824 bytes should follow", {}),
    "a name longer than names are": (raw(header([("n" * 300, 2)], [X]) + bytes(64)), r"a name of 300 bytes should follow", {}),
    "a name longer than the file": (raw(good()[:16] + number(1 << 30) + good()[20:]), r"a name of 1073741824 bytes", {}),
    "a zero byte in a name": (raw(header([(b"a\0b", 2)], [X]) + bytes(64)), r"a name has a zero byte", {}),
    "ten dimensions": (raw(header([("a", 1)], [variable("x", (0,) * 10)]) + bytes(64)), r"'x' has 10 dimensions; at most 9", {}),
    "data that begins behind the file": (raw(header([("r", 2)], [variable("x", (0,), begin=1 << 30)]) + bytes(64)),
                                         r"byte 1073741824: variable 'x' begins at this byte", {}),
    "data that begins nowhere": (raw(header([("r", 2)], [variable("x", (0,), begin=-1, version=2)], version=2) + bytes(64)),
                                 r"variable 'x' begins at this byte", {}),
    "a count of CDF-5 that is negative": (raw(header([("r", -1)], [variable("x", (0,), version=5)], version=5) + bytes(64)),
                                          r"is negative in this format", {}),
    "no variable": (raw(header([("r", 2)], [])), r"it holds no variable with rows", {}),
    "only a single number": (raw(header([("r", 2)], [variable("x", ())]) + bytes(64)), r"it holds no variable with rows", {}),
    "no records": (raw(header([("r", 0)], [X], 0)), r"field 'x' has no rows", {}),
    "a variable that is not there": (raw(good()), r"there is no field 'y'; there are 'x'", {"columns": ["y"]}),
}
