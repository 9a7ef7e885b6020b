"""Numbers of occurrences without a universe: the model of buckets, the answers of a release, states, refusals."""

import itertools
import math

import numpy as np
import pytest

import discreet as dc
from discreet.noise import seeded_source
from discreet.pan.cropped_mean import largest_ratio
from discreet.pan.intervals import linear_bound, signs_bound
from discreet.pan.occurrences import SumLimits

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


def after_one(n, before, **options):
    """Of elements with n occurrences each, this many of them before an announced intrusion."""
    options = {"buckets": 8192, "levels": 10, "budget": dc.Budget(8.0), "announced_intrusions": 1, **options}
    estimator = made(**options)
    elements = np.arange(4000) * 7919
    estimator.update(np.repeat(elements, before))
    estimator.announce_intrusion()
    estimator.update(np.repeat(elements, n - before))
    return estimator


@pytest.mark.parametrize(("n", "before"), [(1, 0), (1, 1), (4, 0), (4, 2), (4, 4), (9, 5)])
def test_after_an_announced_intrusion_intervals_hold(n, before):
    release = after_one(n, before).release()
    cropped = min(n, 4)
    told = {release.distinct: 4000, release.cropped_sum(): 4000 * cropped, release.cropped_sum(2): 4000 * min(n, 2)}
    told |= {release.at_least(k): 4000 * (n >= k) for k in (2, 4)} | {release.exactly(1): 4000 * (n == 1)}
    for estimate, truth in told.items():
        assert estimate.lower <= truth <= estimate.upper < 40_000
    assert release.cropped_sum().upper < 3 * 4000 * cropped  # 4/3, and the noise
    assert release.cropped_sum().lower > 4000 * cropped / 2
    assert release.distinct.lower > 4000 / 8  # an element of four is four of one


def test_after_an_intrusion_the_bounds_of_all_levels_fail_with_beta_together(monkeypatch):
    """Two bounds a level: of what all counters of a bucket show, and of what the counter 0 shows."""
    asked = {"all counters": [], "counter 0": []}

    def noise(weights, scale, beta):
        asked["all counters"].append(2 * beta)
        return linear_bound(weights, scale, beta)

    def signs(expected, scale, beta):
        asked["counter 0"].append(beta)
        return signs_bound(expected, scale, beta)

    monkeypatch.setattr("discreet.pan.occurrences.linear_bound", noise)
    monkeypatch.setattr("discreet.pan.occurrences.signs_bound", signs)
    after_one(2, 1, levels=10, confidence=0.99).release()
    assert all(asked.values())
    assert 10 * sum(map(max, asked.values())) == pytest.approx(0.01)


def test_before_an_intrusion_elements_of_one_occurrence_look_like_fewer_of_many():
    """So both are inside the interval of the distinct elements, and no number of them can be told."""
    once, often = after_one(1, 1).release(), after_one(4, 4, seed=2).release()
    assert once.unbiased[3] == pytest.approx(1000, rel=0.5)  # none of them occurred four times
    assert once.distinct.upper > 4000
    assert often.distinct.lower < 4000 < 4 * 4000 < often.distinct.upper


def test_limits_are_kept_in_a_state():
    estimator = after_one(2, 1)
    release = estimator.release()
    again = dc.pan.Occurrences.from_bytes(estimator.to_bytes()).last
    assert [again.at_least(k) for k in (1, 2, 3)] == [release.at_least(k) for k in (1, 2, 3)]
    few = made(announced_intrusions=1)  # every level may be full of what the noise hides
    few.update(np.arange(500))
    few.announce_intrusion()
    assert (few.release().distinct.lower, few.last.distinct.upper) == (0.0, math.inf)
    assert math.isinf(dc.pan.Occurrences.from_bytes(few.to_bytes()).last.distinct.upper)


def test_what_a_bucket_shows_after_intrusions_bounds_its_elements():
    """The inequalities of docs/privacy/pan.md, on all pairs of elements with up to N + 1 occurrences in two epochs.

    With H the mean of "seen" over the counters: at most the cropped sum over N, and at least what independent elements
    would show; one element shows its cropped occurrences over N, divided by `largest_ratio`, at least.
    """
    n = 3
    histories = list(itertools.product(range(n + 2), repeat=2))

    def shown(epochs):
        return 1 - math.prod(1 - min(count, n) / n for count in epochs)

    def cropped(epochs):
        return min(sum(epochs), n) / n

    tight = []
    for one, other in itertools.product(histories, repeat=2):
        together = shown([a + b for a, b in zip(one, other, strict=True)])
        assert together <= cropped(one) + cropped(other) + 1e-12
        assert 1 - together <= (1 - shown(one)) * (1 - shown(other)) + 1e-12
        assert shown(one) >= cropped(one) / largest_ratio(1) - 1e-12
    for even in ((1, 1), (2, 2)):
        tight.append(shown(even) / cropped(even))
    assert min(tight) < 1 / 1.1  # without the ratio intervals would miss


def test_limits_are_the_ends_of_what_elements_can_be():
    limits = SumLimits(10.0, 24.0, 36.0)
    worths = {"distinct": [1, 1, 1], "at least 2": [0, 1, 1], "exactly 1": [1, 0, 0], "cropped": [1, 2, 2]}
    for worth in worths.values():
        found = [
            a * worth[0] + b * worth[1] + c * worth[2]
            for a, b, c in itertools.product(range(37), repeat=3)
            if a + b + c >= 10 and 24 <= a + 2 * b + 3 * c <= 36
        ]
        assert limits.of(np.array(worth, float)) == pytest.approx((min(found), max(found)))
    assert SumLimits(0.0, 0.0, math.inf).of(np.ones(3)) == (0.0, math.inf)


def test_a_batch_that_comes_twice_counts_twice():
    """Why the service has no stream of it: a retry of a request changes the answer, and no key may be kept."""
    values = []
    for times in (1, 2):
        estimator = made(2, buckets=2**15, budget=dc.Budget(8.0))
        for _ in range(times):
            estimator.update(np.arange(20_000) * 7919)
        values.append(estimator.release().at_least(2).value)
    assert values[0] < 2_000
    assert values[1] > 18_000


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
