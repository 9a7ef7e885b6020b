"""What people have together: frequent pairs (or triples) of items, each person hidden with all of their rows."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass
from discreet.central.person_vectors import Calibration, Entries, PersonVectors, calibrated
from discreet.errors import IncompatibleSummaryError, ParameterError
from discreet.noise import RandomSource
from discreet.privacy import User
from discreet.privacy.calibration.gaussian import ndtri
from discreet.privacy.checks import whole_number
from discreet.releases.release import Release
from discreet.summaries.combinations import most_of
from discreet.summaries.people import Counts, People

if TYPE_CHECKING:
    from discreet.summaries.combinations import Combinations

LOOK_AT_PAIRS = 4
"""Parts of mu^2, of those that `PersonVectors` has, for the look at pairs; the counts have less."""
SPARE = 10
"""Items are looked for until they have at least this many times as many pairs as are asked for."""
MOST = 3
"""Of the items that pass, at most this many times as many are taken as were looked for: they cost nothing more."""
FREQUENT = Fraction(1, 4)
"""The power of the product of its items' sums that a pair weighs in the look: frequent items are likelier together."""
FINEST = 1024
"""Weights of pairs are whole numbers up to this."""
NOBODY, NOT_LISTED = 1.0, 1e-3
"""How many pairs that nobody has pass the look, on average; and the chance that one of them passes the last cut."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PersonPairs(PersonVectors):
    """Which two items (or three) people have together, with all rows of a person hidden.

    Unit: one person with all of their rows, added or removed (`User()`).
    Guarantee: (epsilon, delta), jointly for all steps.
    Noise: as for `PersonVectors`. Between discovery and sizes there is one more step, a look at all pairs of the
        discovered items, whether or not anybody has them: a person's pairs are one vector, in which those of frequent
        items weigh more. The 1.5 k largest that pass a cut are counted; the k largest that stand out are listed.
    Threshold: T of the items, in units of one person who has one item. A pair is listed only if both items pass.
    Error: as for `PersonVectors`, of the number of people who have both. A pair that nobody has is listed in one of a
        thousand releases at most: nothing tells it from a rare one but noise.
    Argument: docs/privacy/pairs.md.

    Args:
        k: How many pairs to list at most.
        size: How many items belong together: 2, or 3 for triples.
    """

    name: ClassVar[str] = "discovery and count of what people have together"
    reference: ClassVar[str] = "docs/privacy/pairs.md"

    size: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("size", self.size, 2, 3)
        if self.rows or self.values is not None or self.groups != 1 or self.unit != User():
            raise ParameterError(f"{self.name} counts people in one group and chooses the length itself")

    @cached_property
    def items_looked_for(self) -> int:
        """The least number of items that have ten times as many pairs as are asked for; a public number."""
        many = self.size
        while math.comb(many, self.size) < SPARE * self.k and MOST * (many + 1) <= most_of(self.size):
            many += 1
        return many

    @cached_property
    def calibration(self) -> Calibration:
        """Noise and cuts; one person touches every pair in the look, and every candidate in the counts."""
        pairs = math.comb(MOST * self.items_looked_for, self.size)
        return _LessForCounts(**vars(calibrated(*self.spends, pairs + self.most_candidates)))

    @cached_property
    def entries(self) -> Entries:
        """Nothing but noise tells a rare pair from one that nobody has."""
        return super().entries._replace(lowest=0, above_noise=-float(ndtri(NOT_LISTED)))

    def check(self, summary: Any) -> None:
        super().check(summary)
        if type(summary).holdings is People.holdings:
            raise IncompatibleSummaryError(
                f"{type(summary).__name__} does not say which items people have together; count pairs in memory or on "
                "disk, with discreet.top_k"
            )

    @property
    def _looked_for(self) -> int:
        return self.items_looked_for

    def _most_of(self, second: bool) -> int:
        return MOST * self.items_looked_for

    def _publish(self, people: People, source: RandomSource) -> Release:
        places, sums, second = self.discover(people, source)
        pairs = people.combinations(places, self.size)
        chosen, likely = self.look(pairs, sums, source)
        listed = self._count(pairs, chosen, likely, second, source)
        return listed if len(listed) else listed.with_items(pairs.items(np.zeros(0, np.int64)))

    def look(self, pairs: Combinations, sums: Counts, source: RandomSource) -> tuple[Counts, Counts]:
        """(places, about how many people have them) of the largest pairs; `sums` are those of the items, with noise.

        The cut is no matter of privacy, since all pairs have noise: it leaves out what noise alone would explain.
        """
        frequent = pairs.products(np.maximum(sums, 1).astype(np.float64)) ** float(FREQUENT)
        weights = np.maximum(np.rint(FINEST * frequent / frequent.max(initial=1e-300)), 1).astype(np.int64)
        sigma = self.calibration.sigma_of(LOOK_AT_PAIRS)
        noisy = pairs.aimed_weights(pairs.total, weights) + source.discrete_gaussian(sigma, pairs.total)
        cut = -float(ndtri(min(0.5, NOBODY / max(pairs.total, 1)))) * float(sigma)
        passed = np.flatnonzero(noisy >= max(cut, 1.0))
        likely = FINEST * noisy[passed] // weights[passed]
        order = np.argsort(-likely, kind="stable")[: self.most_candidates]  # of equals, places follow the items
        return passed[order], likely[order]


@dataclass(frozen=True)
class _LessForCounts(Calibration):
    """The calibration of people's items, where the look at pairs takes a part of what the counts have."""

    def counts(self, second: bool, loses: bool = True) -> Fraction:
        return super().counts(second, loses) - LOOK_AT_PAIRS
