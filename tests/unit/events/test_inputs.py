"""Where bytes come from: what a path stands for, what messages call it, and inputs that are not whole."""

import bz2
import gzip
import io
import os
import threading
import zipfile
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet
import pytest

from discreet.errors import DataError, ParameterError
from discreet.events.files import Files
from discreet.events.inputs import ByteSource, encoding_named, expand, shown, size_of_input

SHOWN = {
    "rows.csv": "rows.csv",
    "postgresql://me:secret@h:5432/db?sslmode=require#app.visits": "postgresql://h:5432/db#app.visits",
    "postgres://me:secret@h/db": "postgres://h/db",
    "postgresql://h/db?password=secret": "postgresql://h/db",
    "https://me:secret@h/a.csv?sig=secret#x": "https://h/a.csv",
    "s3://me:secret@bucket/a.csv": "s3://bucket/a.csv",
    "s3://bucket/a?b.csv?endpoint=https://secret": "s3://bucket/a?b.csv",
    "gs://anonymous@bucket/a.csv": "gs://bucket/a.csv",
    "abfs://container@account.example/a.csv": "abfs://container@account.example/a.csv",
    "abfs://container:secret@account.example/a.csv": "abfs://container@account.example/a.csv",
    "abfss://container:secret@account.example": "abfss://container@account.example",
    "ftp://me:secret@h/a.csv": "ftp://h/a.csv",
    "a/b://me:x@h": "a/b://me:x@h",
}


@pytest.mark.parametrize("url", SHOWN)
def test_no_message_has_a_password_or_what_signs(url):
    assert shown(url) == SHOWN[url]
    assert "secret" not in shown(url)


