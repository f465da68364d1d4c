# SPDX-License-Identifier: Apache-2.0
"""CSV: what the readers give is what pandas, or Python's csv module, gives; each row once, whatever the parts."""
import csv
import io
import random
import threading

import numpy as np
import pytest
from lockstep.data.part import Part
from reading import Data, DataError, read_in_parts, together

pandas = pytest.importorskip("pandas")

PARTS = (1, 2, 3, 5)


def same(got, expected):
    """Bit for bit, but any NaN is NaN."""
    return np.array_equal(np.asarray(got), np.asarray(expected), equal_nan=np.asarray(got).dtype.kind == "f")


def texts(rows):
    return [row.decode() for row in rows]


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(7)
    count = 20011
    return pandas.DataFrame({
        "x": rng.normal(size=count), "tiny": rng.normal(size=count) * 1e-300, "huge": rng.normal(size=count) * 1e290,
        "price": np.round(rng.uniform(0, 1000, count), 2), "label": rng.integers(0, 10, count),
        "big": rng.integers(-2**63, 2**63 - 1, count), "name": [f"row {i}" for i in range(count)],
        "gap": np.where(rng.random(count) < 0.1, np.nan, rng.random(count))})


@pytest.fixture(scope="module")
def table_file(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("csv") / "table.csv"
    table.to_csv(path, index=False)
    return path


# ---- every row once ----------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", PARTS)
def test_parts_together_are_what_pandas_reads(table, table_file, parts):
    got = read_in_parts(table_file, parts)
    assert list(got) == list(table.columns)
    for name in table.columns:
        assert (texts(got[name]) == list(table[name])) if name == "name" else same(got[name], table[name]), name


def random_table(rng):
    """Rows of text, and the same as CSV with all that makes finding a row's end hard."""
    line_end = rng.choice(["\n", "\r\n"])
    pieces = ["a,b", 'x"y', "l1\nl2", 'q\r\n\r\n"",', "plain", '"', "\n", "", "  ", "äöü"]
    num_columns = rng.randint(1, 5)
    rows = [["".join(rng.choices(pieces, k=rng.randint(1, 3))) + "t" for _ in range(num_columns)]
            for _ in range(rng.choice([5, 6, 17, 60, 400]))]

    def quoted(text):
        must = any(char in text for char in ',"\n\r') or rng.random() < 0.1
        return '"' + text.replace('"', '""') + '"' if must else text

    out = ",".join(f"c{i}" for i in range(num_columns)) + line_end
    for number, row in enumerate(rows):
        out += line_end * rng.choice([0] * 20 + [1, 2, 3])
        out += ",".join(map(quoted, row))
        out += line_end if number + 1 < len(rows) or rng.random() < 0.6 else ""
    return rows, out


@pytest.mark.parametrize("seed", range(30))
def test_seams_between_parts_cut_no_row(tmp_path, seed):
    rows, text = random_table(random.Random(seed))
    path = write(tmp_path / "seams.csv", text)
    assert [row for row in csv.reader(io.StringIO(text, newline="")) if row][1:] == rows, "the oracle agrees"
    for parts in PARTS:
        got = read_in_parts(path, parts, header=True, delimiter=",")
        assert [list(row) for row in zip(*map(texts, got.values()))] == rows, f"{parts} parts"


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False], ids=["final newline", "no final newline"])
def test_as_many_parts_as_rows(tmp_path, line_end, last):
    text = line_end.join(["1,2", "3,4", "5,6", "7,8", "9,10"]) + (line_end if last else "")
    got = read_in_parts(write(tmp_path / "small.csv", text), 5)
    assert same(got["0"], [1, 3, 5, 7, 9]) and same(got["1"], [2, 4, 6, 8, 10])


def test_more_parts_than_rows_is_an_error_on_every_rank(tmp_path):
    path = write(tmp_path / "three.csv", "1\n2\n3\n")
    outcomes = together(5, lambda part: Data(path, part=part))
    assert all(isinstance(outcome, DataError) and "fewer than the 5 ranks" in str(outcome) for outcome in outcomes)


