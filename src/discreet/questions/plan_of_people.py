"""plan_people: what a release that hides people would publish, before anything is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from discreet.central.preparation import prepare_people
from discreet.privacy import Budget
from discreet.privacy.checks import positive_number, probability, whole_number
from discreet.releases.error_model import Noise
from discreet.summaries.people import LENGTH

USUAL = (1.0, 5.0, 20.0, 50.0)
"""Items a person, where nobody knows how many."""


@dataclass(frozen=True)
class PeoplePlanRow:
    """What is published of people with this many items each.

    Attributes:
        items_per_person: How many different items a person has.
        needed: An item that this many people have is found as often as not; this is where the cut lies.
        found_from: With probability `confidence` an item that this many people have is found.
        share: `found_from` as a share of all people.
        error: With probability `confidence` no count moves by more than this through noise, if nobody has more items.
    """

    items_per_person: float
    needed: int
    found_from: int
    share: float
    error: int


@dataclass(frozen=True)
class PeoplePlan:
    """How frequent an item must be among people, and how exact its count will be. Computed from public numbers only."""

    people: int
    budget: Budget
    k: int
    confidence: float
    rows: tuple[PeoplePlanRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        names = PeoplePlanRow.__dataclass_fields__
        return {
            "people": self.people,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "k": self.k,
            "confidence": self.confidence,
            "mechanism": "auto",
            "rows": [{name: getattr(row, name) for name in names} for row in self.rows],
        }

    def __str__(self) -> str:
        from discreet.releases.formats import table_text

        return f"{self._above()}\n{table_text(self._headings(), self._cells(), range(4))}".rstrip("\n")

    def _repr_html_(self) -> str:
        from discreet.releases.html import table_html

        return table_html(self._above(), self._headings(), self._cells())

    def _above(self) -> str:
        return f"{self.people:,} people, {self.budget}, k={self.k}; hides a person with all of their rows (auto)"

    def _headings(self) -> list[str]:
        sure = f"{100 * self.confidence:.4g}%"
        return ["items per person", "listed half the time from", f"listed {sure} of the time from", "counts off by"]

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                f"{row.items_per_person:g}",
                f"{row.needed:,} people",
                f"{row.found_from:,} people ({row.share:.2%})",
                f"{row.error:,} people",
            )
            for row in self.rows
        ]


def plan_people(
    people: int, budget: Budget, k: int = 100, items_per_person: float | None = None, confidence: float = 0.95
) -> PeoplePlan:
    """What `top_k(..., user=...)` would publish, from public numbers: no data is read, nothing is spent.

    Args:
        people: How many people there are, about; a public estimate, not a count of the data.
        budget: What a release may spend.
        k: How many items are wanted.
        items_per_person: How many different items a person has, about; by default several are shown.
        confidence: The probability with which `found_from` and `error` hold.
    """
    people = whole_number("people", people, 1)
    mechanism = prepare_people(k, budget).mechanism
    beta = 1.0 - probability("confidence", confidence)
    sizes = USUAL if items_per_person is None else (positive_number("items_per_person", items_per_person),)
    return PeoplePlan(people, budget, k, confidence, tuple(_row(mechanism, people, size, beta) for size in sizes))


def _row(mechanism: Any, people: int, size: float, beta: float) -> PeoplePlanRow:
    calibration = mechanism.calibration
    # The noise of both looks together, in people who have nothing else.
    spread = Noise("gaussian", calibration.spread_of_both).bound(2.0 * beta) / LENGTH
    cut = calibration.threshold(second=True)
    found = math.ceil((cut + spread) * math.sqrt(size))
    # Counts: a vector of this many items is as long as the root of their number, if all of them are found.
    counts = Noise("gaussian", calibration.sigma_of(calibration.counts(second=True)), mechanism.most_candidates)
    error = math.ceil(counts.bound(beta) / LENGTH * math.sqrt(min(size, mechanism.most_candidates)))
    return PeoplePlanRow(size, math.ceil(cut * math.sqrt(size)), found, found / people, error)
