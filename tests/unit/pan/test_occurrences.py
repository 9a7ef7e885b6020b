"""Numbers of occurrences without a universe: the model of buckets, the answers of a release, states, refusals."""

import itertools
import math

import numpy as np
import pytest

import discreet as dc
from discreet.noise import seeded_source

BUDGET = dc.Budget(1.0)


def made(max_count=4, seed=1, **options):
    options = {"budget": BUDGET, "buckets": 1024, "levels": 8, "source": seeded_source(seed), **options}
    return dc.pan.Occurrences(max_count, **options)


def test_the_law_of_a_bucket_is_that_of_elements_that_share_it():
    """Against an enumeration: Poisson numbers of elements of each kind, their occurrences added up."""
    estimator, loads = made(3), np.array([0.7, 0.4, 0.3])
    told, _ = estimator._more_than(loads)
    for level, q in enumerate(estimator._chance_of_level[:3]):
        law = np.zeros(3)
        for numbers in itertools.product(range(12), repeat=3):
            total = numbers[0] + 2 * numbers[1] + 3 * numbers[2]
            chance = math.prod(
                math.exp(-q * x) * (q * x) ** n / math.factorial(n) for x, n in zip(loads, numbers, strict=True)
            )
            if total < 3:
                law[total] += chance
        assert told[level] == pytest.approx(1 - np.cumsum(law), abs=1e-12)


def test_the_derivatives_are_those_of_the_law():
    estimator, loads = made(5), np.array([0.7, 0.4, 0.3, 0.2, 0.9])
    _, slopes = estimator._more_than(loads)
    for n in range(5):
        step = np.eye(5)[n] * 1e-6
        measured = (estimator._more_than(loads + step)[0] - estimator._more_than(loads - step)[0]) / 2e-6
        assert slopes[:, :, n] == pytest.approx(measured, abs=1e-8)


def test_without_noise_the_fit_finds_what_there_is():
    """Signs as they are on average give the numbers of elements back, at loads from a few elements to many a bucket."""
    estimator = made(4)
    for size in (1.0, 30.0, 500.0, 20_000.0):
        elements = size * np.array([5.0, 3.0, 0.0, 2.0])
        p0, gap = estimator._chances()
        seen, _ = estimator._more_than(elements / 1024)
        signs = (2 * (p0 + gap * seen) - 1) * 1024 / 4
        release = estimator._told(signs)
        assert release.unbiased == pytest.approx(np.cumsum(elements[::-1])[::-1], rel=1e-3, abs=0.01)
        assert release.exactly(2).unbiased == pytest.approx(3 * size, rel=1e-2)
        assert release.cropped_sum(2).unbiased == pytest.approx(15 * size, rel=1e-3)


def test_one_release_answers_all_of_them():
    estimator = made()
    estimator.update(np.repeat(np.arange(3000), 2))
    release = estimator.release()
    assert release == estimator.release() == estimator.last
    assert release.distinct == release.at_least(1)
    assert list(release.values) == sorted(release.values, reverse=True)
    assert release.values == tuple(release.at_least(k).value for k in range(1, 5))
    assert all(
        low <= value <= high for low, value, high in zip(release.lower, release.values, release.upper, strict=True)
    )
    assert release.cropped_sum().unbiased == pytest.approx(sum(release.unbiased))
    assert release.places[1] == "2 or more times"
    assert not release.is_private  # seeded
    for wrong in (lambda: release.at_least(5), lambda: release.exactly(4), lambda: release.cropped_sum(0)):
        with pytest.raises(dc.ParameterError):
            wrong()


def test_items_of_any_kind_are_elements():
    estimator = made()
    estimator.update(["ann", "bob", "ann"])
    estimator.update([b"ann", 7])
    assert estimator.release().distinct.upper > 0


def test_a_state_goes_on():
    estimator = made(releases=2)
    estimator.update([1, 2, 2])
    first = estimator.release()
    again = dc.pan.Occurrences.from_bytes(estimator.to_bytes())
    assert again.last == first
    assert again.last.at_least(2) == first.at_least(2)
    assert again.to_bytes() == estimator.to_bytes()
    again.update([3])
    again.release()
    with pytest.raises(dc.ParameterError):
        again.update([4])
    with pytest.raises(dc.CorruptStateError):
        dc.pan.DistinctCount.from_bytes(estimator.to_bytes())


def test_after_an_announced_intrusion_nothing_is_claimed():
    estimator = made(announced_intrusions=1)
    estimator.update(np.arange(500))
    estimator.announce_intrusion()
    estimate = estimator.release().distinct
    assert (estimate.lower, estimate.upper) == (0.0, math.inf)
    again = dc.pan.Occurrences.from_bytes(estimator.to_bytes())
    assert math.isinf(again.last.distinct.upper)


def test_sizes_follow_from_the_accuracy():
    few = dc.pan.Occurrences.for_accuracy(0.2, 0.05, 2.0, max_count=3, levels=10)
    many = dc.pan.Occurrences.for_accuracy(0.1, 0.05, 2.0, max_count=3, levels=10)
    assert 3 < many.buckets / few.buckets < 5
    elements = 4 * few.buckets
    few.update(np.arange(elements) * 7919)
    assert abs(few.release().distinct.value / elements - 1) < 0.3  # 1.5 of what is missed in 5 % of the runs


@pytest.mark.parametrize(
    "wrong", [{"max_count": 1}, {"max_count": 65}, {"buckets": 255}, {"levels": 7}, {"universe": 4}]
)
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(dc.ParameterError):
        dc.pan.Occurrences(**{"max_count": 4, "budget": BUDGET, **wrong})