def test_an_error_in_one_ranks_bytes_is_the_error_of_all(tmp_path):
    lines = [f"{i},{i}" for i in range(3000)]
    lines[2500] = '2500,"a'  # opens in the last third, is never closed
    path = write(tmp_path / "late.csv", "\n".join(lines))
    outcomes = together(3, lambda part: Data(path, part=part))
    assert all(isinstance(outcome, DataError) for outcome in outcomes)
    assert len({str(outcome) for outcome in outcomes}) == 1 and "never closed" in str(outcomes[0])


def test_blank_lines_are_no_rows(tmp_path):
    path = write(tmp_path / "blank.csv", "\n\r\na,b\n\n\n1,2\r\n\r\n3,4\n\n\r\n")
    for parts in (1, 2):
        got = read_in_parts(path, parts)
        assert same(got["a"], [1, 3]) and same(got["b"], [2, 4])


# ---- any rows, in any order ---------------------------------------------------------------------------


def test_rows_are_found_wherever_one_begins(table, table_file):
    rng = random.Random(3)
    with Data(table_file) as data:
        for _ in range(60):
            first = rng.randrange(len(table))
            count = rng.randint(0, min(300, len(table) - first))
            got = data.read(first, count, ["x", "name"])
            assert same(got["x"], table["x"][first:first + count])
            assert texts(got["name"]) == list(table["name"][first:first + count])


def test_batch_after_batch_gives_everything(table, table_file):
    with Data(table_file, columns=["big", "gap"]) as data:
        parts = [data.read(first, min(777, len(table) - first)) for first in range(0, len(table), 777)]
    for name in ("big", "gap"):
        assert same(np.concatenate([part[name] for part in parts]), table[name])


def test_threads_read_one_data_set_at_once(table, table_file):
    with Data(table_file) as data:
        results = [None] * 8

        def read(number):
            first, count = Part(number, 8, None).block(len(table))
            results[number] = data.read(first, count, ["x"])["x"]

        threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    assert same(np.concatenate(results), table["x"])


def test_a_row_larger_than_the_buffer_is_read(tmp_path):
    long = "x" * 700_000
    path = write(tmp_path / "long.csv", f'a,b\n1,"{long}\n"\n2,short\n')
    for parts in (1, 2):
        got = read_in_parts(path, parts)
        assert texts(got["b"]) == [long + "\n", "short"] and same(got["a"], [1, 2])


def test_many_columns(tmp_path):
    values = np.random.default_rng(5).integers(0, 256, (50, 3000))
    path = write(tmp_path / "wide.csv", "\n".join(",".join(map(str, row)) for row in values))
    got = read_in_parts(path, 3)
    assert same(np.stack(list(got.values()), axis=1), values)


# ---- several files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", PARTS)
def test_a_folder_is_its_files_in_the_order_of_their_names(tmp_path, parts):
    for number, rows in enumerate((100, 1, 0, 37)):
        lines = [f"{number},{row}" for row in range(rows)]
        write(tmp_path / f"part{number}.csv", "\n".join(["f,r", *lines]))
    for where in (tmp_path, tmp_path / "part*.csv"):
        got = read_in_parts(where, parts)
        assert same(got["f"], [0] * 100 + [1] + [3] * 37)
        assert same(got["r"], [*range(100), 0, *range(37)])


def test_files_with_other_headers_do_not_go_together(tmp_path):
    write(tmp_path / "a.csv", "x,y\n1,2\n")
    write(tmp_path / "b.csv", "x,z\n1,2\n")
    outcomes = together(2, lambda part: Data(tmp_path, part=part))
    assert all("b.csv: byte 0: the header is not that of" in str(outcome) for outcome in outcomes)


# ---- header, columns, delimiter, types ----------------------------------------------------------------


@pytest.mark.parametrize("text, header, names", [
    ("a,b\n1,2\n", None, ["a", "b"]), ("1,2\n3,4\n", None, ["0", "1"]), ("1,2\n3,4\n", True, ["1", "2"]),
    ("a,b\nc,d\n", False, ["0", "1"]), ("a,a,\n1,2,3\n", None, ["a", "a.1", "2"]),
    ('"a ""q""",b\n1,2\n', None, ['a "q"', "b"]), ("\ufeffa,b\n1,2\n", None, ["a", "b"])])
