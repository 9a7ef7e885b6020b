"""Scales, thresholds and deltas that ship, against laws that share no line with them: `tests.reference.naive_laws`.

A threshold must be private by the naive law, and one less must not be: else it is wrong, or wastes what it hides.
"""

from __future__ import annotations

import ast
from fractions import Fraction
from functools import cache
from pathlib import Path

import mpmath
import pytest
from tests.reference import naive_laws as naive
from tests.reference.neighbours import differing, neighbouring_states, signature

import discreet as dc
from discreet.central import Merged, NoisyCount, Offset, Stability, UniverseHistogram
from discreet.central.person_vectors import PersonVectors
from discreet.continual import HeavyHitters
from discreet.multiparty import HadamardResponse, LocalHashing
from discreet.noise import seeded_source
from discreet.pan.responses import ONE, Response
from discreet.privacy.calibration import correlated_noise
from discreet.privacy.calibration.discovery import discovery_delta
from discreet.published import PrivateMisraGries

ROOT = Path(__file__).parents[1]


def imported(path):
    tree = ast.parse(path.read_text())
    found = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return found | {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}


def needed(path, seen):
    """What a file imports, and what the files of tests that it imports do."""
    found = imported(path)
    for name in {name for name in found if name.startswith("tests.")} - seen:
        seen.add(name)
        found |= needed(ROOT.parent / f"{name.replace('.', '/')}.py", seen) if name.count(".") > 1 else set()
    return found


def of_ours(names):
    return {name for name in names if name.partition(".")[0] in ("discreet", "discreet_audit")}


@pytest.mark.parametrize("path", sorted((ROOT / "exhaustive").glob("*.py")), ids=lambda path: path.name)
def test_no_law_here_asks_the_audit(path):
    """Neither itself nor by what it has from other files of tests."""
    assert not [name for name in needed(path, set()) if name.startswith(("discreet_audit", "discreet.audit"))]
    assert "dc.audit" not in path.read_text() or path.name == Path(__file__).name


@pytest.mark.parametrize("path", sorted((ROOT / "reference").glob("*.py")), ids=lambda path: path.name)
def test_the_second_opinion_shares_nothing(path):
    """No import of the package or of the audit, but for the hash that kernels order keys by."""
    allowed = {"discreet"} if path.name == "hash_order.py" else set()
    assert of_ours(imported(path)) <= allowed
    assert of_ours(needed(path, set())) <= {"discreet"}


@pytest.mark.parametrize("budget", [dc.Budget(1.0, 1e-2), dc.Budget(2.0, 1e-4), dc.Budget(0.7, 1e-3)], ids=str)
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_stability(budget, law):
    made = Stability(budget, noise=law)
    pmf = getattr(naive, law)(made.scale)
    at = [naive.stability_delta(pmf, made.threshold - less, budget.epsilon) for less in (0, 1)]
    assert at[0] <= budget.delta * (1 + 1e-9)
    if law == "laplace":
        assert at[1] > budget.delta
        assert made.scale == 1 / Fraction(budget.epsilon)


def test_stability_of_people_with_two_items():
    budget = dc.Budget(1.5, 1e-3)
    made = Stability(budget, unit=dc.User(2), noise="gaussian", distinct=True)
    pmf = naive.gaussian(made.scale)
    assert naive.stability_delta(pmf, made.threshold, 1.5, items=2) <= budget.delta * (1 + 1e-9)
    less = naive.gaussian(made.scale * Fraction(9, 10))
    assert naive.stability_delta(less, made.threshold, 1.5, items=2) > budget.delta


def test_stability_of_a_person_who_has_one_item_often():
    """Three rows of an item that nobody else has: shown with a chance of delta at most."""
    made = Stability(dc.Budget(6.0, 1e-3), unit=dc.User(3))
    assert naive.tail(naive.laplace(Fraction(made.scale)), made.threshold - 3) <= 1e-3


@cache
def pairs(k):
    boxes = {1: (3, 3), 2: (4, 2)}
    return frozenset(differing(signature(*pair)) for pair in neighbouring_states(k, *boxes[k]))


@pytest.mark.parametrize("k", [1, 2])
def test_the_offset_release(k):
    """The worst pair that a box of states has needs all of delta: at a cut one lower it is above."""
    budget = dc.Budget(3.0, 0.02)
    made = Offset(budget, k)
    pmf = naive.laplace(made.scale)

    def worst(cut, noise=pmf):
        law = lambda counters, alpha: naive.offset_law(counters, alpha, noise, cut, 7)  # noqa: E731
        return naive.worst_of_counters(pairs(k), law, 3.0)

    assert worst(made.threshold) <= budget.delta
    assert worst(made.threshold - 1) > budget.delta
    assert worst(made.threshold, naive.laplace(made.scale / 2)) > budget.delta


