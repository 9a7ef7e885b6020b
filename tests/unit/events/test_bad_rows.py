"""Bad rows: each is left out by itself, whatever is around it and wherever blocks end."""

import contextlib
import csv
import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from tests.rows import open_stream

import discreet as dc
from discreet import _native

LONG = "w" * 4096


def rows_of(path, **options):
    options = {"nulls": "skip", "bad_rows": "skip", **options}
    stream = open_stream(path, **options)
    return [item for batch in stream for item in batch.column("item").to_pylist()], stream.bad_rows


def small_blocks(monkeypatch, size, longest=1 << 26):
    monkeypatch.setattr("discreet.events.inputs.BLOCK_BYTES", size)
    monkeypatch.setattr("discreet.events.inputs.LONGEST_RECORD", longest)


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


JSON_MORE = [
    b'{"query": -9223372036854775808, "n": -9223372036854775809}',
    b'{"qu\\u0065ry": "\\ud83d\\ude00\\ud83d\\u0041", "n": -0}',
    b'{"query": 1.5e-3, "n": [true, false, null, "\\n"]}',
    b'{"query": "x", "n": -Infinity}\r',
    b'{"query": [1, 2], "n": 0.0}',
    b'{"query": "\xc3\xbc", "n": NaN, "query": null}',
]


def kind_of(value):
    """As `_native.json_rows` has it, of a value as Python's parser gives it."""
    if value is None or isinstance(value, (bool, list, dict)):
        return 0 if value is None else 5
    if isinstance(value, str):
        return 5 if any("\ud800" <= c <= "\udfff" for c in value) else 1
    if isinstance(value, float):
        return 4
    return 2 if -(2**63) <= value < 2**63 else 3 if 0 <= value < 2**64 else 4


def test_json_lines_mean_what_they_mean_to_python():
    """Lines with random damage (seeded), in blocks of a few: kinds, ends and values of two keys."""
    generator = random.Random(11)
    seeds = [line for line, _ in JSON if len(line) < 1000] + JSON_MORE
    pieces = [*b'{}[]":,\\ae1-.IN\xff\x00 \t\r0u+EftnD8', *[ord(c) for c in '"query"']]
    good = 0
    for _ in range(20_000):
        lines = []
        for _ in range(generator.randrange(1, 4)):
            line = bytearray(generator.choice(seeds))
            for _ in range(generator.randrange(4)):
                at = generator.randrange(len(line) + 1)
                line[at : at + generator.randrange(3)] = bytes(generator.choices(pieces, k=generator.randrange(3)))
            lines.append(bytes(line).replace(b"\n", b" ") + b"\n")
        (kinds, ends, newlines, columns), *_ = _native.json_rows(b"".join(lines), ["query", "n"], False)
        assert ends.tolist() == np.cumsum([len(line) for line in lines]).tolist()
        assert newlines == len(lines)
        offsets, row = [column[1] for column in columns], 0
        for line, kind in zip(lines, kinds, strict=True):
            found = None
            with contextlib.suppress(ValueError):
                found = json.loads(line.decode())
            assert kind == (1 if not line.strip() else 0 if isinstance(found, dict) else 3), line
            if kind:
                continue
            for at, (name, (values, _, data, _)) in enumerate(zip(("query", "n"), columns, strict=True)):
                value = found.get(name)
                assert values[row] == kind_of(value), line
                text = bytes(data[offsets[at][row] : offsets[at][row + 1]]).decode()
                if isinstance(value, float):
                    assert repr(float(text)) == repr(value), line
                elif values[row] in (1, 2, 3, 4):
                    assert text == str(value), line
            row += 1
            good += 1
        assert all(len(column[0]) == row for column in columns)
    assert good > 2_000


