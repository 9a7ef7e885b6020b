"""Conditions that are decided while text is read say of every row what DuckDB says of it, or that they do not know."""

from __future__ import annotations

import random
import subprocess
import sys

import pyarrow as pa
import pytest

import discreet as dc
from discreet import _native
from discreet.engines import plain_where, sql
from discreet.events import files, inputs
from discreet.noise import seeded_source

CELLS = [
    *("", "0", "404", "-404", "403", "405", "007", "0404", "404.0", "404.50", "403.999999999", "403.9999999996"),
    *(
        "404.0000000004",
        "404.0000000005",
        "-0",
        "-0.0",
        "-0.5",
        "0.5",
        "1",
        "2",
        "1.5",
        "2.5",
        "9.99",
        "9.990000000000000001",
    ),
    *("999999999999999999", "9999999999999999999", "1234567890123456789012345678901234567890", "0.1234567890123456789"),
    *(
        "33.10412345678901",
        "0.30000000000000004",
        "0.3",
        "1e2",
        "4.04e2",
        "404e0",
        "0x194",
        "0b1",
        "4_04",
        "404_",
        "_404",
    ),
    *(
        " 404",
        "404 ",
        "\t404",
        "+404",
        "--404",
        "-",
        "+",
        ".",
        "-.",
        "404.",
        ".5",
        "-.5",
        "4 04",
        "4,04",
        "404abc",
        "abc",
    ),
    *(
        "NA",
        "null",
        "NULL",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "Infinity",
        "n/a",
        "None",
        "true",
        "false",
        "é",
        "４０４",
        "\x00",
    ),
    *(
        "x" * 300,
        "1" * 300,
        "404\x00",
        "404\u00a0",
        "1970-01-01",
        "0.0",
        "00",
        "-00.10",
        "a%",
        "/a/b",
        "it's",
        "A",
        "z",
    ),
]
WRITTEN = [
    "404",
    "0",
    "-404",
    "1",
    "999999999999999999",
    "-1",
    "9.99",
    "0.3",
    "404.5",
    "0.0",
    "-0.5",
    "'404'",
    "''",
    "'abc'",
]
OPERATORS = ("=", "<>", "<", ">", "<=", ">=")
CONDITIONS = [
    *(f"c {operator} {written}" for operator in OPERATORS for written in WRITTEN),
    *("404 < c", "'a' >= c", "c in (404, 1)", "c in (404, 9.99)", "c not in (404, -0.5)", "c in ('404', 'a')"),
    *("c between 1 and 404", "c not between 0.5 and 404", "c between '1' and '5'", "c is null", "c is not null"),
    *(f"c {word}like '{pattern}'" for word in ("", "not ") for pattern in ("4%", "%4", "%0%", "404", "", "%", "%%")),
    *("not c = 404", "c = 404 or c = 1", "c = 404 or c is null", "not (c > 1 and c < 405)", "c > 1 and c < 405"),
    *("c <> '404' and c > 1", "c like '4%' and c = 404 and c is not null", "c is null or c > 9.5", "not c is null"),
]
NOT_LISTED = ["c like '4_4'", "c like '4%4'", "c in (404, 'a')", "c = 0.1234567890123456", "c between 1 and 'a'"]


def said_of(condition: str, cell: str | None) -> str:
    """What is said of a row with this cell: no, yes, bad or unsure. An empty cell is a null."""
    quoted = "" if cell is None else '"' + cell.replace('"', '""') + '"'
    text = f"{quoted},item\n".encode()
    block = _native.TextBlock(len(text))
    memoryview(block.room())[:] = text
    block.cut(len(text), True, ord(","), ord('"'))
    asked = plain_where.where(condition).bound(["item"])
    assert asked.reads == ["item", "c"]
    (kinds, *_), sure = block.delimited_rows(ord(","), [1, 0], ord('"'), False, asked.of_text)
    return {0: "yes" if sure else "unsure", 1: "no", 9: "bad"}[int(kinds[0])]


def duckdb_says(condition: str, cells: list[str | None]) -> list[str]:
    bound = sql.where(condition).bound([])
    keep, failed = bound.keeps([pa.array(cells, pa.string())])
    return ["bad" if bad else "yes" if kept else "no" for kept, bad in zip(keep, failed, strict=True)]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_row_is_decided_as_duckdb_decides_it(condition):
    cells = [*CELLS, None]
    known = 0
    for cell, theirs in zip(cells, duckdb_says(condition, cells), strict=True):
        ours = said_of(condition, cell)
        assert ours in (theirs, "unsure"), (condition, cell)
        known += ours != "unsure"
    assert known >= 20  # of these cells, of which most are odd


PIECES = [
    *"0123456789" * 3,
    *"..--++__eExXbB iInNfaA \t",
    "\u00a0",
    "\u0664",
    "e1",
    "e-1",
    "00",
    "404",
    "0x",
    "inf",
    "nan",
]


