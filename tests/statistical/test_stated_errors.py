"""Stated errors term by term: every part of a variance against the part of the error that it stands for.

Averages over all items hide a part that is missing. Here each case has one part that is far larger than the others.
All sources are seeded, so these tests always do the same; the tolerances are more than five standard deviations.
"""

import numpy as np
import pytest

import discreet as dc
from discreet.multiparty import Hierarchy, Separation
from discreet.noise import seeded_source


def errors_and_variances(make, items, asked, rounds, estimate=lambda aggregator, asked: aggregator.estimate(asked)):
    true = np.array([np.count_nonzero(items == item) for item in asked])
    errors, variances = [], []
    for r in range(rounds):
        protocol = make(f"round {r}")
        aggregator = protocol.aggregator(max_reports=None)
        aggregator.receive(protocol.party(0, source=seeded_source(r)).encode(items))
        estimates = estimate(aggregator, asked)
        errors.append(estimates.values - true)
        variances.append(estimates.variances)
    return np.array(errors), np.array(variances)


def test_separation_item_by_item():
    """An item that is always sent has the noise of its count; one sent by chance mostly the variance of that chance; a
    light one the noise and collisions of the sketch. The second is bounded from above: x step for x (step - x)."""
    items = np.concatenate([np.repeat([0, 1], [2000, 40]), np.arange(2, 60)])

    def make(name):
        return Separation(name, dc.Budget(4.0), 200, items_per_column=5.0, items_per_entry=400, threshold=12)

    errors, variances = errors_and_variances(make, items, np.array([0, 1, *range(2, 60)]), 1500)
    ratio = variances.mean(axis=0) / (errors**2).mean(axis=0)
    assert ratio[0] == pytest.approx(1.0, abs=0.3)  # Laplace: the mean of 1500 squares spreads by 6 percent
    assert ratio[1] == pytest.approx(400 / 360, abs=0.4)
    assert variances[:, 2:].mean() / (errors[:, 2:] ** 2).mean() == pytest.approx(1.0, abs=0.3)
    assert errors[:, 1].std() > 10 * errors[:, 0].std()
    assert variances.min() > 0


def test_the_choice_of_a_level_is_in_its_variance():
    """With so large an epsilon reports are true, and what is left is that a level hears of a random part of them."""
    items = np.repeat(np.arange(4), [40, 30, 20, 10])

    def make(name):
        return Hierarchy(name, dc.Budget(20.0), 4096, protocol="LocalHashing", branching=16)

    errors, variances = errors_and_variances(make, items, np.arange(4), 600)
    assert variances.mean(axis=0) / (errors**2).mean(axis=0) == pytest.approx(np.ones(4), abs=0.4)


def test_the_noise_of_a_level_is_scaled_with_its_share():
    """Items that nobody has: what is left is the noise of a third of the reports, for all of them."""
    items = np.arange(300) % 7
    asked = np.arange(1000, 1020)

    def make(name):
        return Hierarchy(name, dc.Budget(1.0), 4096, protocol="LocalHashing", branching=16)

    errors, variances = errors_and_variances(make, items, asked, 200)
    assert variances.mean() / (errors**2).mean() == pytest.approx(1.0, abs=0.15)


def test_a_coarse_level_states_its_own_variance():
    """Intervals of a level in the middle, with the noise of sketches."""
    items = np.repeat(np.arange(0, 4096, 16), 2)

    def make(name):
        return Hierarchy(name, dc.Budget(2.0), 4096, branching=16, options={"items_per_column": 2.0})

    def coarse(aggregator, asked):
        return aggregator.interval_counts(1, asked // 16)  # an interval has the one item

    errors, variances = errors_and_variances(make, items, np.unique(items)[:40], 100, coarse)
    assert variances.mean() / (errors**2).mean() == pytest.approx(1.0, abs=0.3)


def test_ranges_cover_and_are_not_twice_too_narrow():
    """A range of one interval a level: its stated deviation against its errors."""
    items = np.random.default_rng(5).integers(0, 4096, 400)
    true = np.count_nonzero((items >= 16) & (items < 32))
    errors, widths = [], []
    for r in range(300):
        hierarchy = Hierarchy(f"round {r}", dc.Budget(1.0), 4096, protocol="HadamardResponse", branching=16)
        aggregator = hierarchy.aggregator(max_reports=None)
        aggregator.receive(hierarchy.party(0, source=seeded_source(r)).encode(items))
        found = aggregator.range_count(16, 31)
        errors.append(found.value - true)
        widths.append((found.upper - found.lower) / 2)
    inside = np.mean(np.abs(errors) <= np.array(widths))
    assert 0.92 < inside < 0.99
