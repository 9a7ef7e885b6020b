"""Histogram: the count of every item of a public list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

from discreet._data_class import dataclass
from discreet._later import np
from discreet.errors import DataError, WordError
from discreet.privacy.guarantee import Event, User
from discreet.questions.ask import asked_of, function_of
from discreet.questions.question import UNIVERSE, Question, Way, of_lists, way_of
from discreet.questions.words import Refusal, column, whole, word

if TYPE_CHECKING:
    from discreet.central.universe_histogram import UniverseHistogram
    from discreet.events.assembly import Rows
    from discreet.noise import RandomSource
    from discreet.privacy.budget import Budget
    from discreet.questions.answer import Data
    from discreet.releases.release import Release
    from discreet.summaries.people import Counts

_WHOLE = re.compile("-?[0-9]{1,20}")


@dataclass(frozen=True, kw_only=True)
class Histogram(Question):
    """The count of every item of a public list, also of those that did not occur."""

    name: ClassVar[str] = "histogram"
    asks: ClassVar[str] = "Publish the count of every item of a public list."
    example: ClassVar[str] = "histogram access.log --column country --universe countries.txt --epsilon 1"
    rules: ClassVar[tuple[Refusal, ...]] = (
        *Question.rules,
        Refusal("{by} and {every} need {column}", lambda q: q.is_grouped and not q.column),
    )
    only_shown: ClassVar[bool] = True

    column: str | None = word(None, "Column to count; by default the only one.", column())
    universe: Any = word(None, "Public list of the items to count: a file, N for 0 to N-1, or A:B.", UNIVERSE)
    max_items: int | None = word(
        None, "Count the first N listed items of a person; needed for people.", whole(1), old=("max_items_per_user",)
    )

    def complete(self) -> None:
        if self.universe is None:
            raise WordError(
                "{universe} is missing; give N for 0 to N-1, A:B, or a list (a file with one item per line)"
            )

    def way(self, data: Data, budget: Budget) -> Way:
        from discreet.central._base import Prepared
        from discreet.central.universe_histogram import UniverseHistogram

        data.refuse_strict(self)
        people = self.people or data.lists
        if people and self.max_items is None:
            raise WordError(
                "{max_items} is missing; counting people needs it. That many items of each person count, and the noise "
                "grows with it"
            )
        if self.user is not None and self.column is None:
            raise WordError("{user} needs {column}: the column to count")
        if self.grouped_by:
            return self._in_groups(data, budget)
        mechanism = UniverseHistogram(budget, self.universe, User() if people else Event(), self.max_items)
        more = "" if self.max_items is None else f", {self.max_items} items of a person"
        prepared = Prepared(mechanism, budget, described=f"{mechanism.name}, {mechanism.universe.size} items{more}")

        def count() -> Any:
            written_as = None if people else mechanism.universe
            lists = True if data.lists else None
            rows = data.rows(self, self.column, user=self.user, lists=lists, universe=written_as, plain=True)
            if people:
                found = rows.gathered(partial(_of_people, mechanism=mechanism, as_text=data.are_files), apart="user")
            elif rows.elsewhere is not None:
                found = rows.elsewhere.listed_counts(mechanism.universe)
            else:
                found = _of_rows(rows, mechanism)
            mechanism.check(found)
            return found

        def draw(found: Any, source: RandomSource) -> Release:
            return _in_list_order(prepared.draw(found, source), mechanism.universe)

        return way_of(prepared, count, of_lists(draw) if data.lists else draw)

    def _in_groups(self, data: Data, budget: Budget) -> Way:
        """The histogram over all pairs of a group and a listed item: a row is in one, of a person `max_items` count."""
        from discreet._data_class import replace
        from discreet.central.universe_histogram import UniverseHistogram
        from discreet.questions.groups import Grouped, GroupFinder, counted_keys

        rows = data.rows(self, self.column, user=self.user, **self.in_groups)
        find = GroupFinder(self, budget, rows)
        items = self.universe.size

        def mechanism(groups: int) -> UniverseHistogram:
            unit = User() if self.people else Event()
            return UniverseHistogram(find.budget, range(groups * items), unit, self.max_items)

        made = mechanism(find.listed or 1)  # which refuses what can be refused

        def count() -> Any:
            from discreet.events.values import parts_of

            keys, times, pairs = counted_keys(rows, self.people)
            assert rows.keys is not None
            places = _places(self.universe, parts_of(rows.keys.struct(keys))[-1], data.are_files)
            return Grouped.of(rows, keys), places, times, pairs

        def draw(found: Any, source: RandomSource) -> Release:
            import numpy as np
            import pyarrow as pa

            from discreet.events.values import parts_of, taken

            every, places, times, pairs = found
            if pairs is None:
                there = find(every, source, times=times)
            else:
                there = find(replace(every, numbers=every.numbers[pairs.items]), source, pairs.people)
            number = np.full(len(every.groups), -1, np.int64)
            number[there] = np.arange(len(there))
            wanted, cells = (places >= 0) & (number[every.numbers] >= 0), number[every.numbers] * items + places
            if pairs is None:
                cells, times = cells[wanted], times[wanted]
            else:
                cells = cells[pairs.first_of(wanted, self.max_items or 1)[1]]
            many = max(len(there), 1)
            made, counts = mechanism(many), np.bincount(cells, times, many * items).astype(np.int64)
            drawn = made._publish(counts, source).head(len(there) * items)
            group, item = np.divmod(np.array(drawn.items, np.int64), items)
            columns = [taken(column, there[group]) for column in parts_of(every.groups)]
            names = [*self.grouped_by, "item_" if "item" in self.grouped_by else "item"]
            listed = pa.StructArray.from_arrays([*columns, self.universe.take(item)], names)
            promised = find.promised(drawn.guarantee, budget)
            answer = drawn.with_guarantee(promised).with_items(listed, self.grouped_by)
            return _in_list_order(answer, self.universe)

        more = "" if self.max_items is None else f", {self.max_items} items of a person"
        groups = "discovered" if find.listed is None else find.listed
        return Way(f"{made.name}, {items} items, {groups} groups{more}", made.unit, count, draw)


def _in_list_order(answer: Release, universe: Any) -> Release:
    """The items of each group as the list has them."""
    from discreet.events.values import parts_of

    items = answer.item_column
    return answer.in_order_of(universe.positions(parts_of(items)[-1] if answer.by else items))


def _of_rows(rows: Rows, mechanism: UniverseHistogram) -> Counts:
    """The counts of all listed items in rows."""
    from discreet.summaries import ExactCounts

    summary, columns = ExactCounts(), rows.items()  # which refuses lists
    if rows.item_type is not None:
        mechanism.universe.refuse_type(rows.item_type)
    for found in columns:
        for part in known_kinds(found, mechanism.universe):
            summary.update(part, nulls=rows.nulls, bad_items="skip")
    return mechanism.counts(summary)


def _of_people(rows: Rows, mechanism: UniverseHistogram, as_text: bool) -> Counts:
    """The same of people, of whom this many listed items count."""
    from discreet.engines.pairs import Pairs

    if rows.item_type is not None:
        mechanism.universe.refuse_type(rows.item_type)
    pairs, most = Pairs(rows), mechanism.max_items
    assert most is not None
    places = _places(mechanism.universe, pairs.values(), as_text)
    _, items = pairs.first_of(places >= 0, most)
    return np.bincount(places[items], minlength=mechanism.universe.size).astype(np.int64)


def _places(universe: Any, values: Any, as_text: bool) -> Any:
    """The place of every value in the list, or -1. In files numbers may be text, and the other way round."""
    if not as_text:
        return universe.positions(values)
    items = values.to_pylist()
    if universe.has_numbers:
        items = [int(item) if isinstance(item, str) and _WHOLE.fullmatch(item) else item for item in items]
    else:
        items = [str(item) if isinstance(item, int) else item for item in items]
    return np.array([universe.place(item) for item in items], np.int64)


def known_kinds(column: Any, universe: Any) -> Iterator[Any]:
    """A column without the objects that can be in no list. It is refused where none of them can be an item at all.

    Dates, decimals and the like are items, of other kinds than those of a list: it is no error that all of them are.
    """
    from discreet._native import MadeColumn
    from discreet.events.items import is_arrow, item_of, library, objects_of, read, refuse_single
    from discreet.events.tables import type_of
    from discreet.events.values import tagged

    if (kind := read(column, lambda: type_of(column))) is not None:
        universe.refuse_type(kind)  # by the type, and not by the items
    objects = objects_of(column)
    if objects is None and (is_arrow(column) or library(column) or isinstance(column, MadeColumn)):
        yield column
        return
    refuse_single(column)
    values, odd, useful = iter(column if objects is None else objects), False, False
    while part := list(islice(values, _OBJECTS_AT_ONCE)):
        others = [value for value in part if type(value) not in _KNOWN and item_of(value) is None]
        odd, useful = odd or bool(others), useful or len(others) < len(part) or any(map(tagged, others))
        yield [value for value in part if type(value) in _KNOWN or item_of(value) is not None] if others else part
    if odd and not useful:
        raise DataError("the column holds no items; items are texts or whole numbers")


_OBJECTS_AT_ONCE = 1 << 16
_KNOWN = (str, bytes, int, type(None))


@function_of(Histogram, first=("budget",))
def histogram(data: Any, budget: Budget, **words: Any) -> Release:
    """The count of every item of a public list, also of those that did not occur.

        histogram(table, dc.Budget(1.0), column="country", universe=["de", "fr", "it"])
        histogram(table, dc.Budget.zcdp(0.1), column="country", universe=countries, user="visitor", max_items=2)

    Rows stand in the order of the list, within each group. Nothing is held back, so epsilon alone or rho will do
    (`UniverseHistogram`). Items that are not in the list are left
    out, also if all of them are of another kind. A column whose type says that (numbers, and a list of text) is
    refused. With `user` counts are of people, a person is hidden with all of their rows, and the noise grows with
    `max_items`: by this factor for epsilon alone, by its root for rho.
    """
    listed: Release = asked_of(Histogram, data, budget, words)
    return listed
