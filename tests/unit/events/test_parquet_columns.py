"""Several columns of Parquet: texts that native code decodes beside what pyarrow reads, row by row the same."""

import os
import random
from contextlib import closing
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import _native
from discreet.engines.sql import select, where
from discreet.errors import DataError
from discreet.events import parquet
from discreet.events.inputs import ByteSource, open_input
from discreet.events.parquet import ArrowColumns, Texts, parquet_batches, read_parquet
from discreet.events.row_query import of_arrays, of_batch

ROWS = 5000
TEXTS = {
    "few": [f"country {row % 7}" for row in range(ROWS)],
    "many": [f"visitor-{row * 7919 % 4001:06}" for row in range(ROWS)],
    "long": ["x" * (row % 90) + str(row) for row in range(ROWS)],
    "empty": ["" if row % 3 else "ä" for row in range(ROWS)],
    "null": [None if row == 3100 else f"text {row}" for row in range(ROWS)],
    "first null": [None, *(f"text {row % 40}" for row in range(1, ROWS))],
    "too long": ["y" * 5000 if row == 2999 else f"text {row}" for row in range(ROWS)],
}
NOT_UTF8 = [b"\xff\xfe" if row == 1234 else f"text {row}".encode() for row in range(ROWS)]


def a_table(*names):
    columns = {name: pa.array(TEXTS[name], pa.string()) for name in names}
    return pa.table({**columns, "number": np.arange(ROWS), "half": np.arange(ROWS) / 2})


def written(path, table, **options):
    pa.parquet.write_table(table, path, **{"row_group_size": 1500, "data_page_size": 2000, **options})
    return str(path)


def read(path, columns):
    """The rows, and for every batch which columns native code has decoded."""
    source = open_input(path)
    try:
        batches = list(parquet_batches(source, columns[0], columns[1:]))
        rows = [tuple(array.to_pylist() for array in batch.arrays()) for batch in batches]
        native = [[isinstance(column, Texts) for column in batch.columns] for batch in batches[1:]]
        return [list(zip(*each, strict=True)) for each in rows], native
    finally:
        source.close()


def expected(table, columns):
    return list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))


@pytest.mark.parametrize("compression", ["snappy", "none", "zstd"])
@pytest.mark.parametrize("encoded", [True, False])
@pytest.mark.parametrize(
    "columns", [("many", "few"), ("long", "number"), ("number", "empty", "many"), ("few",), ("half",)]
)
def test_rows_are_those_that_pyarrow_reads(tmp_path, columns, encoded, compression):
    table = a_table("few", "many", "long", "empty")
    path = written(tmp_path / "log.parquet", table, compression=compression, use_dictionary=encoded)
    rows, native = read(path, columns)
    assert list(chain(*rows)) == expected(table, columns)
    assert all(each == [compression != "zstd" and name in TEXTS for name in columns] for each in native)


@pytest.mark.parametrize("name", ["null", "first null", "too long"])
def test_a_row_without_an_item_leaves_its_column_to_pyarrow(tmp_path, name):
    table = a_table(name, "many")
    path = written(tmp_path / "log.parquet", table)
    for columns in ((name, "many", "number"), ("many", name), (name,)):
        rows, native = read(path, columns)
        assert list(chain(*rows)) == expected(table, columns)
        at, beside = columns.index(name), [place for place, each in enumerate(columns) if each == "many"]
        assert not native[-1][at]
        assert native[0][at] == (name != "first null")
        assert all(each[place] for each in native for place in beside)


def test_text_that_is_not_utf8_leaves_its_column_to_pyarrow(tmp_path):
    table = a_table("many")
    texts = pa.array(NOT_UTF8, pa.binary()).view(pa.string())
    path = written(tmp_path / "log.parquet", table.append_column("text", texts))
    source = open_input(path)
    batches = list(parquet_batches(source, "text", ["number"]))
    source.close()
    found = [array.view(pa.binary()).to_pylist() for array in (batch.arrays()[0] for batch in batches)]
    assert list(chain(*found)) == NOT_UTF8
    assert not isinstance(batches[-1].columns[0], Texts)


