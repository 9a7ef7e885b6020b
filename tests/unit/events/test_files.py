"""Reading streams: every format and compression gives the same items, and bad input gives an error without items."""

import csv
import gzip
import io
import json
import os
import random
import subprocess
import sys
import traceback

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from tests.rows import open_stream

import discreet as dc
from discreet.events.files import Files
from discreet.events.items import item_of_bytes
from discreet.events.tables import events_of
from discreet.events.text import NOT_TEXT, Cutter, Lines
from discreet.events.universe import Universe

ITEMS = ["cats", "dogs", "ünï cödé", "a,b", 'say "hi"', "cats", "", " space ", "tab\there", "x" * 1000, "0"]
SECRET = "secret-item-4711"


def items_of(stream):
    return [item for batch in stream for item in batch.column("item").to_pylist()]


def table(items=ITEMS):
    rows = range(len(items))
    return pa.table({"other": list(rows), "query": items, "user": [f"u{i % 3}" for i in rows]})


def write_csv(path, items=ITEMS, delimiter=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(["other", "query", "user"])
        for i, item in enumerate(items):
            writer.writerow([i, item, f"u{i % 3}"])


def write_tsv(path, items=ITEMS):
    write_csv(path, items, "\t")


def write_parquet(path, items=ITEMS):
    pq.write_table(table(items), path, row_group_size=4)


def write_parquet_plain(path, items=ITEMS):
    pq.write_table(table(items), path, use_dictionary=False, compression="zstd")


def write_arrow_file(path, items=ITEMS):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table(items).schema) as writer:
        writer.write_table(table(items), max_chunksize=3)


def write_arrow_stream(path, items=ITEMS):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table(items).schema) as writer:
        writer.write_table(table(items), max_chunksize=3)


def write_feather(path, items=ITEMS):
    pa.feather.write_feather(table(items), str(path), compression="lz4")


def write_jsonl(path, items=ITEMS):
    with open(path, "w", encoding="utf-8") as file:
        for row in table(items).to_pylist():
            file.write(json.dumps(row, ensure_ascii=row["other"] % 2 == 0) + "\n")


WRITERS = {
    "csv": write_csv,
    "tsv": write_tsv,
    "parquet": write_parquet,
    "pq": write_parquet_plain,
    "arrow": write_arrow_file,
    "arrows": write_arrow_stream,
    "feather": write_feather,
    "jsonl": write_jsonl,
}
SEEKING = ("parquet", "pq")


def compress(path, how):
    data = path.read_bytes()
    packed = path.with_name(f"{path.name}.{how}")
    if how == "gz":
        half = len(data) // 2  # two members, as `cat a.gz b.gz` makes them
        packed.write_bytes(gzip.compress(data[:half]) + gzip.compress(data[half:]))
    else:
        with pa.CompressedOutputStream(str(packed), "zstd") as sink:
            sink.write(data)
    return packed


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_format_gives_the_items(tmp_path, suffix):
    path = tmp_path / f"log.{suffix}"
    WRITERS[suffix](path)
    assert items_of(open_stream(path, column="query")) == ITEMS
    stream = open_stream(path, column="query", user_column="user")
    assert [u for batch in stream for u in batch.column("user").to_pylist()] == [f"u{i % 3}" for i in range(len(ITEMS))]
    assert stream.bytes_total == stream.bytes_read == path.stat().st_size


@pytest.mark.parametrize("how", ["gz", "zst"])
@pytest.mark.parametrize("suffix", [suffix for suffix in WRITERS if suffix not in SEEKING])
def test_every_compression_gives_the_items(tmp_path, suffix, how):
    path = tmp_path / f"log.{suffix}"
    WRITERS[suffix](path)
    assert items_of(open_stream(compress(path, how), column="query")) == ITEMS


@pytest.mark.parametrize("suffix", WRITERS)
def test_the_format_can_be_told_from_the_content(tmp_path, suffix):
    path = tmp_path / "log"
    WRITERS[suffix](path)
    assert items_of(open_stream(path, column="query")) == ITEMS


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_format_can_be_stated(tmp_path, suffix):
    path = tmp_path / "log.txt"
    WRITERS[suffix](path)
    format = {"pq": "parquet", "arrows": "arrow", "feather": "arrow"}.get(suffix, suffix)
    assert items_of(open_stream(path, column="query", format=format)) == ITEMS


