"""Rows of a growing input: columns of a block say what its lines say, one by one."""

import random
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.io.rows import Rows, _batch_seconds, seconds_of


def read(path, text, column=None, time_column=None, needs_items=True, by_line=False, pieces=1, **options):
    """(item, time, end) of every row; `pieces` writes the file in so many steps, with a look at it after each."""
    path.write_bytes(b"")
    rows = Rows(str(path), None, column, time_column, needs_items, **options)
    if by_line:
        rows._as_columns = lambda *block: None
    rows.open(0)
    found = []
    with closing(rows), path.open("ab") as file:
        for i in range(pieces):
            file.write(text[len(text) * i // pieces : len(text) * (i + 1) // pieces])
            file.flush()
            for batch in rows.available():
                items = [None] * len(batch) if batch.items is None else batch.items
                items = items.to_pylist() if isinstance(items, pa.Array) else items
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


@pytest.mark.parametrize(("suffix", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_columns_and_lines_agree(tmp_path, suffix, delimiter):
    path = tmp_path / f"rows.{suffix}"
    for seed in range(60):
        text = random_csv(random.Random(seed), delimiter)
        lines = read(path, text, "what", "when", by_line=True)
        for pieces in (1, 3):
            assert read(path, text, "what", "when", pieces=pieces) == lines
        assert [row[1:] for row in read(path, text, None, "when", needs_items=False)] == [row[1:] for row in lines]
        for item, _, end in lines:
            assert text[:end].endswith(b"\n")
            assert item is not None


def test_text_lines(tmp_path):
    text = "a\n\n  \nb b\r\nü\nlast without an end".encode()
    expected = [("a", None, 2), ("b b", None, 11), ("ü", None, 14)]
    for by_line in (False, True):
        assert read(tmp_path / "rows.txt", text, by_line=by_line) == expected
    assert read(tmp_path / "rows.txt", text, pieces=7) == expected


def test_items_of_json_lines_are_text_whatever_they_are_written_as(tmp_path):
    text = b'{"x": 1, "t": 5}\n{"x": "a", "t": 6.5}\n'
    assert read(tmp_path / "rows.jsonl", text, "x", "t") == [("1", 5.0, 17), ("a", 6.5, 38)]


def test_the_rows_before_a_damaged_one_are_handed_out(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b\n1,2\nsecret,2,3\n5,6\n")
    rows = Rows(str(path), None, "a", None, needs_items=True, skip_bad=False)
    rows.open(0)
    with closing(rows):
        batches = rows.available()
        assert next(batches).items.to_pylist() == ["1"]
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
    with pytest.raises(dc.DataError, match="name the --column"):
        read(path, b"a,b\n1,2\n")
    with pytest.raises(dc.DataError, match="without 'c'"):
        read(path, b"a,b\n1,2\n", "c")


def test_the_rows_before_a_bad_time_are_handed_out(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"t,a\n1,x\n2,y\nnever,z\n4,z\n")
    rows = Rows(str(path), None, "a", "t", needs_items=True, skip_bad=False)
    rows.open(0)
    with closing(rows):
        batches = rows.available()
        assert next(batches).items.to_pylist() == ["x", "y"]
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
    for by_line in (False, True):
        rows = Rows(str(path), None, column, None, needs_items=True, keep_blank=True)
        if by_line:
            rows._as_columns = lambda *block: None
        rows.open(0)
        with closing(rows):
            (batch,) = rows.available()
        assert batch.there.tolist() == [True, False, True, False]
        assert [str(batch.items[i]) for i in (0, 2)] == ["a", "b"]
        ends = [i + 1 for i, byte in enumerate(text) if byte == ord("\n")]
        assert batch.ends.tolist() == ends[-4:]


def test_lines_of_tabs_are_blank_among_columns_too(tmp_path):
    text = b"a\tb\n1\t2\n\t\n3\t4\n"
    for by_line in (False, True):
        assert len(read(tmp_path / "rows.tsv", text, needs_items=False, by_line=by_line)) == 2


@pytest.mark.parametrize("before", [b"", b"\n \n", "\ufeff".encode()])
def test_going_on_from_a_position(tmp_path, before):
    path = tmp_path / "rows.csv"
    path.write_bytes(before + b"a,b\n1,2\n3,4\n5,6\n")
    for position, expected in ((0, ["1", "3", "5"]), (len(before) + 12, ["5"])):
        rows = Rows(str(path), None, "a", None, needs_items=True)
        rows.open(position)
        with closing(rows):
            batch = next(rows.available())
        assert list(map(str, batch.items)) == expected
        assert batch.ends[-1] == len(before) + 16


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
    assert np.allclose(_batch_seconds(pa.array(times)), expected, atol=1e-6)


@pytest.mark.parametrize(
    "wrong", ["yesterday", "nan", "inf", "1e300", "1700000000000", "-62135596801", "253402300800", "", None, [1]]
)
def test_times_that_are_none(wrong):
    assert seconds_of(wrong) is None
    if isinstance(wrong, str):
        assert _batch_seconds(pa.array(["5", wrong])) is None