def test_bytes_and_other_types_of_text(tmp_path):
    kinds = {"bytes": pa.binary(), "large": pa.large_string(), "dictionary": pa.dictionary(pa.int32(), pa.string())}
    table = pa.table({name: pa.array(TEXTS["many"]).cast(kind) for name, kind in kinds.items()})
    path = written(tmp_path / "log.parquet", table)
    columns = tuple(kinds)
    rows, native = read(path, columns)
    assert list(chain(*rows)) == expected(table, columns)
    assert native[0] == [True, False, False]


def test_rows_of_few_values_keep_their_dictionary(tmp_path):
    path = written(tmp_path / "log.parquet", a_table("few", "many"), row_group_size=ROWS)
    source = open_input(path)
    few, many = list(parquet_batches(source, "few", ["many"]))[1].arrays()
    source.close()
    assert few.type == pa.dictionary(pa.int32(), pa.string())
    assert len(few.dictionary) == 7
    assert many.type == pa.string()


def test_what_a_file_holds_less_than_it_says_is_damage(tmp_path, monkeypatch):
    path = written(tmp_path / "log.parquet", a_table("many"))
    source = open_input(path)
    columns = ArrowColumns(source, "many", ["number"])
    pages = columns._pages["many"]
    monkeypatch.setattr(columns, "_pages", {"many": _Shorter(pages)})
    with pytest.raises(DataError, match="damaged"):
        list(columns.of_group(0))
    source.close()


class _Shorter:
    def __init__(self, pages):
        self._pages = pages

    def runs(self, group):
        return self._pages.runs(group)[:-1]


CONDITIONS = [
    *("number % 3 = 1", "number < 100", "few = 'country 3'", "few like '%5' or half > 2000", "number < 0"),
    *("many = 'visitor-000001'", "null is null", "cast(many as integer) > 3", "1 = 1"),
]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("columns", [("many",), ("many", "number"), ("null", "many"), ("few", "half")])
def test_rows_that_stay_are_the_same_whether_texts_are_copied_before_or_after(tmp_path, condition, columns):
    path = written(tmp_path / "log.parquet", a_table("few", "many", "null"))
    bound = where(condition).bound(list(columns))
    source = open_input(path)
    early = []
    for batch in parquet_batches(source, bound.reads[0], [str(name) for name in bound.reads[1:]]):
        whole, bad = of_arrays(bound, batch.arrays())
        found = of_batch(bound, batch)
        early.append(found is not None)
        if found is not None:
            assert [array.to_pylist() for array in found[0]] == [array.to_pylist() for array in whole]
            assert found[1] == bad
    source.close()
    if condition == "number % 3 = 1":
        assert all(early[1:]) == ("null" not in columns)  # the first batch has no rows
        assert any(early[1:])


def test_columns_are_computed_of_the_rows_that_stay(tmp_path):
    path = written(tmp_path / "log.parquet", a_table("few", "many"))
    bound = select("SELECT upper(many) AS name FROM files WHERE number % 2 = 0").bound(["name"])
    source = open_input(path)
    batches = list(parquet_batches(source, bound.reads[0], [str(name) for name in bound.reads[1:]]))
    found = [of_batch(bound, batch) for batch in batches[1:]]
    source.close()
    names = [name for rows in found for name in rows[0][0].to_pylist()]
    assert names == [name.upper() for name in TEXTS["many"][::2]]


