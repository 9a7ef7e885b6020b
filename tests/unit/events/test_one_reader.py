"""One definition of a row: whole files (`top`) and inputs that grow (`watch`) give the same rows of the same bytes."""

import random
from contextlib import closing
from functools import partial

import pytest
from tests.rows import open_stream

import discreet as dc
from discreet.events.ahead import in_order
from discreet.events.inputs import format_named
from discreet.events.live_input import LiveInput

LONG = b"w" * 4096
# Records; every file has them in another order. What is wrong with some of them is what both must agree on.
ODD = {
    "csv": [
        *(b"1,a\n", b"2,b b\r\n", b'3,"c,c"\n', b'4,"d\nd"\r\n', b'5,"e""e"\n', b'6,5" disk\n', b'7,""\n', b'8," "\n'),
        *(b"9,\n", b",\n", b"10\n", b"11,x,y\n", b"\n", b"\r\n", b"  \n", b"\t\n", b"12,\xff\n", b"\xff,fine\n"),
        *(b"13,%s\n" % LONG, b"14,%sw\n" % LONG, b"15,a\rb\n", b"16,a\r\r\n", b'17,"a\rb"\n', b'18,"a"b"c\n'),
        *("19,ü€\n".encode(), b"20,nul\x00byte\n", b"n,query\n", b'"21","q"\n', b"NA,null\n", b" 22 , g \n"),
    ],
    "txt": [
        *(b"a\n", b"b b\r\n", b"\xff\n", "ü€\n".encode(), b"%s\n" % LONG, b"%sw\n" % LONG, b"nul\x00byte\n", b"a\rb\n"),
        *(b'"quoted\n', b" c \n"),
    ],
    "jsonl": [
        *(
            b'{"n": 1, "query": "a"}\n',
            b' {"query":"b"} \r\n',
            b'{"query": 7}\n',
            b'{"query": "7"}\n',
            b'{"query": -0}\n',
        ),
        *(b'{"query": 18446744073709551615}\n', b'{"query": 18446744073709551616}\n', b'{"query": 1.5}\n'),
        *(b'{"query": -9223372036854775808}\n', b'{"query": -9223372036854775809}\n', b'{"query": true}\n'),
        *(b'{"query": null}\n', b'{"n": 2}\n', b"{}\n", b"[]\n", b"\n", b" \t\r\n", b'"b"\n', b"{\n", b"null\n"),
        *(b'{"query": "x", "n": {"query": "y", "m": [1, {"query": 2}]}}\n', b'{"query": {"query": "y"}}\n'),
        *(
            b'{"query": ["a"]}\n',
            b'{"query": "c", "query": "d"}\n',
            b'{"query": "\\ud800"}\n',
            b'{"query": "\\u00e9\\n"}\n',
        ),
        *(b'{"query": "\xff"}\n', b'{"query": "a", "n": "\xff"}\n', b'{"query": "%s"}\n' % LONG, b'{"query": "a"} x\n'),
        *(
            b'{"query": "%sw"}\n' % LONG,
            b'{"query": "n", "n": NaN}\n',
            b'{"query": "n", "n": Inf}\n',
            b'{"query": ""}\n',
        ),
        b'{"query": "deep", "n": ' + b"[" * 5000 + b"]" * 5000 + b"}\n",
    ],
}
ODD["tsv"] = [record.replace(b",", b"\t") for record in ODD["csv"]]


def whole(path, **options):
    """What `top` reads: the items as text, and how many rows were bad."""
    stream = open_stream(path, nulls="skip", **{"bad_rows": "skip", **options})
    return [str(item) for batch in stream for item in batch.column("item").to_pylist()], stream.bad_rows


