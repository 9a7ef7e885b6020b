"""Pages of Parquet that native code decodes: the same rows as pyarrow reads, however they are written."""

import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.rows import columns_of, open_stream

import discreet as dc
from discreet import _native
from discreet.events.ahead import in_order

ROWS = 3000


def texts(generator, odd=0.02):
    """Few and many different ones; empty, not ASCII, longer than a byte says; nulls and rows that are no items."""
    many = generator.choice([1, 5, 300, 10**6])
    shapes = [b"", b"a", "é€𝄞".encode(), b"https://example.org/%d", b"x" * 130 + b"%d", b"long/" * 40 + b"%d"]
    bad = [b"y" * 4097, b"\xff %d", b"\xed\xa0\x80", b"cut \xe2\x82"]
    rows = []
    for _ in range(generator.choice([0, 1, 50, ROWS])):
        shape = generator.choice(bad if generator.random() < odd else shapes)
        rows.append(shape.replace(b"%d", b"%d" % generator.randrange(many)))
    return rows


def with_nulls(generator, rows):
    share = generator.choice([0, 0, 0.01, 0.5, 1])
    out = [None if generator.random() < share else row for row in rows]
    return sorted(out, key=lambda row: row is None) if generator.random() < 0.2 else out


def settings(generator):
    """How a writer may write; most of it is decoded natively."""
    return {
        "compression": generator.choice(["snappy", "snappy", "none", "zstd", "gzip"]),
        "version": generator.choice(["1.0", "2.4", "2.6"]),
        "data_page_version": generator.choice(["1.0", "2.0"]),
        "use_dictionary": generator.choice([True, True, False]),
        "dictionary_pagesize_limit": generator.choice([100, 5000, 1 << 20]),
        "data_page_size": generator.choice([64, 2000, 1 << 20]),
        "write_batch_size": generator.choice([1, 7, 1024]),
        "row_group_size": generator.choice([40, 999, 10**6]) if generator.random() < 0.3 else 1500,
        "write_page_checksum": generator.random() < 0.5,
        "store_schema": generator.random() < 0.8,
        "write_statistics": generator.random() < 0.5,
    }


def read(path, made, column="item", **options):
    """The items of a file, how many rows were bad, and how many batches came from native code."""
    stream = open_stream(path, column=column, joint=True, **options)
    stream.side_by_side = in_order
    found, native = [], 0
    for items in columns_of(stream, made):
        if isinstance(items, _native.MadeColumn):
            native += 1
            found += items.to_list()
        else:
            plain = items.to_pylist()
            found += [text.encode() if isinstance(text, str) else text for text in plain]
    return found, stream.bad_rows, native


@pytest.mark.parametrize("seed", range(8))
def test_pages_hold_what_pyarrow_reads(tmp_path, seed):
    generator, path, native = random.Random(seed), tmp_path / "log.parquet", 0
    for _ in range(12):
        options, rows = settings(generator), with_nulls(generator, texts(generator))
        kind = generator.choice([pa.string(), pa.string(), pa.binary(), pa.large_string(), pa.string_view()])
        text = pa.array(rows, pa.binary())
        if kind == pa.string_view():  # pyarrow makes none of text that is not valid
            text = pa.array([row if row is None else row.decode("utf-8", "replace") for row in rows], kind)
        elif kind != pa.binary():
            text = text.view(pa.string()).cast(kind) if kind == pa.string() else text.cast(pa.large_binary()).view(kind)
        pq.write_table(pa.table({"other": range(len(rows)), "item": text}), path, **options)
        asked = {"nulls": "skip", "bad_rows": "skip"}
        found, bad, made = read(path, True, **asked)
        assert (found, bad, 0) == read(path, False, **asked), options
        known = options["compression"] in ("snappy", "none")
        assert (made > 0) == (known and len(found) > 0), options
        native += made
        for each in asked:  # nulls and bad rows are refused alike
            strict = {name: "error" if name == each else "skip" for name in asked}
            told = []
            for allowed in (True, False):
                try:
                    told.append(read(path, allowed, **strict))
                except dc.DataError as error:
                    told.append(str(error))
            assert told[0][:2] == told[1][:2] if isinstance(told[0], tuple) else told[0] == told[1], options
    assert native


@pytest.mark.parametrize("page", ["1.0", "2.0"])
def test_pieces_of_every_length_are_unpacked(tmp_path, page):
    """Snappy writes how long a piece is in its tag, or in one to four bytes more: on both sides of every border."""
    generator, path = random.Random(5), tmp_path / "log.parquet"
    for length in (*range(1, 80), *range(245, 265), 4000, 4096):
        # Nothing in it comes twice, so that it is one piece.
        item = "".join(chr(generator.randrange(0x20, 0x7F)) for _ in range(length))
        pq.write_table(
            pa.table({"item": [item]}), path, compression="snappy", use_dictionary=False, data_page_version=page
        )
        assert read(path, True) == ([item.encode()], 0, 1), length


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([1, 2, 1]),
        pa.array([[1], [], [2]], pa.list_(pa.int64())),
        pa.array([True, False, True]),
        pa.array([1, 2, 1], pa.duration("s")),
        pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", "2", "1"])),
        pa.array([b"ab", b"cd", b"ab"], pa.binary(2)),
        pa.array([1, 2, 1], pa.decimal128(30, 2)),
        pa.array([{"a": "x"}, {"a": "y"}, {"a": "x"}]),
    ],
    ids=lambda column: str(column.type),
)
def test_other_types_are_read_as_before(tmp_path, column):
    pq.write_table(pa.table({"item": column}), tmp_path / "log.parquet")
    told = []
    for made in (True, False):
        try:
            told.append(read(tmp_path / "log.parquet", made)[:2])
        except dc.DataError as error:
            told.append(str(error))
    assert told[0] == told[1]