@pytest.mark.parametrize("suffix", [*WRITERS, "txt"])
def test_standard_input(tmp_path, suffix):
    """As a pipe, except for the formats that are read from their end: those as a redirected file."""
    path = tmp_path / f"log.{suffix}"
    items = [item for item in ITEMS if suffix != "txt" or "\n" not in item]
    if suffix == "txt":
        path.write_text("\n".join(items), encoding="utf-8")
    else:
        WRITERS[suffix](path)
    script = """
import sys
from tests.rows import open_stream
column = sys.argv[1] or None
print([item for batch in open_stream("-", column=column) for item in batch.column("item").to_pylist()])
"""
    command = [sys.executable, "-X", "utf8", "-c", script, "" if suffix == "txt" else "query"]
    if suffix in SEEKING:
        with open(path, "rb") as file:
            done = subprocess.run(command, stdin=file, capture_output=True, check=True, timeout=120)
    else:
        done = subprocess.run(command, input=path.read_bytes(), capture_output=True, check=True, timeout=120)
    assert done.stdout.decode().strip() == repr(items)


def test_parquet_from_a_pipe_is_refused(tmp_path):
    path = tmp_path / "log.parquet"
    write_parquet(path)
    with pytest.raises(dc.DataError, match="not a pipe"):
        items_of(open_stream(compress(path, "gz"), column="query"))


def test_several_files_and_patterns(tmp_path):
    write_csv(tmp_path / "b.csv", ["3", "4"])
    write_csv(tmp_path / "a.csv", ["1", "2"])
    write_jsonl(tmp_path / "c.jsonl", ["5"])
    stream = open_stream([str(tmp_path / "*.csv"), tmp_path / "c.jsonl"], column="query")
    assert items_of(stream) == ["1", "2", "3", "4", "5"]
    assert stream.bytes_read == stream.bytes_total
    odd = tmp_path / "odd[1].txt"
    odd.write_text("x\n")
    assert items_of(open_stream(str(odd))) == ["x"]


def test_parquet_keeps_dictionaries(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"query": ["a", "b", "a"] * 1000}), path)
    (batch,) = open_stream(path)
    assert pa.types.is_dictionary(batch.column("item").type)
    assert len(batch.column("item").dictionary) == 2


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_large_row_groups_come_in_bounded_batches(tmp_path, use_dictionary):
    """Also when the writer began a dictionary and gave it up: reading all of it as one would keep every item."""
    path = tmp_path / "log.parquet"
    items = [f"{i:01000d}" for i in range(60_000)]
    pq.write_table(pa.table({"query": items}), path, use_dictionary=use_dictionary)
    sizes = [batch.nbytes for batch in open_stream(path)]
    assert len(sizes) > 2
    assert max(sizes) < 20e6


@pytest.mark.parametrize("data_type", [pa.int8(), pa.int64(), pa.uint32(), pa.binary(), pa.large_string()])
def test_other_item_types(tmp_path, data_type):
    values = [b"\xff", b""] if pa.types.is_binary(data_type) else ["7", "8"] if "string" in str(data_type) else [1, 2]
    for suffix, write in (("parquet", pq.write_table), ("feather", pa.feather.write_feather)):
        path = str(tmp_path / f"log.{suffix}")
        write(pa.table({"query": pa.array(values, data_type)}), path)
        assert items_of(open_stream(path)) == values


def test_views_become_plain_text(tmp_path):
    path = str(tmp_path / "log.arrow")
    pa.feather.write_feather(pa.table({"query": pa.array(["a", "b" * 50], pa.string_view())}), path)
    assert items_of(open_stream(path)) == ["a", "b" * 50]


def test_numbers_in_csv_stay_as_written(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("code\n007\n7\n7.0\n1e3\nNA\nnull\ntrue\n2020-01-01\n")
    assert items_of(open_stream(path)) == ["007", "7", "7.0", "1e3", "NA", "null", "true", "2020-01-01"]


def test_json_numbers_are_integers(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"code": 7}\n\n{"code": -3}\n')
    assert items_of(open_stream(path)) == [7, -3]


def test_list_columns(tmp_path):
    rows = [["a", "b"], [], ["a"]]
    pq.write_table(pa.table({"tags": rows}), tmp_path / "log.parquet")
    (tmp_path / "log.jsonl").write_text("".join(json.dumps({"tags": row}) + "\n" for row in rows))
    for name in ("log.parquet", "log.jsonl"):
        assert items_of(open_stream(tmp_path / name)) == rows


# --- text lines


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\r\n\r\n", ["a\rb", ""]),
        (b"\xef\xbb\xbfa\nb", ["a", "b"]),
        ("ü\n€uro\n".encode(), ["ü", "€uro"]),
        (b"nul\x00byte\n", ["nul\x00byte"]),
    ],
)
def test_text_lines(tmp_path, data, expected):
    path = tmp_path / "log.txt"
    path.write_bytes(data)
    assert items_of(open_stream(path)) == expected


