"""The cut of the baseline of Chan et al., which central and continual releases share."""

from __future__ import annotations

from functools import lru_cache

from discreet.privacy.calibration.safety import SAFETY
from discreet.privacy.calibration.tails import log_any_shown, smallest_shift
from discreet.privacy.checks import positive_number, probability, whole_number


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
    return 1 + smallest_shift(lambda t: log_any_shown(epsilon / k, [t], k) + SAFETY, delta)
