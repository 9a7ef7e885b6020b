"""A row of another kind, in JSON lines or among objects, is another person or item, and stops nobody else's release."""

import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from tests.rows import open_stream

from discreet.engines.exact_people import people_of
from discreet.events.tables import events_of
from discreet.events.values import untagged, with_kinds


def counted(path, **options):
    """Every item with its weight in discovery, as the release has them before noise. NOT private."""
    names = {"column": "item", "nulls": "skip", "bad_rows": "skip", **options}
    with people_of(open_stream(path, **names)) as found:
        weights = found.discovery_weights(4)
        items = found.items(np.arange(len(weights))).to_pylist()
    return dict(zip(items, weights.tolist(), strict=True))


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


PLAIN = [{"user": f"u{i}", "item": "a"} for i in range(50)]
NUMBERS = [{"user": i, "item": 7} for i in range(50)]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows", "rows.json"])
@pytest.mark.parametrize("odd", [{"user": 99, "item": "b"}, {"user": "3", "item": 8}, {"user": 2**64 - 1, "item": "7"}])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("rows", [PLAIN, NUMBERS])
def test_a_row_of_another_kind_adds_itself_alone(tmp_path, name, odd, first, rows):
    alone = counted(written(tmp_path / name, rows), user_column="user")
    assert len(alone) == 1
    together = counted(written(tmp_path / name, [odd, *rows] if first else [*rows, odd]), user_column="user")
    key = odd["item"]
    assert {item: weight for item, weight in together.items() if item != key or type(item) is not type(key)} == alone
    assert together.keys() - alone.keys() == {key}


def test_items_of_one_kind_are_published_as_what_they_are(tmp_path):
    (item,) = counted(written(tmp_path / "numbers.jsonl", NUMBERS), user_column="user")
    assert type(item) is int
    longest = "w" * 4096
    rows = [{"user": longest, "item": longest}, {"user": "u" * 4097, "item": "a"}]
    assert counted(written(tmp_path / "long.jsonl", rows), user_column="user").keys() == {longest}


def test_lists_of_another_kind_stop_nobody(tmp_path):
    rows = [*({"item": ["a", "b"]} for _ in range(20)), {"item": [1]}, {"item": [2**64 - 1]}]
    found = counted(written(tmp_path / "lists.jsonl", rows), lists=True)
    assert found.keys() == {"a", "b", 1, 2**64 - 1}
    assert found["a"] == found["b"] > found[1]


def test_files_of_several_formats_are_one_stream(tmp_path):
    (tmp_path / "a.csv").write_text("user,item\nu1,x\n")
    written(tmp_path / "b.jsonl", [{"user": 1, "item": 5}])
    paths = [str(tmp_path / "a.csv"), str(tmp_path / "b.jsonl")]
    assert counted(paths, user_column="user").keys() == {"x", 5}


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", "", None]),
        pa.array([1, -5, None]),
        pa.array([2**64 - 1], pa.uint64()),
        pa.array([b"\xff"], pa.large_binary()),
        pa.array(["a", "a"]).dictionary_encode(),
    ],
)
def test_kinds_can_be_taken_off_again(column):
    back = [None if value is None else untagged(value) for value in with_kinds(column).to_pylist()]
    assert back == column.to_pylist()
    assert [type(value) for value in back] == [type(value) for value in column.to_pylist()]


def summed(users, values, make=dict):
    """What the items of a table of objects add up to, before noise and unbounded, and how many rows have a sum."""
    table = make({"user": users, "item": ["a"] * len(users), "value": values})
    columns = events_of(table).rows("item", user="user", value="value").owned()
    return [amount for _, _, amounts in columns for amount in amounts.cast(pa.float64()).to_pylist()]


def frame(table):
    """A DataFrame. Before version 3 pandas finds no type for a number beyond all floats, so it is told."""
    pandas = pytest.importorskip("pandas")
    odd = {name for name, values in table.items() if 10**400 in values}
    return pandas.DataFrame({n: pandas.Series(v, dtype=object if n in odd else None) for n, v in table.items()})


@pytest.mark.parametrize("make", [dict, pytest.param(frame, id="pandas")])
@pytest.mark.parametrize(
    ("user", "value", "kept"),
    [
        *((7, 5.0, [5.0]), (b"x", 5.0, [5.0]), (1.5, 5.0, []), ("v", "x", []), ("v", True, []), ("v", [1], [])),
        *(("v", 2**80, [2.0**80]), ("v", 10**400, [float("inf")]), ("v", Decimal("0.5"), [0.5]), ("v", 3, [3.0])),
    ],
)
def test_an_odd_object_beside_values_leaves_out_itself_alone(make, user, value, kept):
    names = [f"u{number}" for number in range(20)]
    assert summed([*names, user], [1.0] * 20 + [value], make) == [1.0] * 20 + kept
    assert summed(names, [1.0] * 20, make) == [1.0] * 20