def test_pieces_outside_of_their_column_are_refused(tmp_path):
    path = written(tmp_path / "log.parquet", a_table("many", "few"), row_group_size=ROWS)
    source = open_input(path)
    batch = list(parquet_batches(source, "many", ["few"]))[1]
    source.close()
    (plain, *_), (coded, *_) = batch.columns[0].pieces[0], batch.columns[1].pieces[0]
    for start, stop in ((-1, 1), (2, 1), (0, len(coded) + 1)):
        with pytest.raises(DataError):
            _native.gathered([(coded, start, stop)])
        with pytest.raises(DataError):
            _native.codes_of([(coded, start, stop)])
    with pytest.raises(DataError, match="flag"):
        _native.gathered([(coded, 0, 2)], np.ones(3, np.bool_))
    if plain.dictionary is not None:
        with pytest.raises(DataError, match="one dictionary"):
            _native.codes_of([(coded, 0, 1), (plain, 0, 1)])
    offsets, data = _native.gathered([(coded, 0, 3), (plain, 0, 1)], np.array([True, False, True, True]))
    assert np.frombuffer(offsets, np.int32).tolist() == [0, 9, 18, 32]
    assert data == b"country 0country 2visitor-000000"


def test_damaged_pages_are_refused_or_make_as_many_rows(tmp_path):
    generator = random.Random(7)
    whole = Path(written(tmp_path / "log.parquet", a_table("few", "many"), write_page_checksum=False)).read_bytes()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    refused = 0
    for number in range(150):
        broken = bytearray(whole)
        for _ in range(generator.choice([1, 1, 5])):
            broken[generator.randrange(4, footer)] ^= 1 << generator.randrange(8)
        path = tmp_path / f"{number}.parquet"
        path.write_bytes(broken)
        try:
            rows, _ = read(str(path), ("many", "few"))
        except (DataError, UnicodeDecodeError):  # the latter by `to_pylist`: whether text is UTF-8 is looked at later
            refused += 1
        else:
            assert sum(map(len, rows)) == ROWS
    assert 0 < refused < 150


@pytest.mark.parametrize("odd", [None, "y" * 5000])
@pytest.mark.parametrize("at", [0, 64, 65, 1999, 2000, 4998, 4999])
def test_rows_before_and_after_an_odd_one_come_once(tmp_path, monkeypatch, odd, at):
    """Whoever takes over the reading of a column begins where the rows that were handed out end, in any batch."""
    monkeypatch.setattr(parquet, "PLAIN_ROWS", 64)
    texts = [odd if row == at else f"text {row} {'x' * 300}" for row in range(ROWS)]  # several runs of pages
    table = pa.table({"text": texts, "number": np.arange(ROWS), "other": [f"{row}" for row in range(ROWS)]})
    path = written(tmp_path / "log.parquet", table, row_group_size=ROWS, use_dictionary=False, data_page_size=1000)
    for columns in (("text",), ("text", "other"), ("other", "number", "text")):
        rows, _ = read(path, columns)
        assert list(chain(*rows)) == expected(table, columns), columns


@pytest.mark.parametrize("columns", [("text", "n"), ("n", "text"), ("text", "large"), ("large", "n")])
def test_a_file_that_is_replaced_while_it_is_read_is_not_read_on(tmp_path, columns):
    """It is opened by its name, more than once: rows of two files are never taken for those of one."""
    texts = [None if n % 50 == 0 else f"t{n % 9}" for n in range(4000)]
    table = pa.table({"text": texts, "large": pa.array(texts, pa.large_string()), "n": list(range(4000))})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=500)
    pq.write_table(table.slice(7), tmp_path / "b.parquet", row_group_size=500)
    with closing(ByteSource(str(path))) as source:
        batches = read_parquet(source, columns[0], columns[1:])
        next(batches)
        os.replace(tmp_path / "b.parquet", path)
        found, said = [], ""
        try:
            found += [pa.table(dict(zip(columns, arrays, strict=True))) for arrays in batches]
        except DataError as refused:
            said = str(refused)
        assert "was replaced while it was being read" in said or not said
        if not said:  # what was open already is read to its end
            rows = pa.concat_tables(found, promote_options="permissive").column("n").to_pylist()
            assert rows == list(range(4000))
        with pytest.raises(DataError, match="was replaced while it was being read"):
            source.check_not_replaced()
