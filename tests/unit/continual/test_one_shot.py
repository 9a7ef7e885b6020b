"""[CO] Algorithms 5 and 10 to 12 in one shot: a histogram of one tick, with a budget, a ledger and a release."""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.continual import one_shot
from discreet.noise import seeded_source

EVENTS = [[1, 2], [1], [1, 3], [1, 2, 5]] * 60
ITEMS = [1, 2, 3, 4, 5]
COUNTS = [240, 120, 60, 0, 60]
BUDGET = dc.Budget(1.0, 1e-6)


def noise(source, rho, items):
    return max(Fraction(math.sqrt(items / (2.0 * rho)) * (1.0 + 1e-12)), Fraction(1))


@pytest.mark.parametrize("name", ["KnownGauss", "KnownGumb", "UnkGauss", "UnkGumb"])
def test_a_histogram_of_one_tick_is_the_algorithm(name):
    """The same draws as the building block, at the whole budget: one node of a tree of one level."""
    known = name.startswith("Known")
    shape = {"max_items_per_event": 3} if name.endswith("Gauss") else {"k": 2}
    histogram = dc.continual.Histogram(
        1, BUDGET, ITEMS if known else None, mechanism="meta", source=seeded_source(4), **shape
    )
    release = histogram.step(EVENTS)
    exact = histogram.not_private_counts()
    assert exact == {item: count for item, count in zip(ITEMS, COUNTS, strict=True) if count or known}
    source, items, counts = seeded_source(4), list(exact), np.array(list(exact.values()))
    rho = BUDGET.as_zcdp("x") if known else BUDGET.as_zcdp("x", 0.5)
    scale, half = noise(source, rho, 3 if name.endswith("Gauss") else 4), BUDGET.delta / 2
    rank = lambda: np.arange(len(counts))  # noqa: E731
    found = {
        "KnownGauss": lambda: one_shot.known_gauss(counts, scale, source),
        "KnownGumb": lambda: one_shot.known_gumbel(counts, 2, scale, source),
        "UnkGauss": lambda: one_shot.unknown_noisy(
            counts, source.discrete_gaussian, scale, one_shot.gauss_shift(scale, half / 3), None, rank
        ),
        "UnkGumb": lambda: one_shot.unknown_gumbel(
            counts, 2, scale, one_shot.gumbel_shift(scale, half, 20), 20, rank, source
        ),
    }[name]()
    expected = {items[place]: max(0, count) for place, count in zip(*(each.tolist() for each in found), strict=True)}
    assert {item: max(0, int(count)) for item, count in zip(release.items, release.counts, strict=True)} == expected
    assert 1 in expected
    assert (release.guarantee.epsilon, release.guarantee.delta) == (1.0, 1e-6)


def test_it_is_charged_once(tmp_path):
    ledger = dc.Ledger(tmp_path / "ledger.sqlite")
    ledger.grant("baskets", dc.Budget(1.5, 1e-5))
    histogram = dc.continual.Histogram(1, BUDGET, k=2, mechanism="meta", ledger=ledger.account("baskets"))
    histogram.step(EVENTS)
    assert ledger.account("baskets").spent().epsilon == pytest.approx(1.0)
    with pytest.raises(dc.DiscreetError):
        histogram.step(EVENTS)
