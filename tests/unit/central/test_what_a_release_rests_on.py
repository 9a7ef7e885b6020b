"""Rules behind single lines of the mechanisms: what rounding may not take away, and what must not show."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.central import (
    ChosenDistinct,
    CreditedDistinct,
    Merged,
    NoisyCount,
    QuantileChoice,
    QuantileTree,
    ReducedMisraGries,
    RowMoments,
    Stability,
    Summed,
    UniverseHistogram,
    UserSketch,
    merge_releases,
)
from discreet.central._base import Prepared, prepare_people, split_off_total
from discreet.central.bad_share import BadShare
from discreet.central.credited_distinct import credited
from discreet.central.quantile_grid import StepGrid
from discreet.noise import seeded_source
from discreet.published import GaussianSparseHistogram
from discreet.releases.error_model import Noise
from discreet.summaries.moments import ValueMoment
from discreet.summaries.people import ValueRange
from discreet_audit.exact import ScriptedSource

BUDGET = dc.Budget(1.0, 1e-6)


def fed(summary, items):
    summary.update(items)
    return summary


# ---- what an account adds up -----------------------------------------------------------------------------------------

SUM, COUNT = ValueMoment("sum", 0, 3, 7), ValueMoment("count")
NOISY = {
    "count": (lambda b: NoisyCount(b), 1, 1),
    "credited": (lambda b: CreditedDistinct(b, max_items=3), 1, 3),
    "listed": (lambda b: UniverseHistogram(b, range(9)), 1, 1),
    "listed people": (lambda b: UniverseHistogram(b, range(9), dc.User(), 5), 5, 1),
    "bad rows": (lambda b: BadShare(b, Fraction(1, 10)), 1, 9),
    "bad rows of people": (lambda b: BadShare(b, Fraction(1, 10), dc.User()), 1, 10),
    "sums": (lambda b: RowMoments(b, SUM), 1, SUM.one),
    "different values": (lambda b: RowMoments(b, COUNT, 4, unit=dc.User(), max_items=6), 1, 6 * COUNT.one),
}


@pytest.mark.parametrize("name", NOISY)
@pytest.mark.parametrize("rho", [0.1, 0.3, 1 / 3, 0.77])
def test_the_rho_of_gaussian_noise_is_never_understated(name, rho):
    """changes height^2/(2 sigma^2) as the number it is: a double below it would be a charge below what is spent."""
    make, changes, height = NOISY[name]
    made = make(dc.Budget.zcdp(rho))
    exact = Fraction(changes * height**2) / (2 * made.scale**2)
    assert exact <= Fraction(made.cost.rho) <= exact * (1 + Fraction(1, 2**50))
    assert made.cost.rho <= rho


@pytest.mark.parametrize("name", NOISY)
def test_laplace_noise_has_no_cost_of_its_own(name):
    assert NOISY[name][0](dc.Budget(1.0)).cost is None


def test_noise_on_sums_of_groups_that_are_discovered_has_no_cost_of_its_own():
    """Its cut spends delta, which rho alone does not say."""
    moment = ValueMoment("sum", 0, 1, 2**30)
    listed, found = (RowMoments(dc.Budget(0.01, 0.1), moment, groups) for groups in (3, None))
    assert listed.noise.law == found.noise.law == "gaussian"
    assert listed.cost is not None
    assert found.cost is None


# ---- preparing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["total", "shared"])
def test_every_noise_of_a_release_can_be_drawn(kind):
    """What could not is refused before anything is charged, also noise that only some releases have."""
    made, wide = Merged(BUDGET, 4), Noise("laplace", Fraction(2**50 + 1))
    more = {"total_share": 0.5, "total_noise": wide} if kind == "total" else {}
    if kind == "shared":
        made.__dict__["error_model"] = dataclasses.replace(made.error_model, shared=wide)
    with pytest.raises(dc.ParameterError, match=r"scale above 2\*\*50"):
        Prepared(made, BUDGET, **more)


def test_what_the_ledger_writes_down_tells_ranges_and_groups_apart():
    near = [prepare_people(5, BUDGET, values=ValueRange(0.0, high)) for high in (1.0, 1.0 + 2.0**-40)]
    groups = [prepare_people(5, BUDGET, groups=many) for many in (1, 2, 3, None)]
    assert len({made.described for made in near}) == 2
    assert len({made.described for made in groups}) == 4


# ---- cuts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("off", [0, 1])
def test_half_a_count_below_the_cut_is_below_it(off):
    """The cut is for the noisy count before rounding: half a count more for some would be more delta than is stated."""
    made = next(each for each in (Merged(BUDGET, k) for k in range(4, 40)) if each.threshold % 2 == off)
    sketch = fed(dc.MisraGries(made.capacity), ["a"] * (made.threshold - 1))
    assert len(made(sketch, ScriptedSource(0, 1))) == 0
    assert made(sketch, ScriptedSource(0, 2)).counts.tolist() == [made.threshold]


@pytest.mark.parametrize("kind", [UserSketch, GaussianSparseHistogram])
@pytest.mark.parametrize("items", [1, 3, 7])
def test_a_sketch_of_larger_sets_than_the_unit_says_is_refused(kind, items):
    sketch = dc.UserMisraGries(8, 2)
    made = kind(BUDGET, 8, dc.User(items))
    with pytest.raises(dc.IncompatibleSummaryError):
        made(sketch)


@pytest.mark.parametrize("place", [0, 1])
def test_every_sketch_of_a_sum_is_checked(place):
    """Not their number alone."""
    one, two = (fed(dc.MisraGries(4, seed=n), ["a"] * 9) for n in (1, 2))
    merged = fed(dc.MisraGries(4), ["b"] * 5)
    merged.merge(fed(dc.MisraGries(4), ["c"]))
    for wrong, error in ((merged, dc.IncompatibleSummaryError), (dc.MisraGries(5), dc.ParameterError)):
        parts = [one, two]
        parts[place] = wrong
        with pytest.raises(error):
            Summed(BUDGET, 4, sketches=2)(parts)


@pytest.mark.parametrize("counts", [(3, 2, 1), (2**57, 2**56, 5), (2**60, 2**59, 5), (2**61, 2**61, 9), (2**62, 1, 1)])
def test_entries_of_very_large_counters_do_not_wrap_around(counts):
    """max(0, (k+1) c - sum c) as whole numbers, up to 2^61."""
    sketch = dc.MisraGries(3, seed=1)
    sketch.update_counts(pa.array(["a", "b", "c"]), np.array(counts, np.int64))
    reduced = {item: min(4 * count - sum(counts), 2**61) for item, count in zip("abc", counts, strict=True)}
    found = ReducedMisraGries(BUDGET, 3).entries(sketch).to_dict()
    assert found == {item: entry for item, entry in reduced.items() if entry > 0}


# ---- what must not show ----------------------------------------------------------------------------------------------


def test_what_is_hidden_leaves_no_trace_in_a_release_of_exact_counts():
    """Not even in what is said of its errors: how many items there were is as private as which."""
    told = set()
    for hidden in (0, 1, 500):
        counts = fed(dc.ExactCounts(seed=1), ["a"] * 1000 + ["b"] * 800 + [f"rare {n}" for n in range(hidden)])
        release = Stability(BUDGET)(counts, ScriptedSource())
        assert release.items == ["a", "b"]
        told.add(release.to_payload())
    assert len(told) == 1


# ---- numbers of different values -------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [2**31 - 1, 2**31, 2**40, 2**62])
def test_any_number_of_values_may_be_credited_to_a_person(most):
    people, values = np.array([0, 0, 1, 1, 1, 2]), np.array([0, 1, 1, 2, 3, 3])
    assert credited(people, values, most) == 4


def test_the_interval_of_a_chosen_number_has_the_confidence_that_was_asked():
    found = dict.fromkeys(ChosenDistinct.CANDIDATES, 1000)
    lower = [ChosenDistinct(dc.Budget(1.0), confidence=c)(found, seeded_source(1)).lower for c in (0.5, 0.95, 0.999)]
    assert lower[0] > lower[1] > lower[2]


def test_a_histogram_says_what_its_counts_are_of():
    made = UniverseHistogram(dc.Budget(1.0), range(3))
    assert made(np.array([1, 2, 3]), seeded_source(1)).counted == "events"
    people = UniverseHistogram(dc.Budget(1.0), range(3), dc.User(), 2)
    assert people(np.array([1, 2, 3]), seeded_source(1)).counted == "people"


# ---- sums of releases ------------------------------------------------------------------------------------------------


def stable(items, source, **how):
    return Stability(BUDGET, **how)(fed(dc.ExactCounts(seed=1), items), source)


def test_a_sum_with_one_seeded_release_is_not_private():
    private, seeded = stable(["a"] * 500, None), stable(["a"] * 500, seeded_source(1))
    assert merge_releases([seeded, private]).guarantee.seeded
    assert merge_releases([private, seeded]).guarantee.seeded
    assert not merge_releases([private, private]).guarantee.seeded


@pytest.mark.parametrize("epsilons", [(0.1, 0.2, 0.7), (1 / 3, 1e-9, 0.3), (0.3, 0.1, 0.1)])
@pytest.mark.parametrize("parts", [1, 2, 3, 5])
def test_a_unit_in_several_streams_loses_the_largest_of_them_together(epsilons, parts):
    """As numbers, not as rounded sums of doubles."""
    releases = [Stability(dc.Budget(e, 1e-6))(dc.ExactCounts(), seeded_source(1)) for e in epsilons]
    promised = merge_releases(releases, parts_per_user=parts).guarantee
    largest = sum(sorted(map(Fraction, epsilons))[-parts:])
    assert largest <= Fraction(promised.epsilon) <= largest * (1 + Fraction(1, 2**50))


@pytest.mark.parametrize("hidden", [1, 2, 5])
def test_the_upper_bound_of_a_sum_holds_for_what_stayed_below_the_cut(hidden):
    """Of the streams in which it is not listed an item may have nearly as much as the cut, and what that rests on."""
    cut = Stability(BUDGET).threshold
    parts = [["a"] * 500, *[["a"] * (cut - 1)] * hidden]
    merged = merge_releases([stable(part, ScriptedSource()) for part in parts])
    assert merged.counts.tolist() == [500]
    assert merged.bounds()[1][0] >= 500 + hidden * (cut - 1)
    sketches = [fed(dc.MisraGries(2), part + [n for n in range(300) for _ in range(2)]) for part in parts]
    offsets = [dc.central.Offset(BUDGET, 2)(sketch, ScriptedSource()) for sketch in sketches]
    listed = merge_releases(offsets)
    assert listed.items == ["a"]
    assert sum(release.offset for release in offsets) > hidden * cut
    assert listed.bounds()[1][0] >= 500 + hidden * (cut - 1)


def test_a_sum_of_entries_whose_items_may_not_have_occurred_begins_at_nothing():
    """What one of the releases may have listed for its noise, the sum may list for it."""
    sketches = [fed(dc.MisraGries(8), ["a"] * 900) for _ in range(2)]
    known = ReducedMisraGries(dc.Budget(1.0), 8, universe=["a", "b"])(sketches[0], seeded_source(1))
    alone = ReducedMisraGries(BUDGET, 8)(sketches[1], seeded_source(1))
    for releases in ([known, alone], [alone, known]):
        assert merge_releases(releases).error_model.lowest == 0


# ---- what is refused before anything is drawn ------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [dc.Element(), dc.Replace()])
def test_a_length_is_published_for_events_and_users_alone(unit):
    """Of other units nobody says by how much one moves it."""
    with pytest.raises(dc.ParameterError, match="total_share needs the unit"):
        split_off_total(BUDGET, 0.5, unit)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, True, "0.5", None])
def test_a_share_of_the_budget_is_between_nothing_and_all(share):
    with pytest.raises(dc.ParameterError, match="total_share must be greater than 0 and less than 1"):
        split_off_total(BUDGET, share, dc.Event())


@pytest.mark.parametrize("budget", [dc.Budget(0.7), dc.Budget(0.7, 1e-6), dc.Budget.zcdp(0.3)])
@pytest.mark.parametrize("lists", [1, 4])
def test_the_length_and_the_rest_never_cost_more_than_the_budget(budget, lists):
    """The length of m items in each of p lists moves by m p; the two parts add up as numbers."""
    rest, noise = split_off_total(budget, 0.3, dc.User(2), lists)
    moved = 2 * lists
    if budget.rho is None:
        assert Fraction(rest.epsilon) + moved / noise.scale <= Fraction(budget.epsilon)
        assert rest.delta == budget.delta
    else:
        assert Fraction(rest.rho) + moved**2 / (2 * noise.scale**2) <= Fraction(budget.rho)
    assert noise.scale < 1.01 * split_off_total(budget, 0.3, dc.User(2 * lists))[1].scale


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"count": "clicks"}, "count must be 'users' or 'rows'"),
        ({"count": "rows", "values": ValueRange(0, 1)}, "sums values or counts rows, not both"),
    ],
)
def test_a_question_about_people_is_about_one_thing(words, said):
    with pytest.raises(dc.ParameterError, match=said):
        prepare_people(5, BUDGET, **words)
    with pytest.raises(dc.ParameterError, match="delta"):
        prepare_people(5, dc.Budget(1.0))


@pytest.mark.parametrize("budget", [dc.Budget(1e-9, 1e-12), dc.Budget(1e-6, 1e-300)])
def test_a_budget_that_is_too_small_for_people_is_refused_in_words(budget):
    with pytest.raises(dc.ParameterError, match=r"too small a budget for people|delta|scale above"):
        prepare_people(5, budget).mechanism.calibration  # noqa: B018


@pytest.mark.parametrize("wide", [10, 2**21])
def test_what_lies_in_bins_is_added_up_bin_by_bin(wide):
    """However many bins there are: those of two parts together are those of all rows at once."""
    draw = np.random.default_rng(4)
    grid = StepGrid(0, wide)
    made = QuantileChoice(dc.Budget(1.0), grid, (0.5,))
    rows = draw.integers(0, wide + 1, 300)
    first, second, whole = (made.counts(grid.places(part.astype(float))) for part in (rows[:100], rows[100:], rows))
    for found in (first + second, second + first):
        assert found.bins.tolist() == whole.bins.tolist()
        assert found.masses.tolist() == whole.masses.tolist()
    nothing = made.counts(grid.places(np.zeros(0)))
    assert (nothing + whole).masses.tolist() == whole.masses.tolist()
    people = QuantileChoice(dc.Budget(1.0), grid, (0.5,), dc.User(), max_rows=2)
    owners = draw.integers(0, 40, 300)
    votes = people.counts(grid.places(rows.astype(float)), owners)
    assert votes.masses.sum() <= 2 * 40 * people.vote
    assert (votes.masses > 0).all()
    one = people.counts(grid.places(np.array([3.0, 3.0, 5.0])), np.array([0, 0, 0]))
    assert one.bins.tolist() == [3, 5]
    assert one.masses.sum() <= 2 * people.vote


def test_nobody_votes_for_nothing():
    for kind in (QuantileChoice, QuantileTree):
        made = kind(dc.Budget(1.0), StepGrid(0, 9), (0.5,), dc.User(), max_rows=2)
        found = made.counts(np.zeros(0, np.int64), np.zeros(0, np.int64))
        assert np.sum(found.masses if isinstance(found, tuple) else found) == 0
        assert len(made(found, seeded_source(1)).rows) == 1
