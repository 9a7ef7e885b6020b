"""Bad rows: each is left out by itself, whatever is around it and wherever blocks end."""

import json
import random
import sys

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet import _native
from discreet.events.bad_rows import BadRows
from discreet.events.delimited import _quote_marks
from discreet.events.jsonl import _Reader
from discreet.events.stream import open_stream

LONG = "w" * 4096


def rows_of(path, **options):
    options = {"nulls": "skip", "bad_rows": "skip", **options}
    stream = open_stream(path, **options)
    return [item for batch in stream for item in batch.column("item").to_pylist()], stream.bad_rows


def small_blocks(monkeypatch, size, longest=1 << 26):
    for module in ("lines", "source"):
        monkeypatch.setattr(f"discreet.events.{module}.BLOCK_BYTES", size)
        monkeypatch.setattr(f"discreet.events.{module}.LONGEST_RECORD", longest)


# Lines and the item that each gives; None for a bad row.
TEXT = [(b"cats", "cats"), ("ü".encode(), "ü"), (b"", ""), (b"\xff", None), (b"caf\xe9", None)]
TEXT += [(LONG.encode(), LONG), (b"w" * 4097, None)]
CSV = [(b"1,cats", "cats"), ('2,"a ""ü"" b"'.encode(), 'a "ü" b'), (b'3,5" disk', '5" disk')]
CSV += [(b"4", None), (b"5,a,b", None), (b"6,caf\xe9", None), (b"\xe9,fine", "fine"), (b"7," + b"w" * 4097, None)]
JSON = [
    (b'{"query": "cats", "n": [1, {}]}', "cats"),
    (b' {"query": "dogs"} ', "dogs"),
    (b'{"query": 7}', 7),
    (b'{"query": -7, "query": 8}', 8),
    (b'{"query": 18446744073709551615}', 2**64 - 1),
    (b'{"query": "a", "n": Infinity}', "a"),
    (b'{"query": "\\u00e9", "other": "\\ud800"}', "é"),
    (b'{"query": 18446744073709551616}', None),
    (b'{"query": "a", "n": Inf}', None),
    (b'{"query": "a"}{"query": "b"}', None),
    (b'{"query":', None),
    (b'"b"}', None),
    (b'{"query": "a", "n": "\xff"}', None),
    (b'{"query": "\\ud800"}', None),
    (b'{"query": 1.0}', None),
    (b'{"query": true}', None),
    (b'{"query": {"a": 1}}', None),
    (b'{"query": ["a"]}', None),
    (b'{"query": "a", "n": ' + b"[" * 10**5 + b"]" * 10**5 + b"}", None),
    (b'{"query": "a", "n": ' + b"[" * 100 + b"]" * 100 + b"}", "a"),
    (b'{"query": "' + b"w" * 4097 + b'"}', None),
    (b"null", None),
    (b"[1]", None),
    (b"\xef\xbb\xbf{}", None),
]
FORMATS = {
    "txt": (TEXT, b""),
    "csv": (CSV, b"n,query\n"),
    "jsonl": (JSON, b"\n"),
}  # a byte order mark counts only at the start


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_bad_row_removes_itself_and_nothing_else(tmp_path, monkeypatch, suffix):
    """Any mixture of good and bad rows gives the good ones, in their order (seeded)."""
    rows, header = FORMATS[suffix]
    generator = random.Random(5)
    path = tmp_path / f"log.{suffix}"
    column = None if suffix == "txt" else "query"
    for size in [1, 7, 64, 4096, 1 << 22] * 4:
        small_blocks(monkeypatch, size)
        chosen = generator.choices(rows, k=40 if size > 1 else 12)
        end = generator.choice([b"", b"\n"]) if chosen[-1][0] else b"\n"
        path.write_bytes(header + b"\n".join(line for line, _ in chosen) + end)
        items, bad = rows_of(path, column=column)
        assert items == [item for _, item in chosen if item is not None]
        assert bad == sum(item is None for _, item in chosen)


@pytest.mark.parametrize("suffix", FORMATS)
def test_rows_of_more_than_the_limit_are_bad_wherever_blocks_end(tmp_path, monkeypatch, suffix):
    """A limit of 200 bytes: rows of 199, 200 (with their newline) and 201 bytes among others, for many block sizes."""
    make = {"txt": "{}", "csv": "{},x", "jsonl": '{{"query": "x", "n": "{}"}}'}[suffix]
    item = {"txt": None, "csv": "x", "jsonl": "x"}[suffix]
    lines, expected = [], []
    for length in (20, 199, 200, 201, 20, 900, 30, 200, 199):
        line = make.format("w" * (length - len(make.format("")) - 1))
        lines.append(line)
        if length <= 200:
            expected.append(item or line)
    path = tmp_path / f"log.{suffix}"
    path.write_text(("n,query\n" if suffix == "csv" else "") + "\n".join(lines) + "\n")
    for size in range(1, 100):  # the limit is many blocks
        small_blocks(monkeypatch, size, 200)
        assert rows_of(path, column=None if suffix == "txt" else "query") == (expected, 2)


