"""Count: how many rows or people there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from discreet._data_class import dataclass
from discreet.privacy.guarantee import Event, User
from discreet.questions.ask import asked_of, function_of
from discreet.questions.question import Question, Way
from discreet.questions.words import Refusal, column, share, word

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.privacy.estimate import Estimate
    from discreet.questions.answer import Data


@dataclass(frozen=True, kw_only=True)
class Count(Question):
    """The number of rows, or of people."""

    name: ClassVar[str] = "count"
    asks: ClassVar[str] = "Publish how many rows or people there are."
    example: ClassVar[str] = "count access.log --user ip --epsilon 1"

    column: str | None = word(None, "Count rows that have a value in this column; all by default.", column())
    confidence: float = word(0.95, "Probability with which the interval holds.", share())

    rules: ClassVar[tuple[Refusal, ...]] = (
        *Question.rules,
        Refusal(
            "{column} cannot be combined with {by} or {every} (rows without a group are left out)",
            lambda q: q.column is not None and q.is_grouped,
        ),
        Refusal(
            "people are counted by {user} alone, rows by {column}: give one of them",
            lambda q: q.user is not None and q.column not in (None, q.user),
        ),
    )

    def way(self, data: Data, budget: Budget) -> Way:
        from discreet.central.noisy_count import NoisyCount
        from discreet.engines.different import different_items

        data.refuse_strict(self)
        if self.grouped_by:
            from discreet.questions.groups import way_of_moments
            from discreet.summaries.moments import ValueMoment

            return way_of_moments(self, data, budget, ValueMoment("count"), None, "people" if self.people else "rows")
        unit, what = (User(), "people") if self.people else (Event(), "rows")
        mechanism = NoisyCount(budget, unit, what, self.confidence)

        def found() -> int:
            if self.user is not None:
                return data.rows(self, self.user, of_people=True).gathered(different_items, apart="item")
            rows = data.rows(self, self.column, **({"only_number": True} if self.column is None else {"plain": True}))
            return rows.number()

        return Way(mechanism.name, unit, found, mechanism, costs=lambda: mechanism.cost)


@function_of(Count, first=("budget",))
def count(data: Any, budget: Budget, **words: Any) -> Estimate:
    """How many rows a table has, or with `user` how many different people it has rows of.

        count(table, dc.Budget(1.0))                        # rows; hides one
        count(table, dc.Budget(1.0), user="visitor")        # people; hides one, with all of their rows

    One row, or one person, changes the number by 1: the error is about 3/epsilon at 95 percent (`NoisyCount`).
    """
    found: Estimate = asked_of(Count, data, budget, words)
    return found
