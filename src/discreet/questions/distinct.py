"""Distinct: how many different values a column has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.errors import ParameterError, WordError
from discreet.privacy.unit import Event, User
from discreet.questions.ask import asked_of, by_place, function_of
from discreet.questions.question import Question, Way, of_lists
from discreet.questions.words import column, share, whole, word

if TYPE_CHECKING:
    from discreet.noise import RandomSource
    from discreet.privacy.budget import Budget
    from discreet.privacy.estimate import Estimate
    from discreet.privacy.ledger import Account
    from discreet.questions.data import Data

__all__ = ["Distinct", "distinct"]


@dataclass(frozen=True, kw_only=True)
class Distinct(Question):
    """The number of different values of a column."""

    name: ClassVar[str] = "distinct"

    column: str | None = word(None, "Column whose different values are counted.", column())
    max_items: int | None = word(
        None, "Credit a person with at most N values; chosen privately if not given.", whole(1),
        old=("max_items_per_user",),
    )  # fmt: skip
    confidence: float = word(0.95, "Probability with which the interval holds.", share())

    def way(self, data: Data, budget: Budget) -> Way:
        data.refuse_strict(self)
        lists = data.lists and self.user is None
        credited = lists or (self.user is not None and self.user != self.column)
        mechanism = _mechanism(budget, credited, self.people or lists, self.max_items, self.confidence)

        def found() -> Any:
            whose = self.user if credited else None
            rows = data.rows(self, self.column, user=whose, lists=True if data.lists else None)
            if not credited:
                from discreet.engines.different import different_items

                return rows.gathered(different_items, apart="item")
            from discreet.engines.pairs import Pairs, Prints

            pairs = rows.gathered(partial(Pairs, prints=Prints()), apart="user")
            return mechanism.count_of(pairs.people, pairs.items)

        draw, cost = of_lists(mechanism) if lists else mechanism, getattr(mechanism, "cost", None)
        return Way(mechanism.name, mechanism.unit, found, draw, cost=cost)


def _mechanism(budget: Budget, credited: bool, people: bool, max_items: int | None, confidence: float) -> Any:
    """Values are credited to people, at most so many to each; or one unit changes the number by 1."""
    if credited and max_items is None:
        from discreet.central.chosen_distinct import ChosenDistinct

        return ChosenDistinct(budget, confidence=confidence)
    if credited and max_items is not None:
        from discreet.central.credited_distinct import CreditedDistinct

        return CreditedDistinct(budget, max_items=max_items, confidence=confidence)
    from discreet.central.noisy_count import NoisyCount

    if max_items is not None:
        raise WordError("{max_items} needs {user}: it bounds how many values a person is credited with")
    return NoisyCount(budget, User() if people else Event(), "people" if people else "values", confidence)


@function_of(Distinct, first=("budget",))
def distinct(
    data: Any,
    *given: Any,
    ledger: Account | None = None,
    charge_id: str | None = None,
    request: str | None = None,
    source: RandomSource | None = None,
    **words: Any,
) -> Estimate:
    """How many different values a column has.

        distinct(table, budget, column="visitor", user="visitor")  # different people; hides one, with all of their rows
        distinct(table, budget, column="url", user="visitor")      # different values; hides a person, with all rows
        distinct(table, budget, column="url")                      # different values; hides one row

    With `user` every value is credited to one of the people who have it, at most m values to a person, and as many as
    possible. A fifth of the budget chooses m (`ChosenDistinct`), or `max_items` says it (`CreditedDistinct`). The lower
    bound then holds for the number of all values, and there is no upper one. Otherwise one unit changes the number by
    1: `NoisyCount`.
    """
    budget, words = by_place("distinct", given, words, ("budget",), ("column", "budget", "user"))
    if words.get("column") is None:
        raise ParameterError("distinct needs column, the name of the column whose values are counted")
    found: Estimate = asked_of(Distinct, words, data, budget, ledger, charge_id, request, source)
    return found