def test_headers(tmp_path, text, header, names):
    with Data(write(tmp_path / "head.csv", text), header=header) as data:
        assert data.names == names
        assert data.num_rows == len(text.splitlines()) - (names != ["0", "1"])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", " "])
def test_the_delimiter_is_found(tmp_path, delimiter):
    text = "\n".join(delimiter.join(["1", '"2,;| \t"', "3.5"]) for _ in range(4))
    got = Data(write(tmp_path / "table.txt", text)).read()
    assert same(got["0"], [1] * 4) and texts(got["1"]) == ["2,;| \t"] * 4 and same(got["2"], [3.5] * 4)


def test_columns_are_chosen_by_name_or_number(table, table_file):
    with Data(table_file, columns=["label", "x"]) as data:
        assert data.names == ["label", "x"]
        got = data.read()
    assert same(got["label"], table["label"]) and same(got["x"], table["x"])
    with Data(table_file, columns=[4, "0"]) as data:
        assert data.names == ["label", "x"]
    with pytest.raises(DataError, match="there is no field 'nope'"):
        Data(table_file, columns=["nope"])


def test_types_are_found(tmp_path):
    path = write(tmp_path / "types.csv", "i,f,t,m,e\n1,1.5,a,1,\n-2,2,b,,NA\n3,nan,c,3,null\n")
    with Data(path) as data:
        assert [data.field(name).type for name in data.names] == ["int64", "float64", "bytes", "float64", "float64"]
        got = data.read()
    assert same(got["m"], [1, np.nan, 3]) and same(got["f"], [1.5, 2, np.nan]) and same(got["e"], [np.nan] * 3)


def test_a_type_shows_late_in_a_large_file(tmp_path):
    lines = [str(i) for i in range(400_000)]
    lines[-5] = "0.5"
    with Data(write(tmp_path / "late.csv", "\n".join(lines))) as data:
        assert data.field("0").type == "float64"


@pytest.mark.parametrize("name", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                                  "float32", "float64", "bytes"])
def test_types_are_given(tmp_path, name):
    path = write(tmp_path / "given.csv", 'a,b\n1,x\n0,y\n"1",z\n')
    with Data(path, columns=["a"], types=[name]) as data:
        got = data.read()["a"]
    assert list(got) == [b"1", b"0", b"1"] if name == "bytes" else got.dtype == name and same(got, [1, 0, 1])


def test_missing_values_of_the_users_own(tmp_path):
    path = write(tmp_path / "missing.csv", "a\n-999\n1.5\n?\n")
    assert same(Data(path, missing=["-999", "?"]).read()["a"], [np.nan, 1.5, np.nan])


def test_another_quote(tmp_path):
    got = Data(write(tmp_path / "quote.csv", "'a,b','it''s'\n'c','d\"'\n"), quote="'", header=False).read()
    assert texts(got["0"]) == ["a,b", "c"] and texts(got["1"]) == ["it's", 'd"']


# ---- numbers ------------------------------------------------------------------------------------------


def hard_numbers():
    rng = random.Random(11)
    yield from ("0", "-0", "-0.0", "00012", "1.", ".5", "-.5e3", "+7", "1e5", "1E+05", "1e-5", "4.9e-324", "2e-324", "1e309",
                "-1e400", "1.7976931348623157e308", "2.2250738585072011e-308", "9007199254740993", "9007199254740992.5",
                "9007199254740993.000000000000000000000000000001", "123456789012345678901234567890", "inf", "-Infinity",
                "0.000000000000000000000000000000000000001234567890123456789", "1" + "0" * 400, "0." + "0" * 400 + "1",
                "  3.25  ", '"2.5"', "6.02214076e+23", "1.000000000000000000e+00", "0.1e1", "12345678.12345678")
    for _ in range(20000):
        value = rng.choice([rng.random(), rng.gauss(0, 1) * 10.0 ** rng.randint(-307, 307), float(rng.getrandbits(64))])
        yield rng.choice(["%r" % value, "%.{}e".format(rng.randint(0, 24)) % value, "%.{}f".format(rng.randint(0, 19)) %
                          rng.uniform(-1e6, 1e6), "%.{}g".format(rng.randint(1, 20)) % value])


