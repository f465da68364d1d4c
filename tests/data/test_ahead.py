# SPDX-License-Identifier: Apache-2.0
"""Text tables that are read while their rows are found: the same rows as in two passes, each once, wherever ranks meet."""
import csv
import io
import os
import random
import re

import numpy as np
import pytest
from badfiles import csv_cases
from lockstep.data.ahead import NO_MEMORY, ROOM, Ahead
from lockstep.data.binding import DataError, Source
from ranks import all_well, together
from test_csv import random_table, same, table, table_file, texts, write  # noqa: F401

PARTS = (1, 2, 3, 5)


def read_ahead(paths, size, ahead_of=Ahead, **options):
    """(names and arrays of all ranks put together, rows that came ahead on each rank)"""
    def work(part):
        ahead = ahead_of(part)
        with Source(paths, part, ahead=ahead, **options) as source:
            return [field.name for field in source.fields], ahead.block(source), source.ahead_rows()[1]

    results = all_well(together(size, work))
    columns = [np.concatenate(parts) for parts in zip(*(arrays for _, arrays, _ in results))]
    return dict(zip(results[0][0], columns)), [count for *_, count in results]


def rows_of(columns):
    return [list(row) for row in zip(*map(texts, columns.values()))]


def oracle(text):
    return [row for row in csv.reader(io.StringIO(text, newline="")) if row][1:]


@pytest.mark.parametrize("parts", PARTS)
def test_ranks_together_have_what_pandas_reads(table, table_file, parts):  # noqa: F811
    got, counts = read_ahead(table_file, parts)
    assert sum(counts) == len(table) and min(counts) > 0, "it was read in one pass"
    for name in table.columns:
        assert (texts(got[name]) == list(table[name])) if name == "name" else same(got[name], table[name]), name


def test_columns_are_given_in_the_order_asked_for(table, table_file):  # noqa: F811
    got, counts = read_ahead(table_file, 2, columns=["name", "label"], types=[None, "float32"])
    assert sum(counts) == len(table) and list(got) == ["name", "label"] and got["label"].dtype == np.float32
    assert texts(got["name"]) == list(table["name"]) and same(got["label"], table["label"])


NASTY = ['a,"b, c",d', '"line 1\nline 2",x,y', "", '"say ""hi""","\r\n\r\n",z', 'plain,"",-', '"""","\n",q']


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("ending", ["", "end", "end twice"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "byte order mark"])
def test_a_seam_at_every_byte_cuts_no_row(tmp_path, line_end, ending, mark):
    """The header grows by a byte at a time, so that the border between ranks passes over every byte of the rows."""
    body = line_end.join(NASTY * 2)
    body += {"": "", "end": line_end, "end twice": line_end * 2 + "\n"}[ending]
    ahead = 0
    for more in range(2 * len("".join(NASTY))):
        text = "h" * (more + 1) + f",i,j{line_end}" + body
        path = write(tmp_path / "seam.csv", mark + text.encode())
        for parts in PARTS:
            got, counts = read_ahead(path, parts, header=True, delimiter=",", types=["bytes"] * 3)
            assert rows_of(got) == oracle(text), f"{parts} parts, {more} bytes more in the header"
            assert sum(counts) in (0, len(oracle(text)))
            ahead += sum(counts) > 0
    assert ahead > more, "the way that is tested here was taken"


@pytest.mark.parametrize("seed", range(40))
def test_seams_between_ranks_cut_no_row(tmp_path, seed):
    rows, text = random_table(random.Random(1000 + seed))
    path = write(tmp_path / "seams.csv", text)
    for parts in PARTS:
        got, counts = read_ahead(path, parts, header=True, delimiter=",")
        assert rows_of(got) == rows and sum(counts) in (0, len(rows)), f"{parts} parts"


def test_rows_of_very_different_length_are_dealt_evenly(tmp_path):
    """Bytes in equal parts give ranks very unequal numbers of rows; blocks are equal all the same."""
    rows = [["x" * (3000 if i < 50 else 1), str(i)] for i in range(5000)]
    path = write(tmp_path / "uneven.csv", "text,number\n" + "".join(f"{a},{b}\n" for a, b in rows))
    for parts in PARTS:
        got, counts = read_ahead(path, parts)
        assert texts(got["text"]) == [a for a, _ in rows] and same(got["number"], range(5000))
        assert sum(counts) == 5000 and (parts == 1 or max(counts) > 1.5 * 5000 / parts)


