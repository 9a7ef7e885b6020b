"""One pass over files for several counts: what each of them sees is what it sees alone."""

from __future__ import annotations

import json
import threading
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.engines.sql import where
from discreet.events import one_pass as module
from discreet.events.files import Files
from discreet.events.inputs import ByteSource
from discreet.events.one_pass import one_pass
from discreet.noise import seeded_source

ROWS = [(f"p{n % 7}", f"/{n % 5}", n % 100, 404 if n % 9 == 0 else 200) for n in range(30_000)]
NAMES = ("ip", "path", "bytes", "status")


def csv(path, rows=ROWS, bad=""):
    path.write_text(",".join(NAMES) + "\n" + bad + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


def parquet(path):
    pq.write_table(
        pa.table(dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True))), path, row_group_size=900
    )
    return path


def log(path):
    lines = (
        f'{who} - - [01/Oct/2026:10:00:00 +0000] "GET {page} HTTP/1.1" {status} {size}\n'
        for who, page, size, status in ROWS
    )
    path.write_text("".join(lines))
    return path


def json_lines(path):
    """Rows with kinds of their own: what is no item for one count may be a number, or nothing asked for, of another."""
    odd = [
        ["p1", ["/1"], 3, 200],
        ["p2", 17, "x", 404],
        [None, "/2", 5, 200],
        [4, "/3", [6], True],
        [1.5, "/4", 7, 404],
    ]
    rows = [row if n % 100 != 50 else odd[n // 100 % len(odd)] for n, row in enumerate(ROWS)]
    path.write_text("{\n" + "".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows))
    return path


def seen(rows) -> list:
    """Everything that a count is handed."""
    return [tuple(column.to_pylist() for column in batch.columns) for batch in rows]


def flat(batches) -> list:
    return [row for batch in batches for row in zip(*batch, strict=True)]


@pytest.fixture
def opened(monkeypatch):
    """How often files are opened."""
    names = []

    class Counted(ByteSource):
        def __init__(self, path, *more):
            names.append(str(path))
            super().__init__(path, *more)

    monkeypatch.setattr("discreet.events.inputs.ByteSource", Counted)
    return names


WANTED = [
    {"columns": "path", "user": "ip"},
    {"columns": "path", "user": "ip", "where": where("status = 404")},
    {"columns": "bytes", "user": "ip", "numbers": True},
    {"columns": "path", "lists": False},
    {"columns": ("path", "status"), "lists": False},
]


@pytest.mark.parametrize(
    ("make", "name", "format"),
    [
        (csv, "a.csv", None),
        (parquet, "a.parquet", None),
        (log, "a.log", "common"),
        (json_lines, "a.jsonl", None),
    ],
)
def test_every_count_sees_what_it_sees_alone(tmp_path, opened, make, name, format):
    path = make(tmp_path / name)
    every = [Files(path, format=format).rows(**each, nulls="skip") for each in WANTED]
    alone = [flat(seen(each)) for each in every]
    opened.clear()
    files = Files([path, path], format=format)
    rows = [files.rows(**each, nulls="skip") for each in WANTED]
    together = one_pass(files, [partial(seen, each) for each in rows])
    assert [flat(each) for each in together] == [2 * each for each in alone]
    assert [each.bad_rows for each in rows] == [2 * each.bad_rows for each in every]
    assert opened == [str(path)] * 2  # two files, each once
    assert not files.passes


def test_bad_rows_are_bad_for_all(tmp_path):
    path = csv(tmp_path / "a.csv", bad="one cell\np1,/1,x,200,too many\n")
    path.write_bytes(path.read_bytes() + b"p1,/1,3,\xff\n")
    files = Files(path)
    first, second = files.rows("path", user="ip"), files.rows("status")
    one_pass(files, [partial(seen, first), partial(seen, second)])
    assert first.bad_rows == second.bad_rows == 3


def test_what_cannot_be_shared_is_read_by_each(tmp_path, opened):
    path = tmp_path / "a.jsonl"
    path.write_text('{"path": "a", "ip": 1}\n{"path": 2, "ip": 2}\n')
    files = Files(path)
    found = one_pass(files, [partial(seen, files.rows("path")), partial(seen, files.rows("ip"))])
    assert [flat(each) for each in found] == [[("a",), (2,)], [(1,), (2,)]]
    assert opened.count(str(path)) == 2  # whether items come in lists, a row would tell
    table = one_pass(object(), [lambda: 1, lambda: 2])
    assert table == [1, 2]


@pytest.mark.parametrize("after", [0, 1])
def test_a_count_that_fails_stops_nobody_else_and_is_told(tmp_path, after):
    files = Files([csv(tmp_path / "a.csv")] * 5)
    rows, others = files.rows("path"), files.rows("ip")
    done = []

    def fails():
        for number, _ in enumerate(rows):
            if number == after:
                raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        one_pass(files, [fails, lambda: done.append(flat(seen(others)))])
    assert [len(each) for each in done] == [5 * len(ROWS)]
    assert not [thread for thread in threading.enumerate() if thread.name == "count"]


def test_a_count_that_stops_early_or_reads_nothing_holds_up_nobody(tmp_path):
    files = Files(csv(tmp_path / "a.csv"))
    first, others = files.rows("ip"), files.rows("path")
    counts = [lambda: next(iter(first)).num_rows, lambda: 5, lambda: len(flat(seen(others))), files.all_rows().number]
    found = one_pass(files, counts)
    assert found[0] > 0
    assert found[1:] == [5, len(ROWS), len(ROWS)]


def test_a_second_look_is_a_pass_of_its_own(tmp_path, opened):
    path = csv(tmp_path / "a.csv")
    files = Files(path)

    def twice():
        return [len(flat(seen(files.rows("ip")))) for _ in range(2)]

    assert one_pass(files, [twice, twice]) == [[len(ROWS)] * 2] * 2
    assert opened.count(str(path)) == 3


def test_what_cannot_be_read_ends_all(tmp_path):
    files = Files(csv(tmp_path / "a.csv"))
    with pytest.raises(dc.DataError, match="no column 'nothing'"):
        one_pass(files, [partial(seen, files.rows("path")), partial(seen, files.rows("nothing"))])
    damaged = tmp_path / "b.parquet"
    damaged.write_bytes(parquet(damaged).read_bytes()[:-30])
    files = Files(damaged)
    with pytest.raises(dc.DataError):
        one_pass(files, [partial(seen, files.rows("path")), partial(seen, files.rows("ip"))])
    assert not [thread for thread in threading.enumerate() if thread.name == "count"]


def test_an_interrupt_ends_all(tmp_path, monkeypatch):
    files = Files(csv(tmp_path / "a.csv"))

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "in_order", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one_pass(files, [partial(seen, files.rows("path")), partial(seen, files.rows("ip"))])
    assert not [thread for thread in threading.enumerate() if thread.name == "count"]


def test_a_report_of_a_file_is_that_of_the_same_table(tmp_path, opened):
    path = csv(tmp_path / "a.csv")
    asked = dc.Report(
        [dc.Top(column="path", k=3), dc.Top(column="path", k=3, where="status = '404'"), dc.Count()],
        dc.Budget(5.0, 1e-3), user="ip",
    )  # fmt: skip
    table = {name: [str(row[place]) for row in ROWS] for place, name in enumerate(NAMES)}
    of_file = asked.answer(dc.read(path), source=seeded_source(4))
    assert opened == [str(path)]
    of_table = asked.answer(table, source=seeded_source(4))
    assert [each.to_json() if hasattr(each, "to_json") else repr(each) for each in of_file][2] == repr(of_table[2])
    assert of_file[0].rows() == of_table[0].rows()
    batches = pa.table(table).to_reader()
    assert asked.answer(batches, source=seeded_source(4))[0].rows() == of_table[0].rows()


def test_of_several_errors_that_of_the_first_count_is_raised(tmp_path):
    """Whichever came first."""
    files = Files(csv(tmp_path / "a.csv"))
    late = threading.Event()

    def first():
        assert late.wait(60)
        raise ValueError("the first")

    def second():
        late.set()
        raise ValueError("the second")

    with pytest.raises(ValueError, match="the first"):
        one_pass(files, [first, second])
    assert not files.passes  # the next counts of these files begin anew


@pytest.mark.parametrize("counts", [2, 3])
def test_standard_input_is_read_once(tmp_path, counts):
    """Where its format is not said, nobody can look at it first."""
    path = csv(tmp_path / "a.csv", ROWS[:50])
    files = Files("-")
    rows = [files.rows("path") for _ in range(counts)]
    with pytest.raises(dc.DataError, match="standard input is read once, so its format cannot be guessed; give format"):
        one_pass(files, [partial(seen, each) for each in rows])
    shared = Files(str(path))
    rows = [shared.rows("path") for _ in range(counts)]
    assert [len(flat(each)) for each in one_pass(shared, [partial(seen, each) for each in rows])] == [50] * counts