def test_doubles_are_those_of_strtod(tmp_path):
    numbers = list(hard_numbers())
    path = write(tmp_path / "numbers.csv", "n,i\n" + "\n".join(f"{text},{row}" for row, text in enumerate(numbers)))
    got = Data(path, types=["float64", None]).read()["n"]
    expected = np.array([float(text.strip().strip('"')) for text in numbers])
    wrong = np.flatnonzero(got.view("u8") != expected.view("u8"))
    assert wrong.size == 0, [(numbers[i], got[i], expected[i]) for i in wrong[:5]]


SHORT = ["0", "-0", "1", "-1", "12.", "-12.", ".5", "-.5", "0.0", "-0.0", "1.5", "99999999", "-9999999", "-99999999", "9.999999",
         ".1234567", "-.123456", "1234567.", "123.4567", "+5", "1e3", "-1e-3", "007", "-0012.50", "123456789", "0.1", "250"]


@pytest.mark.parametrize("seed", range(4))
def test_short_numbers_side_by_side_are_those_of_strtod(tmp_path, seed):
    """Numbers of up to eight characters are converted four at a time: each kind beside each other, and long ones among them."""
    chosen = random.Random(seed).choices(SHORT, k=4001)
    whole = [text for text in SHORT if text.lstrip("+-").isdigit()]
    integers = random.Random(seed + 9).choices(whole, k=len(chosen))
    path = write(tmp_path / "x.csv", "x,n,z\n" + "".join(f"{x},{n},1\n" for x, n in zip(chosen, integers)))
    got = Data(path, types=["float64", "int64", "int64"]).read()
    assert got["x"].tobytes() == np.array([float(text) for text in chosen]).tobytes()
    np.testing.assert_array_equal(got["n"], [int(text) for text in integers])


@pytest.mark.parametrize("bad", [".", "-", "-.", "1.2.3", "1-2", "12a", "--1", "1..2", "0x10", "1:2", "/1"])
@pytest.mark.parametrize("type_name", ["float64", "int64"])
def test_what_is_no_short_number_is_an_error_wherever_it_stands(tmp_path, bad, type_name):
    for place in range(5):
        rows = ["7"] * 9
        rows[place] = bad
        path = write(tmp_path / "x.csv", "x,z\n" + "".join(f"{text},1\n" for text in rows))
        with pytest.raises(DataError, match=f"row {place}, .*no {type_name}"):
            Data(path, types=[type_name, "int64"]).read()


def test_whole_numbers_up_to_the_last(tmp_path):
    numbers = [-2**63, 2**63 - 1, 0, -1, 10**18, -10**18 + 1]
    path = write(tmp_path / "whole.csv", "".join(f"{number},{number}\n" for number in numbers))
    got = Data(path).read()
    assert same(got["0"], numbers) and same(got["1"], numbers)
    over = write(tmp_path / "over.csv", "9223372036854775808\n18446744073709551615\n")
    assert Data(over).field("0").type == "float64"
    assert same(Data(over, types=["uint64"]).read()["0"], np.array([2**63, 2**64 - 1], "u8"))


# ---- what happens meanwhile ---------------------------------------------------------------------------


def test_progress_is_told_and_can_stop(table_file):
    calls = []
    Data(table_file, progress=lambda path, done, total: calls.append((path, done, total)))
    assert calls and all(path == str(table_file) and done <= total for path, done, total in calls)
    with pytest.raises(DataError, match="stopped"):
        Data(table_file, progress=lambda *_: 1)


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path):
    path = write(tmp_path / "changing.csv", "a,b\n" + "1,2\n" * 1000)
    with Data(path) as data:
        data.read(0, 10)
        with path.open("a") as file:
            file.write("3,4\n")
        with pytest.raises(DataError, match="changing.csv: the file has changed while it was read"):
            data.read(10, 10)
