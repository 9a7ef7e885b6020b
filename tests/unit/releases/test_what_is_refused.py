"""Releases that are none, in the words of whoever reads them back; and what other libraries take of those that are."""

from __future__ import annotations

import builtins
import json
import math
from fractions import Fraction

import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import CorruptStateError, DataError, DiscreetError, ParameterError
from discreet.releases import QuantileRelease
from discreet.releases.error_model import ErrorModel, Noise, Stretch, Stretches, chance_of_each
from discreet.releases.group_list import GroupRelease
from discreet.releases.over_time import Increase

NOISE = Noise("laplace", Fraction(1))
TABLE = {
    "g": ["x"] * 400 + ["y"] * 300,
    "v": [1.0] * 350 + [3.0] * 350,
    "t": ["2026-01-01"] * 300 + ["2026-01-02"] * 400,
}
BUDGET = dc.Budget(30.0, 1e-6)


@pytest.fixture(scope="module")
def quantiles():
    return dc.quantiles(TABLE, BUDGET, [0.25, 0.75], column="v", range=(0.0, 4.0))


@pytest.fixture(scope="module")
def groups():
    return dc.sum(TABLE, BUDGET, column="v", range=(0.0, 4.0), by="g")


@pytest.fixture(scope="module")
def top_of_groups():
    return dc.top_k(TABLE, 3, BUDGET, column="t", by="g", groups=["x", "y"])


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, "1"])
@pytest.mark.parametrize("name", ["value", "lower", "upper", "quantile"])
def test_a_quantile_is_a_number(quantiles, name, number):
    told = quantiles.to_dict()
    assert QuantileRelease.from_json(json.dumps(told)) == quantiles
    told["quantiles"][0][name] = number
    if number == "1":
        assert math.isfinite(getattr(QuantileRelease.from_json(json.dumps(told)).rows[0], name))
    else:
        with pytest.raises(DataError, match="not JSON of published quantiles"):
            QuantileRelease.from_json(json.dumps(told))


@pytest.mark.parametrize("damage", [
    {"kind": "colour"}, {"groups": [{}]}, {"group_columns": None}, {"confidence": "sure"}, {"guarantee": None},
])  # fmt: skip
def test_what_is_no_list_of_groups_is_refused_without_quoting_it(groups, damage):
    told = groups.to_dict()
    assert GroupRelease.from_json(json.dumps(told)) == groups
    for read, kind, text in (
        (GroupRelease.from_json, DataError, json.dumps({**told, **damage})),
        (GroupRelease.from_payload, CorruptStateError,
         json.dumps({"release": "groups", "version": 1, "told": {**told, **damage}})),
        (GroupRelease.from_payload, CorruptStateError, json.dumps({"release": "groups", "version": 2, "told": told})),
        (GroupRelease.from_payload, CorruptStateError, json.dumps({"release": "list", "version": 1, "told": told})),
    ):  # fmt: skip
        with pytest.raises(kind) as refused:
            read(text.encode())
        assert refused.value.__cause__ is None
        assert "colour" not in str(refused.value)


@pytest.mark.parametrize("damage", [
    {"by": ["h"]}, {"by": []}, {"item_columns": []}, {"group_columns": [{"name": "h", "type": "large_string"}]},
    {"item_type": "colour"}, {"items": [["x"]]}, {"groups": [[1, 2]]},
])  # fmt: skip
def test_groups_of_a_stored_list_are_columns_of_its_items(top_of_groups, damage):
    fields = json.loads(top_of_groups.to_payload())
    assert dc.Release.from_payload(json.dumps(fields).encode()).to_payload() == top_of_groups.to_payload()
    with pytest.raises(CorruptStateError):
        dc.Release.from_payload(json.dumps({**fields, **damage}).encode())


def test_tables_of_arrow_are_streams_for_others(groups, quantiles, top_of_groups):
    for found in (groups, quantiles, top_of_groups):
        assert pa.table(found).equals(found.to_arrow())
        assert found.to_pandas().columns.tolist() == found.to_arrow().column_names


@pytest.mark.parametrize("library", ["polars", "matplotlib"])
def test_a_library_that_is_missing_is_named_with_how_to_have_it(top_of_groups, groups, monkeypatch, library):
    found = builtins.__import__

    def without(name, *more):
        if name.split(".")[0] == library:
            raise ImportError(name)
        return found(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    asked = [top_of_groups.to_polars] if library == "polars" else [top_of_groups.plot, groups.plot]
    for ask in asked:
        with pytest.raises(DiscreetError, match=rf"needs? {library}; install it with pip install"):
            ask()


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.1, 2.0, math.nan])
def test_a_chance_of_failing_is_between_none_and_all(beta):
    with pytest.raises(ParameterError, match="beta must be greater than 0 and less than 1"):
        chance_of_each(beta, 3)


@pytest.mark.parametrize("draws", [1, 7, 2**63])
def test_many_that_may_fail_fail_together_as_often_as_said(draws):
    each = chance_of_each(0.05, draws)
    assert -math.expm1(draws * math.log1p(-each)) == pytest.approx(0.05, rel=1e-9)


@pytest.mark.parametrize("make", [
    lambda: Noise("cauchy", Fraction(1)),
    lambda: Noise("gaussian", Fraction(1), terms=2),
    lambda: Noise("laplace", Fraction(1), terms=0),
    lambda: Stretches((Stretch(1, 2),), ((0, (1,)),)),
    lambda: Stretches((Stretch(1, 2),), ((0, (-1,)),)),
    lambda: ErrorModel(NOISE, offset_noise=NOISE).distances(0.9),
])  # fmt: skip
def test_laws_that_are_none(make):
    with pytest.raises(ParameterError):
        make()


def test_an_increase_is_a_table_and_knows_what_it_lists():
    stream = dc.continual.HeavyHitters(8, dc.Budget(500.0, 1e-6), 64)
    first = stream.step(["a"] * 900 + ["b"] * 800)
    later = stream.step(["a"] * 300 + ["b"] * 500 + ["c"] * 900)
    risen = later.increase(first)
    assert isinstance(risen, Increase)
    assert risen.to_pandas().columns.tolist() == ["item", "increase", "lower", "upper"]
    assert [row.item for row in risen] == risen.items == ["b", "a"]
    assert risen["a"] == risen.rows()[1]
    assert risen["a"].lower <= 300 <= risen["a"].upper
    assert risen.appeared == ["c"]
    with pytest.raises(KeyError, match="not listed at both ticks"):
        risen["c"]
    with pytest.raises(ParameterError, match="since must be a tick before this one, which is tick 1, not 2"):
        first.increase(later)
    with pytest.raises(ParameterError, match="tick 1 is not remembered"):
        later.increase(1)
    counts = dc.continual.Histogram(8, dc.Budget(500.0, 1e-6), universe=["a"], max_items_per_event=1)
    with pytest.raises(ParameterError, match="an earlier release of the same stream"):
        later.increase(counts.step(["a"]))
    with pytest.raises(ParameterError, match="works with releases over time"):
        later.increase(dc.top_k(["a"] * 900, 1, dc.Budget(1.0, 1e-6)))