def test_an_open_quote_costs_its_line_where_no_other_quote_follows(tmp_path, monkeypatch):
    """At the end of the file, and when the row would be longer than the limit."""
    path = tmp_path / "log.csv"
    rows = b"".join(b"%d,item %d\n" % (i, i) for i in range(100))
    path.write_bytes(b'n,query\n0,first\n1,"open\n' + rows + b'7,"a\nb"\n8,"open too\n' + rows[:300])
    for size in (1, 100, 250):
        small_blocks(monkeypatch, size, 500)
        items, bad = rows_of(path, column="query")
        last = rows[:300].decode().splitlines()
        assert bad == 2 + (last[-1].count(",") != 1)
        assert items[:101] == ["first"] + [f"item {i}" for i in range(100)]
        assert items[101] == "a\nb"


def test_json_lines_at_once_are_what_they_are_one_by_one():
    """Two parsers, one meaning: lines with random damage (seeded), block against line."""
    generator = random.Random(11)
    seeds = [line for line, _ in JSON if len(line) < 1000]
    pieces = [*b'{}[]":,\\ae1-.IN\xff\x00 \t\r', *[ord(c) for c in '"query"']]
    compared = 0
    for _ in range(6_000):
        line = bytearray(generator.choice(seeds))
        for _ in range(generator.randrange(3)):
            at = generator.randrange(len(line))
            line[at : at + generator.randrange(2)] = bytes([generator.choice(pieces)])
        block = b'{"query": "q"}\n' + bytes(line).replace(b"\n", b" ") + b'\n{"query": "r"}\n'
        reader = _Reader("x", ["query"], False, BadRows(skip=True))
        at_once = reader._at_once(block)
        if at_once is not None:
            compared += 1
            slow = _Reader("x", ["query"], False, BadRows(skip=True))
            runs = [array for (array,) in slow._one_by_one(block)]
            assert at_once[0].to_pylist() == [value for run in runs for value in run.to_pylist()], bytes(line)
    assert compared > 200


def marks_one_by_one(data, delimiter):
    marks, inside = [], False
    for position in (i for i, c in enumerate(data) if c == ord('"')):
        start = position == 0 or data[position - 1] in delimiter.encode() + b"\r\n"
        if inside or start or (marks and position == marks[-1] + 1):
            marks.append(position)
            inside = not inside
    return marks


def test_quotes_are_told_apart_without_a_loop():
    generator = random.Random(2)
    for _ in range(20_000):
        data = "".join(
            generator.choices('a",\n', [1, generator.choice([1, 3]), 1, 1], k=generator.randrange(16))
        ).encode()
        assert _quote_marks(data, ",").tolist() == marks_one_by_one(data, ",")


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
@pytest.mark.parametrize("kind", ["plain", "dictionary", "lists"])
def test_bad_items_of_typed_columns(tmp_path, suffix, kind):
    values = pa.array([b"cats", b"caf\xe9", b"w" * 4097, b"dogs", None, LONG.encode()]).view(pa.string())
    good = ["cats", "dogs", LONG]
    if kind == "dictionary":
        values = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, None, 4]), values.filter(values.is_valid()))
    if kind == "lists":
        values = pa.ListArray.from_arrays(pa.array([0, 1, 3, 3, 4, 6]), values)
        good = [["cats"], [], ["dogs"], [LONG]]
    table = pa.table({"query": values, "user": pa.array([0, 1, 2, 3, 4, 5][: len(values)])})
    path = str(tmp_path / f"log.{suffix}")
    pq.write_table(table, path) if suffix == "parquet" else pa.feather.write_feather(table, path)
    for user_column in (None, "user"):
        assert rows_of(path, column="query", user_column=user_column)[0] == good
    with pytest.raises(dc.DataError, match="UTF-8"):
        rows_of(path, column="query", bad_rows="error")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_users_that_are_not_text_are_bad_rows(tmp_path, suffix):
    path = str(tmp_path / f"log.{suffix}")
    if suffix == "parquet":
        users = pa.array([b"u1", b"\xff", b"u2"]).view(pa.string())
        pq.write_table(pa.table({"query": ["a", "b", "c"], "user": users}), path)
    elif suffix == "csv":
        with open(path, "wb") as file:
            file.write(b"query,user\na,u1\nb,\xff\nc,u2\n")
    else:
        with open(path, "w") as file:
            file.writelines(
                json.dumps({"query": q, "user": u}) + "\n" for q, u in (("a", "u1"), ("b", 1.5), ("c", "u2"))
            )
    assert rows_of(path, column="query", user_column="user") == (["a", "c"], 1)


def test_kinds_of_json_items_stay_apart_and_in_order(tmp_path):
    path = tmp_path / "log.jsonl"
    values = [1, "1", None, "a", 2**63, -1, "b"] * 3
    path.write_text("".join(json.dumps({"query": value}) + "\n" for value in values))
    assert rows_of(path, column="query") == ([value for value in values if value is not None], 0)


def test_an_open_quote_is_read_in_linear_time(tmp_path):
    """How often the bytes of a long row are looked at does not grow with it: counted, not timed."""
    looked = 0

    def counting(data, delimiter, real=_quote_marks):
        nonlocal looked
        looked += len(data)
        return real(data, delimiter)

    def counting_ends(data, delimiter, cell, real=_native.record_ends):
        nonlocal looked
        looked += len(data)
        return real(data, delimiter, cell)

    module = sys.modules["discreet.events.delimited"]
    path = tmp_path / "log.csv"
    path.write_bytes(b'n,query\n0,"' + b'x"y ""\n' * (1 << 20) + b"1,last\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_quote_marks", counting)
        patch.setattr(_native, "record_ends", counting_ends)
        rows_of(path, column="query")
    assert looked < 8 * path.stat().st_size
