"""Files as they are: no header, other delimiters and quotes, baskets, keys inside of objects, compressions, UTF-16."""

import bz2
import codecs
import csv
import gzip
import io
import json
import random
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import columns_of, open_stream

import discreet as dc
from discreet import _native
from discreet.events.live_input import LiveInput
from discreet.events.text import Delimited, Dialect


def read(path, *columns, **options):
    """Rows of the wanted columns, how many were bad, and where the first of them was."""
    names = dict(zip(("column", "user_column"), columns, strict=False))
    stream = open_stream(path, **names, **{"nulls": "skip", "bad_rows": "skip", **options})
    rows = [tuple(row.values()) for batch in stream for row in batch.to_pylist()]
    return [row[0] for row in rows] if len(columns) < 2 else rows, stream.bad_rows


# ---- cells -----------------------------------------------------------------------------------------------------------


def test_columns_without_a_header_are_numbered_from_one(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b'\xef\xbb\xbf1,a,x\r\n2,"b\nb",y,more\n3\n,c\n\n4,d')
    no_header = Dialect(header=False)
    assert read(path, "2", dialect=no_header) == (["a", "b\nb", "c", "d"], 1)
    assert read(path, "2", "1", dialect=no_header) == ([("a", "1"), ("b\nb", "2"), ("d", "4")], 1)
    assert read(path, "1", dialect=no_header) == (["1", "2", "3", "4"], 0)
    assert read(path, "3", dialect=no_header) == (["x", "y"], 3)


def test_the_first_row_does_not_say_how_many_cells_others_have(tmp_path):
    path = tmp_path / "log.csv"
    for first in ("a,b", "a,b,c,d,e", "a", ""):
        path.write_text(f"{first}\n1,2,3\n4,5\n")
        assert read(path, "2", dialect=Dialect(header=False))[0][-2:] == ["2", "5"]


@pytest.mark.parametrize("name", ["query", "0", "-1", "01", "1.0", None, "１", "100000"])
def test_without_a_header_columns_are_numbers(tmp_path, name):
    path = tmp_path / "log.csv"
    path.write_text("secret,1\n")
    with pytest.raises(dc.ParameterError, match="1 for the first") as caught:
        read(path, name, dialect=Dialect(header=False))
    assert "secret" not in str(caught.value)


def test_an_empty_file_without_a_header_is_an_empty_stream(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(b"")
    assert read(path, "1", dialect=Dialect(header=False)) == ([], 0)
    with pytest.raises(dc.DataError, match="no header"):
        read(path, "1")


def test_delimiters_and_quotes(tmp_path):
    path = tmp_path / "log.txt"  # what is said of cells says that there are some
    path.write_text("n;what\n1;'a;b'\n2;'it''s'\n3;\"q\"\n")
    assert read(path, "what", dialect=Dialect(";", "'")) == (["a;b", "it's", '"q"'], 0)
    path.write_text('n|what\n1|"a\n2|b"c\n')
    assert read(path, "what", dialect=Dialect("|", "none")) == (['"a', 'b"c'], 0)
    path.write_text("n what\n1 a\n")
    assert read(path, "what", dialect=Dialect("space")) == (["a"], 0)
    with pytest.raises(dc.DataError, match=r"header line is a single cell\. Give the right delimiter"):
        read(path, "what", dialect=Dialect(","))
    path = tmp_path / "log.csv"
    for word in ("tab", "\\t", "\t"):
        path.write_text("n\twhat\n1\ta,b\n")
        assert read(path, "what", dialect=Dialect(word)) == (["a,b"], 0)
    path.write_bytes(b"n,what\n1,a\0b\n2,\0\n")  # a quote that is none is not a NUL
    assert read(path, "what", dialect=Dialect(quote="none")) == (["a\0b", "\0"], 0)


@pytest.mark.parametrize(
    "given",
    [
        {"delimiter": ""}, {"delimiter": ";;"}, {"delimiter": "\n"}, {"delimiter": "ü"}, {"delimiter": "none"},
        {"delimiter": "\0"}, {"delimiter": '"'}, {"quote": "\r"}, {"quote": "''"}, {"quote": ";", "delimiter": ";"},
        {"quote": 7},
    ],
)  # fmt: skip
def test_what_cannot_be_a_delimiter_or_a_quote(given):
    with pytest.raises(dc.ParameterError, match=r"delimiter|quote"):
        Dialect(**given)


def test_cells_are_for_csv_and_tsv(tmp_path):
    for name in ("log.jsonl", "log.parquet"):
        path = tmp_path / name
        path.write_bytes(b"x")
        with pytest.raises(dc.ParameterError, match="csv and tsv"):
            read(path, "1", dialect=Dialect(header=False))
    with pytest.raises(dc.ParameterError, match="csv and tsv"):
        LiveInput(str(tmp_path / "log.jsonl"), None, "1", None, True, dialect=Dialect(";"))


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(st.text("ab,;'\" \n\r", max_size=4), min_size=2, max_size=2), max_size=8),
    st.sampled_from(",;\t|"),
    st.sampled_from("\"'"),
)
def test_what_a_csv_library_writes_is_read_as_it_was(rows, delimiter, quote):
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, quotechar=quote, quoting=csv.QUOTE_ALL).writerows(rows)
    reader = Delimited("csv", "log", ["1", "2"], Dialect(delimiter, quote, header=False))
    found = reader.rows(text.getvalue().encode())
    assert list(map(list, zip(*(column.to_pylist() for column in found.columns), strict=True))) == rows