def test_several_files_each_with_a_header(tmp_path):
    paths = [write(tmp_path / f"{i}.csv", "a,b\n" + "".join(f"{i},{j}\n" for j in range(i * 7)))
             for i in (3, 0, 1, 2)]
    paths.insert(2, write(tmp_path / "empty.csv", ""))
    expected = [(i, j) for i in (3, 0, 1, 2) for j in range(i * 7)]
    for parts in PARTS:
        got, counts = read_ahead(paths, parts)
        assert list(zip(got["a"], got["b"])) == expected and sum(counts) == len(expected), f"{parts} parts"


def test_more_rows_than_expected_find_room(tmp_path):
    """Where the length of rows is looked at they are long, elsewhere short."""
    long, short = "1" * 18 + ",2\n", "1,2\n"
    text = "a,b\n" + "".join(long * 200 + short * 30000 for _ in range(15)) + long * 200
    got, counts = read_ahead(write(tmp_path / "short.csv", text), 1)
    expected = np.array([int(line.split(",")[0]) for line in text.splitlines()[1:]])
    assert sum(counts) == len(expected) and same(got["a"], expected) and same(got["b"], np.full(len(expected), 2))


# ---- where it does not count ------------------------------------------------------------------------------------------------


def test_a_column_that_only_all_rows_show_to_be_text(tmp_path):
    values = [str(i) for i in range(20000)]
    values[7000] = "seven thousand"
    got, counts = read_ahead(write(tmp_path / "odd.csv", "x,y\n" + "".join(f"{v},1\n" for v in values)), 2)
    assert sum(counts) == 0 and texts(got["x"]) == values and same(got["y"], np.ones(20000))


def test_a_seam_between_quotes_is_noticed_by_all_ranks(tmp_path):
    inside = "".join(f"{i},{i}\n" for i in range(2000))  # looks like rows, but is one field
    path = write(tmp_path / "quoted.csv", f'a,b\n1,x\n2,"{inside}"\n3,y\n4,z\n5,z\n')
    for parts in (2, 3, 5):
        got, counts = read_ahead(path, parts, types=["int64", "bytes"])
        assert same(got["a"], [1, 2, 3, 4, 5]) and texts(got["b"]) == ["x", inside, "y", "z", "z"] and sum(counts) == 0


class WithoutMemory(Ahead):
    def __init__(self, part):
        super().__init__(part)
        if part.rank == part.size - 1:
            self.callbacks.room = ROOM(lambda *_: NO_MEMORY)


@pytest.mark.parametrize("parts", (1, 3))
def test_without_memory_on_one_rank_all_read_in_the_usual_way(table, table_file, parts):  # noqa: F811
    got, counts = read_ahead(table_file, parts, WithoutMemory)
    assert sum(counts) == 0 and same(got["x"], table["x"]) and texts(got["name"]) == list(table["name"])


@pytest.mark.parametrize("title", [title for title in csv_cases.CASES if "must not be read" not in title])
@pytest.mark.parametrize("parts", (1, 2))
def test_errors_are_those_of_two_passes(tmp_path, title, parts):
    write_bad, reason, options = csv_cases.CASES[title]
    path = str(write_bad(tmp_path))
    said = [str(outcome) for outcome in together(parts, lambda part: read_block(path, part, True, options))]
    usual = [str(outcome) for outcome in together(parts, lambda part: read_block(path, part, False, options))]
    assert said == usual and any(re.search(reason, one) or "fewer than" in one for one in said), said


def read_block(path, part, is_ahead, options):
    ahead = Ahead(part)
    with Source(path, part, ahead=ahead if is_ahead else None, **options) as source:
        (ahead.block(source) if is_ahead else source.read(*part.block(source.num_rows)))


class Changed(Ahead):
    """Somebody writes to the file while it is read."""

    def __init__(self, part, path):
        super().__init__(part)

        def room(*args):
            os.truncate(path, os.path.getsize(path) // 2)
            return self._make_room(*args)
        self.callbacks.room = ROOM(room)


def test_a_file_that_is_cut_short_while_it_is_read_is_an_error(tmp_path):
    path = write(tmp_path / "cut.csv", "a,b\n" + "".join(f"{i},{i}\n" for i in range(200000)))
    with pytest.raises(DataError, match="cut.csv.*(changed|ends)"):
        read_ahead(path, 1, lambda part: Changed(part, path))
