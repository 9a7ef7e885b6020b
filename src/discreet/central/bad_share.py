"""Whether more than a given share of the rows cannot be read: one yes or no, with noise."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from discreet._data_class import dataclass, field, replace
from discreet.central._additive import additive_cost, additive_noise
from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.privacy import Budget, Event, Guarantee, Unit, User
from discreet.privacy.budget import as_budget
from discreet.releases.error_model import ErrorModel, Noise

if TYPE_CHECKING:
    from discreet.privacy.accounting import Charge

_FINEST = 10_000
_WRONG = 1e-6


@dataclass(frozen=True)
class BadShare:
    """A private test of the share of rows, or of people, that cannot be read.

    Unit: one row, or a person with all of their rows (`User()`).
    Guarantee: epsilon or rho, as the budget says; no delta is spent.
    Statistic: S = (q - p) bad - p good for a share of p/q: positive iff more than p/q of all are bad. A row moves it by
        at most max(p, q - p). People are told apart by a hash, and a person moves it by at most q.
    Noise: discrete Laplace, or of rho discrete Gaussian, Z for that sensitivity (`additive_noise`).
    Threshold: refused iff S + Z > cut, which data with at most p/q bad rows pass, but for a probability of 1e-6 at
        most.
    Error: about 14 (q - p)/(q epsilon) rows beyond the share are noticed.
    Argument: docs/privacy/errors.md, "A test of bad rows".

    Args:
        budget: Of this test: epsilon alone, or rho.
        share: The largest share that passes, above 0 and below 1, in ten-thousandths at most.
        unit: Whose presence is hidden.
    """

    reference: ClassVar[str] = "docs/privacy/errors.md"
    name: ClassVar[str] = "test of bad rows"

    budget: Budget
    share: Fraction
    unit: Unit = field(default_factory=Event)

    def __post_init__(self) -> None:
        as_budget(self.budget)
        if self.budget.delta:
            raise ParameterError(f"a test of bad rows spends epsilon or rho, no delta; got {self.budget}")
        if not 0 < self.share < 1 or self.share.denominator > _FINEST:
            raise ParameterError(
                f"a share of bad rows must be above 0 and below 1, in ten-thousandths; got {self.share}"
            )
        _ = self.cut

    @property
    def sensitivity(self) -> int:
        """By how much one unit moves the statistic at most."""
        bad, good = self.share.denominator - self.share.numerator, self.share.numerator
        return bad + good if isinstance(self.unit, User) else max(bad, good)

    @cached_property
    def noise(self) -> Noise:
        """The noise on the statistic."""
        return additive_noise(self.budget, height=self.sensitivity)

    @property
    def scale(self) -> Fraction:
        """The scale of the Laplace noise, or sigma of the Gaussian."""
        return self.noise.scale

    @property
    def cost(self) -> Charge | None:
        """The rho of Gaussian noise, for accounts that add up rhos."""
        return additive_cost(self.noise.law, self.noise.scale, height=self.sensitivity)

    @cached_property
    def cut(self) -> int:
        """Above it the data are refused."""
        return int(ErrorModel(self.noise).noise_bound(2 * _WRONG))

    @property
    def noticed(self) -> float:
        """How many rows (or people) all of which are bad are refused with probability 1 - 1e-6."""
        return 2 * self.cut / (self.share.denominator - self.share.numerator)

    @property
    def guarantee(self) -> Guarantee:
        """What the outcome promises."""
        return Guarantee.of(self.budget, self.unit, self.name, self.reference)

    def statistic(self, bad: int, good: int) -> int:
        """NOT PRIVATE: positive iff more than the share are bad."""
        return (self.share.denominator - self.share.numerator) * bad - self.share.numerator * good

    def draw(self, statistic: int, source: RandomSource) -> bool:
        """Whether the data are refused: all that is random, and the seam of the audit."""
        return statistic + replace(self.noise, scale=self.scale).draw(source) > self.cut
