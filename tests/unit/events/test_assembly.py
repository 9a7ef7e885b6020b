"""What becomes of rows, whoever read them: what may be asked, what is left out and said, and whose rows are bad."""

import datetime
import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import discreet as dc
from discreet.errors import DataError, ParameterError
from discreet.events.assembly import BadPeople, Events, Wanted
from discreet.events.files import Files
from discreet.events.tables import events_of
from discreet.events.times import Every, Pairing
from discreet.privacy.spans import Calendar, Period

DAY = Every("1d")
WRONG = {
    "another rule for nulls": ({"nulls": "drop"}, "nulls must be 'error' or 'skip', not 'drop'"),
    "another rule for bad rows": ({"bad_rows": None}, "bad_rows must be 'error' or 'skip', not None"),
    "no name": ({"columns": (7,)}, "must be text"),
    "no Unicode": ({"user": "\ud800"}, "must be text"),
    "a user that is the item": ({"columns": ("a",), "user": "a"}, "must name different columns"),
    "a value that is the user": ({"columns": ("a",), "user": "b", "value": "b"}, "must name different columns"),
    "a group that is the item": ({"columns": ("a",), "by": ("a",)}, "must name different columns"),
    "one column twice": ({"columns": ("a", "a")}, "must name different columns"),
    "a time that is the item": (
        {"columns": ("a",), "pairing": Pairing("a", Calendar("1d"))}, "must name different columns",
    ),
    "a time that is the user": (
        {"columns": ("a",), "user": "b", "pairing": Pairing("b", Calendar("1d"))}, "must name different columns",
    ),
    "several columns where one is counted": ({"columns": ("a", "b"), "plain": True}, "the name of one column"),
    "numbers of several columns": ({"columns": ("a", "b"), "numbers": True}, "are read from one column"),
    "numbers with values": ({"columns": ("a",), "value": "b", "numbers": True}, "are read from one column"),
    "numbers with groups": ({"columns": ("a",), "by": ("b",), "numbers": True}, "have no groups"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_asked_of_rows_is_refused_without_data(what):
    words, said = WRONG[what]
    with pytest.raises(ParameterError, match=said):
        Wanted(**words)


def test_a_column_of_times_may_serve_two():
    """Spans that are groups, and those that people are told apart by, may be of one column."""
    Wanted(("a",), by=("at",), every=DAY, pairing=Pairing("at", Calendar("1d")))
    Wanted(("at",), numbers=True, times=True, pairing=Pairing("at", Calendar("1d")))


def test_rows_of_another_place_take_no_public_table():
    class Elsewhere(Events):
        pass

    with pytest.raises(ParameterError, match="lookup works with files and tables only; join the public table before"):
        Elsewhere().with_lookup(None)


# ---- what is left out, and said --------------------------------------------------------------------------------------


def rows_of(tmp_path, text, name="rows.csv", **words):
    (tmp_path / name).write_bytes(text)
    rows = Files(str(tmp_path / name)).rows("page", **words)
    items = [item for batch in rows for item in batch.column("item").to_pylist()]
    return rows, items


def test_the_first_bad_row_is_told_by_its_line_and_not_by_what_is_in_it(tmp_path):
    text = b"page,n\n/a,1\nsecret\n/b,2\n\xff,3\n/c,4\n" + b"x" * 5000 + b",5\n/d,6\n"
    rows, items = rows_of(tmp_path, text)
    assert items == ["/a", "/b", "/c", "/d"]
    assert rows.bad_rows == 3
    assert rows.bad_and_good(people=False) == (3, 4)
    said = "; ".join(rows.remarks)
    assert "skipped 3 rows that could not be read (not private: for your eyes alone)" in said
    assert "the first one is in line 3: " in said
    assert "secret" not in said
    one, _ = rows_of(tmp_path, b"page,n\n/a,1\n\n/b\n/c,1\n")
    assert "skipped 1 row that could not be read" in one.remarks[0]
    assert "the first one is in line 4: " in one.remarks[1]  # blank lines are lines
    none, _ = rows_of(tmp_path, b"page,n\n/a,1\n")
    assert none.remarks == []
    for bad, line in ((b"\xff,1\n", 3), (b"/a\n", 3), (b"x" * 5000 + b",1\n", 3), (b"\n\n\xff,1\n", 5)):
        with pytest.raises(DataError, match=rf"rows.csv has .*\(line {line}\)"):
            rows_of(tmp_path, b"page,n\n/a,1\n" + bad + b"/c,1\n", bad_rows="error")


def test_a_row_without_a_value_is_told_by_its_line(tmp_path):
    for text, line in ((b"page,n\n/a,1\n,2\n/b,3\n", 3), (b"page,n\n\xff,1\n/a,1\n/b,2\n\n,4\n", 6)):
        with pytest.raises(DataError, match=rf"no value in the column \(line {line}\)"):
            rows_of(tmp_path, text)
        assert rows_of(tmp_path, text, nulls="skip")[1] == ["/a", "/b"]


def test_rows_of_other_periods_are_told_apart_from_those_that_cannot_be_read():
    """A row without a readable time is of no period: it is bad, and not outside."""
    period = Period("2026-11-15", "2026-11-16")
    table = pa.table(
        {
            "who": ["a", "b", "c", "d"],
            "page": ["/a", "/b", "/c", "/d"],
            "at": ["2026-11-15T10:00:00Z", "2026-11-16T00:00:00Z", "no time", "2026-11-14T23:59:59Z"],
        }
    )
    rows = events_of(table).rows("page", user="who", pairing=Pairing("at", Calendar("1d"), period))
    assert [item for batch in rows for item in batch.column("item").to_pylist()] == ["/a"]
    assert "skipped 2 rows outside the period (not private: for your eyes alone)" in rows.remarks
    assert rows.bad_rows == 1


def test_whose_a_list_is_goes_on_from_batch_to_batch(tmp_path):
    """The number of the row is the person, in the whole file."""
    lists = pa.table({"page": [["/a", "/b"], ["/a"], [], ["/b"], ["/c", "/a"]]})
    pa.parquet.write_table(lists, tmp_path / "rows.parquet", row_group_size=2)
    whose = [
        (user, item)
        for users, items, _ in Files(str(tmp_path / "rows.parquet")).rows("page", lists=True).owned()
        for user, item in zip(users.to_pylist(), items.to_pylist(), strict=True)
    ]
    assert whose == [(0, "/a"), (0, "/b"), (1, "/a"), (3, "/b"), (4, "/c"), (4, "/a")]


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_a_list_with_a_null_in_it_is_a_row_without_a_value(tmp_path, suffix):
    lists = [["/a", None], ["/b"]]
    path = tmp_path / f"rows.{suffix}"
    if suffix == "parquet":
        pa.parquet.write_table(pa.table({"page": lists}), path)
    else:
        path.write_text("".join(json.dumps({"page": each}) + "\n" for each in lists))
    with pytest.raises(DataError, match="no value in the column"):
        list(Files(str(path)).rows("page", lists=True))
    found = list(Files(str(path)).rows("page", lists=True, nulls="skip"))
    assert [row for batch in found for row in batch.column("item").to_pylist()] == [["/a"], ["/b"]]


# ---- whose rows are bad ----------------------------------------------------------------------------------------------


def test_a_person_is_bad_if_none_of_their_rows_can_be_read(tmp_path):
    rows = [("a", "/a"), ("a", "x" * 5000), ("b", "x" * 5000), ("c", "/c"), ("d", "\udcff"), ("b", "x" * 6000)]
    text = "who,page\n" + "".join(f"{who},{page}\n" for who, page in rows)
    (tmp_path / "rows.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    found = Files(str(tmp_path / "rows.csv")).rows("page", user="who")
    assert found.bad_and_good(people=True) == (0, 0)  # nobody asked
    found = Files(str(tmp_path / "rows.csv")).rows("page", user="who")
    found.mark_people()
    assert [item for batch in found for item in batch.column("item").to_pylist()] == ["/a", "/c"]
    bad, good = found.bad_and_good(people=True)
    assert good == 2
    assert bad in (1, 2)  # whether d counts: the row is not text at all, and says whose it is
    assert found.bad_and_good(people=False) == (4, 2)


@pytest.mark.parametrize(
    "users",
    [
        pa.array(["a", None, "b"]), pa.array([1, None, 2]), pa.array([b"a", None, b"b"]), pa.array([1.5, None, 2.5]),
        pa.array([datetime.date(2026, 11, 15), None, datetime.date(2026, 11, 16)]),
        pa.array(["a", None, "b"]).dictionary_encode(),
    ],
    ids=lambda users: str(users.type),
)  # fmt: skip
def test_people_of_any_type_are_marked(users):
    """A row that is nobody's marks nobody."""
    people = BadPeople()
    people.mark(users, good=False)
    assert people.counts() == (2, 0)
    people.mark(users.slice(0, 1), good=True)
    assert people.counts() == (1, 1)
    people.mark(users.slice(0, 1), good=False)
    assert people.counts() == (1, 1)


def test_who_shares_a_group_is_drawn_anew():
    """Nobody can choose a name that hides another's rows, or that is hidden."""
    found = set()
    for _ in range(64):
        people = BadPeople(groups=2)
        people.mark(pa.array(["a", "b"]), good=False)
        found.add(people.counts())
    assert found == {(1, 0), (2, 0)}


def test_a_share_of_bad_people_is_that_of_the_table(tmp_path):
    """The same whoever reads the rows."""
    rows = {"who": ["a", "b", "c"], "page": ["/a", "x" * 5000, "/c"]}
    pa.parquet.write_table(pa.table(rows), tmp_path / "rows.parquet")
    for events in (events_of(pa.table(rows)), events_of(rows), Files(str(tmp_path / "rows.parquet"))):
        found = events.rows("page", user="who")
        found.mark_people()
        assert sum(batch.num_rows for batch in found) == 2
        assert found.bad_and_good(people=True) == (1, 2)


@pytest.mark.parametrize("format", ["parquet", "arrow", "csv"])
def test_people_of_files_with_few_of_them_are_marked(tmp_path, format):
    """As Parquet and Arrow hold them: by dictionaries."""
    path = tmp_path / f"rows.{format}"
    table = pa.table({"who": [f"u{n % 9}" for n in range(6000)], "page": [f"/{n % 7}" for n in range(6000)]})
    if format == "parquet":
        pa.parquet.write_table(table, path, row_group_size=2000)
    elif format == "arrow":
        columns = [table.column(name).combine_chunks().dictionary_encode() for name in ("who", "page")]
        pa.feather.write_feather(pa.table(columns, names=["who", "page"]), path)
    else:
        pa.csv.write_csv(table, path)
    found = dc.count(dc.read(str(path)), dc.Budget(50.0, 1e-6), user="who", max_bad="10%")
    assert abs(found.value - 9) < 3
    top = dc.top_k(dc.read(str(path)), 3, dc.Budget(50.0, 1e-6), column="page", user="who", max_bad="10%")
    assert top.guarantee.epsilon == 50.0


def test_a_record_that_is_given_up_has_all_of_its_lines(tmp_path):
    """What comes after it is told by the line that it is in."""
    text = b'page,n\n"a\nb","c\n/d,1\n\n/e,2\n,3\n'  # a quote in line 3 never ends: lines 2 and 3 are one bad record
    with pytest.raises(DataError, match=r"no value in the column \(line 7\)"):
        rows_of(tmp_path, text)
    rows, items = rows_of(tmp_path, text, nulls="skip")
    assert (rows.bad_rows, items) == (1, ["/d", "/e"])
    assert rows.first_bad_row.startswith("line 2: ")
    with pytest.raises(DataError, match=r"\(line 2\)"):
        rows_of(tmp_path, text, bad_rows="error")


def test_lines_of_several_blocks_go_on(tmp_path, monkeypatch):
    """Also those that native code has made items of, where no row needed a look."""
    monkeypatch.setattr("discreet.events.inputs.BLOCK_BYTES", 1 << 10)
    good = b"".join(b"/%d,1\n" % n for n in range(5000))
    for made in (False, True):
        (tmp_path / "a.csv").write_bytes(b"page,n\n" + good + b"\xff,1\n" + good)
        rows = Files(str(tmp_path / "a.csv")).rows("page")
        total = sum(len(part) for part in rows.items()) if made else sum(batch.num_rows for batch in rows)
        assert total == 10_000
        assert rows.first_bad_row.startswith("line 5,002: ")
        assert rows.bad_and_good(people=False) == (1, 10_000)