def raised(pair, by):
    """With so many more of every item that both sketches hold: neighbours of the same kind, around the cut."""
    keys, decrements = pair
    return tuple((a, b) if a is None or b is None else (a + by, b + by) for a, b in keys), decrements


def test_the_release_with_one_noise_for_all_counters():
    budget = dc.Budget(3.0, 0.02)
    made = PrivateMisraGries(budget, 2)
    full = {raised(signature(*pair), by) for pair in neighbouring_states(2, 4, 2) for by in (0, made.threshold)}

    def worst(cut, scale=made.scale):
        pmf = naive.laplace(scale)
        return naive.worst_of_counters(full, lambda counters, _: naive.shared_law(counters, pmf, cut, 6), 3.0)

    assert worst(made.threshold) <= budget.delta
    assert worst(made.threshold, made.scale / 2) > budget.delta


@pytest.mark.parametrize("budget", [dc.Budget(0.5), dc.Budget(2.0)], ids=str)
def test_counts_with_noise_alone(budget):
    for made, moved in ((NoisyCount(budget), 1), (UniverseHistogram(budget, 9, dc.User(), max_items=4), 4)):
        assert moved / Fraction(made.scale) <= Fraction(budget.epsilon)
        pmf = naive.laplace(Fraction(made.scale))
        assert naive.shifted(pmf, moved, budget.epsilon * (1 + 1e-12)) < 1e-15
        assert naive.shifted(pmf, moved, budget.epsilon * 0.99) > 1e-4


def test_counts_with_gaussian_noise():
    budget = dc.Budget(0.5, 1e-5)
    made = UniverseHistogram(budget, 64, dc.User(), max_items=64)
    assert made.noise.law == "gaussian"
    distance = mpmath.sqrt(64) / (mpmath.mpf(made.scale.numerator) / made.scale.denominator)
    assert 0.97 * budget.delta < naive.gaussian_distance_delta(distance, 0.5) <= budget.delta * (1 + 1e-6)


def test_noise_that_a_counter_has_twice():
    """One counter: it moves by two half counts behind the sum of both noises, exactly, and delta is met."""
    budget = dc.Budget(1.0, 1e-5)
    made = Merged(budget, 1)
    law = naive.sum_of(naive.gaussian(made.scale), naive.gaussian(made.shared_scale))
    assert 0.999 * budget.delta < naive.shifted(law, 2, 1.0) <= budget.delta