@pytest.mark.parametrize("data", [b"ok\nbad \xc3\n\xa9\n", b"\x80"])
def test_text_must_be_utf8(tmp_path, data):
    path = tmp_path / "log.txt"
    path.write_bytes(data)
    with pytest.raises(dc.DataError, match="UTF-8"):
        items_of(open_stream(path))


@settings(deadline=None)
@given(st.binary(max_size=200).map(lambda data: data.replace(b"\r", b"")))
def test_line_arrays_agree_with_python(data):
    rows = Lines().rows(data)
    (array,) = rows.columns
    array.validate(full=True)
    lines = data.split(b"\n")
    lines = lines[:-1] if data.endswith(b"\n") else lines
    good = [item for item in map(item_of_bytes, lines) if item is not None]
    assert array.to_pylist() == good
    assert rows.troubles() == ({NOT_TEXT: len(lines) - len(good)} if len(good) < len(lines) else {})
    assert rows.ends.tolist() == [min(len(data), end) for end in np.cumsum([len(line) + 1 for line in lines]).tolist()]


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "txt"])
def test_blocks_may_end_anywhere(tmp_path, monkeypatch, suffix):
    """Items do not depend on where the input happens to be cut (seeded; every cut is tried for small inputs)."""
    generator = random.Random(3)
    alphabet = ["a", '"', ",", "\t", "ü", "bb"] + (["\n", "\r\n"] if suffix in ("csv", "tsv") else [])
    items = ["".join(generator.choices(alphabet, k=generator.randrange(1, 6))) for _ in range(40)]
    path = tmp_path / f"log.{suffix}"
    if suffix == "txt":
        path.write_text("\n".join(items), encoding="utf-8")
    else:
        WRITERS[suffix](path, items)
    column = None if suffix == "txt" else "query"
    for size in [*range(1, 40), 100, 1000]:
        monkeypatch.setattr("discreet.events.inputs.BLOCK_BYTES", size)
        assert items_of(open_stream(path, column=column)) == items


# --- CSV