def test_delimited_rows_are_those_of_the_csv_module():
    """Any bytes (seeded): where records end, which are rows, and their cells."""
    generator = random.Random(2)
    for _ in range(20_000):
        delimiter, cells = generator.choice(",\t"), generator.randrange(1, 4)
        characters = ['"', '"', delimiter, delimiter, "\n", "a", "\r\n", "é", " ", "\r"]
        characters += ["b" * generator.randrange(80), '"\n'] if generator.random() < 0.2 else []  # longer than a word
        text = "".join(generator.choices(characters, k=generator.randrange(40))).encode("latin-1")
        ends, cell = _native.record_ends(text, ord(delimiter), 0)
        ends = np.frombuffer(ends, np.int64).tolist()
        if cell == 2:  # inside quotes
            text = text[: max(ends, default=0)]
        if text and ends[-1:] != [len(text)]:
            ends.append(len(text))
        kinds, found, newlines, columns = _native.delimited_rows(text, ord(delimiter), list(range(cells)))
        assert found.tolist() == ends
        assert newlines == text.count(b"\n")
        expected, start = [], 0
        for end, kind in zip(ends, kinds, strict=True):
            record, start = text[start:end].decode("latin-1"), end
            line = record.removesuffix("\n").rstrip("\r")
            row = None
            with contextlib.suppress(csv.Error):
                (row,) = csv.reader([line], delimiter=delimiter)
            blank = not record.strip(" \t\r\n")
            assert kind == (1 if blank else 3 if row is None else 0 if len(row) == cells else 2), record
            expected += [row] if kind == 0 else []
        for at, (_, offsets, data, ascii) in enumerate(columns):
            written = bytes(data)
            assert ascii == written.isascii()
            places = zip(offsets.tolist(), offsets.tolist()[1:], strict=False)
            assert [written[first:last].decode("latin-1") for first, last in places] == [row[at] for row in expected]


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

    def counting_bounds(data, *how, real=_native.record_bounds):
        nonlocal looked
        looked += len(data)
        return real(data, *how)

    path = tmp_path / "log.csv"
    path.write_bytes(b'n,query\n0,"' + b'x"y ""\n' * (1 << 20) + b"1,last\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_native, "record_bounds", counting_bounds)
        rows_of(path, column="query")
    assert looked < 8 * path.stat().st_size


def test_lists_of_json_are_of_one_kind_or_bad(tmp_path):
    """Any lists (seeded), with users beside them, against the rule written down in Python."""
    generator = random.Random(4)
    values = ["a", "é", "", 0, -1, 7, 2**63 - 1, 2**63, 2**64 - 1, None, None]
    odd = [1.5, True, 2**64, -(2**63) - 1, "\ud800", [], {}]
    path = tmp_path / "log.jsonl"
    for size in (1, 30):
        for _ in range(150):
            rows, expected, bad = [], [], 0
            for user in range(size):
                items = generator.choices(values, k=generator.randrange(4))
                if generator.random() < 0.3:
                    items = generator.choices([item for item in values if type(item) is int], k=3)
                if generator.random() < 0.2:
                    items.insert(generator.randrange(len(items) + 1), generator.choice(odd))
                if generator.random() < 0.1:
                    items = generator.choice([None, "a", 5, {"a": 1}])
                rows.append({"user": user, "query": items})
                if items is None:
                    continue
                there = [item for item in items if item is not None] if isinstance(items, list) else [{}]
                numbers = [item for item in there if type(item) is int and -(2**63) <= item < 2**64]
                texts = [item for item in there if isinstance(item, str) and item != "\ud800"]
                fits = min(numbers, default=0) >= 0 or max(numbers) < 2**63
                if (len(numbers) == len(there) and fits) or len(texts) == len(there):
                    expected.append(there)
                else:
                    bad += 1
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
            assert rows_of(path, column="query", user_column="user", lists=True) == (expected, bad)


def test_the_line_of_a_record_that_cannot_be_cut_is_told(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text('url,who\n/a,1\n/b,2\n"' + "x\n" * 2**19)
    with pytest.raises(dc.DataError, match=r"does not end \(line 4\)"):
        dc.top_k(dc.read(path), 3, dc.Budget(1.0, 1e-6), column="url", user="who", bad_rows="error")


@pytest.mark.parametrize("write", [pq.write_table, pyarrow.feather.write_feather])
def test_rows_that_are_bad_in_different_columns_are_left_out_together(tmp_path, write):
    items, users = (
        pa.array(values).cast(pa.binary()).view(pa.string())
        for values in ([b"a", b"\xff", b"c", b"d"], [b"u", b"v", b"\xff", b"x"])
    )
    write(pa.table({"item": items, "who": users}), tmp_path / "rows")
    stream = open_stream(tmp_path / "rows", column="item", user_column="who", bad_rows="skip")
    rows = [row for batch in stream for row in batch.to_pylist()]
    assert rows == [{"item": "a", "user": "u"}, {"item": "d", "user": "x"}]
    assert stream.bad_rows == 2
