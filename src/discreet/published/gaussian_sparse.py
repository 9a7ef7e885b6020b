"""The Gaussian sparse histogram of merged and of user-level sketches, as [LT] releases them."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from discreet._data_class import dataclass, field
from discreet.central._base import Approximate, Drawn, lost_by_misra_gries, positive
from discreet.errors import IncompatibleSummaryError
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Unit, User
from discreet.privacy.calibration.sparse_histogram import gshm_calibration
from discreet.releases.error_model import ErrorModel, Noise
from discreet.summaries import MisraGries, Summary, UserMisraGries


@dataclass(frozen=True)
class GaussianSparseHistogram(Approximate):
    """A noise of its own on every counter of a merged or user-level sketch, and a cut.

    Unit: one event of one of the merged streams; or, for a user-level sketch, one user of at most m items (`User(m)`)
        who is one list, in one of the sketches if several were merged.
    Guarantee: (epsilon, delta), for every number and order of merges.
    Noise: c_x + Z_x for c_x > 0, discrete Gaussian. Up to k counters differ, each by 1, all in one direction.
    Threshold: published iff the noisy count is at least it: `gshm_calibration` for k changes, exact on integers.
    Error: f - n/(k+1) <= c <= f, plus the noise: sqrt(k) times that of one counter, about twice that of
        `central.Merged` and `central.UserSketch`, whose counters share a part of it.
    Argument: [LT] Corollary 18, Corollary 28 and Theorem 23; docs/privacy/central.md.
    """

    name: ClassVar[str] = "Gaussian sparse histogram"
    reference: ClassVar[str] = "[LT] Theorems 23 and 30"
    accepts: ClassVar[tuple[type[Summary], ...]] = (MisraGries, UserMisraGries)
    noise_growth: ClassVar[float] = 0.5
    takes_merged: ClassVar[bool] = True

    budget: Budget
    capacity: int
    unit: Unit = field(default_factory=Event)
    stream_length: int | None = None

    @cached_property
    def _calibrated(self) -> tuple[float, int]:
        return gshm_calibration(*self.spends, self.capacity)

    @cached_property
    def scale(self) -> Fraction:
        """Sigma of the discrete Gaussian noise of each counter."""
        return Fraction(self._calibrated[0])

    @cached_property
    def threshold(self) -> int:
        return self._calibrated[1]

    @cached_property
    def error_model(self) -> ErrorModel:
        noise = Noise("gaussian", self.scale, self.capacity)
        return ErrorModel(noise, summary_below=lost_by_misra_gries(self.stream_length, self.capacity))

    @property
    def assumptions(self) -> tuple[str, ...]:
        users = ("every user is one list, in one of the sketches if several were merged",)
        return (users if isinstance(self.unit, User) else ()) + super().assumptions

    def check(self, summary: Any) -> None:
        super().check(summary)
        held = User(summary.max_items_per_user) if isinstance(summary, UserMisraGries) else Event()
        if self.unit != held:
            raise IncompatibleSummaryError(f"the unit is {self.unit!r}, and the summary can hide {held!r}")

    def draw(self, summary: MisraGries | UserMisraGries, source: RandomSource) -> Drawn:
        raw = positive(summary.not_private_counts())
        noisy = raw.counts + source.discrete_gaussian(self.scale, len(raw))
        return Drawn(raw, noisy, noisy >= self.threshold)
