"""Shares of budgets, spans of the calendar, and noises over time: each against the sum that defines it."""

import math
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.privacy.accounting import Charge, Tally
from discreet.privacy.calibration.tick_noise import TickNoise, difference_reach
from discreet.privacy.shuffle import shuffled, shuffled_closed_form, shuffled_delta
from discreet.privacy.spans import ALWAYS, Calendar, Period

SHARES = (0.1, 0.25, 1 / 3, 0.7, 0.999)


@pytest.mark.parametrize("budget", [dc.Budget(0.3), dc.Budget(1.1, 1e-7), dc.Budget.zcdp(0.07)], ids=str)
def test_parts_never_sum_to_more_than_the_whole(budget):
    for share in SHARES:
        part, rest = budget.split(share)
        assert part.delta == 0.0
        assert rest.delta == budget.delta
        for name in ("epsilon", "rho"):
            whole = getattr(budget, name)
            pieces = getattr(part, name), getattr(rest, name)
            if whole is None:
                assert pieces == (None, None)
                continue
            assert pieces[0] == whole * share
            assert Fraction(pieces[0]) + Fraction(pieces[1]) <= Fraction(whole)
            assert Fraction(pieces[0]) + Fraction(math.nextafter(pieces[1], 2.0)) > Fraction(whole)
        taken = budget.share(share)
        expected = [None if each is None else each * share for each in (budget.epsilon, budget.delta, budget.rho)]
        assert [taken.epsilon, taken.delta, taken.rho] == expected
    assert budget.share(1.0) == budget
    assert dc.Budget.from_dict(budget.to_dict()) == budget


def test_a_budget_is_one_of_three_kinds():
    pure, approximate, zcdp = dc.Budget(1.0), dc.Budget(1.0, 1e-6), dc.Budget.zcdp(0.5)
    assert [each.is_pure for each in (pure, approximate, zcdp)] == [True, False, False]
    assert [each.is_zcdp for each in (pure, approximate, zcdp)] == [False, False, True]
    assert approximate.approximate("it") == (1.0, 1e-6)
    assert pure.pure("it") == 1.0
    # epsilon^2/2 <= rho, and the next larger epsilon is too much
    found = zcdp.pure("it", from_zcdp=True)
    assert (
        Fraction(found) ** 2 / 2 <= Fraction(1, 2) < Fraction(math.nextafter(found, 9.0)) ** 2 / 2 + Fraction(1, 10**14)
    )
    assert zcdp.as_zcdp("it") == 0.5
    assert approximate.as_zcdp("it", 0.5) < approximate.as_zcdp("it")
    for refused in (zcdp, pure):
        with pytest.raises(dc.ParameterError, match="delta"):
            refused.approximate("it")
    for refused in (zcdp, approximate):
        with pytest.raises(dc.ParameterError, match="spends epsilon and no delta"):
            refused.pure("it")
    with pytest.raises(dc.ParameterError, match="adds Gaussian noise"):
        pure.as_zcdp("it")


@pytest.mark.filterwarnings("error")
def test_a_budget_that_promises_next_to_nothing_is_told():
    for fine in (dc.Budget(20.0), dc.Budget(1.0, 1e-3), dc.Budget.zcdp(1.0)):
        assert fine.weakness is None
    with pytest.warns(match="epsilon=20.1 promises next to nothing"):
        dc.Budget(20.1)
    with pytest.warns(match=r"delta=0.002 promises little.* one person in 500 "):
        dc.Budget(1.0, 0.002)
    with pytest.warns(match=r"rho=100, which is epsilon="):
        dc.Budget.zcdp(100.0)


def test_a_charge_of_nothing_changes_no_tally():
    one = Tally.of([Charge(0.5, 1e-6)])
    assert one.plus(Charge(0.0, 0.0)) == one
    assert (one.charges, one.epsilon, one.delta) == (1, Fraction(1, 2), Fraction(1e-6))
    assert one.plus(Charge(0.0, 1e-6)).charges == 2


