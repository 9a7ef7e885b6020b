"""Rows of a growing input: however it grows, the rows are those that Python's csv module finds line by line."""

import csv
import json
import os
import random
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.events.live_input import LiveBatch, LiveInput, Spool
from discreet.events.text import Delimited, Dialect
from discreet.events.times import seconds_of, seconds_of_column


def read(path, text, column=None, time_column=None, needs_items=True, pieces=1, **options):
    """(item, time, end) of every row; `pieces` writes the file in so many steps, with a look at it after each."""
    path.write_bytes(b"")
    rows = LiveInput(str(path), None, column, time_column, needs_items, **options)
    rows.open(0)
    found = []
    with closing(rows), path.open("ab") as file:
        for i in range(pieces):
            file.write(text[len(text) * i // pieces : len(text) * (i + 1) // pieces])
            file.flush()
            for batch in rows.available():
                items = [None] * len(batch) if batch.values is None else batch.values.column("item").to_pylist()
                times = [None] * len(batch) if batch.times is None else batch.times.tolist()
                found += zip(items, times, batch.ends.tolist(), strict=True)
    return found


def random_csv(chance, delimiter):
    cells = ["a", "b b", "", '"q"', f'"x{delimiter}y"', '"d""d"', "ü", " s "]
    lines = [f"when{delimiter}what"]
    for i in range(chance.randint(0, 12)):
        blank = chance.random()
        if blank < 0.05:
            lines.append(chance.choice(["", "  ", "\t" if delimiter == "," else " "]))
        lines.append(f"{1000 + i}{delimiter}{chance.choice(cells)}")
    return (chance.choice(["\n", "\r\n"]).join(lines) + chance.choice(["\n", "", "\n\n"])).encode()


def one_by_one(text, delimiter):
    """(item, time, end) of every line that has ended; no cell of these tests has a line break."""
    found, end = [], 0
    for line in text.split(b"\n")[:-1]:
        end += len(line) + 1
        if line.strip():
            (cells,) = csv.reader([line.decode().removesuffix("\r")], delimiter=delimiter)
            if len(cells) == 2 and cells[0] != "when":
                found.append((cells[1], float(cells[0]), end))
    return found


@pytest.mark.parametrize(("suffix", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_columns_and_lines_agree(tmp_path, suffix, delimiter):
    path = tmp_path / f"rows.{suffix}"
    for seed in range(60):
        text = random_csv(random.Random(seed), delimiter)
        lines = one_by_one(text, delimiter)
        for pieces in (1, 3):
            assert read(path, text, "what", "when", pieces=pieces) == [row for row in lines if row[0]]
        assert [row[1:] for row in read(path, text, None, "when", needs_items=False)] == [row[1:] for row in lines]


def test_text_lines(tmp_path):
    text = "a\n\n  \nb b\r\nü\nlast without an end".encode()
    expected = [("a", None, 2), ("b b", None, 11), ("ü", None, 14)]
    assert read(tmp_path / "rows.txt", text) == expected
    assert read(tmp_path / "rows.txt", text, pieces=7) == expected


def test_items_of_json_lines_are_text_whatever_they_are_written_as(tmp_path):
    text = b'{"x": 1, "t": 5}\n{"x": "a", "t": 6.5}\n'
    assert read(tmp_path / "rows.jsonl", text, "x", "t") == [("1", 5.0, 17), ("a", 6.5, 38)]


def test_the_rows_before_a_damaged_one_are_handed_out(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b\n1,2\nsecret,2,3\n5,6\n")
    rows = LiveInput(str(path), None, "a", None, needs_items=True, skip_bad=False)
    rows.open(0)
    with closing(rows):
        batches = rows.available()
        assert next(batches).values.column("item").to_pylist() == ["1"]
        with pytest.raises(dc.DataError, match="number of cells") as caught:
            next(batches)
    assert "secret" not in str(caught.value)
    for damaged in (b"a,b\n\xff,2\n", b"a,b\n1\n", b'a,b\n"1,2\n3,4"\n'):
        with pytest.raises(dc.DataError):
            read(path, damaged, "a", skip_bad=False)
    with pytest.raises(dc.DataError, match="more than 4096 bytes") as caught:
        read(path, b"a,b\n\n" + b"secret" * 50000 + b",2\n", "a", skip_bad=False)
    assert "secret" not in str(caught.value)
    with pytest.raises(dc.DataError, match="JSON"):
        read(tmp_path / "rows.jsonl", b'{"a": ' + b"[" * 200000 + b"\n", "a", skip_bad=False)
    with pytest.raises(dc.DataError, match="name the column"):
        read(path, b"a,b\n1,2\n")
    with pytest.raises(dc.DataError, match="no column 'c'"):
        read(path, b"a,b\n1,2\n", "c")


def test_the_rows_before_a_bad_time_are_handed_out(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"t,a\n1,x\n2,y\nnever,z\n4,z\n")
    rows = LiveInput(str(path), None, "a", "t", needs_items=True, skip_bad=False)
    rows.open(0)
    with closing(rows):
        batches = rows.available()
        assert next(batches).values.column("item").to_pylist() == ["x", "y"]
        with pytest.raises(dc.DataError, match="has a time"):
            next(batches)


@pytest.mark.parametrize(
    ("name", "text", "column"),
    [
        ("rows.txt", b"a\n\nb\n \t\r\n", None),
        ("rows.csv", b"\nx\na\n\nb\n  \n", "x"),
        ("rows.csv", b"t,x\n1,a\n1, \n1,b\n,\n", "x"),
        ("rows.csv", b't,x\n1,a\n\n1,b\n1,""\n', "x"),
        ("rows.tsv", b"t\tx\n1\ta\n\t\n1\tb\n1\t\n", "x"),
        ("rows.jsonl", b'{"x": "a"}\n{"x": null}\n{"x": "b"}\n{"x": " "}\n', "x"),
    ],
)
def test_blank_rows_keep_their_places(tmp_path, name, text, column):
    path = tmp_path / name
    path.write_bytes(text)
    rows = LiveInput(str(path), None, column, None, needs_items=True, keep_blank=True)
    rows.open(0)
    with closing(rows):
        (batch,) = rows.available()
    assert batch.there.tolist() == [True, False, True, False]
    assert [str(batch.values.column("item")[i]) for i in (0, 2)] == ["a", "b"]
    ends = [i + 1 for i, byte in enumerate(text) if byte == ord("\n")]
    assert batch.ends.tolist() == ends[-4:]


def test_lines_of_tabs_are_blank_among_columns_too(tmp_path):
    text = b"a\tb\n1\t2\n\t\n3\t4\n"
    assert len(read(tmp_path / "rows.tsv", text, needs_items=False)) == 2


@pytest.mark.parametrize("before", [b"", b"\n \n", "\ufeff".encode()])
def test_going_on_from_a_position(tmp_path, before):
    path = tmp_path / "rows.csv"
    path.write_bytes(before + b"a,b\n1,2\n3,4\n5,6\n")
    for position, expected in ((0, ["1", "3", "5"]), (len(before) + 12, ["5"])):
        rows = LiveInput(str(path), None, "a", None, needs_items=True)
        rows.open(position)
        with closing(rows):
            batch = next(rows.available())
        assert batch.values.column("item").to_pylist() == expected
        assert batch.ends[-1] == len(before) + 16


@pytest.mark.parametrize("pieces", [1, 7, 31])
def test_positions_are_those_of_the_input_in_any_encoding(tmp_path, pieces):
    rows = ["größe,ä", "ü,1", "a,2", "ß\u20ac,3", "x,4"]
    text = "".join(f"{row}\n" for row in rows).encode("cp1252").replace(b"x,", b"x\x81,") + b"y,5\n"
    ends = [at + 1 for at, byte in enumerate(text) if byte == ord("\n")]
    found = read(tmp_path / "rows.csv", text, "größe", pieces=pieces, encoding="cp1252")
    assert found == [(item, None, ends[row]) for item, row in (("ü", 1), ("a", 2), ("ß\u20ac", 3), ("y", 5))]
    with pytest.raises(dc.ParameterError, match="UTF-16"):
        LiveInput("rows.csv", None, "a", None, needs_items=True, encoding="utf-16")


@pytest.mark.parametrize(
    "times",
    [
        ["5", "6.5", "-3"],
        ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01.5+02:00"],
        ["2026-01-01 00:00:00", "2026-01-02T10:11:12.25"],
        ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "17"],
        ["2026-01-01", "2026-02-03"],
    ],
)
def test_times_of_a_column(times):
    expected = [seconds_of(time) for time in times]
    assert np.allclose(seconds_of_column(pa.array(times)), expected, atol=1e-6)


@pytest.mark.parametrize(
    "wrong", ["yesterday", "nan", "inf", "1e300", "1700000000000", "-62135596801", "253402300800", "", None, [1]]
)
def test_times_that_are_none(wrong):
    assert seconds_of(wrong) is None
    if isinstance(wrong, str):
        assert np.isnan(seconds_of_column(pa.array(["5", wrong]))).tolist() == [False, True]


POISON = {
    "csv": [
        b"1,2,3\n",
        b"1000\n",
        b"1000,\xff\n",
        b"never,x\n",
        b'1000,"\n",\n',
        b"1000,%s\n" % (b"x" * 5000),
        b"1,a\rb\n",
    ],
    "txt": [b"\xff\n", b"x" * 4097 + b"\n"],
    "jsonl": [
        b"{\n",
        b'{"when": 1}\n',
        b'{"when": 1, "what": null}\n',
        b'{"when": "x", "what": "a"}\n',
        b"\xff\n",
        b"[]\n",
    ],
}
GOOD = {
    "csv": [b"1000,a\n", b'1001,"b\nb"\n', b"1002, c \r\n", b"1003,\xc3\xbc\n", b'1004,"d""d"\n', b"\n"],
    "txt": [b"a\n", b"b b\n", b"\n", b"x" * 4096 + b"\n"],
    "jsonl": [b'{"when": 1, "what": "a"}\n', b'{"what": 7, "when": "2026-01-01"}\n', b"\n"],
}


@pytest.mark.parametrize("kind", POISON)
def test_bad_rows_change_nothing_about_the_others(tmp_path, kind):
    """Whatever blocks are read as: the good rows are those of the file without the bad ones, at their positions."""
    path = tmp_path / f"rows.{kind}"
    columns = (None, None) if kind == "txt" else ("what", "when")
    header = b"when,what\n" if kind == "csv" else b""
    for seed in range(60):
        chance = random.Random(seed)
        records = [(chance.choice(GOOD[kind]), True) for _ in range(chance.randint(0, 8))]
        for _ in range(chance.randint(0, 3)):
            records.insert(chance.randint(0, len(records)), (chance.choice(POISON[kind]), False))
        text, shift, expected = header, [], []
        for record, good in records:
            text += record
            if good and record.strip():
                shift.append(len(text))
        clean = read(path, header + b"".join(record for record, good in records if good), *columns)
        expected = [(item, time, end) for (item, time, _), end in zip(clean, shift, strict=True)]
        for pieces in (1, 5):
            assert read(path, text, *columns, pieces=pieces) == expected


def test_other_cells_may_hold_anything(tmp_path):
    """Bytes that are no text in a column that nobody asked for: the row counts, also beside a bad one."""
    for bad in (b"", b"1,2,3\n"):
        text = b"what,other\n" + bad + b"a,\xff\nb,%s\n" % (b"y" * 200_000)
        assert [row[0] for row in read(tmp_path / "rows.csv", text, "what")] == ["a", "b"]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_users_beside_items_and_times(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    rows = [("u1", "a", 5), (None, "b", 6), ("u2", None, 7), ("u3", "c", None), ("w" * 4097, "d", 8), ("u1", "e", 9)]
    if suffix == "csv":
        lines = ["who,what,when", *(",".join("" if cell is None else str(cell) for cell in row) for row in rows)]
    else:
        lines = [json.dumps(dict(zip(("who", "what", "when"), row, strict=True))) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    reader = LiveInput(str(path), None, "what", "when", needs_items=True, user_column="who")
    reader.open(0)
    with closing(reader):
        (batch,) = reader.available()
    assert batch.values.to_pydict() == {"item": ["a", "e"], "user": ["u1", "u1"]}
    assert batch.times.tolist() == [5, 9]
    alone = LiveInput(str(path), None, None, "when", needs_items=False, user_column="who")
    alone.open(0)
    with closing(alone):
        (batch,) = alone.available()
    assert batch.values.to_pydict() == {"user": ["u1", "u2", "u1"]}
    for names in (("who", "when"), ("what", "who")):
        with pytest.raises(dc.ParameterError, match="different columns"):
            LiveInput(str(path), None, *names, needs_items=True, user_column="who")


@pytest.mark.parametrize("when", ["true", "[5]", "{}", '""', "null", "NaN"])
def test_times_of_json_that_are_none(tmp_path, when):
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"when": 5, "what": "a"}}\n{{"when": {when}, "what": "b"}}\n{{"when": "6", "what": "c"}}\n')
    rows = LiveInput(str(path), None, "what", "when", needs_items=True)
    rows.open(0)
    with closing(rows):
        (batch,) = rows.available()
    assert batch.values.column("item").to_pylist() == ["a", "c"]
    assert batch.times.tolist() == [5, 6]
    assert sum(rows.bad.values()) == 1
    assert "a time" in next(iter(rows.bad))


def test_a_file_that_goes_on_without_a_header_keeps_its_first_row():
    """After a rotation: the header once more is no row, anything else is one."""
    reader = Delimited("csv", "log", ["url"])
    assert reader.after_header(b"url,n\n/a,1\n") == 6
    assert reader.after_header(b"/b,1\n/c,2\n") == 0
    assert reader.after_header(b"\nurl,n\n/c,2\n") == 7
    assert reader.after_header(b"url,n\r/b,1\n/c,2\n") == 0  # a row with a carriage return inside: bad, and counted so


@pytest.mark.parametrize("kind", ["txt", "csv", "jsonl"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_row_that_was_taken_without_its_newline_moves_no_position(tmp_path, kind, newline):
    """What is whole by its end (`--once`) and goes on later: from any position on there is what follows."""
    path = tmp_path / f"rows.{kind}"
    rows = {"txt": "row {}", "csv": "{},x", "jsonl": '{{"item": "{}"}}'}[kind]
    column, text = (None if kind == "txt" else "item"), ("item,b" + newline if kind == "csv" else "")
    path.write_text(text, newline="")
    reader, found = LiveInput(str(path), None, column, None, needs_items=True), []
    reader.open(0)
    with closing(reader), path.open("a", newline="") as file:
        for number in range(6):
            file.write(rows.format(number))
            file.flush()
            for batch in (*reader.available(), *(reader.rest() if number % 2 else ())):
                found += zip(batch.values.column("item").to_pylist(), batch.starts, batch.ends, strict=True)
            file.write(newline)
            file.flush()
            for batch in reader.available():
                found += zip(batch.values.column("item").to_pylist(), batch.starts, batch.ends, strict=True)
    items = [f"row {number}" if kind == "txt" else str(number) for number in range(6)]
    data = path.read_bytes()
    assert [item for item, _, _ in found] == items
    for place, (_, start, end) in enumerate(found):
        assert data[start:end].strip().decode() == rows.format(place)
        again = LiveInput(str(path), None, column, None, needs_items=True)
        again.open(int(end))
        with closing(again):
            rest = [item for batch in again.available() for item in batch.values.column("item").to_pylist()]
        assert rest == items[place + 1 :]


def rows_there(reader):
    return [item for batch in reader.available() for item in batch.values.column("item").to_pylist()]


def test_half_a_row_of_a_file_that_was_emptied_is_not_joined_with_the_next_one(tmp_path):
    """Nor is what may be the beginning of a byte order mark."""
    for name, half in (("rows.log", b"ha"), ("rows.jsonl", b'{"item": "ha'), ("marks.log", b"\xef")):
        path, row = tmp_path / name, b'{"item": "%s"}\n' if name.endswith("jsonl") else b"%s\n"
        path.write_bytes(row % b"one" + half if half != b"\xef" else half)
        column = "item" if name.endswith("jsonl") else None
        reader = LiveInput(str(path), None, column, None, needs_items=True)
        reader.open(0)
        with closing(reader):
            assert rows_there(reader) == (["one"] if half != b"\xef" else [])
            path.write_bytes(row % b"two" * 20)
            assert rows_there(reader) == ["two"] * 20
            assert not reader.bad


@pytest.mark.parametrize("again", [False, True])
def test_the_names_of_columns_outlast_the_file_that_had_them(tmp_path, again):
    """A file that took the name may go on without a header, or have it again; the watch may begin anew in it."""
    path = tmp_path / "rows.csv"
    path.write_text("page,n\n/a,1\n")
    reader = LiveInput(str(path), None, "n", None, needs_items=True)
    reader.open(0)
    with closing(reader):
        assert rows_there(reader) == ["1"]
        path.rename(tmp_path / "rows.csv.1")
        path.write_text(("page,n\n" if again else "") + "/b,2\n/c,3\n")
        (batch,) = reader.available()
        assert batch.values.column("item").to_pylist() == ["2", "3"]
        position, saved = int(batch.ends[0]), json.loads(json.dumps(reader.saved(int(batch.ends[0]))))
    (tmp_path / "rows.csv.1").unlink()
    reader = LiveInput(str(path), None, "n", None, needs_items=True)
    reader.open(position, saved)
    with closing(reader):
        assert rows_there(reader) == ["3"]


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_utf_16_cannot_be_followed(tmp_path, mark):
    """A byte is not a character, and half of one may come later: it is refused, and never read as odd text."""
    path = tmp_path / "rows.log"
    path.write_bytes(mark)
    reader = LiveInput(str(path), None, None, None, needs_items=True)
    reader.open(0)
    path.write_bytes(mark + b"a\0\n\0")
    with closing(reader), pytest.raises(dc.DataError, match=r"rows\.log is written in UTF-16.*; write UTF-8"):
        list(reader.available())
    with pytest.raises(dc.ParameterError, match=r"is written in UTF-16.*; write UTF-8"):
        LiveInput(str(path), None, None, None, needs_items=True, encoding="utf-16-le")
    reader = LiveInput(str(path), None, None, None, needs_items=True, encoding="latin-1")
    reader.open(0)
    with closing(reader):
        assert len(rows_there(reader)) == 1  # where it is said what bytes mean, they mean that


def test_positions_count_a_byte_order_mark(tmp_path):
    path = tmp_path / "rows.log"
    path.write_bytes(b"\xef\xbb\xbfone\ntwo\n")
    reader = LiveInput(str(path), None, None, None, needs_items=True)
    reader.open(0)
    with closing(reader):
        (batch,) = reader.available()
    assert batch.values.column("item").to_pylist() == ["one", "two"]
    assert (batch.starts.tolist(), batch.ends.tolist()) == ([3, 7], [7, 11])
    reader = LiveInput(str(path), None, None, None, needs_items=True)
    reader.open(7, None)
    with closing(reader):
        assert rows_there(reader) == ["two"]


REFUSED = {
    "the item as time": (("a.csv", None, "a", "a", True), {}, "must be different columns"),
    "the item as user": (("a.csv", None, "a", None, True), {"user_column": "a"}, "must be different columns"),
    "a compressed file": (("a.csv.gz", None, "a", None, True), {}, "looks compressed .gzip. and cannot be followed"),
    "a table": (("a.parquet", None, "a", None, True), {}, "must be csv, tsv, jsonl, text or a web server's log"),
    "sets of cells": (("a.csv", None, "a", None, True), {"sets": True}, "sets of items must be JSON lists"),
    "baskets that are no sets": (("a.txt", "baskets", None, None, True), {}, "must be csv, tsv, jsonl, text or a web"),
    "columns of text": (("a.txt", None, "a", None, True), {}, "lines of text have no columns; give input_format"),
    "people of text": (("a.txt", None, None, None, True), {"user_column": "u"}, "lines of text have no columns"),
    "cells of JSON": (
        ("a.jsonl", None, "a", None, True), {"dialect": Dialect(delimiter=";")}, "work with csv and tsv only",
    ),
    "quotes of messages": (("kafka://b/t", "csv", "a", None, True), {}, "messages of a queue must be jsonl, text"),
    "cells of messages": (
        ("kafka://b/t", None, "a", None, True), {"dialect": Dialect(delimiter=";")}, "messages of a queue must be",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_followed_is_refused_before_it_is_opened(what):
    given, words, said = REFUSED[what]
    with pytest.raises(dc.ParameterError, match=said):
        LiveInput(*given, **words)


def test_what_is_said_of_cells_says_that_there_are_some(tmp_path):
    (tmp_path / "rows").write_text("a;b\n1;2\n")
    reader = LiveInput(str(tmp_path / "rows"), None, "b", None, needs_items=True, dialect=Dialect(delimiter=";"))
    reader.open(0)
    with closing(reader):
        assert rows_there(reader) == ["2"]


# ---- rows that wait for their tick -----------------------------------------------------------------------------------


def batch_of(*items):
    return pa.record_batch([list(items)], names=["item"])


def test_rows_wait_in_the_order_in_which_they_came(tmp_path):
    spool = Spool(tmp_path)
    spool.add(2, batch_of("c"))
    spool.add(1, batch_of("a", "b"))
    spool.add(2, batch_of("d", "e"))
    assert [batch.column(0).to_pylist() for batch in spool.take(2)] == [["c"], ["d", "e"]]
    assert list(spool.take(2)) == []
    spool.add(2, batch_of("f"))
    assert [batch.column(0).to_pylist() for batch in spool.take(1)] == [["a", "b"]]
    assert [batch.column(0).to_pylist() for batch in spool.take(2)] == [["f"]]
    spool.add(3, batch_of("g"))
    spool.close()
    assert list(spool.take(3)) == []


def test_rows_that_wait_are_in_a_file_without_a_name_that_ends_with_them(tmp_path):
    """In the folder of the watch, where only its owner may look, and not where everybody writes."""

    def held():
        links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        return [os.readlink(link) for link in links if os.path.lexists(link) and tmp_path.name in os.readlink(link)]

    spool = Spool(tmp_path)
    for number in range(2):
        spool.add(number, batch_of("x" * (9 << 20)))
    assert len(held()) == 1
    assert list(tmp_path.iterdir()) == []
    assert len(list(spool.take(0))) == 1
    assert len(held()) == 1
    assert len(list(spool.take(1))) == 1
    assert held() == []


def test_parts_of_a_batch_have_all_that_it_has():
    batch = LiveBatch(
        batch_of("a", "b", "c"), np.array([1.0, 2.0, 3.0]), np.array([0, 2, 4]), np.array([2, 4, 6]),
        np.array([True, False, True]),
    )  # fmt: skip
    for rows in (slice(1, 3), np.array([False, True, True])):
        part = batch.part(rows)
        assert part.values.column("item").to_pylist() == ["b", "c"]
        assert (part.times.tolist(), part.starts.tolist(), part.ends.tolist()) == ([2.0, 3.0], [2, 4], [4, 6])
        assert part.there.tolist() == [False, True]
        both = batch.part(slice(0, 1)).followed_by(part)
        assert both.values.equals(batch.values)
        for name in ("times", "starts", "ends", "there"):
            assert getattr(both, name).tolist() == getattr(batch, name).tolist()
    assert batch.part(np.array([True] * 3)) is batch
