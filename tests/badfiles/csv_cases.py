# SPDX-License-Identifier: Apache-2.0
"""Tables of text that cannot be read.  CASES: name -> (write(folder) -> path, what the error says, options)."""
import os

ROWS = 200_000  # more than the places where types are looked for


def table(*lines, name="bad.csv"):
    """Writes these lines; `bytes` as they are."""
    def write(folder):
        path = folder / name
        path.write_bytes(lines[0] if isinstance(lines[0], bytes) else "".join(line + "\n" for line in lines).encode())
        return path
    return write


def late(row, text, name="bad.csv"):
    """Many good rows, and `text` in the place of one."""
    def write(folder):
        lines = [f"{i},{i}" for i in range(ROWS)]
        lines[row] = text
        (folder / name).write_text("a,b\n" + "\n".join(lines) + "\n")
        return folder / name
    return write


def huge_field(folder):
    path = folder / "huge.csv"
    with path.open("wb") as file:
        file.write(b'a,b\n1,2\n3,"')
        file.write(b"x" * (65 << 20))
        file.write(b'"\n')
    return path


def huge_first_field(folder):
    path = folder / "huge.csv"
    with path.open("wb") as file:
        file.write(b'"')
        file.truncate(1 << 30)  # a gigabyte, nearly all of it a hole
    return path


def pipe(folder):
    os.mkfifo(folder / "pipe.csv")
    return folder / "pipe.csv"


def dangling(folder):
    (folder / "link.csv").symlink_to("nowhere")
    return folder / "link.csv"


def empty_folder(folder):
    (folder / "nothing").mkdir()
    return folder / "nothing"


def several(**files):
    def write(folder):
        (folder / "many").mkdir()
        for name, text in files.items():
            (folder / "many" / f"{name}.csv").write_text(text)
        return folder / "many"
    return write


def unreadable(folder):
    path = folder / "secret.csv"
    path.write_text("1,2\n")
    path.chmod(0)
    return path


def missing_file(folder):
    return folder / "absent.csv"


CASES = {
    "a row with a field less": (table("a,b,c", "1,2,3", "4,5", "6,7,8"),
                                r"bad.csv: row 1, byte 12: this row has 2 fields, not 3", {}),
    "a row with a field more": (table("1,2", "3,4,5"), r"row 1, byte 4: this row has 3 fields, not 2", {}),
    "a ragged row far in": (late(150_000, "1"), r"row 150000, byte \d+: this row has 1 field, not 2", {}),
    "a ragged row at the end": (table(b"1,2\n3,4\n5"), r"row 2, byte 8: this row has 1 field", {}),
    "a ragged row in the second file": (several(a="1,2\n3,4\n", b="5,6\n7\n8,9\n"), r"b.csv: row 3, byte 4: this row has 1", {}),
    "text in a column of numbers, far in": (late(150_001, "7,seven"),
                                            r"row 150001, byte \d+: column 'b' has 'seven' here, which is no int64", {}),
    "a fraction in a column of whole numbers": (late(150_002, "0.5,1"), r"row 150002.*column 'a' has '0.5'.*no int64", {}),
    "a missing value in a column of whole numbers": (late(150_003, "1,"), r"row 150003.*column 'b' of type int64 has a missing",
                                                     {}),
    "text where floats were asked for": (table("a", "x"), r"row 0, byte 2: column 'a' has 'x'", {"types": ["float64"]}),
    "a number too large for its type": (table("a", "127", "128"), r"row 1, byte 6: .*'128'.*no int8", {"types": ["int8"]}),
    "a negative number without a sign": (table("1", "-1"), r"row 1.*'-1'.*no uint32", {"types": ["uint32"]}),
    "neither true nor false": (table("true", "2"), r"row 1.*'2'.*no bool", {"types": ["bool"], "header": False}),
    "a hexadecimal number": (table("1", "0x10"), r"row 1.*'0x10'.*no float64", {"types": ["float64"]}),
    "a type that text cannot have": (table("1"), r"cannot be read as float16 from a text", {"types": ["float16"]}),
    "more types than columns": (table("1,2"), r"3 types are given for 2 columns", {"types": ["int8"] * 3}),
    "a zero byte": (table(b"1,2\n3,\x004\n"), r"byte 6: a zero byte", {}),
    "zero bytes at the end": (table(b"1,2\n3,4\n" + bytes(1000)), r"byte 8: a zero byte", {}),
    "a program": (table(bytes(range(256)) * 40), r"byte 0: a zero byte|no row|never closed|not around", {}),
    "a field of 65 MiB": (huge_field, r"huge.csv: row 1, byte 8: this row is longer than 64 MiB", {}),
    "a first field of 1 GiB": (huge_first_field, r"huge.csv: row 0, byte 0: this row is longer than 64 MiB", {}),
    "a quote that is never closed": (table("a,b", '1,"x', "2,y"), r"row 0, byte 6: the quote that opens here is never closed", {}),
    "a quote far in that is never closed": (late(150_004, '1,"2'), r"row 150004, byte \d+: the quote that opens here", {}),
    "a quote in the first row that is never closed": (table('"a,b', "1,2"), r"row 0, byte 0: .*never closed", {}),
    "a quote inside a field": (table("a,b", '1,5" pipe', '2,6" pipe'), r"byte \d+: .*quote that is not around a whole field", {}),
    "text after a closing quote": (table("a,b", '1,"x"y'), r"quote that is not around a whole field", {}),
    "an empty file": (table(b""), r"bad.csv: byte 0: the file is empty", {}),
    "only blank lines": (table("", "", ""), r"bad.csv: row 0, byte 0: there is no row", {}),
    "only a header": (table("a,b"), r"there is a header, but no row", {}),
    "UTF-16": (table("1,2\n3,4\n".encode("utf-16")), r"byte 0: the text is UTF-16; convert it", {}),
    "files with other headers": (several(a="x,y\n1,2\n", b="x,z\n1,2\n"), r"b.csv: byte 0: the header is not that of", {}),
    "a column that is not there": (table("a,b", "1,2"), r"there is no field 'c'; there are 'a', 'b'", {"columns": ["c"]}),
    "a delimiter that is the quote": (table("1,2"), r"delimiter and quote of a text table must differ", {"delimiter": '"'}),
    "a missing file": (missing_file, r"absent.csv: .*No such file", {}),
    "an empty folder": (empty_folder, r"nothing", {}),
    "a pipe": (pipe, r"pipe.csv: it is a device, pipe or socket, not a file", {}),
    "a link to nowhere": (dangling, r"link.csv", {}),
    "a file that must not be read": (unreadable, r"secret.csv: .*Permission denied", {}),
}