@pytest.mark.parametrize("capacity", [4, 64, 4096])
def test_noise_that_all_counters_share(capacity):
    """Whatever number of counters moves, delta is kept; with half the noise it is not. (Normal laws: to 1 %.)"""
    budget = dc.Budget(1.0, 1e-5)
    made = Merged(budget, capacity)

    def worst(factor):
        scales = made.scale * factor, made.shared_scale * factor
        moved = range(1, capacity + 1, max(1, capacity // 64))
        return max(naive.gaussian_distance_delta(naive.common_noise_distance(m, capacity, *scales), 1.0) for m in moved)

    assert worst(1) <= budget.delta * 1.01
    assert worst(Fraction(1, 2)) > 10 * budget.delta


@pytest.mark.parametrize("sigma", [Fraction(1, 4), Fraction(2, 5), Fraction(3, 5), Fraction(2)])
@pytest.mark.parametrize("t", [0, 1, 3])
def test_what_several_sketches_discover(sigma, t):
    """delta of the noise, and (1 + e^epsilon) times the chance that a key is shown that one sketch has alone."""
    pmf = naive.gaussian(sigma)
    apart = naive.sum_of(pmf, pmf)
    shown = naive.tail(apart, t) + naive.tail(apart, t + 1)
    exact = naive.shifted(pmf, 1, 1.0) + (1 + mpmath.e) * shown
    claimed = discovery_delta(1.0, float(sigma), t, 1)
    # Narrow noise is added up as it is; for noise in between a Gaussian bounds the sum, from 2 on it is that sum.
    assert exact * (1 - 1e-9) <= claimed <= exact * (1.13 if sigma == Fraction(3, 5) else 1 + 1e-6)


@pytest.mark.parametrize("budget", [dc.Budget(0.5, 1e-6), dc.Budget(1.0, 1e-6), dc.Budget(4.0, 1e-5)], ids=str)
def test_what_people_cost_an_account_of_zcdp(budget):
    """A Gaussian shift of this rho has the delta of the claim, less that of an item that passes alone."""
    made = PersonVectors(budget, k=100)
    assert made.cost is not None
    spent = naive.gaussian_distance_delta(mpmath.sqrt(2 * mpmath.mpf(made.cost.rho)), budget.epsilon)
    assert 0.2 * budget.delta < spent < budget.delta
    assert 0.0 < made.cost.delta < budget.delta


def test_what_is_left_outside_of_the_common_noise_counts():
    """Values of the shared noise that no block has are counted as if they told everything."""
    law = correlated_noise._Law(3.0, 2.0, 1, 0.25)
    pmf = naive.gaussian(Fraction(2))
    assert law.outside >= 2 * naive.tail(pmf, int(law.last[-1]) + 1)
    assert law.outside > 0.001
    assert law.shown(1, 40) >= law.outside


# ---- heavy hitters over time: an event is in the nodes of L levels ---------------------------------------------------


class Nodes(HeavyHitters):
    """Which ticks every node that was released is of."""

    def release_node(self, sketch, first, last):
        self.released = [*getattr(self, "released", []), range(first, last + 1)]
        return super().release_node(sketch, first, last)


@pytest.mark.parametrize(
    "given",
    [
        {"horizon": 13, "mechanism": "discover"},
        {"horizon": 300, "mechanism": "discover"},
        {"horizon": 30, "mechanism": "discover", "every": 2, "base": 3},
        {"horizon": 30, "mechanism": "offset", "base": 2},
        {"horizon": 27, "mechanism": "offset", "base": 3},
        {"horizon": 30, "mechanism": "offset", "window": 5, "base": 2},
        {"horizon": None, "mechanism": "discover"},
    ],
    ids=str,
)
def test_an_event_is_in_no_more_nodes_than_are_paid_for(given):
    """Counted tick by tick, with empty ticks: which nodes there are depends on the number of ticks alone."""
    made = Nodes(budget=dc.Budget(1.0, 1e-6), capacity=8, source=seeded_source(1), **given)
    paid = []
    for _ in range(given["horizon"] or 31):
        made.step([])
        paid.append(made.levels)
    of_tick = [sum(tick in node for node in made.released) for tick in range(1, len(paid) + 1)]
    assert all(number <= most for number, most in zip(of_tick, paid, strict=True))
    assert max(of_tick) == max(paid)


@pytest.mark.parametrize("budget", [dc.Budget(1.0, 1e-6), dc.Budget(3.0, 1e-3)], ids=str)
@pytest.mark.parametrize("base", [2, 5])
def test_what_several_nodes_of_an_event_cost(budget, base):
    made = HeavyHitters(60, budget, 64, mechanism="offset", base=base)
    plan = made.plan(60)
    each = 1 / mpmath.mpf(plan.scale.numerator) * plan.scale.denominator
    # delta of a node: what its cut hides, by the release that `test_the_offset_release` looks at.
    shares = [Fraction(share, 1000) * Fraction(budget.delta) / plan.levels for share in range(400, 1001, 25)]
    cuts = [(Offset(dc.Budget(float(each), float(share)), 64).threshold, share) for share in shares]
    delta = float(max(share for cut, share in cuts if cut >= plan.threshold))
    assert naive.repeated(each, delta, plan.levels, budget.epsilon) <= budget.delta * 1.05
    assert naive.repeated(1.03 * each, delta, plan.levels, budget.epsilon) > budget.delta


@pytest.mark.parametrize("horizon", [1, 9, 64])
def test_what_several_nodes_discover(horizon):
    """L Gaussian nodes that each move by 1, and the keys that one of two neighbours has alone in each."""
    budget = dc.Budget(2.0, 1e-2)
    plan = HeavyHitters(horizon, budget, 64).plan(horizon)
    pmf = naive.gaussian(plan.scale)
    apart, noise = naive.sum_of(pmf, pmf), naive.gaussian_shifts(plan.scale, plan.levels, 2.0)

    def delta(t):
        return noise + (1 + mpmath.exp(2)) * plan.levels * (naive.tail(apart, t) + naive.tail(apart, t + 1))

    t = plan.threshold - 1
    assert noise > budget.delta / 3
    assert delta(t) <= budget.delta * (1 + 1e-9)
    assert delta(t - 1) > budget.delta


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 9.0])
def test_responses_of_parties_and_of_cells(epsilon):
    hadamard = HadamardResponse("r", dc.Budget(epsilon), 8)
    hashing = LocalHashing("r", dc.Budget(epsilon), 8)
    cell = Response.of("tight", Fraction(epsilon))
    losses = [
        naive.response_loss(Fraction(hadamard.keep), 2),
        naive.response_loss(Fraction(hashing.keep), hashing.buckets),
        mpmath.log(mpmath.mpf(cell.seen) / ONE) - mpmath.log(mpmath.mpf(cell.unseen) / ONE),
    ]
    for loss in losses:
        assert epsilon - 1e-9 < loss <= mpmath.mpf(epsilon)