def test_charges_fit_up_to_the_budget_and_not_beyond():
    half = [Charge(0.5, 5e-7), Charge(0.5, 5e-7)]
    for adaptive in (False, True):
        assert Tally.of(half).fits(dc.Budget(1.0, 1e-6), adaptive=adaptive)
        assert not Tally.of([*half, Charge(1e-3)]).fits(dc.Budget(1.0, 1e-6), adaptive=True)
        assert not Tally.of([*half, Charge(0.0, 1e-7)]).fits(dc.Budget(1.0, 1e-6), adaptive=adaptive)
    gaussian = [Charge(None, rho=0.25, noise="gaussian")] * 2
    assert Tally.of(gaussian).fits(dc.Budget.zcdp(0.5))
    assert not Tally.of([*gaussian, Charge(None, rho=1e-6, noise="gaussian")]).fits(dc.Budget.zcdp(0.5))


# ---- spans of the calendar ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["1d", "3d", "1w", "2w", "1mo", "5mo"])
def test_every_day_is_in_one_span(text):
    spans = Calendar(text)
    day, name = date(2025, 12, 1), None
    for _ in range(500):
        now = spans.name(day)
        begins = date.fromisoformat(now)
        assert begins <= day < date.fromisoformat(spans.after(now))
        assert spans.name(begins) == now
        if name is not None and now != name:
            assert now == spans.after(name) == day.isoformat()
        day, name = day + timedelta(days=1), now
    period = spans.period((spans.name(date(2026, 1, 1)), spans.name(date(2026, 6, 30))))
    assert (period.first, period.after) == (spans.name(date(2026, 1, 1)), spans.after(spans.name(date(2026, 6, 30))))
    assert spans.period(period) == period
    assert Period.from_dict(period.to_dict()) == period


def test_weeks_begin_on_monday_and_months_on_the_first():
    assert Calendar("1w").name(date(2026, 11, 18)) == "2026-11-16"
    assert Calendar("1w").after("2026-11-16") == "2026-11-23"
    assert Calendar("1mo").name(date(2026, 12, 31)) == "2026-12-01"
    assert Calendar("1mo").after("2026-12-01") == "2027-01-01"


def test_shorter_spans_are_told_in_utc():
    hours = Calendar("6h")
    assert hours.name(datetime(2026, 11, 18, 13, 5, tzinfo=timezone.utc)) == "2026-11-18T12:00:00Z"
    assert hours.name(datetime(2026, 11, 18, 13, 5)) == "2026-11-18T12:00:00Z"
    assert hours.name(date(2026, 11, 18)) == "2026-11-18T00:00:00Z"
    assert hours.after("2026-11-18T18:00:00Z") == "2026-11-19T00:00:00Z"
    assert hours.told(hours.period("2026-11-18T12:00:00Z")) == "2026-11-18T12:00:00Z"
    with pytest.raises(dc.ParameterError, match="does not begin a span of 6h"):
        hours.period("2026-11-18T13:00:00Z")
    berlin = Calendar("1d", "Europe/Berlin")
    assert berlin.name(datetime(2026, 11, 17, 23, 30, tzinfo=timezone.utc)) == "2026-11-18"
    assert berlin.name(datetime(2026, 11, 17, 23, 30)) == "2026-11-17"
    assert Calendar("1d", "UTC").zone is None


def test_spans_in_words():
    said = {text: (Calendar(text).describe(), Calendar(text).several) for text in ("1d", "2d", "1w", "1mo", "6h", "1h")}
    assert said == {
        "1d": ("one day (UTC)", "on n days"),
        "2d": ("2 days (UTC)", "within n such spans"),
        "1w": ("one week (UTC)", "within n weeks"),
        "1mo": ("one month (UTC)", "within n months"),
        "6h": ("6 hours (UTC)", "within n such spans"),
        "1h": ("one hour (UTC)", "within n hours"),
    }
    days = Calendar("1d")
    assert days.told(ALWAYS) == ""
    assert days.told(days.period("2026-11-15")) == "2026-11-15"
    assert days.told(days.period(("2026-11-01", "2026-11-30"))) == "2026-11-01 to 2026-11-30"
    assert Calendar("007d").text == "7d"
    for wrong in ("0d", "d", "1x", "1234567d", ""):
        with pytest.raises(dc.ParameterError, match="must be a whole number with s, m, h, d, w or mo"):
            Calendar(wrong)