def test_inputs_that_grow_have_the_same_cells(tmp_path):
    path, dialect = tmp_path / "log.txt", Dialect(";", "'", header=False)
    path.write_text("1;'a\nb'\n2\n3;c;d\n4;e")
    rows = LiveInput(str(path), None, "2", None, needs_items=True, user_column="1", dialect=dialect)
    rows.open(0)
    found = [row for batch in [*rows.available(), *rows.rest()] for row in batch.values.to_pylist()]
    rows.close()
    assert [(row["item"], row["user"]) for row in found] == read(path, "2", "1", dialect=dialect)[0]
    assert sum(rows.bad.values()) == 1


# ---- baskets ---------------------------------------------------------------------------------------------------------


def test_baskets(tmp_path):
    path = tmp_path / "shop.dat"
    path.write_bytes(b"milk  bread\n\n \t\r\neggs\r\n\tmilk\tmilk \n\xff secret\n" + b"w" * 4097 + b" y\nlast")
    found, bad = read(path, format="baskets")
    assert found == [["milk", "bread"], ["eggs"], ["milk", "milk"], ["last"]]
    assert bad == 2
    with pytest.raises(dc.DataError, match="no columns"):
        read(path, "item", format="baskets")
    with pytest.raises(dc.DataError, match=r"\(line 6\)") as caught:
        read(path, format="baskets", bad_rows="error")
    assert "secret" not in str(caught.value)


# ---- keys inside of objects ------------------------------------------------------------------------------------------

NESTED = [
    ({"user": {"id": 7, "name": "x"}, "url": "a"}, 7),
    ({"user.id": "b"}, "b"),
    ({"user": {"id": None}}, None),
    ({"user": {"id": {"id": 1}}}, "bad"),
    ({"user": {}}, None),
    ({"user": 5}, None),
    ({"user": [{"id": 1}]}, None),
    ({"user": None}, None),
    ({"x": {"user": {"id": 1}}}, None),
    ({"user": {"idx": 1, "i": 2}}, None),
    ({"user": {"id": "ü", "more": {"id": 3}}}, "ü"),
    ({"id": 4}, None),
]