@pytest.mark.parametrize("seed", range(4))
def test_no_cell_is_decided_otherwise_than_by_duckdb(seed):
    chance = random.Random(seed)
    cells: list[str | None] = ["".join(chance.choices(PIECES, k=chance.randint(1, 8))) for _ in range(500)]
    cells += [f"{chance.choice(['', '-'])}{chance.uniform(0, 500)!r}" for _ in range(200)]
    for condition in ("c = 404", "c < 4", "c >= -1", "c <> 0.5", "c > 40.4", "c in (0, 404.0)", "c between 3 and 404"):
        for cell, theirs in zip(cells, duckdb_says(condition, cells), strict=True):
            assert said_of(condition, cell) in (theirs, "unsure"), (condition, cell)


PLAIN = ["0", "200", "404", "-1", "3.14", "-0.5", "007", "19.99", "999999999999999999"]


@pytest.mark.parametrize("written", ["404", "-1", "9.99", "'x'"])
def test_plain_numbers_and_words_are_decided(written):
    """So DuckDB is asked about odd cells alone."""
    for cell in [*PLAIN, "abc", "GET", "-", None]:
        assert said_of(f"c = {written}", cell) != "unsure"
    assert said_of("c = 404", " 404") == "unsure"
    assert said_of("c = 404", "") == "unsure"  # in quotes: a text, and no number


def rows_of(mask):
    return [each.tolist() for each in mask]


