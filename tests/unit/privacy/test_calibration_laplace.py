"""Discrete Laplace tails and the thresholds built on them, against 60-digit sums and the papers' figures."""

import math

import mpmath
import pytest

from discreet.central._noisy_entries import universe_cut
from discreet.central.reduced_misra_gries import reduced_sensitivity, reduced_threshold
from discreet.central.stability import stability_delta, stability_threshold
from discreet.errors import ParameterError
from discreet.privacy.calibration.offset_cut import offset_delta, offset_threshold
from discreet.privacy.calibration.tails import any_of_log_delta, chan_threshold, log_sum_tail, log_tail
from discreet.published.private_misra_gries import pmg_geometric_threshold, pmg_paper_threshold, pmg_threshold
from discreet.published.textbook_misra_gries import textbook_paper_threshold, textbook_threshold

EPSILONS = [0.1, 0.5, 1.0, 2.0]


class _Noise:
    """The law of discrete Laplace noise with mpmath, by definition and summation only."""

    def __init__(self, rate: float) -> None:
        self.q = mpmath.exp(-mpmath.mpf(rate))

    def pmf(self, z: int) -> mpmath.mpf:
        return (1 - self.q) / (1 + self.q) * self.q ** abs(z)

    def tail(self, s: int) -> mpmath.mpf:
        if s <= 0:
            return 1 - self.tail(1 - s)
        return (1 - self.q) / (1 + self.q) * self.q**s / (1 - self.q)

    def expect(self, function, reach: int) -> mpmath.mpf:
        return mpmath.fsum(self.pmf(d) * function(d) for d in range(-reach, reach + 1))


@pytest.fixture(autouse=True)
def _digits():
    # Brackets such as 1 - (1-r)(1-r') with r of 1e-304 need more digits than the result has.
    with mpmath.workdps(400):
        yield


def _relative(log_value: float, exact: mpmath.mpf) -> float:
    return float(mpmath.expm1(mpmath.mpf(log_value) - mpmath.log(exact)))


@pytest.mark.parametrize(("rate", "s"), [(0.1, -30), (0.1, 0), (0.1, 1), (1.0, 20), (1.0, 700), (3.0, 5), (1e-6, 1000)])
def test_one_tail(rate, s):
    assert abs(_relative(log_tail(rate, s), _Noise(rate).tail(s))) < 1e-12


@pytest.mark.parametrize(("rate", "s"), [(0.5, -4), (0.5, 0), (0.5, 1), (1.0, 30), (2.0, 350), (5.0, 140)])
def test_tail_of_two(rate, s):
    noise = _Noise(rate)
    exact = noise.expect(lambda d: noise.tail(s + d), abs(s) + math.ceil(800 / rate))
    assert abs(_relative(log_sum_tail(rate, s), exact)) < 1e-12


@pytest.mark.parametrize(("epsilon", "t"), [(0.5, 0), (0.5, 1), (0.5, 7), (1.0, 24), (2.0, 340), (8.0, 40), (30.0, 3)])
def test_offset_delta_is_the_sum_it_stands_for_and_never_below_it(epsilon, t):
    noise = _Noise(epsilon)
    exact = noise.expect(
        lambda d: 1 - (1 - noise.tail(d + t)) * (1 - noise.tail(d + t + 1)), t + math.ceil(800 / epsilon)
    )
    excess = float(mpmath.mpf(offset_delta(epsilon, t)) / exact - 1)
    assert 0.0 <= excess < 3e-12


@pytest.mark.parametrize(
    ("delta", "cuts"), [(1e-9, [234, 48, 25, 13]), (1e-6, [161, 33, 17, 9])], ids=["delta=1e-9", "delta=1e-6"]
)
def test_known_cuts_of_the_offset_release(delta, cuts):
    assert [1 + offset_threshold(epsilon, delta) for epsilon in EPSILONS] == cuts
    assert [pmg_threshold(epsilon, delta) for epsilon in EPSILONS] == cuts


def test_cuts_beside_the_papers_and_the_yardstick():
    assert [pmg_paper_threshold(epsilon, 1e-9) for epsilon in EPSILONS] == [438, 89, 45, 23]
    assert [1 + stability_threshold(epsilon, 1e-9) for epsilon in EPSILONS] == [202, 42, 22, 12]
    for epsilon in EPSILONS:
        ours = 1 + offset_threshold(epsilon, 1e-9)
        assert ours <= 0.60 * pmg_paper_threshold(epsilon, 1e-9)
        assert ours <= 1.25 * (1 + stability_threshold(epsilon, 1e-9))


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.3, 1.0, 7.0, 100.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-20, 1e-9, 0.01])
@pytest.mark.parametrize("items", [1, 2, 25])
def test_offset_threshold_is_the_smallest(epsilon, delta, items):
    t = offset_threshold(epsilon, delta, max_items=items)
    assert offset_delta(epsilon, t, max_items=items) <= delta
    if t > 0:
        assert offset_delta(epsilon, t - 1, max_items=items) > delta


