"""Thresholds of the published Misra-Gries releases [LT23], as printed and exactly calibrated.

Thresholds are integers and an item is published iff its noisy count is at least the threshold. "Exact" means: the
delta of the release with integer (discrete Laplace) noise, from the divergence itself.
"""

from __future__ import annotations

import math
from functools import lru_cache

from discreet.privacy.calibration.offset import offset_threshold
from discreet.privacy.calibration.safety import SAFETY
from discreet.privacy.calibration.tails import any_of_log_delta, log_any_shown, log_tail, smallest_shift
from discreet.privacy.checks import positive_number, probability, whole_number

__all__ = [
    "chan_threshold",
    "pmg_geometric_threshold",
    "pmg_paper_threshold",
    "pmg_threshold",
    "reduced_paper_threshold",
    "reduced_sensitivity",
    "reduced_threshold",
    "textbook_paper_threshold",
    "textbook_threshold",
    "universe_cut",
]


def _ceil(value: float) -> int:
    """The next whole number, after moving up by more than the rounding error of `value`."""
    return math.ceil(value * (1.0 + SAFETY))


def pmg_paper_threshold(epsilon: float, delta: float) -> int:
    """Algorithm 2 of [LT23] as printed: 1 + 2 ln(3/delta)/epsilon, rounded up."""
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    return _ceil(1.0 + 2.0 * (math.log(3.0) - math.log(delta)) / epsilon)


def pmg_geometric_threshold(epsilon: float, delta: float) -> int:
    """Section 5.2 of [LT23], for geometric noise: 1 + 2 ceil( ln(6 e^eps / ((e^eps + 1) delta)) / eps )."""
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    # e^eps / (e^eps + 1) = 1 / (1 + q)
    return 1 + 2 * _ceil((math.log(6.0) - math.log1p(math.exp(-epsilon)) - math.log(delta)) / epsilon)


def pmg_threshold(epsilon: float, delta: float, *, max_items: int = 1) -> int:
    """Algorithm 2 with discrete Laplace noise, exact: the smallest threshold whose delta is at most `delta`.

    Given the shared noise the six kinds of neighbouring states behave as in the offset release, so the threshold is
    that release's cut. (The offset release publishes more at the same price.)
    """
    return 1 + offset_threshold(epsilon, delta, max_items=max_items)


def textbook_paper_threshold(epsilon: float, delta: float, capacity: int) -> int:
    """Section 5.1 of [LT23] as printed, for sketches that drop zero counters: 1 + 2 ln((k+1)/(2 delta))/epsilon."""
    epsilon, delta, k = (
        positive_number("epsilon", epsilon),
        probability("delta", delta),
        whole_number("capacity", capacity),
    )
    return _ceil(1.0 + 2.0 * (math.log(k + 1) - math.log(2.0) - math.log(delta)) / epsilon)


@lru_cache(maxsize=1024, typed=True)
def textbook_threshold(epsilon: float, delta: float, capacity: int) -> int:
    """The same release, exact: the smallest 1 + t with P[some Z_i + Z_0 >= t, i = 1..k] <= delta.

    Worst case: one sketch holds k keys of count 1, its neighbour, one decrement later, none. In that direction the
    divergence is the probability that one of the k keys is published. In the other the isolated keys may be added to
    the smaller sketch with count 0, which changes its law by P[some Z_i + Z_0 >= t+1] at most, and the rest is a
    shift of the shared noise by 1; that is less. The case of one differing counter has one isolated key.
    """
    epsilon, delta, k = (
        positive_number("epsilon", epsilon),
        probability("delta", delta),
        whole_number("capacity", capacity),
    )
    return 1 + smallest_shift(lambda t: any_of_log_delta(epsilon, t, k), delta)


def _log_any_of_independent(rate: float, t: int, keys: int) -> float:
    """log of 1 - (1 - P[Z >= t])^keys, for t >= 0."""
    return log_any_shown(rate, [t], keys) + SAFETY


@lru_cache(maxsize=1024, typed=True)
def chan_threshold(epsilon: float, delta: float, capacity: int) -> int:
    """Noise of scale k/epsilon on every stored counter (the baseline of section 4): 1 + t, exact.

    The l1-sensitivity is k and up to k keys of count 1 are isolated: delta = 1 - (1 - P[Z >= t])^k. It also holds for
    merged sketches (Corollary 18).
    """
    epsilon, delta, k = (
        positive_number("epsilon", epsilon),
        probability("delta", delta),
        whole_number("capacity", capacity),
    )
    return 1 + smallest_shift(lambda t: _log_any_of_independent(epsilon / k, t, k), delta)


def reduced_sensitivity(capacity: int, *, max_items: int = 1) -> int:
    """l1-sensitivity of Algorithm 3 of [LT23] in units of 1/(k+1): 2k - 1 for one item, m (2k - 1) for m.

    In these units the sketch is the integer vector max(0, (k+1) c_x - sum c). When all k counters fall by 1 every
    entry falls by (k+1) - k = 1: at most k in all. When one counter rises by 1, its entry rises by k and each of
    the at most k - 1 other positive entries falls by 1: at most 2k - 1 (cutting at 0 shortens distances). The
    paper's proof has the sign of the change of gamma reversed and arrives at 2k + 1; both are below 2 (k + 1).
    """
    return (2 * whole_number("capacity", capacity) - 1) * whole_number("max_items", max_items)


@lru_cache(maxsize=1024, typed=True)
def universe_cut(epsilon: float, sensitivity: int, universe: int, beta: float) -> int:
    """The smallest cut that, with probability 1 - beta, none of `universe` zero entries passes.

    For releases under pure epsilon-DP over a known universe. The cut is post-processing: privacy does not rest on it.
    1 - (1 - P[Z >= cut])^d <= beta with noise of scale sensitivity/epsilon.
    """
    rate = positive_number("epsilon", epsilon) / whole_number("sensitivity", sensitivity)
    d, beta = whole_number("universe", universe), probability("beta", beta)
    return smallest_shift(lambda t: _log_any_of_independent(rate, t, d), beta)


def reduced_paper_threshold(epsilon: float, delta: float) -> float:
    """Section 6 of [LT23], as printed, in counts: 4 + 2 ln(1/delta)/epsilon."""
    return 4.0 - 2.0 * math.log(probability("delta", delta)) / positive_number("epsilon", epsilon)


@lru_cache(maxsize=1024, typed=True)
def reduced_threshold(epsilon: float, delta: float, capacity: int, *, max_items: int = 1) -> int:
    """(epsilon, delta) release of Algorithm 3: the threshold in units of 1/(k+1).

    With D the sensitivity: an entry 0 < y < D becomes D with probability y/D and 0 otherwise, positive entries get
    noise Z of scale D/epsilon, and an entry is published iff it is at least D + t. Then delta = P[Z >= t].

    Why: an entry below D is published with probability (y/D) P[Z >= t]. So an entry that moves by a share s of D below
    D costs (0, s P[Z >= t]), and above D (s epsilon, 0). One that crosses D, from (1-b) D to (1-b+s) D, exceeds the
    factor e^(s eps) by P[Z >= t] (e^(eps (s-b)) - (1-b) e^(s eps)), which is convex in b, 0 at b = 0 and at most
    s P[Z >= t] at b = s. Entries are independent and the shares sum to 1 at most. The reverse direction needs
    P[Z >= t] <= 1/(1 + e^epsilon), which t >= D ensures.
    """
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    D = reduced_sensitivity(capacity, max_items=max_items)
    return D + smallest_shift(lambda t: log_tail(epsilon / D, t) + SAFETY, delta, least=D)
