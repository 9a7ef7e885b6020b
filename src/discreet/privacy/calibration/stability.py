"""The stability histogram of exact counts with discrete Laplace noise: keys that occur, noise, a cut.

Published iff count + Z >= 1 + t, only for keys with a count. A key that one event creates is published with probability
P[Z >= t]; that is the hockey-stick divergence (the other direction, 1 - e^eps (1 - P[Z >= t]), is smaller).
"""

from __future__ import annotations

import math
from functools import lru_cache

from discreet.privacy.calibration.safety import SAFETY
from discreet.privacy.calibration.tails import log_any_shown, log_tail, smallest_shift
from discreet.privacy.checks import positive_number, probability, whole_number

__all__ = ["stability_delta", "stability_threshold"]


def _log_delta(epsilon: float, t: int, items: int, distinct: bool) -> float:
    rate = epsilon / items
    each_once = log_any_shown(rate, [t], items)
    one_often = -math.inf if distinct else log_tail(rate, t + 1 - items)
    return max(each_once, one_often) + SAFETY


def stability_delta(epsilon: float, t: int, *, max_items: int = 1, distinct: bool = False) -> float:
    """delta of the histogram with cut 1 + t and noise of scale m/epsilon for users of up to m items.

    A user creates keys with counts c_1, c_2, ... that sum to at most m: delta = 1 - prod (1 - P[Z >= t+1-c_j]).
    -log(1 - P[Z >= t+1-c]) is convex in c, so the largest is m keys once each or one key m times; with
    `distinct` items only the first. t must be at least m - 1.
    """
    items = whole_number("max_items", max_items)
    t = whole_number("t", t, items - 1)
    return min(1.0, math.exp(min(0.0, _log_delta(positive_number("epsilon", epsilon), t, items, distinct))))


@lru_cache(maxsize=1024, typed=True)
def stability_threshold(epsilon: float, delta: float, *, max_items: int = 1, distinct: bool = False) -> int:
    """The smallest whole t whose delta is at most `delta`: a key is published iff count + noise >= 1 + t."""
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    items = whole_number("max_items", max_items)
    return smallest_shift(lambda t: _log_delta(epsilon, t, items, distinct), delta, least=items - 1)
