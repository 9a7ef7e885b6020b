"""Private Misra-Gries as Lebeda and Tetek publish it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from discreet.central._base import items_of
from discreet.privacy.calibration.offset_cut import offset_threshold
from discreet.privacy.calibration.safety import safe_ceil
from discreet.privacy.checks import positive_number, probability
from discreet.published._shared_noise import SharedNoise


@dataclass(frozen=True)
class PrivateMisraGries(SharedNoise):
    """One noise on every counter, one more that all counters share.

    Unit: one event, or up to m events of a user (`User(m)`, by group privacy: Lemma 20).
    Guarantee: (epsilon, delta), for every stream and every capacity.
    Noise: c_x + Z_0 + Z_x, all discrete Laplace of scale m/epsilon (the "geometric mechanism" of section 5.2).
    Threshold: x is published iff its noisy count is at least the threshold.
        "exact": 1 + t with the smallest t whose exact delta is at most delta; given Z_0 the states of Lemma 8 behave
        as in the offset release, so it is that release's cut.
        "paper": 1 + 2 ln(3/delta)/epsilon, printed for continuous noise. For integer noise it is used only where it is
        at least the exact one, which makes it safe.
        "paper-geometric": 1 + 2 ceil(ln(6 e^eps/((e^eps + 1) delta))/epsilon), printed for this noise.
        For m events the printed ones are taken at (epsilon/m, delta/(m e^epsilon)).
    Error: f - n/(k+1) <= c <= f, plus two noises.
    Argument: [LT] Lemmas 8 to 12; docs/privacy/central.md. The offset release publishes more at the same price.
    """

    name: ClassVar[str] = "private Misra-Gries"
    reference: ClassVar[str] = "[LT] Algorithm 2, Theorem 14, section 5.2"
    calibrations: ClassVar[tuple[str, ...]] = ("exact", "paper", "paper-geometric")

    def _exact_threshold(self) -> int:
        return pmg_threshold(*self.spends, max_items=items_of(self.unit))

    @cached_property
    def threshold(self) -> int:
        if self.calibration == "exact":
            return self._exact_threshold()
        epsilon, delta = self.spends
        m = items_of(self.unit)
        printed = pmg_paper_threshold if self.calibration == "paper" else pmg_geometric_threshold
        return printed(epsilon, delta) if m == 1 else printed(epsilon / m, delta / (m * math.exp(epsilon)))


def pmg_threshold(epsilon: float, delta: float, *, max_items: int = 1) -> int:
    """Algorithm 2 with discrete Laplace noise, exact: the smallest threshold whose delta is at most `delta`.

    Given the shared noise the six kinds of neighbouring states behave as in the offset release, so the threshold is
    that release's cut. (The offset release publishes more at the same price.)
    """
    return 1 + offset_threshold(epsilon, delta, max_items=max_items)


def pmg_paper_threshold(epsilon: float, delta: float) -> int:
    """Algorithm 2 of [LT23] as printed: 1 + 2 ln(3/delta)/epsilon, rounded up."""
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    return safe_ceil(1.0 + 2.0 * (math.log(3.0) - math.log(delta)) / epsilon)


def pmg_geometric_threshold(epsilon: float, delta: float) -> int:
    """Section 5.2 of [LT23], for geometric noise: 1 + 2 ceil( ln(6 e^eps / ((e^eps + 1) delta)) / eps )."""
    epsilon, delta = positive_number("epsilon", epsilon), probability("delta", delta)
    # e^eps / (e^eps + 1) = 1 / (1 + q)
    return 1 + 2 * safe_ceil((math.log(6.0) - math.log1p(math.exp(-epsilon)) - math.log(delta)) / epsilon)