def growing(path, data, column, pieces, **options):
    """What `watch` reads of a file that is written in so many pieces."""
    path.write_bytes(b"")
    rows, items = LiveInput(str(path), None, column, None, needs_items=True, **options), []
    rows.open(0)
    with closing(rows), path.open("ab") as file:
        for i in range(pieces):
            file.write(data[len(data) * i // pieces : len(data) * (i + 1) // pieces])
            file.flush()
            items += [item for batch in rows.available() for item in batch.values.column("item").to_pylist()]
        items += [item for batch in rows.rest() for item in batch.values.column("item").to_pylist()]
    return items, rows.bad


@pytest.mark.parametrize("suffix", ODD)
def test_the_same_bytes_are_the_same_rows(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"rows.{suffix}"
    column = None if suffix == "txt" else "query"
    header = {"csv": b"n,query\n", "tsv": b"n\tquery\n"}.get(suffix, b"")
    for seed in range(60):
        chance = random.Random(seed)
        records = chance.choices(ODD[suffix], k=chance.randint(0, 30))
        data = chance.choice([b"", b"\xef\xbb\xbf"]) + chance.choice([b"", b"\r\n"]) * bool(header) + header
        data += b"".join(records)
        data = chance.choice([data, data.removesuffix(b"\n")])
        if suffix in ("csv", "tsv") and chance.random() < 0.3:
            data += b'\n23,"open\n24,after\n'.replace(b",", header[1:2])
        path.write_bytes(data)
        monkeypatch.setattr("discreet.events.inputs.BLOCK_BYTES", chance.choice([7, 100, 1 << 22]))
        items, bad = whole(path, column=column)
        for pieces in (1, 4):
            found, reasons = growing(path, data, column, pieces)
            assert found == items
            # A row without a value is bad in a stream, which has no `nulls`.
            assert sum(reasons.values()) - reasons["a row without a value in a column asked for"] == bad


@pytest.mark.parametrize("suffix", ODD)
def test_neither_blocks_nor_threads_change_what_is_read(tmp_path, monkeypatch, suffix):
    """Rows and how many are bad; for blocks of one size also where the first of those is, and the error."""
    path = tmp_path / f"rows.{suffix}"
    column = None if suffix == "txt" else "query"
    header = {"csv": b"n,query\n", "tsv": b"n\tquery\n"}.get(suffix, b"")
    troubles = 0
    for seed in range(6):
        chance = random.Random(seed)
        data = chance.choice([b"", b"\xef\xbb\xbf"]) + header + b"".join(chance.choices(ODD[suffix], k=20))
        data = chance.choice([data, data.removesuffix(b"\n")])
        path.write_bytes(data)
        over_sizes = set()
        for size in (7, 100, 1 << 20):
            monkeypatch.setattr("discreet.events.inputs.BLOCK_BYTES", size)
            for bad_rows in ("skip", "error"):
                over_threads = set()
                for helpers in (None, 0, 1, 3):
                    stream = open_stream(path, column=column, bad_rows=bad_rows, nulls="skip")
                    if helpers is not None:
                        stream.side_by_side = partial(in_order, helpers=helpers)
                    items, error = [], None
                    try:
                        items += [str(item) for batch in stream for item in batch.column("item").to_pylist()]
                    except dc.DataError as caught:
                        error = str(caught)
                    over_threads.add((tuple(items), stream.bad_rows, stream.first_bad_row, error))
                ((items, bad, _, error),) = over_threads
                # Which of the bad rows of a block is named depends on the block.
                over_sizes.add((bad_rows, items, bad, error is None))
        assert len(over_sizes) == 2, seed
        troubles += any(not good for *_, good in over_sizes)
    assert suffix == "txt" or troubles > 1


@pytest.mark.parametrize("suffix", ODD)
def test_a_bad_row_is_an_error_for_both_or_for_none(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    column = None if suffix == "txt" else "query"
    header = {"csv": b"n,query\n", "tsv": b"n\tquery\n"}.get(suffix, b"")
    for record in ODD[suffix]:
        path.write_bytes(header + record)
        bad = whole(path, column=column)[1]
        if bad:
            with pytest.raises(dc.DataError) as caught:
                whole(path, column=column, bad_rows="error")
            with pytest.raises(dc.DataError) as followed:
                growing(path, header + record, column, 1, skip_bad=False)
            assert str(path) in str(caught.value)
            assert str(path) in str(followed.value)
        else:
            whole(path, column=column, bad_rows="error")


def test_blank_lines_of_text_are_items_of_a_file_and_no_events_of_a_stream(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_bytes(b"a\n\n \nb\n")
    assert whole(path) == (["a", "", " ", "b"], 0)
    assert growing(path, b"a\n\n \nb\n", None, 1)[0] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "format"),
    [
        *(("a.csv", "csv"), ("a.TSV", "tsv"), ("a.tab", "tsv"), ("a.jsonl", "jsonl"), ("a.ndjson", "jsonl")),
        *(("a.json", "jsonl"), ("a.txt", "text"), ("a.log", "text"), ("a.csv.1", "text"), ("a", "text"), ("-", "text")),
    ],
)
def test_a_name_says_the_same_of_a_stream_as_of_a_file(name, format):
    column = None if format == "text" else "query"
    assert LiveInput(name, None, column, None, needs_items=True).format == format
    assert format_named(name)[0] in (format, None)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.zst", "a.parquet", "a.feather", "a.zip", "a.xlsx"])
def test_what_does_not_grow_by_lines_is_not_followed(name):
    with pytest.raises(dc.ParameterError):
        LiveInput(name, None, None, None, needs_items=True)
    assert LiveInput(name, "text", None, None, needs_items=True).format == "text"


def test_what_is_published_has_one_type_whatever_a_row_is(tmp_path):
    """A stream is text; a file of JSON keeps 7 and "7" apart, and none of them decides for the others."""
    data = b'{"query": 7}\n{"query": "7"}\n{"query": 18446744073709551615}\n{"query": null}\n{"query": -1}\n'
    path = tmp_path / "rows.jsonl"
    path.write_bytes(data)
    stream = open_stream(path, column="query", nulls="skip")
    assert [item for batch in stream for item in batch.column("item").to_pylist()] == [7, "7", 2**64 - 1, -1]
    assert growing(path, data, "query", 2)[0] == ["7", "7", str(2**64 - 1), "-1"]