@settings(deadline=None)
@given(
    st.lists(st.lists(st.text('a",\n\r\t', max_size=6), min_size=2, max_size=2), min_size=1, max_size=6),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
def test_row_ends_are_outside_quotes(rows, quoting):
    """Every prefix of a file is cut after a whole number of rows, and after all of those that are whole."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=quoting, lineterminator="\n")
    ends = [0]
    for row in rows:
        writer.writerow(row)
        ends.append(len(text.getvalue()))
    data = text.getvalue().encode()
    for length in range(len(data) + 1):
        # A prefix that ends in a quote may close a cell or begin an escaped quote, but holds no later newline.
        taken = [cut.end for cut in Cutter(",", '"').cut(data[:length])]
        assert max(taken, default=0) == max(end for end in ends if end <= length)


def test_stray_quotes_are_ordinary_characters(tmp_path, monkeypatch):
    rows = ['5" disk', 'a"b"c"', 'x""', "plain", 'it"s']
    path = tmp_path / "log.csv"
    path.write_text("n,query\n" + "".join(f"{i},{row}\n" for i, row in enumerate(rows * 20)))
    for size in (7, 50, 1 << 20):
        monkeypatch.setattr("discreet.events.inputs.BLOCK_BYTES", size)
        assert items_of(open_stream(path, column="query")) == rows * 20


def test_csv_nulls_are_empty_unquoted_cells(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text('n,query\n1,a\n2,\n3,""\n')
    with pytest.raises(dc.DataError, match="skip"):
        items_of(open_stream(path, column="query"))
    assert items_of(open_stream(path, column="query", nulls="skip")) == ["a", ""]


def test_only_column_is_the_default(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("query\r\na\r\nb\r\n")
    assert items_of(open_stream(path)) == ["a", "b"]
    path.write_text("query,user\na,u1\n")
    assert items_of(open_stream(path, user_column="user")) == ["a"]


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl", "log.txt"])
def test_names_of_columns_are_unicode(tmp_path, name):
    (tmp_path / name).write_text('{"query": "a"}\n')
    for names in ({"column": "x\udcff"}, {"column": "query", "user_column": "x\udcff"}):
        with pytest.raises(dc.ParameterError, match="column"):
            items_of(open_stream(tmp_path / name, **names))


def test_a_header_alone_is_an_empty_stream(tmp_path):
    for text in ("query", "query\n"):
        (tmp_path / "log.csv").write_text(text)
        assert items_of(open_stream(tmp_path / "log.csv")) == []


@pytest.mark.parametrize("name", ["log.txt", "log.jsonl"])
def test_an_empty_file_of_lines_is_an_empty_stream(tmp_path, name):
    (tmp_path / name).touch()
    assert items_of(open_stream(tmp_path / name)) == []


# --- nulls


@pytest.mark.parametrize("suffix", ["parquet", "pq", "arrow", "arrows", "feather", "jsonl"])
def test_nulls_are_an_error_or_left_out(tmp_path, suffix):
    path = tmp_path / f"log.{suffix}"
    WRITERS[suffix](path, [None, None, "a", None, "b"])
    with pytest.raises(dc.DataError, match="skip"):
        items_of(open_stream(path, column="query"))
    assert items_of(open_stream(path, column="query", nulls="skip")) == ["a", "b"]


def test_a_row_without_a_user_is_a_null_too(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"query": ["a", "b", None], "user": [1, None, 3]}), path)
    with pytest.raises(dc.DataError):
        items_of(open_stream(path, column="query", user_column="user"))
    assert items_of(open_stream(path, column="query", user_column="user", nulls="skip")) == ["a"]


def test_nulls_inside_lists(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"tags": [["a", None], [None], None, [], ["b", "c"]]}), path)
    with pytest.raises(dc.DataError):
        items_of(open_stream(path))
    assert items_of(open_stream(path, nulls="skip")) == [["a"], [], [], ["b", "c"]]


def test_nulls_inside_a_dictionary(tmp_path):
    path = str(tmp_path / "log.arrow")
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", None]))
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, pa.schema([("query", array.type)])) as writer:
        writer.write_batch(pa.record_batch([array], names=["query"]))
    with pytest.raises(dc.DataError):
        items_of(open_stream(path))
    assert items_of(open_stream(path, nulls="skip")) == ["a", "a"]


# --- bad input


def bad_files(directory):
    """Name, content and options of inputs that cannot be read; most hold an item that no message may repeat."""
    secret = SECRET.encode()
    good = {}
    for suffix, write in WRITERS.items():
        path = directory / f"good.{suffix}"
        write(path, [SECRET, "b", SECRET, "c"])
        good[suffix] = path.read_bytes()
    query = {"column": "query"}
    yield "empty.csv", b"", query
    yield "ragged.csv", b"n,query\n1," + secret + b"\n2," + secret + b",3\n", query
    yield "short.csv", b"n,query\n1," + secret + b"\n2\n", query
    yield "latin.csv", b"n,query\n1," + secret + b"\xe9\n", query
    yield "quote.csv", b'n,query\n1,"' + secret + b"\n2,x\n", query
    yield "twice.csv", b"query,query\n" + secret + b"," + secret + b"\n", query
    yield "headerless.csv", secret + b",1\n" + secret + b",2\n", query
    yield "headerless2.csv", secret + b",1\n" + secret + b",2\n", {}
    yield "truncated.parquet", good["parquet"][:-20], query
    start = pq.ParquetFile(directory / "good.parquet").metadata.row_group(0).column(1).dictionary_page_offset
    yield "middle.parquet", good["parquet"][:start] + b"\xff" * 30 + good["parquet"][start + 30 :], query
    yield "truncated.arrow", good["arrow"][: len(good["arrow"]) // 2], query
    yield "truncated.arrows", good["arrows"][: len(good["arrows"]) - 100], query
    yield "wrong.parquet", good["csv"], query
    yield "wrong.arrow", good["csv"], query
    yield "wrong.jsonl", good["csv"], query
    yield "empty.parquet", b"", query
    yield "empty.arrow", b"", query
    yield "cut.jsonl", b'{"query": "a"}\n{"query": "' + secret + b"\n", query
    yield "mixed.jsonl", b'{"query": ["' + secret + b'", 7]}\n', query
    yield "float.jsonl", b'{"query": 7}\n{"query": 7.5}\n', query
    yield "huge.jsonl", b'{"query": 7}\n{"query": 123456789012345678901234567890}\n', query
    yield "bool.jsonl", b'{"query": true}\n', query
    yield "object.jsonl", b'{"query": {"a": "' + secret + b'"}}\n', query
    yield "array.jsonl", b'["' + secret + b'"]\n', query
    yield "latin.jsonl", b'{"query": "ok"}\n{"query": "' + secret + b'\xe9"}\n', query
    yield "two.jsonl", b'{"query": "a", "user": "' + secret + b'"}\n', {}
    yield "latin.txt", secret + b"\xe9\n", {}
    yield "lines.txt", secret + b"\n", query
    yield "cut.txt.gz", gzip.compress(secret * 1000 + os.urandom(5000))[:-100], {}
    yield "broken.txt.gz", gzip.compress(secret * 10)[:10] + b"\xff" * 50, {}
    yield "broken.txt.zst", b"\x28\xb5\x2f\xfd" + b"\xff" * 50, {}
    for suffix in good:
        yield f"column.{suffix}", good[suffix], {"column": "no such column"}


def test_bad_input_is_a_data_error_without_items(tmp_path):
    for name, content, options in bad_files(tmp_path):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(dc.DataError) as caught:
            pytest.fail(f"{name} gave {len(items_of(open_stream(path, **options)))} items")
        assert str(path) in str(caught.value), name
        assert SECRET not in "".join(traceback.format_exception(caught.value)), name
        assert SECRET not in repr(caught.value.__context__), name


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_parquet_text_that_is_not_utf8_reaches_no_summary(tmp_path, use_dictionary):
    path = tmp_path / "log.parquet"
    text = pa.array([b"secret \xe9"] * 10, pa.binary()).view(pa.string())
    pq.write_table(pa.table({"query": text, "user": list(range(10))}), path, use_dictionary=use_dictionary)
    for user_column in (None, "user"):
        with pytest.raises(dc.DataError, match="UTF-8"):
            list(open_stream(path, column="query", user_column=user_column))


@pytest.mark.parametrize("suffix", [*WRITERS, "txt", ""])
def test_binary_garbage_is_a_data_error(tmp_path, suffix):
    generator = np.random.default_rng(5)
    for size in (1, 100, 100_000):
        path = tmp_path / (f"log.{suffix}" if suffix else "log")
        path.write_bytes(b"\x9c" + generator.bytes(size))
        with pytest.raises(dc.DataError):
            items_of(open_stream(path, column=None if suffix in ("", "txt") else "query"))


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows", "feather"])
def test_damaged_files_give_data_errors_or_items_but_never_a_crash(tmp_path, suffix):
    """Seeded: 150 files with a few bytes changed, read in this process."""
    path = tmp_path / f"log.{suffix}"
    WRITERS[suffix](path, ["a", "bb", "ccc", "ü"] * 5)
    content = path.read_bytes()
    generator = random.Random(9)
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(3):
            damaged[generator.randrange(len(content))] = generator.randrange(256)
        path.write_bytes(damaged)
        try:
            for batch in open_stream(path, column="query", nulls="skip"):
                batch.validate(full=True)
        except dc.DataError:
            pass


def test_other_types_are_refused(tmp_path):
    path = tmp_path / "log.parquet"
    for values in ([1.5], [True], [{"a": 1}], [[["a"]]], [[1.5]]):
        pq.write_table(pa.table({"query": values}), path)
        with pytest.raises(dc.DataError, match="text, bytes or whole numbers"):
            items_of(open_stream(path))


def test_files_with_different_kinds_of_items_do_not_mix(tmp_path):
    pq.write_table(pa.table({"query": ["a"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"query": [1]}), tmp_path / "2.parquet")
    with pytest.raises(dc.DataError, match="integer, after items of type text"):
        items_of(open_stream(str(tmp_path / "*.parquet")))


def test_parameters_are_checked(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    for arguments, options in [
        ([tmp_path / "missing.csv"], {}),
        ([str(tmp_path / "*.csv")], {}),
        ([], {}),
        ([tmp_path], {}),
        (["-", "-"], {}),
        ([tmp_path / "a.txt"], {"format": "xlsx"}),
        ([tmp_path / "a.txt"], {"nulls": "drop"}),
        ([tmp_path / "a.txt"], {"column": "a", "user_column": "a"}),
    ]:
        with pytest.raises(dc.ParameterError):
            open_stream(arguments, **options)


@pytest.mark.parametrize("suffix", ["txt", "csv", "jsonl"])
def test_a_line_without_end_is_refused_before_memory_is(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr("discreet.events.inputs.BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr("discreet.events.inputs.LONGEST_RECORD", 1 << 14)
    path = tmp_path / f"log.{suffix}"
    path.write_bytes({"txt": b"", "csv": b'query\n"', "jsonl": b'{"query": "'}[suffix] + b"x\n" * 0 + b"x" * (1 << 16))
    with pytest.raises(dc.DataError, match="line of more than"):
        items_of(open_stream(path))


def test_an_unreadable_file_is_an_error(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("x")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(dc.ParameterError, match="cannot be opened"):
        items_of(open_stream(path))


def test_files_are_closed_when_reading_stops_early(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text("x\n" * 10)
    stream = iter(open_stream(path))
    next(stream)
    stream.close()  # an unclosed file would be a ResourceWarning, which is an error here


def test_a_name_that_tells_no_format_hides_none(tmp_path):
    """The content tells: rows of JSON have kinds of their own under any name, as items, in pairs and as people."""
    rows = [
        {"a": "x", "b": 1, "u": "p"},
        {"a": 7, "b": "1", "u": 1},
        {"a": 2**64 - 1, "b": 2, "u": "1"},
        {"a": "7", "b": 1, "u": 1},
    ]
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    told = []
    for name in ("rows.jsonl", "rows", "rows.2026-11-19", "rows.log.1"):
        (tmp_path / name).write_text(text)
        found = Files([str(tmp_path / name)])
        alone = items_of(found.rows("a", lists=False))
        owned = [
            [None if part is None else part.to_pylist() for part in batch]
            for batch in found.rows("a", user="u", lists=False).owned()
        ]
        both = items_of(found.rows(("a", "b")))
        grouped = items_of(found.rows("a", by=("u",)))
        tagged = sorted(found.rows("a", user="u", lists=False).tagged)
        told.append((alone, owned, both, grouped, tagged))
    assert all(each == told[0] for each in told)
    assert told[0][0] == ["x", 7, 2**64 - 1, "7"]
    assert told[0][4] == ["item", "user"]
    assert len({*told[0][2]}) == len({*told[0][3]}) == 4


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "arrow"])
def test_whoever_watches_is_told_of_all_rows_and_bytes(tmp_path, suffix):
    """For progress: of several files together, and of tables as of files."""
    paths = [tmp_path / f"{name}.{suffix}" for name in ("one", "two")]
    writers = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet, "arrow": write_arrow_file}
    for path in paths:
        writers[suffix](path)
    rows = Files([str(path) for path in paths]).rows("query")
    told = []
    rows.watch = told.append
    assert rows.bytes_total == sum(path.stat().st_size for path in paths)
    assert rows.bytes_read == 0
    total = sum(batch.num_rows for batch in rows)
    assert sum(told) == total
    assert rows.bytes_read == rows.bytes_total
    of_table = events_of(table()).rows("query", user="user")
    of_table.watch = told.append
    told.clear()
    list(of_table)
    assert sum(told) == len(ITEMS)


def test_a_row_that_is_no_number_is_none_of_a_public_range_and_stops_nobody(tmp_path):
    (tmp_path / "a.csv").write_text("n\n1\nx\n3\n\n1.5\n12\n")
    rows = Files(str(tmp_path / "a.csv")).rows("n", universe=Universe.of(10), nulls="skip")
    assert [item for batch in rows for item in batch.column("item").to_pylist()] == [1, 3, 12]
    found = dc.histogram(dc.read(str(tmp_path / "a.csv")), dc.Budget(100.0), column="n", universe=10, nulls="skip")
    assert [round(count) for count in found.counts] == [0, 1, 0, 1, 0, 0, 0, 0, 0, 0]