def test_a_path_stands_for_files_in_the_order_of_their_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.csv", "a.csv", "c/d/e.csv", "c/a.csv", "[x].csv", ".hidden.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert expand("*.csv") == ["[x].csv", "a.csv", "b.csv"]
    assert expand("**/*.csv") == ["[x].csv", "a.csv", "b.csv", "c/a.csv", "c/d/e.csv"]
    assert expand("[x].csv") == ["[x].csv"]  # a file of this name, before it is a pattern
    assert expand(["b.csv", "-", tmp_path / "a.csv"]) == ["b.csv", "-", str(tmp_path / "a.csv")]
    for given, words in (
        ("c", r"'c' is a directory; a pattern such as 'c/\*' names its files"),
        ([], "no file given; name at least one"),
        (["-", "-"], "can be read only once"), ("none.csv", "there is no file 'none.csv'$"),
        ("*.none", "there is no file"), ("ftp://me:secret@h/a", "there is no file 'ftp://h/a'; URLs are s3://, gs://"),
        ("a.csv.xz", "there is no file"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=words):
            expand(given)
    assert size_of_input("a.csv") == 1
    assert size_of_input("-") is size_of_input("none.csv") is size_of_input("postgresql://h/d#t") is None


# ---- what is not whole -----------------------------------------------------------------------------------------------


def packed(kind, data=b"item\n" + b"a\n" * 20_000):
    held = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", data)
        return held.getvalue()
    if kind == "zst":
        return pa.compress(data, "zstd", asbytes=True)
    return {"gz": gzip.compress, "bz2": bz2.compress}[kind](data)


def items(path, **how):
    return [item for batch in Files(str(path), **how).rows("item") for item in batch.column("item").to_pylist()]


@pytest.mark.parametrize("kind", ["gz", "bz2", "zst", "zip"])
def test_a_compressed_file_is_whole_or_refused(tmp_path, kind):
    path, whole = tmp_path / f"a.csv.{kind}", packed(kind)
    path.write_bytes(whole)
    assert items(path) == ["a"] * 20_000
    for length in (0, 1, 3, 4, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=rf"a\.csv\.{kind} cannot be read: ") as refused:
            items(path)
        assert refused.value.__context__ is None


def test_what_a_name_says_is_compressed_may_be_plain(tmp_path):
    """Its first bytes decide, where there are enough of them."""
    (tmp_path / "a.csv.gz").write_bytes(b"item\na\n")
    assert items(tmp_path / "a.csv.gz") == ["a"]


def archive(path, *names, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as made:
        for name in names:
            made.writestr(name, "" if name.endswith("/") else "item\na\n")
    return path


def test_an_archive_has_one_file_whose_name_tells_its_format(tmp_path):
    assert items(archive(tmp_path / "a.zip", "folder/", "folder/a.csv")) == ["a"]
    assert items(archive(tmp_path / "a.csv.zip", "a", method=zipfile.ZIP_STORED)) == ["a"]
    for names in (("a.csv", "b.csv"), ("folder/",)):
        many = len([name for name in names if not name.endswith("/")])
        with pytest.raises(DataError, match=f"it is an archive of {many} files, and can be"):
            items(archive(tmp_path / "b.zip", *names))
    with pytest.raises(DataError, match="packed in a way that is not known"):
        items(archive(tmp_path / "c.zip", "a.csv", method=zipfile.ZIP_LZMA))


def piped(tmp_path, data, name="pipe"):
    """A named pipe, to which somebody writes this."""
    os.mkfifo(tmp_path / name)
    writer = threading.Thread(target=lambda: (tmp_path / name).write_bytes(data), daemon=True)
    writer.start()
    return tmp_path / name, writer


def test_what_needs_its_end_first_is_no_pipe(tmp_path):
    held = io.BytesIO()
    pa.parquet.write_table(pa.table({"item": ["a"]}), held)
    for name, data, words in (
        ("one", packed("zip"), "a zip archive must be a plain file, not a pipe; unpack it first"),
        ("two", held.getvalue(), "this format must be a plain file, not a pipe"),
    ):
        path, writer = piped(tmp_path, data[:4000], name)
        with pytest.raises(DataError, match=words):
            items(path)
        writer.join(60)
    path, writer = piped(tmp_path, b"item\na\nb\n", "three")
    assert items(path, format="csv") == ["a", "b"]
    writer.join(60)


def test_a_file_that_is_not_the_one_that_was_opened_is_noticed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"item\n")
    with closing(ByteSource(str(path))) as source:
        source.check_not_replaced()
        os.rename(path, tmp_path / "old")
        with pytest.raises(DataError, match=r"a\.csv was replaced while it was being read; run the command again"):
            source.check_not_replaced()
        path.write_bytes(b"item\n")
        with pytest.raises(DataError, match="was replaced"):
            source.check_not_replaced()
        os.rename(tmp_path / "old", path)
        source.check_not_replaced()


@pytest.mark.parametrize("size", [0, 3, 8, 9])
def test_the_end_of_a_file_is_as_long_as_the_file(tmp_path, size):
    (tmp_path / "a").write_bytes(bytes(range(size)))
    with closing(ByteSource(str(tmp_path / "a"))) as source:
        assert source.tail(8) == bytes(range(size))[-8:]


# ---- encodings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["utf-8", "UTF8", "latin-1", "cp1252", "koi8-r", "utf-16", "utf-16-le", "ascii"])
def test_encodings_that_are_read(name):
    assert encoding_named(name) == encoding_named(encoding_named(name))


@pytest.mark.parametrize(
    "name", ["shift_jis", "gbk", "big5", "euc-jp", "iso2022_jp", "utf-7", "utf-32", "rot13", "hex", "cp037", "none", ""]
)
def test_encodings_in_which_a_row_may_change_the_next_are_refused(name):
    """Or in which a comma is something else."""
    with pytest.raises(ParameterError, match=f"encoding must be .*, not {name!r}; convert the file to UTF-8 first"):
        encoding_named(name)


def test_a_text_that_is_longer_as_utf_8_is_read_to_its_end(tmp_path):
    texts = ["ü" * 700, "ß", "é" * 90_000]
    (tmp_path / "a.csv").write_bytes(("item\n" + "\n".join(texts[:2]) + "\n").encode("latin-1") * 1)
    assert items(tmp_path / "a.csv", encoding="latin-1") == texts[:2]
    rows = "item\n" + "".join(f"{'é' * (n % 50)}{n}\n" for n in range(60_000))
    (tmp_path / "b.csv").write_bytes(rows.encode("utf-16"))
    assert items(tmp_path / "b.csv") == rows.split()[1:]


@pytest.mark.parametrize(
    ("encoding", "data", "bad"),
    [
        ("cp1252", b"item\na\n\x81b\nc\n", 1),  # a byte that is no character
        ("utf-16-le", "item\na\n".encode("utf-16-le") + b"\x00\xd8" + "b\nc\n".encode("utf-16-le"), 1),
        ("utf-16", b"\xfe\xff" + "item\na\n".encode("utf-16-be") + b"\xdc\x00" + "b\nc\n".encode("utf-16-be"), 1),
    ],
)
def test_what_is_no_character_is_a_bad_row_and_those_around_it_are_as_they_were(tmp_path, encoding, data, bad):
    (tmp_path / "a.csv").write_bytes(data)
    rows = Files(str(tmp_path / "a.csv"), encoding=encoding).rows("item")
    assert [item for batch in rows for item in batch.column("item").to_pylist()] == ["a", "c"]
    assert rows.bad_rows == bad


def test_half_a_character_at_the_end_is_not_taken_for_none(tmp_path):
    (tmp_path / "a.csv").write_bytes("item\na\nb".encode("utf-16-le") + b"c")
    with pytest.raises(DataError, match=r"ends in the middle of a character of UTF-16"):
        items(tmp_path / "a.csv", encoding="utf-16-le")
    for mark in (b"\xff\xfe\0\0", b"\0\0\xfe\xff"):
        (tmp_path / "b.csv").write_bytes(mark + "item\na\n".encode("utf-32-le"))
        with pytest.raises(DataError, match="is UTF-32; convert it to UTF-8 first"):
            items(tmp_path / "b.csv")
