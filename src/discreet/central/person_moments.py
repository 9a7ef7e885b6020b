"""Counts, sums, means and variances of people's rows, of all of them or by group, each person hidden with all rows."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass, replace
from discreet.central.person_vectors import PARTS, RUNGS, Calibration, Entries, PersonVectors, largest_mu
from discreet.central.row_moments import Bounded
from discreet.errors import ParameterError, WordError
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Estimate, User
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import probability, whole_or_none
from discreet.summaries.moments import ValueMoment
from discreet.summaries.people import ValueRange

if TYPE_CHECKING:
    from discreet.privacy.accounting import Charge
    from discreet.releases.release import Release

MOST_GROUPS = 2**15
"""How many groups are discovered at most."""
SIZES_OF_ONE_SUM = Fraction(3)
"""15 % of mu^2: more noise on one sum costs less than a length that few people's sums fit in."""
_PER_ONE = 2**10  # sums are published in this many parts of 1


@dataclass(frozen=True)
class BoundedPeople(Bounded):
    """The same of people.

    Attributes:
        left_out: The share of contributions that scaling left out.
        covered: Intervals are about all that people have who have no more than this many rows, of sums whose values add
            up to no more; None: about everything.
    """

    left_out: Estimate | None = None
    covered: float | None = None


@dataclass(frozen=True)
class PersonMoments(PersonVectors):
    """The steps of `PersonVectors` for sums that counts, sums, means and variances follow from (`ValueMoment`).

    Unit: one person with all of their rows, added or removed (`User()`).
    Guarantee: (epsilon, delta); rho over a public list of groups, or without groups.
    Noise: a person is one vector over all groups and parts of their sums, scaled to length C, chosen from private
        sizes; every coordinate has discrete Gaussian noise of C/mu_i.
    Threshold: none over a public list of groups, which needs no look at them. Others are discovered as items are, by
        how many people are in them.
    Error: that of the coordinates, whose bounds cover what scaling may have left out (`Scaling`). Of counts intervals
        contain the true number; of the others that in which nobody has more rows than `covered`.
    Argument: docs/privacy/sums.md.

    Args:
        moment: What is asked; a "count" is of people.
        listed: How many groups a public list has; 1 without groups. None: they are discovered.
        confidence: All intervals hold together with this probability.
    """

    reference: ClassVar[str] = "docs/privacy/sums.md"

    moment: ValueMoment = ValueMoment("count")
    listed: int | None = 1
    confidence: float = 0.95

    @classmethod
    def of(cls, budget: Budget, moment: ValueMoment, listed: int | None = 1, confidence: float = 0.95) -> PersonMoments:
        """The mechanism for a question."""
        values = None if moment.kind == "count" else ValueRange(0.25, 1.0)
        return cls(
            budget, MOST_GROUPS, User(), values=values, groups=None, moment=moment, listed=listed, confidence=confidence
        )

    def __post_init__(self) -> None:
        as_budget(self.budget)
        probability("confidence", self.confidence)
        if self.unit != User():
            raise ParameterError(f"{self.name} protects dc.User(); got {self.unit!r}")
        if self.moment.kind == "signed" and self.moment.low < 0:
            raise ParameterError('negative values of people are summed separately; use "split"')
        whole_or_none("listed", self.listed, 1, 2**20)
        if self.budget.rho is None and self.budget.delta == 0.0:
            raise WordError(
                "hiding people here needs {delta} > 0 (such as 1e-6) or {rho}, because the noise is Gaussian. With "
                "{epsilon} alone, use `discreet count`, or `discreet histogram` for a public list"
            )
        if self.listed is None and self.budget.rho is not None:
            raise WordError(
                "finding unknown groups needs {epsilon} and {delta} > 0; give them, or list the groups with {groups}"
            )
        _ = self.calibration

    @property
    def name(self) -> str:  # type: ignore[override]
        """The mechanism in words."""
        what = {"count": "number", "signed": "sum", "split": "sum"}.get(self.moment.kind, self.moment.kind)
        return f"noisy {what} over people" + ("" if self.listed == 1 else " by group")

    @cached_property
    def calibration(self) -> Calibration:
        if self.listed is None:
            return super().calibration
        found = _WithoutLooks(_mu(self.budget, self.listed * self.moment.parts), 0.0)
        if self.in_full:
            return replace(found, sizes=SIZES_OF_ONE_SUM)
        return found.of_sums() if self.entries.sums else found

    @cached_property
    def cost(self) -> Charge | None:
        """mu^2/2 of all steps; where groups are discovered, the chance of `PersonVectors` beside it."""
        if self.listed is None:
            return super().cost
        from discreet.privacy.accounting import Charge

        return Charge(None, rho=self.calibration.mu**2 / 2.0 * (1.0 + 1e-12))

    @cached_property
    def entries(self) -> Entries:
        """Sums that may be anything: all are listed."""
        worth = 1.0 if self.moment.kind == "count" else _PER_ONE / self.moment.one
        anything = super().entries._replace(lowest=0, listed_from=-(2**62), above_noise=-math.inf)
        return anything._replace(one=self.moment.one, worth=worth, sums=self.moment.kind in ("signed", "split"))

    @property
    def in_full(self) -> bool:
        """Of one sum: what scaling leaves out moves it, and one number cannot show by how much. Means hardly move."""
        return self.listed == 1 and self.entries.sums

    def check(self, summary: Any) -> None:
        """Anyone who counts people offers their sums, see `engines.person_sums`."""

    def draw(self, found: Any, source: RandomSource) -> tuple[npt.NDArray[np.int64], Release]:  # type: ignore[override]
        """(places of the groups, their noisy sums): all that is random."""
        second = False
        if self.listed is not None:
            places = np.arange(self.listed)
            sums = np.ones(len(places), np.int64)
        else:
            places, sums, second = self.discover(found.groups, source)
        parts, coordinates = self.moment.parts, found.discovered(places)
        every = np.arange(len(places) * parts)
        return places, self._count(coordinates, every, np.repeat(sums, parts), second, source)

    def __call__(self, found: Any, source: RandomSource | None = None) -> BoundedPeople:  # type: ignore[override]
        """Draw the noise. `source` is for tests and audits: a seeded one makes the answer not private."""
        places, drawn = self.draw(found, system_source() if source is None else source)
        order = np.argsort(np.array(drawn.items, np.int64))
        per = 1 if self.moment.kind == "count" else _PER_ONE
        columns = (drawn.counts, *drawn.bounds(self.confidence))
        noisy, lower, upper = (
            np.asarray(column, np.float64)[order].reshape(len(places), self.moment.parts) / per for column in columns
        )
        moment = self.moment
        values = moment.ends(moment.answer(noisy))
        least, most = moment.within(lower, upper)
        least, most = moment.ends(least - moment.rounding), moment.ends(most + moment.rounding)
        if moment.kind == "count":
            values = np.maximum(values, 0.0)
            least = np.maximum(least, float(self.listed is None))
        scaling = drawn.error_model.scaling
        covered = None if scaling is None or scaling.covered is None else scaling.covered / per
        if covered is not None and moment.kind in ("signed", "split"):
            covered *= moment.largest
        return BoundedPeople(
            places, np.clip(values, least, most), least, most, drawn.guarantee, drawn.left_out, covered
        )


@dataclass(frozen=True)
class _WithoutLooks(Calibration):
    """Where nothing has to be discovered, counts have what looks would take."""

    def counts(self, second: bool, loses: bool = True) -> Fraction:
        return PARTS - self.sizes - (self.losses if loses else 0)


def _mu(budget: Budget, coordinates: int) -> float:
    """mu of all steps together: of rho exactly, as discrete Gaussian noise adds up; else by the exact delta."""
    if budget.rho is not None:
        return math.sqrt(2.0 * budget.rho) * (1.0 - 1e-12)
    assert budget.epsilon is not None
    return largest_mu(budget.epsilon, budget.delta, 2 + RUNGS + coordinates, 1.0 - 1e-9)
