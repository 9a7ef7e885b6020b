"""What is read back of a release over time, of groups, and what a notebook shows of people."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.unit.releases.test_error_model import WIDE, over

import discreet as dc
from discreet.releases.error_model import ErrorModel, Noise
from discreet.releases.group_list import GroupRelease

BUDGET = dc.Budget(30.0, 1e-6)


def test_a_release_of_heavy_hitters_is_kept_with_all_that_increases_need():
    stream = dc.continual.HeavyHitters(40, dc.Budget(2.0, 1e-6), 64)
    first = stream.step(["a"] * 900 + ["b"] * 800)
    later = stream.step(["a"] * 300 + ["b"] * 500)
    assert later.followed is not None
    assert later.places is not None
    for read, text in ((dc.Release.from_payload, "to_payload"), (dc.Release.from_json, "to_json")):
        kept = [read(getattr(each, text)()) for each in (first, later)]
        for one, other in zip(kept, (first, later), strict=True):
            for name in ("followed", "places"):
                assert np.array_equal(getattr(one, name), getattr(other, name))
            assert one.over_time == other.over_time
            assert one.rows() == other.rows()
        assert kept[1].increase(kept[0]).to_dict() == later.increase(first).to_dict()


def test_of_published_items_three_tails_may_fail():
    """Given that an item passed, its noise may be up to twice as likely to be high, and as likely as ever to be low."""
    bound = ErrorModel(WIDE, of_published=True).distances(0.9)
    assert [1.5 * over(each) for each in bound] == pytest.approx([0.1, 0.1], rel=1e-2)


def test_an_order_that_a_list_says_is_kept():
    items = ["b", "a", "c"]
    made = dc.histogram({"x": ["a"] * 9 + ["c"] * 5}, dc.Budget(60.0), column="x", universe=items)
    for again in (made, dc.Release.from_payload(made.to_payload()), dc.Release.from_json(made.to_json()), made.head(3)):
        assert again.items == items
        assert again.in_list_order
        assert not again.with_items(again.item_column).in_list_order


@pytest.mark.parametrize(("name", "unknown"), [("lower", -math.inf), ("upper", math.inf)])
def test_a_bound_of_a_group_that_is_not_known_is_null(name, unknown):
    made = dc.count({"g": ["x"] * 400}, BUDGET, by="g")
    told = made.to_dict()
    told["groups"][0][name] = None
    again = GroupRelease.from_json(json.dumps(told))
    assert getattr(again["x"], name) == unknown
    assert again.to_dict() == told
    assert f",{'' if name == 'lower' else '400,400,'}" in again.to_csv()
    assert "?" in again.to_table()


@pytest.mark.parametrize("title", ["<b>col</b>", "a & b"])
def test_a_notebook_shows_names_as_text_and_what_is_missing(title):
    made = dc.top_k({title: ["x"] * 900, "who": [*range(900)]}, 3, BUDGET, column=title, user="who")
    page = made._repr_html_()
    assert title not in page
    for note in made.notes():
        assert note in page
    groups = dc.count({title: ["x"] * 900}, BUDGET, by=title)._repr_html_()
    assert title not in groups


@pytest.mark.parametrize("k", [0, 1, 2, 5])
def test_the_first_rows_say_nothing_of_groups_after_them(k):
    made = dc.top_k(
        {"v": ["i", "j"] * 500, "g": ["x", "y"] * 500}, 3, BUDGET, column="v", by="g", groups=["w", "x", "y"]
    )
    assert [*made.groups] == ["w", "x", "y"]
    first = made.first(k)
    assert [*first.groups] == (["w", "x", "y"] if k >= 2 else ["x"][:k])


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_intervals_do_not_get_narrower_where_fewer_items_are_there(law):
    model = ErrorModel(Noise(law, Fraction(3), 5), of_published=True)
    assert model.of_at_least(4) == model
    assert model.of_at_least(50).noise.draws == 50
    assert model.of_at_least(50).distances(0.9)[0] > model.distances(0.9)[0]
    fixed = ErrorModel(Noise(law, Fraction(3), 5))  # of all that got noise: it is known how many there are
    assert fixed.of_at_least(50) == fixed == fixed.of_all