def test_keys_inside_of_objects(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row, _ in NESTED))
    found, bad = read(path, "user.id")
    assert found == [value for _, value in NESTED if value not in (None, "bad")]
    assert bad == 1
    rows = [{"a": {"b": {"c": f"i{n}"}, "d": n}, "e": {"f": {"g": 1}}} for n in range(50)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read(path, "a.b.c", "a.d") == ([(f"i{n}", n) for n in range(50)], 0)
    assert read(path, "e.f.g")[0] == [1] * 50
    path.write_text('{"user": {"id": 1}, "what": "a"}\n')
    assert read(path, None, "user.id") == ([("a", 1)], 0)  # the only key beside the others
    path.write_text('{"user": {"all": ["a", "b"]}}\n')
    assert read(path, "user.all") == ([["a", "b"]], 0)


def test_nesting_has_an_end():
    for depth, kind in ((900, 0), (901, 3), (100_000, 3)):
        line = b'{"a": ' * depth + b"1" + b"}" * depth
        (kinds, *_), *_ = _native.json_rows(line, [".".join("a" * depth)], False)
        assert kinds.tolist() == [kind], depth


# ---- compressions and UTF-16 -----------------------------------------------------------------------------------------


def packed(data, inside="log.csv", how=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        archive.writestr(inside, data)
    return file.getvalue()


DATA = b"n,what\n" + b"".join(b"%d,item %d\n" % (n, n % 7) for n in range(20_000))


def test_compressed_files(tmp_path):
    expected = [f"item {n % 7}" for n in range(20_000)]
    for name, data in (
        ("log.csv.bz2", bz2.compress(DATA)),
        ("log.bz2", bz2.compress(DATA)),
        ("two.csv.bz2", bz2.compress(DATA[:1000]) + bz2.compress(DATA[1000:])),
        ("log.csv.zip", packed(DATA)),
        ("log.zip", packed(DATA)),
        ("stored.zip", packed(DATA, how=zipfile.ZIP_STORED)),
        ("folder.zip", packed(DATA, "folder/log.csv")),
        ("wrong-name.csv", packed(DATA)),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        assert read(path, "what") == (expected, 0), name
        path.write_bytes(data[: len(data) * 2 // 3])
        with pytest.raises(dc.DataError, match=r"cannot be read|empty") as caught:
            read(path, "what")
        assert "item" not in str(caught.value)


def test_archives_of_several_files_are_refused(tmp_path):
    path, file = tmp_path / "logs.zip", io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.csv", DATA)
        archive.writestr("b.csv", DATA)
    path.write_bytes(file.getvalue())
    with pytest.raises(dc.DataError, match="2 files"):
        read(path, "what")
    damaged = bytearray(packed(DATA, how=zipfile.ZIP_STORED))
    damaged[1000] ^= 1  # its checksum tells
    path.write_bytes(bytes(damaged))
    with pytest.raises(dc.DataError, match="not a whole zip"):
        read(path, "what")
    for name in ("log.csv.xz", "log.tar.gz", "table.xlsx", "log.tar.bz2"):
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(dc.ParameterError, match="cannot be read"):
            read(tmp_path / name, "what")


@pytest.mark.parametrize(("name", "mark"), [("utf-16-le", codecs.BOM_UTF16_LE), ("utf-16-be", codecs.BOM_UTF16_BE)])
def test_utf_16_is_read_by_its_mark(tmp_path, name, mark):
    path = tmp_path / "log.csv"
    text = "n,what\r\n1,ü€😀\n2,b\n"
    lone = "3,".encode(name) + "\ud800".encode(name, "surrogatepass") + "\n4,d\n".encode(name)
    path.write_bytes(mark + text.encode(name) + lone)
    assert read(path, "what") == (["ü€😀", "b", "d"], 1)
    path.write_bytes(gzip.compress(mark + (text * 5000).encode(name)))
    assert len(read(path, "what", nulls="skip")[0]) == 3 * 5000 - 1
    path.write_bytes(mark + text.encode(name)[:-1])
    with pytest.raises(dc.DataError, match="middle of a character"):
        read(path, "what")
    rows = LiveInput(str(path), None, "what", None, needs_items=True)
    rows.open(0)
    with pytest.raises(dc.DataError, match="UTF-16"):
        list(rows.available())
    rows.close()
    path.write_bytes(codecs.BOM_UTF32_LE + "n".encode("utf-32-le"))
    with pytest.raises(dc.DataError, match="UTF-32"):
        read(path, "what")
    for encoding in ("utf-16", name):  # as it is said, with a mark or without
        for begin in (mark, b"")[: 1 if (encoding, name) == ("utf-16", "utf-16-be") else 2]:
            path.write_bytes(begin + text.encode(name) + lone)
            assert read(path, "what", encoding=encoding) == (["ü€😀", "b", "d"], 1)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "iso-8859-15", "koi8-r"])
def test_text_in_an_encoding_of_one_byte_a_character(tmp_path, encoding):
    """Whatever bytes there are, those of one row change no other: each is decoded by itself."""
    rows = [bytes([b for b in (byte, 0x41 + byte % 26) if b not in b'\r\n,"']) for byte in range(256)] * 40
    path = tmp_path / "log.csv"
    path.write_bytes(b"n,what\n" + b"".join(b"%d,%s\n" % row for row in enumerate(rows)))
    good = [row.decode(encoding, "replace") for row in rows]
    good = [row for row in good if "\ufffd" not in row and row]
    bad = 40 * {"cp1252": 5}.get(encoding, 0)
    assert read(path, "what", encoding=encoding) == (good, bad)
    counted = dc.MisraGries(capacity=4096)
    dc.read(path, encoding=encoding).events.rows("what").feed(counted)  # by native code, in blocks
    assert sorted(counted.not_private_counts().items.to_pylist()) == sorted({*good})
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert read(path, "what", encoding=encoding) == (good, bad)


def test_a_name_that_is_not_ascii_is_found_in_its_encoding(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(("straße;größe\n" + "ü;1\n" * 99).encode("latin-1"))
    words = {"encoding": "latin-1", "delimiter": ";"}
    found = dc.top_k(dc.read(path, **words), 3, dc.Budget(50.0, 1e-6), column="straße", where="größe = '1'")
    assert found.items == ["ü"]
    read_by_query = dc.read(
        sql="select straße from files", rows_of_the_result_are_the_events=True, encoding="latin-1", delimiter=";"
    )
    with pytest.raises(dc.ParameterError, match="files can only be given for a query"):
        dc.count(read_by_query, dc.Budget(50.0))
    whole = {"sql": "select straße from files", "rows_of_the_result_are_the_events": True, **words}
    assert dc.top_k(dc.read(path, **whole), 3, dc.Budget(50.0, 1e-6), column="straße").items == ["ü"]


@pytest.mark.parametrize(
    "encoding", ["shift_jis", "iso2022_jp", "utf-7", "utf-32", "idna", "rot13", "klingon", "cp037"]
)
def test_encodings_in_which_a_byte_may_change_other_rows_are_refused(encoding):
    with pytest.raises(dc.ParameterError, match=f"a single-byte one.*not '{encoding}'"):
        dc.read("log.csv", encoding=encoding)


def test_an_encoding_is_for_text(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "log.parquet")
    with pytest.raises(dc.ParameterError, match=r"log\.parquet is parquet: encoding works with text files only"):
        dc.count(dc.read(tmp_path / "log.parquet", encoding="latin-1"), dc.Budget(1.0))


# ---- the line of a bad row -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_a_bad_row_is_named_by_its_line(tmp_path, monkeypatch, size):
    monkeypatch.setattr("discreet.events.inputs.BLOCK_BYTES", size)
    chance = random.Random(size)
    path = tmp_path / "log.csv"
    for _ in range(30):
        good = [chance.choice(["1,a", '2,"b\nb"', "", '3,"c\r\n\nc"', "4,d"]) for _ in range(20)]
        at = chance.randrange(20)
        for secret, options in (("1,secret,x", {}), ("1,", {"nulls": "error"}), (f"1,{'secret' * 700}", {})):
            records = [*good[:at], secret, *good[at:]]
            path.write_text("\n\nn,what\n" + "\n".join(records) + "\n", newline="")
            line = 4 + sum(1 + record.count("\n") for record in good[:at])
            with pytest.raises(dc.DataError, match=rf"\(line {line}\)") as caught:
                read(path, "what", **{"bad_rows": "error", **options})
            assert "secret" not in str(caught.value)
    path = tmp_path / "log.jsonl"
    path.write_text('{"q": "a"}\n{"q": 1}\n{"q": "b"}\n{"q": null}\n{"q": 2.5}\n')
    for options, line in (({"nulls": "error"}, 4), ({"bad_rows": "error"}, 5)):
        with pytest.raises(dc.DataError, match=rf"\(line {line}\)"):
            read(path, "q", **options)


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_a_header_with_a_carriage_return_is_refused(tmp_path, suffix, made):
    """A file whose lines end with carriage returns alone is one record, and would be nothing but a header."""
    path = tmp_path / f"old.{suffix}"
    between = "," if suffix == "csv" else "\t"
    for text in (
        f"query{between}n\rcats{between}1\rdogs{between}2\r",
        f"query{between}n\rcats{between}1\nb{between}2\n",
    ):
        path.write_bytes(text.encode())
        stream = open_stream(path, column="query", bad_rows="skip")
        with pytest.raises(dc.DataError, match="header line: its first line has a carriage return inside") as caught:
            list(columns_of(stream, made))
        assert "cats" not in str(caught.value)


@pytest.mark.parametrize("made", [True, False])
def test_a_row_with_a_carriage_return_is_bad_and_decides_nothing(tmp_path, made):
    path = tmp_path / "log.csv"
    path.write_bytes(b'"que\rry",n\r\na,1\r\nb\rc,2\r\n"d\re",3\nf,4\r\n')
    stream = open_stream(path, column="que\rry", bad_rows="skip")
    items = list(columns_of(stream, made))
    found = [item for each in items for item in (each.to_list() if hasattr(each, "to_list") else each.to_pylist())]
    assert [item.decode() if isinstance(item, bytes) else item for item in found] == ["a", "d\re", "f"]
    assert stream.bad_rows == 1


def test_a_first_line_that_does_not_end_is_no_header(tmp_path, monkeypatch):
    """Otherwise the row after it would name the columns."""
    path = tmp_path / "log.csv"
    path.write_bytes(b'"query,n\ncats,1\nquery,n\ndogs,2\n')
    with pytest.raises(dc.DataError, match="header line: it begins with a quoted cell that does not end"):
        list(open_stream(path, column="query", bad_rows="skip"))


@pytest.mark.parametrize("format", ["jsonl", "combined", "common"])
def test_lines_that_end_with_carriage_returns_alone_are_one_bad_row(tmp_path, format):
    line = '10.0.0.1 - - [10/Oct/2023:13:55:36 +0200] "GET / HTTP/1.1" 200 5 "-" "agent" more'
    line = '{"path": "/"}' if format == "jsonl" else line
    path = tmp_path / "log"
    for end, rows, bad in (("\n", 3, 0), ("\r\n", 3, 0), ("\r", 0, 1)):
        path.write_bytes((line + end).encode() * 3)
        stream = open_stream(path, column="path", format=format, bad_rows="skip")
        assert sum(batch.num_rows for batch in stream) == rows
        assert stream.bad_rows == bad
