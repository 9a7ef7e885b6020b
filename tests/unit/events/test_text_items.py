"""Items of text that native code makes, block by block: the same as those of the rows, with the same complaints."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.rows import columns_of, open_stream

from discreet import _native
from discreet.errors import DataError
from discreet.events import inputs
from discreet.events.text import Dialect

Result = tuple[list[bytes], int, str | None, str | None]


def _read(paths: Any, made: bool, **options: Any) -> tuple[Result, int]:
    """(items, bad rows, the first of them, an error), and how many batches were made by native code."""
    stream = open_stream(paths, joint=True, **options)
    items: list[bytes] = []
    many, error = 0, None
    try:
        for column in columns_of(stream, made):
            if isinstance(column, _native.MadeColumn):
                many += 1
                items += column.to_list()
            else:
                found = column.to_pylist()
                items += [item if isinstance(item, bytes) else str(item).encode() for item in found]
    except DataError as refused:
        error = str(refused)
        items.clear()  # how many came before it is a matter of blocks
    return (items, stream.bad_rows, stream.first_bad_row, error), many


def _same(paths: Any, **options: Any) -> int:
    found, many = _read(paths, True, **options)
    expected, none = _read(paths, False, **options)
    assert found == expected
    assert not none
    return many


def _in_all_ways(path: Path, **options: Any) -> None:
    for rule in ("error", "skip"):
        _same(path, nulls=rule, bad_rows=rule, **options)


PIECES = [
    "a", "b,c", '"', '""', ",", "\t", "\n", "\r\n", "\r", " ", "é", "\x0b", "0", "\n\n", "x" * 70, '"a"', '"b\nc"',
    '"d""e"', '""', ";", "'", "{}", "\ufeff",
]  # fmt: skip
BAD = [b"\xff", b"\xc3", "é".encode("utf-16-le"), b"\x00", b"x" * 4097, b"y" * 4096]


@pytest.mark.parametrize("block", [1, 7, 64, 300, 1 << 20])
@pytest.mark.parametrize("ending", ["csv", "tsv", "txt"])
def test_made_up_texts_give_what_their_rows_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, ending: str
) -> None:
    monkeypatch.setattr(inputs, "BLOCK_BYTES", block)
    rng = random.Random(f"{block} {ending}")
    path = tmp_path / f"made.{ending}"
    between = "\t" if ending == "tsv" else ","
    for _ in range(25):
        cells = rng.randint(1, 3)
        names = between.join(["item", "b", "c"][:cells])
        rows = []
        for _ in range(rng.choice([0, 1, 5, 40])):
            if rng.random() < 0.15:  # anything
                rows.append("".join(rng.choices(PIECES, k=rng.randint(0, 6))).encode())
                if rng.random() < 0.3:
                    rows[-1] += rng.choice(BAD)
            else:
                written = [rng.choice(["a", "bc", '"d"', '"e""f"', '""', "x" * 70, '"g,h"', "ü"]) for _ in range(cells)]
                rows.append(between.join(written).encode())
        line_end = rng.choice([b"\n", b"\n", b"\r\n"])
        data = line_end.join([names.encode(), *rows]) + (line_end if rng.random() < 0.7 else b"")
        path.write_bytes((b"\xef\xbb\xbf" if rng.random() < 0.2 else b"") + data)
        _in_all_ways(path, column=None if ending == "txt" else "item")
        if ending != "txt":
            _in_all_ways(path, column=str(rng.randint(1, cells)), dialect=Dialect(header=False))
            _in_all_ways(path, column="item", dialect=Dialect(quote="none", delimiter=";"))


def test_well_written_texts_are_made_by_native_code(tmp_path: Path) -> None:
    rows = {
        "plain": "a\nbb\nccc\n",
        "quoted": '"a"\n"bb"\n""\n',
        "quoted where needed": 'a\n"b,b"\n"c\nd"\n"e""f"\n',
        "windows": 'a\r\n"b"\r\n\r\nc\r\n',
        "no last newline": "a\nb",
        "blank lines": "a\n\n  \nb\n",
        "not ASCII": "ä\nöö\n€\n",
    }
    for name, text in rows.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(f"item\n{text}", newline="")
        assert _same(path, column="item") == 1, name
        path = tmp_path / f"{name} of three.csv"
        lines = text.replace("c\nd", "cd").replace("\r", "").splitlines()
        path.write_text("\n".join(["x,item,y", *(f'1,{line},"2,3"' if line.strip() else line for line in lines)]))
        assert _same(path, column="item") == 1, name
        path = tmp_path / f"{name}.txt"
        path.write_text(text, newline="")
        assert _same(path) == 1, name


@pytest.mark.parametrize("quote", [" ", "\t", "\x0b"])
def test_a_line_of_white_space_is_blank_also_where_that_quotes(tmp_path: Path, quote: str) -> None:
    path = tmp_path / "blank.csv"
    path.write_text(f"item,n\n{quote}\n{quote},1\na,2\n")
    _in_all_ways(path, column="item", dialect=Dialect(quote=quote))
    path.write_text(f"item,n\n{quote}a{quote},1\n{quote}b,c{quote},2\n\n")
    assert _read(path, True, column="item", dialect=Dialect(quote=quote))[0][0] == [b"a", b"b,c"]


def test_columns_of_web_logs(tmp_path: Path) -> None:
    line = '10.0.0.{} - - [10/Oct/2000:13:55:36 -0700] "GET /{} HTTP/1.1" 200 {} "-" "agent {}"'
    lines = [line.format(i % 7, i % 11, i, i % 3) for i in range(500)]
    path = tmp_path / "access.log"
    path.write_text("\n".join([*lines, "", ""]))
    for column in ("ip", "time", "path", "status", "agent"):
        assert _same(path, column=column, format="combined") == 1
    path.write_bytes("\n".join([*lines[:5], "no line of a log", *lines[5:]]).encode() + b"\n\xff" + lines[0].encode())
    for column in ("ip", "path"):
        _in_all_ways(path, column=column, format="combined")


def test_lines_of_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    lines = ['{"item": "a"}', '{"item": "b\\n\\u00fc", "n": 1}', '{"item": "ü"}', "", '{"n": 2, "item": ""}'] * 50
    path.write_text("\n".join(lines))
    assert _same(path, column="item") == _same(path, column="item", lists=False) == 1
    path.write_text('{"item": "a"}\n' * 20)
    assert _same(path) == 1
    monkeypatch.setattr(inputs, "BLOCK_BYTES", 100)
    odd = ["{", '{"item": 7}', '{"item": null}', '{"item": ["a"]}', "{}", '{"item": "\\ud800"}', '{"item": 1.5}', "[1]"]
    for seed in range(30):
        rng = random.Random(seed)
        rows = [rng.choice(odd) if rng.random() < 0.1 else rng.choice(lines) for _ in range(60)]
        path.write_bytes("\n".join(rows).encode() + rng.choice([b"", b"\n", b'\n{"item": "\xff"}']))
        _in_all_ways(path, column="item", lists=False)
        _in_all_ways(path, column="item")


def test_records_longer_than_a_block_and_quotes_that_do_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "BLOCK_BYTES", 256)
    path = tmp_path / "long.csv"
    long = '"' + "x\n" * 400 + '"\n'
    for text in (f"item\na\n{long}b\n", f'item\na\n{long}"b\nc\n', 'item\n"a\nb\nc', "item\n" + "y" * 900 + "\nb\n"):
        path.write_text(text)
        _in_all_ways(path, column="item")


def test_compressed_and_utf_16(tmp_path: Path) -> None:
    text = "item\n" + "".join(f"item {i % 97} €\n" for i in range(200_000))
    packed, wide = tmp_path / "a.csv.gz", tmp_path / "b.csv"
    packed.write_bytes(gzip.compress(text.encode()))
    wide.write_bytes(text.encode("utf-16"))
    assert _same([packed, wide], column="item") > 4
    packed.write_bytes(gzip.compress(text.encode())[:-20])
    _in_all_ways(packed, column="item")


def test_a_line_of_a_bad_row_is_counted_over_all_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "BLOCK_BYTES", 100)
    path = tmp_path / "lines.csv"
    path.write_text("\n\nitem,n\n" + 'a,1\n"b\nc",2\n\n' * 40 + "d\n" + "e,3\n" * 40)
    (_, bad, first, _), many = _read(path, True, column="item", bad_rows="skip")
    assert (bad, many > 3) == (1, True)
    assert str(first).startswith("line 164:")
    _in_all_ways(path, column="item")


def test_the_first_of_bad_rows_is_that_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(b'item,n\na,1\n\xff,2\nb,3\n"c"\rd,4\nno other cell')
    for made in (False, True):
        (_, bad, first, _), _ = _read(path, made, column="item", bad_rows="skip")
        assert (bad, str(first)[:7]) == (3, "line 3:")
        (_, _, _, error), _ = _read(path, made, column="item")
        assert str(error).endswith("(line 3)")


def test_another_kind_of_items_than_in_the_file_before_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"item": pa.array([b"a"], pa.binary())}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("item\na\n")
    (tmp_path / "c.jsonl").write_text('{"item": "a"}\n')
    _same([tmp_path / "b.csv", tmp_path / "c.jsonl", tmp_path / "b.csv"], column="item")
    _same([tmp_path / "c.jsonl", tmp_path / "a.parquet", tmp_path / "c.jsonl"], column="item")
    _same([tmp_path / "b.csv", tmp_path / "b.csv"], column="item")
    for order in (["a.parquet", "b.csv"], ["b.csv", "a.parquet"]):
        found, _ = _read([tmp_path / name for name in order], True, column="item")
        assert found == _read([tmp_path / name for name in order], False, column="item")[0]
        assert "after items of type" in str(found[3])


def test_memory_of_a_block_is_used_again_when_nobody_holds_it() -> None:
    def block(text: bytes, before: _native.TextBlock | None = None) -> _native.TextBlock:
        made = _native.TextBlock(100, before)
        made.room()[: len(text)] = text
        made.cut(len(text), False, ord(","), ord('"'))
        return made

    first = block(b"a\nbb\nc")
    items = first.delimited_items(ord(","), [0], ord('"'), False)
    assert items is not None
    second = block(b"c\n" * 20, first)
    del first
    third = block(b"d\n" * 30, second)
    assert (items[0].to_list(), items[1]) == ([b"a", b"bb"], 2)
    assert second.records() == b"cc\n" + b"c\n" * 19
    assert (third.records(), third.waiting()) == (b"d\n" * 30, b"")
    with pytest.raises(Exception, match="no room"):
        third.cut(100, True, ord(","), 0)


def test_cells_of_a_block_that_was_cut_into_lines() -> None:
    block = _native.TextBlock(100)
    block.room()[:8] = b"a,1\nb,2\n"
    block.cut(8, True, 0, 0)
    items = block.delimited_items(ord(","), [0, -1], ord('"'), False)
    assert items is not None
    assert items[0].to_list() == [b"a", b"b"]


AFTER_READING = """
import sys
from discreet.events.files import Files
from discreet.summaries import MisraGries
summary = MisraGries(100)
Files(sys.argv[1], format=sys.argv[3] or None).rows(sys.argv[2] or None, lists=False).feed(summary)
assert summary.total == 2000, summary.total
print([name for name in ("numpy", "pyarrow") if name in sys.modules])
"""


def test_neither_numpy_nor_pyarrow_is_loaded_to_read_and_count_texts(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    items = [f"item {i % 50}" for i in range(2000)]
    pq.write_table(pa.table({"item": items}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("\n".join(["n,item", *(f'{i},"{item}"' for i, item in enumerate(items))]))
    (tmp_path / "a.tsv").write_text("\n".join(["item", *items, ""]))
    (tmp_path / "a.txt").write_text("\n".join([*items, ""]))
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"item": item}) for item in items))
    (tmp_path / "a.log").write_text(
        "".join(f'1.1.1.{i % 9} - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5\n' for i in range(2000))
    )
    for name, column, format in (
        ("a.csv", "item", ""),
        ("a.tsv", "item", ""),
        ("a.txt", "", ""),
        ("a.jsonl", "item", ""),
        ("a.parquet", "item", ""),
        ("a.log", "ip", "common"),
    ):
        command = [sys.executable, "-c", AFTER_READING, str(tmp_path / name), column, format]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.stdout == "[]\n", (name, done.stdout, done.stderr)
