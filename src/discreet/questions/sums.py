"""Sum, mean and variance of a column of numbers, of rows or of people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from discreet._data_class import dataclass
from discreet.errors import WordError
from discreet.questions.ask import asked_of, function_of
from discreet.questions.question import Question, Way
from discreet.questions.words import Refusal, column, number_range, share, word

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.privacy.estimate import Estimate
    from discreet.questions.answer import Data
    from discreet.releases.group_list import GroupRelease
    from discreet.summaries.moments import ValueMoment


@dataclass(frozen=True, kw_only=True)
class NumberQuestion(Question):
    """A number that follows from the values of a column, each clipped to a public range."""

    holds: ClassVar[str] = "value"

    column: str | None = word(None, "Column of the numbers; by default the only one.", column())
    range: tuple[float, float] | None = word(
        None, "Public range, chosen without looking at the data; values are clipped to it.", number_range()
    )
    confidence: float = word(0.95, "Probability with which all intervals hold together.", share())

    rules: ClassVar[tuple[Refusal, ...]] = (
        *Question.rules,
        Refusal("{by} and {every} need {column}, the column of the numbers", lambda q: q.is_grouped and not q.column),
        Refusal("{user} needs {column}: the column with the numbers", lambda q: q.user is not None and not q.column),
    )

    def complete(self) -> None:
        if self.range is None:
            raise WordError(
                "{range} LOW HIGH is missing; give a public range to clip values to, such as 0 120 for an age. Do not "
                "look at the data for it; `discreet quantiles` finds one privately"
            )
        object.__setattr__(self, "range", tuple(map(_number, self.range)))
        self.moment()  # which refuses an invalid range

    def moment(self) -> ValueMoment:
        """What is summed of every value."""
        from discreet.summaries.moments import ValueMoment

        assert self.range is not None
        low, high = self.range
        kind, finest = self.name, 2**30
        if self.people:
            finest = 2**26 if kind == "variance" else 2**20
        if kind == "sum" and self.people:
            kind = "signed" if low >= 0 else "split"
        elif kind == "sum" and not (self.is_grouped and self.groups is None):
            kind = "signed"  # nobody has to know how many rows there are
        return ValueMoment(kind, low, high, finest)

    def way(self, data: Data, budget: Budget) -> Way:
        from discreet.questions.groups import way_of_moments

        if self.where is not None and self.column is None and not data.are_files:
            raise WordError("{where} needs {column}: conditions work on the rows of a table")
        return way_of_moments(self, data, budget, self.moment(), self.column, self.name)


def _number(end: Any) -> Any:
    return end.item() if hasattr(end, "item") else end


@dataclass(frozen=True, kw_only=True)
class Sum(NumberQuestion):
    """The sum of a column of numbers."""

    name: ClassVar[str] = "sum"
    asks: ClassVar[str] = "Publish the sum of a column of numbers."
    example: ClassVar[str] = (
        "sum sales.csv --column amount --range 0 1000 --every 1d --time ts --epsilon 1 --delta 1e-6"
    )


@dataclass(frozen=True, kw_only=True)
class Mean(NumberQuestion):
    """The mean of a column of numbers."""

    name: ClassVar[str] = "mean"
    asks: ClassVar[str] = "Publish the mean of a column of numbers."
    example: ClassVar[str] = "mean sales.csv --column amount --range 0 1000 --user customer --epsilon 1 --delta 1e-6"


@dataclass(frozen=True, kw_only=True)
class Variance(NumberQuestion):
    """The variance of a column of numbers: the mean of squared distances from the mean."""

    name: ClassVar[str] = "variance"
    asks: ClassVar[str] = "Publish the variance of a column of numbers."
    example: ClassVar[str] = "variance sales.csv --column amount --range 0 1000 --epsilon 1"


@function_of(Sum, first=("budget",))
def sum(data: Any, budget: Budget, **words: Any) -> Estimate | GroupRelease:
    """The sum of a column of numbers, of all rows or of every group.

        sum(table, dc.Budget(1.0), column="price", range=(0, 500))                                  # hides a row
        sum(table, dc.Budget(1.0, 1e-6), column="price", range=(0, 500), user="customer")           # a person
        sum(table, dc.Budget(1.0, 1e-6), column="price", range=(0, 500), every="1d", time="ts")     # of every day

    Of rows the error is about 3 max(|low|, |high|)/epsilon at 95 percent (`RowMoments`). A person is hidden with all
    of their rows: anyone who has many is scaled down, and `left_out` says what that leaves out (`PersonMoments`).
    """
    found: Estimate | GroupRelease = asked_of(Sum, data, budget, words)
    return found


@function_of(Mean, first=("budget",))
def mean(data: Any, budget: Budget, **words: Any) -> Estimate | GroupRelease:
    """The mean of a column of numbers, of all rows or of every group.

        mean(table, dc.Budget(1.0), column="bytes", range=(0, 100_000))                             # hides a row
        mean(table, dc.Budget(1.0, 1e-6), column="bytes", range=(0, 100_000), user="visitor")       # a person
        mean(table, dc.Budget(1.0, 1e-6), column="bytes", range=(0, 100_000), by="country")         # of every country

    Of n rows the error is about 2 (high - low)/(epsilon n) at 95 percent (`RowMoments`): the number of rows is part of
    the same answer, and nobody has to know it. With `user` it is the mean of all rows, hiding whole people.
    """
    found: Estimate | GroupRelease = asked_of(Mean, data, budget, words)
    return found


@function_of(Variance, first=("budget",))
def variance(data: Any, budget: Budget, **words: Any) -> Estimate | GroupRelease:
    """The variance of a column of numbers, of all rows or of every group; its root is the standard deviation.

        variance(table, dc.Budget(1.0), column="age", range=(0, 120))

    It is the mean of squared distances from the mean (divided by n, not n - 1), see `mean` for the rest.
    """
    found: Estimate | GroupRelease = asked_of(Variance, data, budget, words)
    return found