def test_group_privacy_is_a_geometric_sum_not_its_largest_term():
    """delta_m = sum_i e^(i eps/m) delta_1; Lemma 20 of the paper has m e^eps delta_1 in its place."""
    epsilon, items, t = 1.0, 10, 200
    one = offset_delta(epsilon / items, t)
    geometric = math.fsum(math.exp(i * epsilon / items) for i in range(items)) * one
    assert offset_delta(epsilon, t, max_items=items) == pytest.approx(geometric, rel=1e-11)
    assert geometric < 0.7 * items * math.exp(epsilon) * one


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [1e-6, 1e-9])
def test_printed_thresholds_are_safe_for_integer_noise(epsilon, delta):
    """The printed thresholds were derived for other noise or by union bounds; the exact ones are no larger."""
    exact = pmg_threshold(epsilon, delta)
    assert exact <= pmg_paper_threshold(epsilon, delta) <= pmg_geometric_threshold(epsilon, delta)
    assert textbook_threshold(epsilon, delta, 1000) <= textbook_paper_threshold(epsilon, delta, 1000)
    assert (
        reduced_threshold(epsilon, delta, 1000) / 1001 <= 4.0 - 2.0 * math.log(delta) / epsilon
    )  # section 6 of [LT23]


@pytest.mark.parametrize(("epsilon", "t", "keys"), [(1.0, 5, 3), (0.5, 40, 1000), (2.0, 1, 50), (1.0, 0, 4)])
def test_any_of_many_keys(epsilon, t, keys):
    noise = _Noise(epsilon)
    exact = noise.expect(lambda d: 1 - (1 - noise.tail(d + t)) ** keys, t + math.ceil(300 / epsilon))
    assert 0.0 <= _relative(any_of_log_delta(epsilon, t, keys), exact) < 3e-12


def test_many_keys_at_a_tiny_rate_fall_back_to_a_larger_bound():
    assert any_of_log_delta(1e-6, 10**7, 10) >= math.log(10) + log_sum_tail(1e-6, 10**7)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_stability_of_one_event(epsilon):
    """Both directions of the divergence, from the definition: the key exists with count 1, or not at all."""
    noise = _Noise(epsilon)
    for t in range(8):
        shown = noise.tail(t)
        backward = 1 - mpmath.exp(mpmath.mpf(epsilon)) * (1 - shown)
        assert 0 <= float(stability_delta(epsilon, t) / max(shown, backward) - 1) < 3e-12


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 9.0])
@pytest.mark.parametrize("items", [2, 3, 6])
def test_stability_of_a_user_covers_every_way_to_spend_the_items(epsilon, items):
    noise = _Noise(epsilon / items)

    def partitions(total, largest):
        yield ()
        for first in range(min(total, largest), 0, -1):
            for rest in partitions(total - first, first):
                yield (first, *rest)

    for t in (items - 1, items + 3, 5 * items):
        worst = max(1 - mpmath.fprod(1 - noise.tail(t + 1 - c) for c in parts) for parts in partitions(items, items))
        assert 0 <= float(stability_delta(epsilon, t, max_items=items) / worst - 1) < 3e-12
        once = 1 - (1 - noise.tail(t)) ** items
        assert 0 <= float(stability_delta(epsilon, t, max_items=items, distinct=True) / once - 1) < 3e-12


def test_chan_noise_grows_with_the_sketch():
    noise = _Noise(1.0 / 64)
    t = chan_threshold(1.0, 1e-6, 64) - 1
    assert 1 - (1 - noise.tail(t)) ** 64 <= 1e-6 < 1 - (1 - noise.tail(t - 1)) ** 64


def test_universe_cut_is_the_smallest():
    cut = universe_cut(1.0, 63, 2**63, 0.01)
    noise = _Noise(1.0 / 63)
    assert 1 - (1 - noise.tail(cut)) ** (2**63) <= 0.01 < 1 - (1 - noise.tail(cut - 1)) ** (2**63)


def test_reduced_threshold_is_the_smallest_allowed():
    assert reduced_sensitivity(1) == 1
    assert reduced_sensitivity(8, max_items=3) == 45
    D = reduced_sensitivity(32)
    noise = _Noise(1.0 / D)
    t = reduced_threshold(1.0, 1e-6, 32) - D
    assert noise.tail(t) <= 1e-6 < noise.tail(t - 1)
    assert reduced_threshold(1.0, 0.4, 32) == 2 * D


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, True, "1"])
def test_bad_epsilon(bad):
    for function in (offset_threshold, stability_threshold, pmg_paper_threshold):
        with pytest.raises(ParameterError, match="epsilon"):
            function(bad, 1e-6)


@pytest.mark.parametrize("bad", [0.0, 1.0, -1e-9, math.nan])
def test_bad_delta(bad):
    for function in (offset_threshold, stability_threshold, pmg_geometric_threshold):
        with pytest.raises(ParameterError, match="delta"):
            function(1.0, bad)


def test_bad_whole_numbers():
    with pytest.raises(ParameterError, match="t must"):
        offset_delta(1.0, -1)
    with pytest.raises(ParameterError, match="t must"):
        stability_delta(1.0, 3, max_items=5)
    with pytest.raises(ParameterError, match="max_items"):
        offset_threshold(1.0, 1e-6, max_items=0)
    with pytest.raises(ParameterError, match="capacity"):
        textbook_threshold(1.0, 1e-6, 0)
