"""People on Spark: the same sums as plain lists give, whatever the partitions; noise and charge once, on the driver."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc
from discreet.summaries.people import ListedPeople

BUDGET = dc.Budget(1.0, 1e-6)


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    users, items = random.integers(0, 700, 5000), np.minimum(random.zipf(1.3, 5000), 300)
    pairs = [(f"u{user}", f"i{item}") for user, item in zip(users, items, strict=True)]
    return pairs + [("many", f"i{item}") for item in range(1, 301)]


def everything(people):
    weights = people.discovery_weights(256)
    names = people.items(np.arange(len(weights))).to_pylist()
    chosen = np.array(sorted(range(len(names)), key=lambda place: names[place])[:40], np.int64)
    factors = 1 + np.arange(len(chosen), dtype=np.int64) * 25
    lengths = [values.tolist() for values in people.lengths(chosen, factors)]
    sums = [people.scaled_sums(chosen, factors, longest).tolist() for longest in (1.0, 700.0)]
    return dict(zip(names, weights.tolist(), strict=True)), lengths, sums


@pytest.mark.parametrize("rows_counted", [False, True])
@pytest.mark.parametrize("partitions", [1, 7])
def test_the_same_as_plain_lists(spark, rows, rows_counted, partitions):
    import pyarrow as pa

    from discreet.engines._spark_people import SparkPeople

    few = [row for row in rows if row[0] != "many"]  # which of too many items take part is another key's choice
    frame = spark.createDataFrame(few, "u string, i string").repartition(partitions)
    lists = {}
    for user, item in few:
        lists.setdefault(user, []).append(item)
    with SparkPeople(frame, pa.large_string(), "error", rows=rows_counted) as people:
        assert everything(people) == everything(ListedPeople(lists.values(), rows=rows_counted))


def test_people_are_hidden_and_paid_for_once(spark, rows, tmp_path):
    frame = spark.createDataFrame([*rows, *[("one", "my own words")] * 3000], "visitor string, url string")
    ledger = dc.Ledger(tmp_path / "budgets.sqlite")
    ledger.grant("visits", dc.Budget(1.5, 1e-5))
    asked = {"user": "visitor", "ledger": ledger.account("visits"), "charge_id": "one"}
    release = dc.engines.spark.top_k(frame, "url", 5, BUDGET, **asked)
    assert release.items[0] == "i1"
    assert "my own words" not in release.items
    assert release.counted == "people"
    assert dc.engines.spark.top_k(frame, "url", 5, BUDGET, **asked).to_payload() == release.to_payload()
    with pytest.raises(dc.BudgetExceededError):
        dc.engines.spark.top_k(frame, "url", 5, BUDGET, **{**asked, "charge_id": "two"})


def test_of_a_person_with_many_items_256_take_part(spark):
    import pyarrow as pa

    from discreet.engines._spark_people import SparkPeople

    frame = spark.range(400).selectExpr("1L as u", "id as i")
    with SparkPeople(frame, pa.int64(), "error", rows=False) as people:
        assert {*people.discovery_weights(256).tolist()} == {(2**24 - 1) // 16}
        assert len(people.discovery_weights(256)) == 256


def test_what_is_refused(spark):
    frame = spark.createDataFrame([("a", "x"), (None, "y")], "visitor string, url string")
    with pytest.raises(dc.DataError, match="nulls"):
        dc.engines.spark.top_k(frame, "url", 5, BUDGET, user="visitor")
    assert len(dc.engines.spark.top_k(frame, "url", 5, BUDGET, user="visitor", nulls="skip")) == 0
    for options, message in (
        ({"unit": dc.User(3)}, "by itself"),
        ({"capacity": 8}, "by itself"),
        ({"user": "nobody"}, "nobody"),
        ({"count": "clicks"}, "count must be"),
    ):
        with pytest.raises(dc.ParameterError, match=message):
            dc.engines.spark.top_k(frame, "url", 5, BUDGET, **{"user": "visitor", **options})
    with pytest.raises(dc.ParameterError, match="are for people"):
        dc.engines.spark.top_k(frame, "url", 5, BUDGET, count="rows")
