"""Units, budgets and guarantees: what they accept, refuse and say."""

import math

import pytest

import discreet as dc
from discreet.privacy.guarantee import Asked


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, "1", None, True])
def test_epsilon_outside_its_range_is_refused(epsilon):
    with pytest.raises(dc.ParameterError, match="epsilon"):
        dc.Budget(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 2.0, math.nan, "0", None, True])
def test_delta_outside_its_range_is_refused(delta):
    with pytest.raises(dc.ParameterError, match="delta"):
        dc.Budget(1.0, delta)


def test_budget_kinds():
    assert dc.Budget(1).is_pure
    assert not dc.Budget(1, 1e-9).is_pure
    assert dc.Budget.zcdp(0.1).is_zcdp
    assert dc.Budget.zcdp(0.1).epsilon is None
    with pytest.raises(ValueError, match="rho"):
        dc.Budget.zcdp(0)


def test_shares_add_up():
    half = dc.Budget(1.0, 1e-6).share(0.5)
    assert (half.epsilon, half.delta) == (0.5, 5e-7)
    with pytest.raises(dc.ParameterError):
        dc.Budget(1.0).share(0)


def test_budget_is_frozen_and_hashable():
    budget = dc.Budget(1.0)
    with pytest.raises(AttributeError):
        budget.epsilon = 2.0
    assert budget == dc.Budget(1.0, 0.0)
    assert len({budget, dc.Budget(1.0)}) == 1


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2"])
def test_user_needs_a_positive_whole_bound(bad):
    with pytest.raises(dc.ParameterError, match="max_items"):
        dc.User(bad)


def test_a_raw_estimate_shows_no_number():
    assert "42" not in repr(dc.Estimate(42, 42, 42))


def test_a_seeded_guarantee_says_it_is_not_private():
    guarantee = dc.Guarantee(dc.Event(), 1.0, 0.0, "test", seeded=True)
    assert "NOT PRIVATE" in guarantee.sentence()
    assert guarantee.to_dict()["seeded"] is True


@pytest.mark.parametrize(
    "wrong",
    [
        {"time": 5},
        {"time": None},
        {"version": 2},
        {"k": True},
        {"k": 3.0},
        {"k": "3"},
        {"columns": ["a"]},
        {"columns": None},
        {"parameters": "x"},
    ],
    ids=repr,
)
def test_what_is_no_question_is_not_read_as_one(wrong):
    told = Asked.of("2026-11-15T21:00:00Z", k=3, columns={"item": "url", "user": None}, where="x = 1", n=None).to_dict()
    assert Asked.from_dict(told).to_dict() == told
    assert (told["columns"], told["parameters"]) == ({"item": "url"}, {"where": "x = 1"})
    with pytest.raises(ValueError, match="not what was asked for"):
        Asked.from_dict({**told, **wrong})
    for name in told:
        with pytest.raises(KeyError):
            Asked.from_dict({each: value for each, value in told.items() if each != name})


def test_a_user_without_a_limit_says_so_in_json():
    """What reads it need not tell a limit that is missing from one that nobody knows."""
    for unit, told in (
        (dc.User(), {"name": "User", "max_items": None}),
        (dc.User(3), {"name": "User", "max_items": 3}),
        (dc.User(per="1d", zone="Asia/Tokyo"), {"name": "User", "max_items": None, "per": "1d", "zone": "Asia/Tokyo"}),
        (dc.Event(), {"name": "Event"}),
    ):
        assert unit.details() == told
        assert unit.to_dict() == {**told, "description": unit.describe()}
