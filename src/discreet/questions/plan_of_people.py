"""plan_people: what a release that hides people would publish, before anything is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from discreet.central.prepared import prepare_people
from discreet.privacy import Budget
from discreet.privacy.checks import positive_number, probability, whole_number
from discreet.releases.error_model import Noise
from discreet.summaries.people import LENGTH

USUAL = (1.0, 5.0, 20.0, 50.0)
"""Items a person, where nobody knows how many."""


@dataclass(frozen=True)
class PeoplePlanRow:
    """What is published of people with so many items each.

    Attributes:
        items_per_person: How many different items a person has.
        needed: An item that so many people have is found as often as not; this is where the cut lies.
        found_from: With probability `confidence` an item that so many people have is found.
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
        lines = [
            f"{self.people:,} people, {self.budget}, k={self.k}; hides a person with all of their rows (auto)",
            f"{'items a person':>14} {'cut, people':>12} {'found from':>11} {'of all':>8} {'error of a count':>17}",
        ]
        for row in self.rows:
            found = f"{row.needed:>12,} {row.found_from:>11,} {row.share:>8.2%}"
            lines.append(f"{row.items_per_person:>14g} {found} {row.error:>17,}")
        return "\n".join(lines)


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
    # Counts: a vector of so many items is as long as the root of their number, if all of them are found.
    counts = Noise("gaussian", calibration.sigma_of(calibration.counts(second=True)), mechanism.most_candidates)
    error = math.ceil(counts.bound(beta) / LENGTH * math.sqrt(min(size, mechanism.most_candidates)))
    return PeoplePlanRow(size, math.ceil(cut * math.sqrt(size)), found, found / people, error)
