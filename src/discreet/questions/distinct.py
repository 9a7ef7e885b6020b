"""Distinct: how many different values a column has."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from discreet._data_class import dataclass, replace
from discreet._later import np
from discreet.errors import ParameterError, WordError
from discreet.privacy.guarantee import Event, User
from discreet.questions.ask import asked_of, by_place, function_of
from discreet.questions.question import Question, Way, of_lists
from discreet.questions.words import Refusal, column, share, whole, word

if TYPE_CHECKING:
    from discreet.noise import RandomSource
    from discreet.privacy.budget import Budget
    from discreet.privacy.estimate import Estimate
    from discreet.questions.answer import Data


@dataclass(frozen=True, kw_only=True)
class Distinct(Question):
    """The number of different values of a column."""

    name: ClassVar[str] = "distinct"
    asks: ClassVar[str] = "Publish how many different values a column has."
    example: ClassVar[str] = "distinct access.log --column path --user ip --epsilon 1"

    column: str | None = word(None, "Column whose different values are counted.", column())
    max_items: int | None = word(
        None, "Count at most N values of each person; chosen privately if not given.", whole(1),
        old=("max_items_per_user",),
    )  # fmt: skip
    confidence: float = word(0.95, "Probability with which the interval holds.", share())

    rules: ClassVar[tuple[Refusal, ...]] = (
        *Question.rules,
        Refusal("{by} and {every} need {column}", lambda q: q.is_grouped and not q.column),
        Refusal(
            "{max_items} is missing; values of people by group need it. It limits the values of a person over "
            "all groups",
            lambda q: q.is_grouped and q.user not in (None, q.column) and q.max_items is None,
        ),
    )

    def way(self, data: Data, budget: Budget) -> Way:
        data.refuse_strict(self)
        if self.grouped_by:
            return self._in_groups(data, budget)
        lists = data.lists and self.user is None
        credited = lists or (self.user is not None and self.user != self.column)
        mechanism = _mechanism(budget, credited, self.people or lists, self.max_items, self.confidence)

        def found() -> Any:
            whose = self.user if credited else None
            rows = data.rows(self, self.column, user=whose, lists=True if data.lists else None)
            if not credited:
                from discreet.engines.different import different_items

                return rows.gathered(different_items, apart="item")
            from discreet.engines.different import Prints
            from discreet.engines.pairs import Pairs

            pairs = rows.gathered(partial(Pairs, prints=Prints(), by_person=True), apart="user")
            return mechanism.count_of(pairs.people, pairs.items)

        draw, cost = of_lists(mechanism) if lists else mechanism, getattr(mechanism, "cost", None)
        return Way(mechanism.name, mechanism.unit, found, draw, costs=lambda: cost)

    def _in_groups(self, data: Data, budget: Budget) -> Way:
        """Values of a group are pairs of it and a value: a row has one of them, and of a person `max_items` count."""
        from discreet.central.row_moments import RowMoments
        from discreet.questions.groups import Grouped, GroupFinder, counted_keys, published, way_of_moments
        from discreet.summaries.moments import GroupSums, ValueMoment

        if self.user is not None and self.user == self.column:
            return way_of_moments(self, data, budget, ValueMoment("count"), None, "people")
        rows = data.rows(self, self.column, user=self.user, **self.in_groups)
        find = GroupFinder(self, budget, rows) if self.people else None
        spent = budget if find is None else find.budget
        unit = User() if self.people else Event()

        def mechanism(groups: int | None) -> RowMoments:
            return RowMoments(spent, ValueMoment("count"), groups, self.confidence, unit, "values", self.max_items)

        assert rows.keys is not None
        listed = rows.keys.many_groups
        made = mechanism(2 if self.people and listed is None else listed)

        def count() -> Any:
            keys, _, pairs = counted_keys(rows, self.people)
            return Grouped.of(rows, keys), pairs

        def draw(found: Any, source: RandomSource) -> Any:
            every, pairs = found
            there, counted = np.arange(len(every.groups)), every.numbers
            if find is not None:
                assert self.max_items is not None
                there = find(replace(every, numbers=every.numbers[pairs.items]), source, pairs.people)
                kept = np.isin(every.numbers, there)
                counted = every.numbers[np.unique(pairs.first_of(kept, self.max_items)[1])]
            sums = np.bincount(counted, minlength=len(every.groups)).astype(np.int64)[there, None]
            drawn = (mechanism(max(len(there), 2)) if find is not None else made)(GroupSums(sums), source)
            if find is not None:
                drawn = replace(drawn, guarantee=find.promised(drawn.guarantee, budget))
            return published(drawn, rows, None, "values", self.confidence, every.groups.take(there[drawn.kept]))

        return Way(f"{made.name}, {self.max_items or 1} of each", unit, count, draw)


def _mechanism(budget: Budget, credited: bool, people: bool, max_items: int | None, confidence: float) -> Any:
    """Values are credited to people, at most this many to each; or one unit changes the number by 1."""
    if credited and max_items is None:
        from discreet.central.chosen_distinct import ChosenDistinct

        return ChosenDistinct(budget, confidence=confidence)
    if credited and max_items is not None:
        from discreet.central.credited_distinct import CreditedDistinct

        return CreditedDistinct(budget, max_items=max_items, confidence=confidence)
    from discreet.central.noisy_count import NoisyCount

    if max_items is not None:
        raise WordError("{max_items} needs {user}: it limits how many values each person is credited with")
    return NoisyCount(budget, User() if people else Event(), "people" if people else "values", confidence)


@function_of(Distinct, first=("budget",))
def distinct(data: Any, *given: Any, **words: Any) -> Estimate:
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
        raise ParameterError("distinct needs column: the name of the column whose values to count")
    found: Estimate = asked_of(Distinct, data, budget, words)
    return found
