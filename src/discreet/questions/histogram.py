"""Histogram: the count of every item of a public list."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.errors import WordError
from discreet.privacy.unit import Event, User
from discreet.questions.ask import asked_of, function_of
from discreet.questions.question import Question, Way, of_lists, universe_kind, way_of
from discreet.questions.words import column, whole, word

if TYPE_CHECKING:
    from discreet.noise import RandomSource
    from discreet.privacy.budget import Budget
    from discreet.privacy.ledger import Account
    from discreet.questions.data import Data
    from discreet.releases.release import Release

__all__ = ["Histogram", "histogram"]

_WHOLE = re.compile("-?[0-9]{1,20}")


@dataclass(frozen=True, kw_only=True)
class Histogram(Question):
    """The count of every item of a public list, also of those that did not occur."""

    name: ClassVar[str] = "histogram"
    only_shown: ClassVar[bool] = True

    column: str | None = word(None, "Column to count; by default the only one.", column())
    universe: Any = word(None, "List of the items to count, which is public.", universe_kind())
    max_items: int | None = word(
        None, "Count the first N listed items of a person; needed for people.", whole(1), old=("max_items_per_user",)
    )

    def complete(self) -> None:
        if self.universe is None:
            raise WordError("{universe} is needed: N for 0 to N-1, A:B, or a list (a file with one item a line)")

    def way(self, data: Data, budget: Budget) -> Way:
        from discreet.central.prepared import Prepared
        from discreet.central.universe_histogram import UniverseHistogram
        from discreet.questions.data import Selection

        lists = bool(data.lists)
        people = self.people or lists
        if people and self.max_items is None:
            raise WordError(
                "{max_items} is needed where people are counted: the first so many listed items of a person count, and "
                "the noise grows with it"
            )
        mechanism = UniverseHistogram(budget, self.universe, User() if people else Event(), self.max_items)
        more = "" if self.max_items is None else f", {self.max_items} items of a person"
        prepared = Prepared(mechanism, budget, described=f"{mechanism.name}, {mechanism.universe.size} items{more}")
        wanted = Selection(
            columns=() if self.column is None else (self.column,), user=self.user, joint=False,
            lists=True if lists else None, where=self.where, nulls=self.nulls, bad_rows=self.bad_rows,
        )  # fmt: skip
        if self.user is not None and self.column is None:
            raise WordError("{user} needs {column}, the column of the items")

        def count() -> Any:
            rows = data.rows(wanted)
            return self._of_people(mechanism, rows.owned(), data) if people else self._of_rows(mechanism, rows)

        return way_of(prepared, count, of_lists(prepared.draw) if lists else None)

    def _of_rows(self, mechanism: Any, rows: Any) -> Any:
        from discreet.questions.data import single_items
        from discreet.summaries import ExactCounts

        summary = ExactCounts()
        for part in single_items(rows, mechanism.universe):
            summary.update(part, nulls=self.nulls, bad_items="skip")
        return summary

    def _of_people(self, mechanism: Any, found: Any, data: Data) -> Any:
        import numpy as np

        from discreet.engines.pairs import Pairs
        from discreet.summaries import ExactCounts

        if found.item_type is not None:
            mechanism.universe.refuse_type(found.item_type)
        pairs, summary = Pairs(found, self.nulls), ExactCounts()
        values = pairs.values()
        places = _places(mechanism.universe, values, data.has_texts)
        items = pairs.first_of(places >= 0, mechanism.max_items)
        summary.update(mechanism.universe.take(places[items]) if len(items) else np.zeros(0, np.int64))
        return summary


def _places(universe: Any, values: Any, has_texts: bool) -> Any:
    """The place of every value in the list, or -1. In files numbers may be text, and the other way round."""
    if not has_texts:
        return universe.positions(values)
    import numpy as np

    items = values.to_pylist()
    if universe.has_numbers:
        items = [int(item) if isinstance(item, str) and _WHOLE.fullmatch(item) else item for item in items]
    else:
        items = [str(item) if isinstance(item, int) else item for item in items]
    return np.array([universe.place(item) for item in items], np.int64)


@function_of(Histogram, first=("budget",))
def histogram(
    data: Any,
    budget: Budget,
    *,
    ledger: Account | None = None,
    charge_id: str | None = None,
    request: str | None = None,
    source: RandomSource | None = None,
    **words: Any,
) -> Release:
    """The count of every item of a public list, also of those that did not occur.

        histogram(table, dc.Budget(1.0), column="country", universe=["de", "fr", "it"])
        histogram(table, dc.Budget.zcdp(0.1), column="country", universe=countries, user="visitor", max_items=2)

    Nothing is held back, so epsilon alone or rho will do (`UniverseHistogram`). Items that are not in the list are left
    out, also if all of them are of another kind. A column whose type says that (numbers, and a list of text) is
    refused. With `user` counts are of people, a person is hidden with all of their rows, and the noise grows with
    `max_items`: by this factor for epsilon alone, by its root for rho.
    """
    listed: Release = asked_of(Histogram, words, data, budget, ledger, charge_id, request, source)
    return listed
