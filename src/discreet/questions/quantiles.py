"""Quantiles: the values below which given shares of a column of numbers lie."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, ClassVar

from discreet._data_class import dataclass
from discreet._later import np
from discreet.errors import ParameterError, WordError
from discreet.privacy.guarantee import Event, Unit, User
from discreet.questions.ask import asked_of, by_place, function_of
from discreet.questions.question import Question, Way
from discreet.questions.words import Refusal, ValueKind, choice, column, needs, share, two_ends, whole, word

if TYPE_CHECKING:
    from discreet.central.quantile_choice import QuantileChoice
    from discreet.central.quantile_grid import Grid, StepGrid
    from discreet.central.quantile_tree import QuantileTree
    from discreet.events.assembly import Rows
    from discreet.noise import RandomSource
    from discreet.privacy.budget import Budget
    from discreet.questions.answer import Data
    from discreet.releases.group_list import GroupRelease
    from discreet.releases.quantile_list import QuantileRelease

_QUARTILES = (0.25, 0.5, 0.75)


def _shares(name: str, value: Any) -> Any:
    if isinstance(value, (str, bytes)):
        return value  # which is refused by whatever takes shares
    return tuple(value) if hasattr(value, "__iter__") else (value,)


def _ends(name: str, value: Any) -> Any:
    """Two numbers, two dates or two times, which are public; of a question dates and times are written in ISO 8601."""
    given = two_ends(name, value, "numbers, dates or times")
    ends = [end.item() if hasattr(end, "item") else end for end in given]  # of NumPy
    if not any(isinstance(end, (str, datetime.date)) for end in ends):
        return given
    moments = [_moment(end) for end in ends]
    if None in moments:
        wanted = "two finite numbers, two dates (1998-04-22) or two times (1998-04-22T13:05), LOW and HIGH"
        raise ParameterError(f"{name} must be {wanted}; got {given[0]!r} and {given[1]!r}")
    if len({type(moment) for moment in moments}) == 2:  # a date among times is its midnight
        moments = [
            each if isinstance(each, datetime.datetime) else datetime.datetime.combine(each, datetime.time())  # type: ignore[arg-type]
            for each in moments
        ]
    return tuple(moment.isoformat() for moment in moments if moment is not None)


def _ends_from_text(texts: tuple[str, str], others: Mapping[str, Any]) -> Any:
    with suppress(ValueError):
        return tuple(map(float, texts))
    return texts


def _moment(end: Any) -> datetime.date | None:
    """A date, or a time (which is a date of Python's, too); None for anything else."""
    if isinstance(end, datetime.datetime):
        return end.replace(microsecond=0) if end == end else None
    if isinstance(end, datetime.date):
        return end
    with suppress(ValueError, TypeError, AttributeError, IndexError):
        if len(end) == 10:
            return datetime.date.fromisoformat(end)
        if end[4] == "-":
            return datetime.datetime.fromisoformat(end.replace("Z", "+00:00")).replace(microsecond=0)
    return None


def mechanism_for(
    budget: Budget,
    grid: Grid | StepGrid,
    shares: Sequence[float],
    unit: Unit,
    max_rows: int | None = None,
    confidence: float = 0.95,
    named: str = "auto",
    finest: bool = False,
) -> QuantileTree | QuantileChoice:
    """The mechanism of this name; "auto" takes the one whose ranks are off by less, which public numbers say.

    With `finest` a choice is made from as many bins as there may be.
    """
    from discreet.central.quantile_choice import QuantileChoice
    from discreet.central.quantile_grid import finer
    from discreet.central.quantile_tree import QuantileTree

    found: list[QuantileTree | QuantileChoice] = []
    if named != "tree":
        found.append(QuantileChoice(budget, finer(grid) if finest else grid, shares, unit, max_rows, confidence))
    if named != "choice":
        found.append(QuantileTree(budget, grid.listed(), shares, unit, max_rows, confidence))
    return min(found, key=lambda each: each.typical_error)


@dataclass(frozen=True, kw_only=True)
class Quantiles(Question):
    """The values below which given shares of a column lie, of numbers, dates or times: 0.5 is the median."""

    name: ClassVar[str] = "quantiles"
    asks: ClassVar[str] = "Publish quantiles of a column of numbers."
    example: ClassVar[str] = "quantiles sales.csv --column amount --range 0 1000 --quantile 0.5 --epsilon 1"
    holds: ClassVar[str] = "value"

    column: str | None = word(None, "Column of the numbers, dates or times; by default the only one.", column())
    quantiles: tuple[float, ...] = word(
        _QUARTILES, "Share above 0 and below 1; repeat it, at no cost. Quartiles by default.",
        ValueKind(_shares, "SHARE", float, several=True), option="quantile",
    )  # fmt: skip
    range: tuple[Any, Any] | None = word(
        None,
        "Public range, chosen without looking at the data: numbers, dates or times.",
        ValueKind(_ends, "LOW HIGH", values=2, from_text=_ends_from_text),
    )
    scale: str = word(
        "linear", "Divide the range evenly, by ratios, or into whole numbers.", choice("linear", "log", "whole")
    )
    max_rows: int | None = word(
        None, "Number of votes of a person, shared by their rows; 1 by default.", whole(1), old=("max_rows_per_user",)
    )
    bins: int | None = word(
        None, "Number of parts of the range; by default 65,536 or more, or one per day or second.", whole(2, 2**20),
        advanced=True,
    )  # fmt: skip
    confidence: float = word(0.95, "Probability with which all intervals hold together.", share())

    mechanism: str = word(
        "auto", "Tree of noisy counts, or private choice of values; by default the better one.",
        choice("auto", "tree", "choice"), advanced=True,
    )  # fmt: skip

    rules: ClassVar[tuple[Refusal, ...]] = (
        *Question.rules,
        needs("max_rows", "user"),
        Refusal("{by} and {every} need {column}, the column of the numbers", lambda q: q.is_grouped and not q.column),
    )
    no_other_answer: ClassVar[frozenset[str]] = frozenset({"mechanism"})

    def complete(self) -> None:
        if self.range is None:
            raise WordError("{range} LOW HIGH is missing; give a public range, chosen without looking at the data")

    def way(self, data: Data, budget: Budget) -> Way:
        from discreet.central.quantile_grid import grid_of

        assert self.range is not None
        grid = grid_of(self.range, self.bins, self.scale)
        if self.grouped_by:
            return self._in_groups(data, budget, grid)
        mechanism = self._mechanism(budget, grid)
        data.refuse_strict(self)
        if self.user is not None and self.column is None:
            raise WordError("{user} needs {column}: the column with the numbers")
        if self.where is not None and self.column is None and not data.are_files:
            raise WordError("{where} needs {column}: conditions work on the rows of a table")

        def count() -> Any:
            times = grid.kind in ("date", "time")
            rows = data.rows(self, self.column, user=self.user, numbers=True, times=times)
            return rows.gathered(partial(_counts, mechanism=mechanism), apart="user")

        return Way(mechanism.name, mechanism.unit, count, mechanism)

    def _mechanism(self, budget: Budget, grid: Grid | StepGrid) -> QuantileTree | QuantileChoice:
        asked = (budget, grid, self.quantiles, User() if self.people else Event(), self.max_rows, self.confidence)
        return mechanism_for(*asked, self.mechanism, finest=self.bins is None)

    def _in_groups(self, data: Data, budget: Budget, grid: Grid | StepGrid) -> Way:
        """A row is in one group, and a person's rows in all groups share their votes: each group has all the budget."""
        from discreet._data_class import replace
        from discreet.questions.groups import Grouped, GroupFinder

        data.refuse_strict(self)
        rows = data.rows(
            self, None, user=self.user, value=self.column, only_groups=True, times=grid.kind in ("date", "time"),
            **self.in_groups,
        )  # fmt: skip
        find = GroupFinder(self, budget, rows)
        mechanism = self._mechanism(find.budget, grid)

        def count() -> Any:
            from discreet.engines.amounts import Amounts

            return rows.gathered(partial(Amounts, place=mechanism.grid.places), apart="user")

        def draw(found: Any, source: RandomSource) -> GroupRelease:
            import pyarrow as pa

            from discreet.events.values import parts_of, taken
            from discreet.releases.group_list import GroupRelease

            keys = pa.array([], pa.large_binary()) if found.keys is None else found.keys
            every = Grouped.of(rows, keys)
            numbers = every.numbers[found.groups] if found.groups is not None else np.zeros(0, np.int64)
            there = find(replace(every, numbers=numbers), source, found.people)
            all_rows = None if found.people is None else np.bincount(found.people)
            each: Any = replace(mechanism, confidence=1.0 - (1.0 - self.confidence) / max(len(there), 1))
            answers = []
            for group in there.tolist():
                own = numbers == group
                people = None if found.people is None else found.people[own]
                answers.append(each(each.counts(found.places[own], people, all_rows), source))
            shares = mechanism.quantiles
            columns = [taken(column, np.repeat(there, len(shares))) for column in parts_of(every.groups)]
            columns.append(pa.array(list(shares) * len(there), pa.float64()))
            promised = find.promised(replace(mechanism.guarantee, seeded=source.seeded), budget)
            drawn = [row for answer in answers for row in answer]
            kind, free = mechanism.grid.kind, "quantile" if "quantile" not in self.grouped_by else "quantile_"
            return GroupRelease.in_order(
                pa.StructArray.from_arrays(columns, [*self.grouped_by, free]),
                [row.value for row in drawn], [row.lower for row in drawn], [row.upper for row in drawn],
                promised, self.confidence, self.name, kind,
            )  # fmt: skip

        groups = "discovered" if find.listed is None else find.listed
        return Way(f"{mechanism.name}, {groups} groups", mechanism.unit, count, draw)


def _counts(rows: Rows, mechanism: QuantileTree | QuantileChoice) -> Any:
    """What lies in the bins."""
    from discreet.central.quantile_grid import MOST_BINS
    from discreet.engines.amounts import Amounts, counts_of_rows, places_of_rows

    if not rows.of_people and mechanism.grid.bins <= MOST_BINS:
        return mechanism.of_bins(counts_of_rows(rows, mechanism.grid))
    if not rows.of_people:
        return reduce(operator.add, map(mechanism.counts, places_of_rows(rows, mechanism.grid.places)))
    found = Amounts(rows, mechanism.grid.places)
    return mechanism.counts(found.places, found.people)


@function_of(Quantiles, first=("budget", "quantiles"))
def quantiles(data: Any, *given: Any, **words: Any) -> QuantileRelease:
    """The values below which given shares of a column of numbers, dates or times lie: 0.5 is the median.

        quantiles(table, dc.Budget(1.0), [0.5, 0.9], column="amount", range=(0, 1000))                    # hides a row
        quantiles(table, dc.Budget(1.0), [0.5, 0.9], column="amount", range=(0, 1000), user="customer")   # a person

        quantiles(table, dc.Budget(1.0), 0.5, column="day", range=("1990-01-01", "2030-12-31"))           # a date

    The rank of an answer is off by about 1/epsilon rows for one share, 3/epsilon for three, 8/epsilon for nine
    (`QuantileChoice`), and never by much more than 16/epsilon, however many there are (`QuantileTree`). How far the
    value is off depends on how dense the values are there, and the interval says it. With `user` the rows of a person
    share one vote. Ranges of whole numbers have `scale="whole"`; dates and times have answers of their own type.
    """
    budget, words = by_place("quantiles", given, words, ("budget", "quantiles"), ("column", "budget", "quantiles"))
    found: QuantileRelease = asked_of(Quantiles, data, budget, words)
    return found
