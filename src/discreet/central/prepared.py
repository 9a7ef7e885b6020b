"""A release that was checked, chosen and calibrated once: summary, charge and draw follow from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.central._base import Mechanism
from discreet.errors import ParameterError, WordError
from discreet.noise import RandomSource
from discreet.noise.source import MAX_SCALE
from discreet.privacy import Budget, Event, Guarantee, Unit, User
from discreet.privacy.calibration.zcdp import zcdp_sigma
from discreet.privacy.checks import whole_number
from discreet.releases.error_model import Noise
from discreet.releases.payment import Bill
from discreet.releases.release import Release

if TYPE_CHECKING:
    from discreet.privacy.accounting import Charge
    from discreet.summaries.people import ValueRange

__all__ = ["Prepared", "prepare_people", "split_off_total"]


@dataclass(frozen=True)
class Prepared:
    """A mechanism and its budget. Made before anything is read: nothing was charged, nothing random has happened.

    Making one refuses whatever can be refused for its parameters, and calibrates, so that nothing can fail for them
    once the ledger is charged.

    Attributes:
        mechanism: What is drawn. With a total it has what is left of the budget.
        budget: What the whole release spends.
        because: Why it is this mechanism.
        total_share: The share of the budget for the stream's length, or None.
        total_noise: The noise on it.
        stream_length: The public length that the mechanism was made with, if it takes one.
        described: What the ledger writes down, where the mechanism's name does not say it all.
        bounded: Whether at most m items of a person reach the mechanism for `User(m)`, however many they have: then
            all of a person is hidden, and the account adds it up as such.
    """

    mechanism: Mechanism
    budget: Budget
    because: str = ""
    total_share: float | None = None
    total_noise: Noise | None = None
    stream_length: int | None = None
    described: str = ""
    bounded: bool = False

    def __post_init__(self) -> None:
        model = self.mechanism.error_model
        _ = self.mechanism.threshold
        for noise in (model.noise, model.shared, model.offset_noise, self.total_noise):
            if noise is not None and noise.scale > MAX_SCALE:
                raise ParameterError(
                    f"the budget is too small: the noise would have a scale above 2**50, {self.mechanism.name}"
                )

    @property
    def description(self) -> str:
        """What the ledger writes down; a charge id stands for one description."""
        name = self.described or self.mechanism.name
        if self.total_share is None:
            return name
        return f"{name}, and the total for a share of {self.total_share:g}"

    @property
    def hides(self) -> Unit | None:
        """What the account adds up, where that is more than the unit that was asked for."""
        return User() if self.bounded else self.mechanism.hides

    @property
    def cost(self) -> Charge | None:
        """The rho and delta that it has, where the mechanism says so and nothing else is drawn."""
        return self.mechanism.cost if self.total_noise is None else None

    @property
    def chosen(self) -> dict[str, Any]:
        """What is public of it and not said by the question, for what the release says of itself."""
        capacity = getattr(self.mechanism, "capacity", None)
        return {"capacity": capacity, "length": self.stream_length, "total_share": self.total_share}

    def bill(self, question: Mapping[str, object], also: str = "") -> Bill:
        """What is charged for it, and for what; `also` is added to the description."""
        return Bill(self.budget, self.description + also, self.mechanism.unit, None, self.hides, question, self.cost)

    def draw(self, summary: Any, source: RandomSource) -> Release:
        """Draw. Nobody may add to the summary meanwhile: what is checked is what is published."""
        self.mechanism.check(summary)
        drawn = self.mechanism._publish(summary, source)
        guarantee = drawn.guarantee
        if self.because:
            guarantee = dataclasses.replace(guarantee, chosen_because=self.because)
        if self.total_noise is None:
            return drawn.with_guarantee(guarantee)
        length = sum(part.total for part in summary) if isinstance(summary, (list, tuple)) else summary.total
        noisy = length + self.total_noise.draw(source)
        return drawn.with_guarantee(self._with_total(guarantee), total=noisy, total_noise=self.total_noise)

    def _with_total(self, guarantee: Guarantee) -> Guarantee:
        """The guarantee of both parts together: epsilons (or rhos) add, and the total's noise needs no delta."""
        note = f"a share of {self.total_share:g} of the budget was spent on the stream's length"
        return dataclasses.replace(
            guarantee,
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            rho=self.budget.rho,
            assumptions=(*guarantee.assumptions, note),
        )


def split_off_total(budget: Budget, share: float, unit: Unit, lists: int = 1) -> tuple[Budget, Noise]:
    """What is left for the histogram, and the noise of the stream's length for the given share.

    The length moves by at most m when a unit of m events (of all its `lists` together) comes or goes. Discrete Laplace
    noise of scale m/epsilon_n makes it epsilon_n-DP, and by composition the release costs (epsilon_n + rest, delta).
    Of a zCDP budget: discrete Gaussian noise with sigma^2 = m^2/(2 rho_n), and rhos add. The two parts never sum to
    more than the budget.
    """
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0.0 < share < 1.0:
        raise ParameterError(f"total_share must be greater than 0 and less than 1, not {share!r}")
    if not isinstance(unit, (Event, User)):
        raise ParameterError(f"total_share needs the unit dc.Event() or dc.User(m), not {type(unit).__name__}")
    m = unit.limit * whole_number("parts_per_user", lists) if isinstance(unit, User) else 1
    part, rest = budget.split(share)
    if part.rho is not None:
        return rest, Noise("gaussian", zcdp_sigma(m * m, part.rho))
    assert part.epsilon is not None
    return rest, Noise("laplace", m / Fraction(part.epsilon))


def prepare_people(
    k: int,
    budget: Budget,
    *,
    max_items: int | None = None,
    count: str = "users",
    values: ValueRange | None = None,
    lists: bool = False,
    groups: int | None = 1,
    pairs: int | None = None,
) -> Prepared:
    """A release that hides people: counts of "users" who have an item, or of their "rows", or sums of values.

    `groups` is as for `PersonVectors`; with `pairs` what is counted are so many items together, see `PersonPairs`.
    """
    from discreet.central.person_vectors import PersonVectors

    if count not in ("users", "rows"):
        raise ParameterError(f"count must be 'users' or 'rows', not {count!r}")
    if count == "rows" and values is not None:
        raise ParameterError("values are summed, or rows are counted: not both")
    if budget.delta == 0.0:
        raise WordError(
            "finding unknown items needs {delta} > 0; give one, such as 1e-6, or count a public list of items: "
            "dc.histogram, `discreet histogram`"
        )
    if pairs is not None:
        from discreet.central.person_pairs import PersonPairs

        together = PersonPairs(budget, k, lists=lists, size=pairs)
        return Prepared(together, budget, described=f"{together.name}, {pairs} items, k={k}")
    mechanism = PersonVectors(
        budget, k, User(max_items), rows=count == "rows", lists=lists, values=values, groups=groups
    )
    of = mechanism.counted
    if values is not None:  # in full: a charge id stands for one range
        of = f"sums of values from {float(values.low)!r} to {float(values.high)!r}"
    of_groups = "" if groups == 1 else f" in each of {groups} groups" if groups else " in each group"
    described = f"{mechanism.name}, {of}, k={k}{of_groups}"
    return Prepared(mechanism, budget, described=described)
