"""Bounds of sums of Laplace noise, and the margin of sparseGumb."""

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.noise import seeded_source
from discreet.releases.error_model import ErrorModel, Noise


@pytest.mark.parametrize("terms", [2, 5, 30])
def test_a_sum_of_laplace_noises_stays_within_its_bound(terms):
    noise, runs = Noise("laplace", Fraction(4), terms=terms), 40_000
    sums = seeded_source(terms).discrete_laplace(4, runs * terms).reshape(runs, terms).sum(axis=1)
    for beta in (0.2, 0.01):
        missed = int((np.abs(sums) > noise.bound(beta)).sum())
        assert missed <= runs * beta + 6 * math.sqrt(runs * beta)
    # And it is of use.
    assert noise.bound(0.01) < 1.6 * np.quantile(np.abs(sums), 0.99)
    assert noise.variance == pytest.approx(sums.var(), rel=0.1)
    model = ErrorModel(noise)
    assert ErrorModel.from_dict(model.to_dict()) == model
    assert "terms" not in Noise("laplace", Fraction(4)).to_dict()


def test_far_out_the_bound_is_that_of_laplace_noise_and_not_of_a_gaussian():
    # Among a million items the largest sum of two is near scale ln(10^6), far beyond what a Gaussian would reach.
    noise = Noise("laplace", Fraction(1), 10**6, terms=2)
    sums = seeded_source(3).discrete_laplace(1, 2 * 10**6).reshape(-1, 2).sum(axis=1)
    gaussian = Noise("gaussian", Fraction(math.sqrt(noise.variance)), 10**6)
    assert gaussian.bound(0.05) < np.abs(sums).max() <= noise.bound(1e-6)


def test_the_limit_of_an_unknown_domain_states_the_bounds_of_its_noise():
    histogram = dc.continual.Histogram(
        27, dc.Budget(2.0, 1e-6), max_items_per_event=1, mechanism="limit", base=3, source=seeded_source(1)
    )
    for tick in range(1, 9):
        release = histogram.step([["a"]] * 5000)
        assert release.error_model.noise.law == "laplace"
        assert release.error_model.noise.terms == tick // 3 + tick % 3
        assert release.bounds(0.95)[0][0] <= 5000 * tick


def test_the_margin_is_what_the_analysis_wants():
    def made(**how):
        return dc.continual.Histogram(
            500,
            dc.Budget.zcdp(0.5),
            universe=range(40),
            k=2,
            mechanism="sparse",
            switches=3,
            source=seeded_source(2),
            **how,
        )

    histogram = made()
    tau1 = float(histogram.scheme._tau1)
    assert histogram.margin == math.ceil(4 * tau1 * math.log(40 * 500))
    assert made(margin=0).margin == 0
    assert dc.continual.Histogram(9, dc.Budget.zcdp(0.5), universe=range(3), max_items_per_event=1).margin == 0
    again = dc.continual.Histogram.from_bytes(histogram.to_bytes())
    assert again.margin == again.scheme.margin == histogram.margin
    # The first choice is among counts of 1. Once 0 and 1 are ahead by the margin they are chosen, and noise alone does
    # not use up the choices that are left; without a margin it does.
    left = []
    for how in ({}, {"margin": 0}):
        histogram = made(**how)
        for _ in range(200):
            histogram.step([[0], [1]])
        left.append(int(histogram.scheme.left[0]))
    assert left == [2, 0]


def test_a_margin_is_of_the_sparse_scheme_alone():
    for given in ({"max_items_per_event": 1}, {"k": 1, "mechanism": "meta"}):
        assert dc.continual.Histogram(4, dc.Budget(1.0, 1e-6), ["a", "b"], **given).margin == 0
    sparse = dc.continual.Histogram(64, dc.Budget(1.0, 1e-6), ["a", "b"], k=1, mechanism="sparse", margin=5)
    assert sparse.margin == 5
    assert dc.continual.Histogram(64, dc.Budget(1.0, 1e-6), ["a", "b"], k=1, mechanism="sparse").margin > 0


class Turns:
    """Discrete Gaussians that are the same for all counts of a draw, and another in every tick: 0 for cuts."""

    seeded = True

    def __init__(self, *each):
        self.each = list(each)

    def discrete_gaussian(self, sigma, size=None):
        return 0 if size is None else np.full(size, self.each.pop(0), np.int64)


@pytest.mark.parametrize("horizon", [4, None])
def test_what_a_larger_node_hides_is_no_longer_listed(horizon):
    """The second tick's node takes the place of the first's: what that showed, and this one does not, has no count."""
    each = [0, -(10**9)] if horizon else [0, 0, -(10**9)]  # without a horizon the first tick is an epoch of its own
    histogram = dc.continual.Histogram(
        horizon, dc.Budget(5.0, 1e-3), max_items_per_event=1, mechanism="meta", base=2, source=Turns(*each)
    )
    if horizon is None:
        histogram.step([])
    listed = [dict(zip(r.items, r.counts.tolist(), strict=True)) for r in (histogram.step(["a"] * 900) for _ in "12")]
    assert listed == [{"a": 900}, {}]


@pytest.mark.parametrize("mechanism", ["meta", "sparse"])
def test_fewer_items_than_are_asked_for_are_all_listed(mechanism):
    made = dc.continual.Histogram(3, dc.Budget(900.0, 0.5), ["a", "b"], k=5, mechanism=mechanism)
    for _ in range(3):
        release = made.step([["a", "b"]] * 20)
        assert sorted(release.items) == ["a", "b"]
    assert type(made).from_bytes(made.to_bytes()).to_bytes() == made.to_bytes()


@pytest.mark.parametrize("setting", ["meta", "limit", "top"])
def test_what_an_epoch_published_stays_listed_in_those_after_it(setting):
    """Without a horizon: what came in the first epoch alone has its count for ever."""
    how = {"k": 2} if setting == "top" else {"max_items_per_event": 1}
    made = dc.continual.Histogram(
        None, dc.Budget(900.0, 0.1), mechanism="limit" if setting == "limit" else "meta", source=seeded_source(1), **how
    )
    made.step(["first"] * 500)
    for tick in range(2, 10):
        release = made.step(["later"] * 300)
        found = dict(zip(release.items, release.counts.tolist(), strict=True))
        assert abs(found["first"] - 500) < 60
        assert abs(found["later"] - 300 * (tick - 1)) < 60
        made = type(made).from_bytes(made.to_bytes(), source=seeded_source(tick))
