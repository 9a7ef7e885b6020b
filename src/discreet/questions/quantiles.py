"""Quantiles: the values below which given shares of a column of numbers lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.errors import WordError
from discreet.privacy.unit import Event, User
from discreet.questions.ask import asked_of, by_place, function_of
from discreet.questions.question import Question, Way
from discreet.questions.words import Refusal, ValueKind, choice, column, needs, number_range, share, whole, word

if TYPE_CHECKING:
    from discreet.noise import RandomSource
    from discreet.privacy.budget import Budget
    from discreet.privacy.ledger import Account
    from discreet.questions.data import Data
    from discreet.releases.quantile_list import QuantileRelease

__all__ = ["Quantiles", "quantiles"]

_QUARTILES = (0.25, 0.5, 0.75)


def _shares(name: str, value: Any) -> Any:
    if isinstance(value, (str, bytes)):
        return value  # which is refused by whatever takes shares
    return tuple(value) if hasattr(value, "__iter__") else (value,)


@dataclass(frozen=True, kw_only=True)
class Quantiles(Question):
    """The values below which given shares of a column of numbers lie: 0.5 is the median."""

    name: ClassVar[str] = "quantiles"

    column: str | None = word(None, "Column of the numbers; by default the only one.", column())
    quantiles: tuple[float, ...] = word(
        _QUARTILES, "Share above 0 and below 1; repeat it, at no cost. Quartiles by default.",
        ValueKind(_shares, "SHARE", float, several=True), option="quantile",
    )  # fmt: skip
    range: tuple[float, float] | None = word(
        None, "Public range, chosen without looking at the data; values are clipped to it.", number_range()
    )
    scale: str = word("linear", "Divide the range evenly, or by ratios for powers of ten.", choice("linear", "log"))
    max_rows: int | None = word(
        None, "Votes of a person, shared by their rows; 1 by default.", whole(1), old=("max_rows_per_user",)
    )
    bins: int | None = word(
        None, "Parts of the range; 65,536 by default, fewer have less noise.", whole(2, 2**20), advanced=True
    )
    confidence: float = word(0.95, "Probability with which all intervals hold together.", share())

    rules: ClassVar[tuple[Refusal, ...]] = (needs("max_rows", "user"),)

    def complete(self) -> None:
        if self.range is None:
            raise WordError("{range} LOW HIGH is needed: a public range, chosen without looking at the data")

    def way(self, data: Data, budget: Budget) -> Way:
        from discreet.central.quantile_tree import BINS, Grid, QuantileTree

        assert self.range is not None
        grid = Grid(self.range[0], self.range[1], BINS if self.bins is None else self.bins, self.scale)
        unit = User() if self.people else Event()
        mechanism = QuantileTree(budget, grid, self.quantiles, unit, self.max_rows, self.confidence)

        data.refuse_strict(self)
        if self.user is not None and self.column is None:
            raise WordError("{user} needs {column}, the column of the numbers")
        if self.where is not None and self.column is None and not data.are_files:
            raise WordError("{where} needs {column}: it chooses rows of a table")

        def count() -> Any:
            from discreet.engines.amounts import Amounts

            found = Amounts(data.rows(self, self.column, user=self.user, numbers=True), grid.places)
            return mechanism.counts(found.places, found.people)

        return Way(mechanism.name, mechanism.unit, count, mechanism)

    @property
    def columns(self) -> dict[str, Any]:
        named = super().columns
        return {"value" if what == "item" else what: name for what, name in named.items()}


@function_of(Quantiles, first=("budget", "quantiles"))
def quantiles(
    data: Any,
    *given: Any,
    ledger: Account | None = None,
    charge_id: str | None = None,
    request: str | None = None,
    source: RandomSource | None = None,
    **words: Any,
) -> QuantileRelease:
    """The values below which given shares of a column of numbers lie: 0.5 is the median.

        quantiles(table, dc.Budget(1.0), [0.5, 0.9], column="amount", range=(0, 1000))                    # hides a row
        quantiles(table, dc.Budget(1.0), [0.5, 0.9], column="amount", range=(0, 1000), user="customer")   # a person

    All shares come from one look at the data (`QuantileTree`), so more of them cost nothing. The rank of an answer
    is off by about 20/epsilon rows, whatever the range; how far the value is off depends on how dense the values are
    there, and the interval says it. With `user` the rows of a person share one vote.
    """
    budget, words = by_place("quantiles", given, words, ("budget", "quantiles"), ("column", "budget", "quantiles"))
    found: QuantileRelease = asked_of(Quantiles, words, data, budget, ledger, charge_id, request, source)
    return found
