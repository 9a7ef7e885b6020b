"""How many there are: one whole number with noise."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from discreet._data_class import dataclass, field, replace
from discreet.central._additive import A_PERSON, additive_cost, additive_noise
from discreet.errors import ParameterError
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Estimate, Event, Guarantee, Unit, User
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import probability, whole_number
from discreet.releases.error_model import ErrorModel, Noise

if TYPE_CHECKING:
    from discreet.privacy.accounting import Charge


@dataclass(frozen=True)
class NoisyCount:
    """A count with noise; a negative sum is published as 0.

    Unit: one event where events (or different values of them) are counted, or a person with all of their rows
        (`User()`) where people are counted. It moves the count by at most 1.
    Guarantee: epsilon, rho, or (epsilon, delta), as the budget says.
    Noise: discrete Laplace of scale 1/epsilon or discrete Gaussian with sigma^2 = 1/(2 rho) (`additive_noise`).
    Threshold: none; a count of 0 gets noise, too.
    Error: at most b with probability 1 - beta, b the smallest with 2 P[Z > b] <= beta: about ln(1/beta)/epsilon.
    Argument: docs/privacy/counting.md.

    Args:
        counted: What is counted, for the guarantee: "rows", "people" or "values".
        confidence: Of the interval.
    """

    reference: ClassVar[str] = "docs/privacy/counting.md"

    budget: Budget
    unit: Unit = field(default_factory=Event)
    counted: str = "rows"
    confidence: float = 0.95

    def __post_init__(self) -> None:
        as_budget(self.budget)
        if not isinstance(self.unit, Event) and self.unit != User():
            raise ParameterError(f"a count protects dc.Event() or dc.User(); got {self.unit!r}")
        if self.counted not in ("rows", "people", "values"):
            raise ParameterError(f"counted must be 'rows', 'people' or 'values', not {self.counted!r}")
        probability("confidence", self.confidence)
        _ = self.noise

    @property
    def name(self) -> str:
        """The mechanism in words."""
        return f"noisy count of {self.counted}"

    @property
    def sensitivity(self) -> int:
        """By how much one unit moves the count at most."""
        return 1

    @cached_property
    def noise(self) -> Noise:
        """The noise on the count."""
        return additive_noise(self.budget, height=self.sensitivity)

    @property
    def cost(self) -> Charge | None:
        """The rho of Gaussian noise, for accounts that add up rhos."""
        return additive_cost(self.noise.law, self.scale, height=self.sensitivity)

    @property
    def scale(self) -> Fraction:
        """The scale of the Laplace noise, or sigma of the Gaussian."""
        return self.noise.scale

    @cached_property
    def error_model(self) -> ErrorModel:
        """How far the published count may lie from what was counted."""
        return ErrorModel(replace(self.noise, scale=self.scale), lowest=0)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on."""
        return (A_PERSON,) if isinstance(self.unit, User) else ()

    @property
    def guarantee(self) -> Guarantee:
        """What the count promises."""
        return Guarantee.of(self.budget, self.unit, self.name, self.reference, assumptions=self.assumptions)

    def error_bound(self, beta: float) -> float:
        """With probability 1 - beta the noise moves the count by no more than this."""
        return self.error_model.noise_bound(probability("beta", beta))

    @cached_property
    def margin(self) -> float:
        """Half of the interval."""
        return self.error_bound(1.0 - self.confidence)

    def draw(self, count: int, source: RandomSource) -> int:
        """The count with its noise: all that is random, and the seam of the audit."""
        return count + replace(self.noise, scale=self.scale).draw(source)

    def __call__(self, count: int, source: RandomSource | None = None) -> Estimate:
        """Draw the noise and publish. `source` is for tests and audits: a seeded one makes the count not private."""
        count = whole_number("count", count, 0)
        source = system_source() if source is None else source
        noisy, around = self.draw(count, source), self.margin
        return Estimate(
            max(noisy, 0),
            max(noisy - around, 0.0),
            self._upper(max(noisy + around, 0.0)),
            replace(self.guarantee, seeded=source.seeded),
        )

    def _upper(self, upper: float) -> float:
        """The upper bound of the truth, given that of what was counted."""
        return upper