@pytest.mark.parametrize("condition", [*CONDITIONS[::3], "c = 404 and item <> 'a'", "item > 'a' or c < 9.5"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_columns_are_decided_as_duckdb_decides_them(condition, kind):
    cells = pa.array([*CELLS, None], kind)
    given = [pa.array((["a", "b", None] * len(cells))[: len(cells)], kind), cells]
    ours, theirs = (where(condition).bound(["item", "c"]) for where in (plain_where.where, sql.where))
    assert rows_of(ours.keeps(given)) == rows_of(theirs.keeps(given))
    some = [each.slice(7, 30) for each in given]
    assert rows_of(ours.keeps(some)) == rows_of(theirs.keeps(some))


def test_text_that_is_not_unicode_is_left_to_duckdb():
    bad = pa.array([b"4\xff", b"404", b"x\xff"], pa.binary()).view(pa.string())
    ours, theirs = (where("c = 404").bound([]) for where in (plain_where.where, sql.where))
    assert rows_of(ours.keeps([bad])) == rows_of(theirs.keeps([bad]))
    assert list(ours.of_text.said([bad])) == [4, 1, 4]


def test_duckdb_is_asked_about_odd_cells_alone(monkeypatch):
    cells = pa.array(["404", " 404", "200", None, "x", "0x194", "y" * (2**20 + 1)])
    query, theirs = (where("c = 404").bound([]) for where in (plain_where.where, sql.where))
    expected = rows_of(theirs.keeps([cells]))
    asked, real = [], sql.RowQuery.keeps
    monkeypatch.setattr(sql.RowQuery, "keeps", lambda self, columns: asked.append(columns) or real(self, columns))
    assert rows_of(query.keeps([cells])) == expected
    assert [column.to_pylist() for columns in asked for column in columns] == [[" 404", "0x194"]]


def test_columns_that_a_condition_cannot_be_asked_of_are_refused():
    condition = _native.CellCondition([[("text", 1, "=", "a")]])
    text = pa.array(["a", "b"])
    others = [pa.array([1, 2]), text.dictionary_encode(), pa.chunked_array([["a"], ["b"]]), pa.array([b"a", b"b"])]
    for columns in ([text], [pa.array(["a"]), text], *([None, other] for other in [*others, None])):
        with pytest.raises(dc.errors.DiscreetError):
            condition.said(columns)
    assert list(condition.said([None, text])) == [1, 0]
    assert condition.said([None, text[:0]]) == b""


@pytest.mark.parametrize("condition", NOT_LISTED)
def test_what_is_not_listed_is_left_to_duckdb(condition):
    assert plain_where.where(condition).bound(["item"]).of_text is None


def test_a_condition_behind_one_that_does_not_hold_is_not_asked():
    assert said_of("c = 'a' and c = 404", "b") == "no"
    assert said_of("c = 'a' and c = 404", "a") == "bad"
    assert said_of("c = 404 or c = 'a'", "a") == "unsure"  # which of them DuckDB asks first, nobody knows
    assert said_of("c = 404 or not c > 9.5", "a") == "bad"  # whichever it is


LOG = 'item,status\na,404\nb,200\n"c ""c""",404\n,404\nd,\ne,-\n\nf,4.0\né,404\n'
ODD = [
    "",
    "g,0x194\n",
    "h, 404\n",
    "i,\n",
    "j,4e2\nk,404\n",
    "l\n",
    'm,"4""04"\n',
    "\r\nn,404\r\n",
    "o,\xff\n",
    f"{'p' * 5000},404\n",
]


def read(path, words, monkeypatch, quick):
    """What is read of a file: its rows, how many are bad, and where the first is; or what is wrong with it."""
    with monkeypatch.context() as patch:
        patch.setattr(inputs, "BLOCK_BYTES", 64)
        patch.setattr(files, "_BLOCKS_OF_A_QUERY", 1)
        if not quick:
            patch.setattr(plain_where, "cell_condition", lambda *_: None)
        rows = files.Files([str(path)]).rows(**words)
        try:
            found = [row for batch in rows for row in batch.to_pylist()]
        except dc.errors.DataError as error:
            return str(error)
        return found, rows.bad_rows, rows.first_bad_row


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("rules", [{"nulls": "skip"}, {}, {"nulls": "skip", "bad_rows": "error"}])
@pytest.mark.parametrize(
    "condition", ["status = 404", "status = '404' or status is null", "status > 3.5 and item <> 'b'"]
)
def test_a_file_has_the_same_rows_either_way(tmp_path, monkeypatch, odd, rules, condition):
    path = tmp_path / "log.csv"
    path.write_bytes((LOG + odd + LOG[12:] * 3).encode("latin-1" if "\xff" in odd else "utf-8"))
    for columns, more in ((["item"], {"user": "status"}), (["item", "status"], {}), (["status"], {"user": "item"})):
        words = {"columns": columns, "where": plain_where.where(condition), **rules, **more}
        assert read(path, words, monkeypatch, True) == read(path, words, monkeypatch, False)


@pytest.mark.parametrize("status", ["404", '"404"', '" 404"', "404.0", "null", "true", '"-"', "[404]", '""', "4.04e2"])
def test_json_lines_have_the_same_rows_either_way(tmp_path, monkeypatch, status):
    path = tmp_path / "log.jsonl"
    lines = [f'{{"item": "i{n}", "status": {status if n % 5 == 0 else (404, 200)[n % 2]}}}\n' for n in range(40)]
    path.write_text("".join(lines))
    for rules in ({"nulls": "skip"}, {"nulls": "skip", "bad_rows": "error"}):
        words = {"columns": ["item"], "where": plain_where.where("status = 404"), **rules}
        assert read(path, words, monkeypatch, True) == read(path, words, monkeypatch, False)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("more", [{}, {"nulls": "skip"}, {"nulls": "skip", "bad_rows": "error"}])
def test_the_same_items_are_counted_either_way(tmp_path, monkeypatch, odd, more):
    path = tmp_path / "log.csv"
    path.write_bytes((LOG + odd + LOG[12:] * 3).encode("latin-1" if "\xff" in odd else "utf-8"))
    found = []
    for quick in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr(inputs, "BLOCK_BYTES", 64)
            if not quick:
                patch.setattr(plain_where, "cell_condition", lambda *_: None)
            rows = files.Files([str(path)]).rows(["item"], where=plain_where.where("status = 404"), **more)
            counts = dc.ExactCounts()
            try:
                rows.feed(counts)
            except dc.errors.DataError as error:
                found.append(str(error))
                continue
            items = dc.release(counts, dc.Budget(50.0, 1e-9), source=seeded_source(7))
            found.append((list(items.items), list(items.counts), counts.total, rows.bad_rows, rows.first_bad_row))
    assert found[0] == found[1]


def test_a_plain_condition_on_csv_loads_neither_duckdb_nor_arrow(tmp_path):
    (tmp_path / "log.csv").write_text("item,status\n" + "a,404\nb,200\n" * 900)
    script = "import sys, discreet.cli as c\ntry:\n    c.main()\nfinally:\n    print(*sys.modules, file=sys.stderr)"
    words = ["top", str(tmp_path / "log.csv"), "--column", "item", "--where", "status = 404", "--unit", "row"]
    words += ["--epsilon", "1", "--delta", "1e-6", "--format", "json"]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    assert '"item": "a"' in done.stdout
    assert '"item": "b"' not in done.stdout
    assert not {"_duckdb", "pyarrow", "numpy"} & set(done.stderr.split())


@pytest.mark.parametrize(
    "steps",
    [
        [[]],
        [[("and", 0, "", "")]],
        [[("text", 0, "=", "a"), ("text", 0, "=", "b")]],
        [[("what", 0, "=", "a")]],
        [[("text", 0, "~", "a")]],
        [[("whole", 0, "=", "1.5")]],
        [[("whole", 0, "=", "1234567890123456789")]],
        [[("fraction", 0, "=", "0.12345678901234567")]],
        [[("text", 70_000, "=", "a")]],
        [[("text", 0, "=", "a")] * 200],
    ],
)
def test_steps_that_are_no_condition_are_refused(steps):
    with pytest.raises(dc.ParameterError):
        _native.CellCondition(steps)


def test_a_condition_looks_at_columns_that_are_read():
    condition = _native.CellCondition([[("text", 2, "=", "a")]])
    block = _native.TextBlock(4)
    memoryview(block.room())[:] = b"a,b\n"
    block.cut(4, True, ord(","), ord('"'))
    for read in (lambda: block.delimited_items(44, [0, 1], 34, False, condition),
                 lambda: block.delimited_rows(44, [0, 1], 34, False, condition)):  # fmt: skip
        with pytest.raises(dc.ParameterError):
            read()
    with pytest.raises(dc.ParameterError):
        block.delimited_rows(44, [], 34, False)