# ---- noises over time -----------------------------------------------------------------------------------------------


def rows_of(noise):
    """B of the noises that a kind has, row by row."""
    ticks = np.arange(noise.horizon)
    if noise.kind == "ticks":
        return np.eye(noise.horizon)
    if noise.kind == "square-root":
        column = np.cumprod(np.concatenate([[1.0], (2.0 * ticks[1:] - 1.0) / (2.0 * ticks[1:])]))
    else:
        gaps = np.array(noise.gaps)
        column = np.array([(np.array(noise.weights) * (1.0 - gaps) ** j).sum() for j in ticks])
    return np.array([[column[t - j] if j <= t else 0.0 for j in ticks] for t in ticks])


NOISES = [
    TickNoise("ticks", 9, 2.0),
    TickNoise("square-root", 9, 2.0),
    TickNoise("powers", 9, 2.0, weights=(0.5, 0.3, 0.2), gaps=(0.01, 0.4, 0.9)),
]


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.kind)
def test_differences_of_ticks_are_those_of_the_rows(noise):
    rows = np.vstack([np.zeros(noise.horizon), rows_of(noise)])
    for s in range(noise.horizon + 1):
        for t in range(noise.horizon + 1):
            true = float(((rows[t] - rows[s]) ** 2).sum())
            assert true * (1 - 1e-12) <= noise.difference(s, t) <= true * (1 + 1e-6)
            assert noise.covariance(s, t) == pytest.approx(4.0 * float(rows[s] @ rows[t]), abs=1e-6)
    assert TickNoise.from_dict(noise.to_dict()) == noise


def test_a_tree_has_a_node_for_every_digit():
    noise = TickNoise("tree", 27, 1.0, base=3)
    assert [noise.difference(0, t) for t in (1, 2, 3, 4, 9, 13, 26, 27)] == [1, 2, 1, 2, 1, 3, 6, 1]
    assert noise.difference(9, 13) == 2
    assert noise.difference(8, 9) == 5  # none of the nodes of 8 = 022 is one of 9 = 100


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.kind)
def test_a_change_stays_within_its_reach(noise):
    """Of Gaussian noise of that variance, and not twice as far."""
    from scipy.stats import norm

    assert difference_reach([], 0.01) == difference_reach([(noise, 3, 3)], 0.01) == 0
    for probability in (0.05, 1e-6):
        for s, t in ((0, 1), (2, 7), (8, 9)):
            sigma = 2.0 * math.sqrt(noise.difference(s, t))
            found = difference_reach([(noise, s, t)], probability)
            assert norm.sf((found + 1) / sigma) <= probability
            assert found <= 2.0 * sigma * norm.isf(probability) + 8
            assert difference_reach([(noise, t, s)], probability) == found
            assert difference_reach([(noise, s, t), (noise, s, t)], probability) > found


# ---- shuffled reports -----------------------------------------------------------------------------------------------


def test_shuffling_never_loses_more_than_a_report_and_gains_with_numbers():
    last = math.inf
    for reports in (1, 100, 1000, 10_000):
        found = shuffled(1.0, reports, 1e-6)
        assert found.delta == 1e-6
        assert found.epsilon <= min(1.0, last)
        assert shuffled_delta(1.0, reports, found.epsilon) <= 1e-6
        assert shuffled(1.0, reports, 1e-6, choices=2).epsilon <= found.epsilon
        last = found.epsilon
    assert 0.999 < shuffled(1.0, 1, 1e-6).epsilon <= 1.0
    assert shuffled_delta(1.0, 100, 1.0) == 0.0
    assert shuffled_delta(1.0, 100, math.nextafter(1.0, 0.0)) >= 0.0
    assert shuffled_closed_form(1.0, 100, 1e-6) == math.inf
    assert shuffled_closed_form(9.0, 10**6, 1e-6) == math.inf
    assert 0.0 < shuffled_closed_form(1.0, 10**6, 1e-6) < 0.1
    shuffled_delta(50.0, 10, 1.0)
    with pytest.raises(dc.ParameterError, match="epsilon_local must be at most 50"):
        shuffled_delta(50.1, 10, 1.0)
