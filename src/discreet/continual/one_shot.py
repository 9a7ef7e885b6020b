"""The one-shot building blocks of [CO]: noise and selection on one histogram, in exact integers.

Each takes counts and gives (positions, noisy counts) of what it publishes. An event changes any number of counts by 1,
all in the same direction. "Unknown domain" means that only items that occurred have counts, so a cut must hide the
items that a single event brought. Ties at the limit of an unknown domain are broken by `rank`, an order of the items
that does not depend on the stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.continual._factors import sum_shift
from discreet.noise import RandomSource
from discreet.noise.source import Integers
from discreet.privacy.calibration.tails import log_sum_tail, smallest_shift

Published = tuple[Integers, Integers]


def known_gauss(counts: Integers, sigma: Fraction, source: RandomSource) -> Published:
    """Algorithm 10, KnownGauss: every count with noise. With D counts changed: D/(2 sigma^2)-zCDP."""
    return np.arange(len(counts)), counts + source.discrete_gaussian(sigma, len(counts))


def known_gumbel(counts: Integers, k: int, tau: Fraction, source: RandomSource) -> Published:
    """Algorithm 11, KnownGumb: k items by the exponential mechanism, then their counts with noise. k/tau^2-zCDP.

    Gumbel noise of scale tau/2 is a choice with odds exp(2 h/tau). Counts move in one direction, so one choice has
    bounded range 2/tau and is 1/(2 tau^2)-zCDP; so is one Gaussian count.
    """
    chosen = select_gumbel(counts, k, tau, source)
    return chosen, counts[chosen] + source.discrete_gaussian(tau, len(chosen))


def select_gumbel(counts: Integers, k: int, tau: Fraction, source: RandomSource) -> Integers:
    """The choice of `known_gumbel` alone: k/(2 tau^2)-zCDP."""
    return source.exponential_mechanism(counts, 4 / tau, 1, min(k, len(counts)))


def _top(counts: Integers, rank: Callable[[], Integers], limit: int | None) -> tuple[Integers, int]:
    """The positions of the `limit` largest positive counts, and the largest count that is not among them."""
    there = np.flatnonzero(counts > 0)
    if limit is None or len(there) <= limit:
        return there, 0
    order = there[np.lexsort((rank()[there], -counts[there]))]
    return order[:limit], int(counts[order[limit]])


def unknown_noisy(
    counts: Integers,
    draw: Callable[..., Any],
    scale: Fraction,
    shift: int,
    limit: int | None,
    rank: Callable[[], Integers],
) -> Published:
    """Algorithm 5, UnkGauss: published iff h + Z >= h_(limit+1) + 1 + shift + Z', all noises drawn by `draw`.

    An item that only one of two neighbours has among its largest has h <= h_(limit+1) + 1: it is shown with
    probability P[Z - Z' >= shift]. At most D items are such (Lemma 6.4). With discrete Laplace noise it is LimitDom of
    Durfee and Rogers, (D/scale, D P[Z - Z' >= shift])-DP: the relabelling of [CO] section 6 gives that for any noise,
    without the factor 1 + exp(epsilon) on delta.
    """
    top, rest = _top(counts, rank, limit)
    cut = rest + 1 + shift + draw(scale)
    noisy = counts[top] + draw(scale, len(top))
    return top[noisy >= cut], noisy[noisy >= cut]


def unknown_gumbel(
    counts: Integers, k: int, tau: Fraction, shift: int, limit: int, rank: Callable[[], Integers], source: RandomSource
) -> Published:
    """Algorithm 12, UnkGumb: k choices among the `limit` largest and a stop at h_(limit+1) + 1 + shift.

    k/tau^2-zCDP except for the choice of an item that only one neighbour has among its largest. There are at most
    `limit`; one of them is ahead of the stop with probability o/(1 + o), o = limit exp(-2 shift/tau), at most. (The
    paper's Theorems 3 and 10 state 2 k and limit times delta; the proof needs the latter.)
    """
    top, rest = _top(counts, rank, limit)
    scores = np.append(counts[top], rest + 1 + shift)
    picks = source.exponential_mechanism(scores, 4 / tau, 1, min(k, len(scores)))
    stop = np.flatnonzero(picks == len(top))
    chosen = top[picks[: stop[0]] if len(stop) else picks]
    return chosen, counts[chosen] + source.discrete_gaussian(tau, len(chosen))


def gauss_shift(sigma: Fraction, probability: float) -> int:
    """The smallest shift with P[Z - Z' >= shift] <= probability, never understated; sigma >= 1 is asked for."""
    return sum_shift(2, sigma, probability)


def laplace_shift(scale: Fraction, probability: float) -> int:
    """The smallest shift with P[Z - Z' >= shift] <= probability."""
    return smallest_shift(lambda shift: log_sum_tail(float(1 / scale), shift) + 1e-12, probability)


def gumbel_shift(tau: Fraction, probability: float, items: int) -> int:
    """The smallest shift at which one of `items` items is drawn ahead of the stop with at most this probability.

    Of these items and the stop the first to be drawn is the stop with odds 1 against items exp(-2 shift/tau), whatever
    else is there: shift >= tau/2 ln(items (1/probability - 1)).
    """
    odds = math.log(items) + math.log1p(-probability) - math.log(probability)
    return max(0, math.ceil(float(tau) / 2.0 * (odds + 1e-12) * (1.0 + 1e-12)))