def test_row_groups_of_several_kinds_come_in_their_order(tmp_path):
    """A group that native code does not know is read by pyarrow, between those that it does."""
    path = tmp_path / "log.parquet"
    schema = pa.schema([("item", pa.string())])
    rows = [f"item {number}" for number in range(100)]
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, 100, 10):
            long = ["x" * 34_000_000] if start == 50 else []  # a page that is too large to be held with others
            writer.write_table(pa.table({"item": rows[start : start + 10] + long}, schema))
        writer.write_table(schema.empty_table())
    found, bad, native = read(path, True, bad_rows="skip")
    assert found == [row.encode() for row in rows]
    assert (bad, native) == (1, 9)


def test_files_of_other_writers(tmp_path):
    import duckdb

    rows = [f"item {number * number % 97}" if number % 13 else None for number in range(20_000)]
    table = pa.table({"item": rows})
    for number, options in enumerate(["", ", compression 'uncompressed'", ", row_group_size 2048"]):
        path = tmp_path / f"{number}.parquet"
        written = duckdb.from_arrow(table)
        written.query("written", f"copy written to '{path}' (format parquet{options})")
        found, _, native = read(path, True, nulls="skip")
        assert found == [row.encode() for row in rows if row is not None]
        assert native


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_damage_is_noticed_wherever_a_checksum_is(tmp_path, version, dictionary):
    path = tmp_path / "log.parquet"
    table = pa.table({"item": [f"item {number % 50}" for number in range(500)]})
    options = {"use_dictionary": dictionary, "compression": "none", "data_page_version": version}
    pq.write_table(table, path, write_page_checksum=True, **options)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    whole, end = path.read_bytes(), 4 + chunk.total_compressed_size
    assert read(path, True)[2]
    for at in range(end - 50, end):  # inside the last page
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(dc.DataError, match="damaged"):
            read(path, True)


def test_a_file_of_another_kind_is_refused(tmp_path):
    pq.write_table(pa.table({"item": ["a"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"item": [b"a"]}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"item": pa.array([], pa.int64())}), tmp_path / "3.parquet")
    for pair in ("12", "21", "13", "31"):
        told = []
        for made in (True, False):
            with pytest.raises(dc.DataError, match="after items of type") as caught:
                read([tmp_path / f"{name}.parquet" for name in pair], made)
            told.append(str(caught.value))
        assert told[0] == told[1]


def test_columns_are_named_and_chosen_as_before(tmp_path):
    pq.write_table(pa.table({"item": ["a"], "other": ["b"]}), tmp_path / "log.parquet")
    for column in (None, "third"):
        told = []
        for made in (True, False):
            with pytest.raises(dc.DataError) as caught:
                read(tmp_path / "log.parquet", made, column=column)
            told.append(str(caught.value))
        assert told[0] == told[1]
    pq.write_table(pa.table({"only": ["a"]}), tmp_path / "log.parquet")
    assert read(tmp_path / "log.parquet", True, column=None) == ([b"a"], 0, 1)


@pytest.mark.parametrize("made", [True, False])
def test_a_name_that_two_columns_have_is_refused(tmp_path, made):
    pq.write_table(pa.table([pa.array(["a"]), pa.array(["b"])], ["item", "item"]), tmp_path / "log.parquet")
    with pytest.raises(dc.DataError, match="more than one column 'item'"):
        read(tmp_path / "log.parquet", made)


@pytest.mark.parametrize("made", [True, False])
def test_pages_with_fewer_rows_than_the_footer_says_are_refused(tmp_path, made):
    path, schema = tmp_path / "log.parquet", pa.schema([pa.field("item", pa.string(), nullable=False)])
    pq.write_table(pa.table({"item": ["a"] * 777}, schema), path, use_dictionary=False, compression="none")
    whole = path.read_bytes()
    at = whole.index(b"\x92\x0c")  # 777, in the header of the only page
    assert at < 30
    path.write_bytes(whole[:at] + b"\x90\x0c" + whole[at + 2 :])
    with pytest.raises(dc.DataError, match="damaged"):
        read(path, made)


def test_a_file_that_is_put_in_the_place_of_another_is_not_read_on(tmp_path):
    """Groups for pyarrow are opened by the name of the file when the first of them is met."""
    path, schema = tmp_path / "log.parquet", pa.schema([("item", pa.string())])
    for each in (path, tmp_path / "new"):
        with pq.ParquetWriter(each, schema, use_dictionary=False) as writer:
            for _ in range(40):  # more than threads read ahead
                writer.write_table(pa.table({"item": [each.name]}, schema))
            writer.write_table(pa.table({"item": [each.name, "x" * 34_000_000]}, schema))
    stream = open_stream(path, column="item", joint=True, bad_rows="skip")
    batches = columns_of(stream)
    assert next(batches).to_list() == [b"log.parquet"]
    os.replace(tmp_path / "new", path)
    with pytest.raises(dc.DataError, match="replaced"):
        list(batches)
