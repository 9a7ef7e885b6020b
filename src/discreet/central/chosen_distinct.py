"""How many different values people have, with the number credited to each person chosen privately."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass, field
from discreet.central._additive import A_PERSON, additive_noise
from discreet.central.credited_distinct import CreditedDistinct, credited_in_turn
from discreet.errors import ParameterError
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Estimate, Guarantee, Unit, User
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import probability

Numbers = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class ChosenDistinct:
    """The number of different values that can be credited to people, at most m to each: m is chosen, then noise added.

    Unit: a person with all of their rows (`User()`).
    Guarantee: epsilon, rho, or (epsilon, delta), as the budget says.
    Choice: for a fifth of the budget, m among 1, 2, 4, ..., 1024 by the exponential mechanism. What can be credited,
        less what m costs in noise, is compared with that of every other m; one person moves these scores, which are
        whole multiples of 1/1024, by at most 1 (Raskhodnikova, Smith: Lipschitz Extensions for Node-Private Graph
        Statistics and the Generalized Exponential Mechanism, 2016).
    Noise: `CreditedDistinct` with that m and the rest of the budget.
    Error: as there. At epsilon 1 a larger m is taken where it credits some hundreds of values more.
    Argument: docs/privacy/counting.md.
    """

    CANDIDATES: ClassVar[tuple[int, ...]] = tuple(2**i for i in range(11))
    SHARE: ClassVar[float] = 0.2
    STEPS: ClassVar[int] = 1024
    reference: ClassVar[str] = "docs/privacy/counting.md"
    counted: ClassVar[str] = "values"

    budget: Budget
    unit: Unit = field(default_factory=User)
    confidence: float = 0.95

    def __post_init__(self) -> None:
        as_budget(self.budget)
        probability("confidence", self.confidence)
        if self.unit != User():
            raise ParameterError("credited values protect dc.User(): a person with all of their rows")
        for most in self.CANDIDATES:
            _ = self.credits(most)

    @property
    def name(self) -> str:
        """The mechanism in words."""
        return "noisy count of values, credited to people, how many to each chosen privately"

    @cached_property
    def parts(self) -> tuple[float, Budget]:
        """Epsilon of the choice, and the budget of the noise."""
        part, rest = self.budget.split(self.SHARE)
        return part.pure(self.name, from_zcdp=True), rest

    @property
    def choice_epsilon(self) -> float:
        """Epsilon of the choice."""
        return self.parts[0]

    def credits(self, most: int) -> CreditedDistinct:
        """The release when this many are credited to a person at most."""
        return CreditedDistinct(self.parts[1], confidence=self.confidence, max_items=most)

    @property
    def guarantee(self) -> Guarantee:
        """What the count promises, the choice included."""
        return Guarantee.of(self.budget, self.unit, self.name, self.reference, assumptions=(A_PERSON,))

    def count_of(self, people: Numbers, values: Numbers) -> dict[int, int]:
        """For every m how many values can be credited. NOT private."""
        return credited_in_turn(people, values, self.CANDIDATES)

    def scores(self, found: Mapping[int, int]) -> npt.NDArray[np.int64]:
        """The score of each candidate, in steps; one person moves each by at most `STEPS`."""
        # 2 ln(220) < 10.8; any public t and any public weight of the noise would do. Exact, in fractions.
        t = Fraction(108, 10) / Fraction(self.choice_epsilon)
        weight = 3 * Fraction(additive_noise(self.parts[1], height=1).scale)  # what one more credit costs in noise
        left = {m: found[m] - (weight + t) * m for m in self.CANDIDATES}
        return np.array(
            [min((left[m] - left[k]) / (m + k) for k in self.CANDIDATES) * self.STEPS // 1 for m in self.CANDIDATES],
            dtype=object,
        ).astype(np.int64)

    def choose(self, found: Mapping[int, int], source: RandomSource) -> int:
        """m, by the exponential mechanism."""
        place = source.exponential_mechanism(self.scores(found), self.choice_epsilon, self.STEPS)
        return self.CANDIDATES[int(place[0])]

    def draw(self, found: Mapping[int, int], source: RandomSource) -> tuple[int, int]:
        """m and the noisy number: all that is random, and the seam of the audit."""
        most = self.choose(found, source)
        return most, self.credits(most).draw(found[most], source)

    def __call__(self, found: Mapping[int, int], source: RandomSource | None = None) -> Estimate:
        """Choose, draw and publish. `source` is for tests and audits: a seeded one makes the count not private."""
        source = system_source() if source is None else source
        most, noisy = self.draw(found, source)
        values = "1 value is" if most == 1 else f"{most} values are"
        told = f"{values} credited to a person at most, which was chosen privately for a fifth of the budget"
        guarantee = self.guarantee.assuming(told, seeded=source.seeded)
        around = self.credits(most).margin
        return Estimate(max(noisy, 0), max(noisy - around, 0.0), float("inf"), guarantee)
