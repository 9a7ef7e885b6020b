"""The baseline of Chan, Li, Shi and Xu: noise in proportion to the number of counters."""

from __future__ import annotations

from typing import ClassVar

from discreet._data_class import dataclass
from discreet.central._base import per_event, positive
from discreet.central._noisy_entries import NoisyEntries
from discreet.privacy.calibration.tails import chan_threshold
from discreet.summaries import MisraGries, RawCounts, Summary


@dataclass(frozen=True)
class ChanMisraGries(NoisyEntries):
    """Every counter with Laplace noise of scale k/epsilon. For comparison: the others need far less.

    Unit: one event, or up to m events of a user (`User(m)`, by group privacy).
    Guarantee: epsilon or rho-zCDP over a `universe`; (epsilon, delta) without one. Also for merged sketches.
    Noise: the counters have l1-sensitivity m k; discrete Laplace of scale m k/epsilon on each. For rho: k counters by 1
        each, m times; discrete Gaussian with sigma^2 = m^2 k/(2 rho).
    Threshold: over a universe a public cut and the k largest, as in `ReducedMisraGries`. Without: 1 + t with the
        smallest t for which 1 - (1 - P[Z >= t])^k, the chance to show one of k keys of count 1, is at most delta.
    Error: f - n/(k+1) <= c <= f, plus one noise.
    Argument: [LT] section 4 and Corollary 18; docs/privacy/central.md.
    """

    name: ClassVar[str] = "Chan et al. release of Misra-Gries"
    reference: ClassVar[str] = "Chan, Li, Shi, Xu (2012) as in [LT] sections 4 and 7"
    accepts: ClassVar[tuple[type[Summary], ...]] = (MisraGries,)
    takes_merged: ClassVar[bool] = True
    noise_growth: ClassVar[float] = 1.0

    @property
    def sensitivity(self) -> int:
        return self.capacity * self.most_events

    @property
    def squared_sensitivity(self) -> int:
        return self.capacity * self.most_events**2

    def entries(self, summary: MisraGries) -> RawCounts:
        return positive(summary.not_private_counts())

    def _hidden_cut(self) -> int:
        return chan_threshold(*per_event(*self.spends, self.most_events), self.capacity)
