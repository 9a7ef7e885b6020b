"""A private histogram: what every release of counts returns."""

from __future__ import annotations

import copy
import copyreg
import json
import math
import os
from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from discreet import _native
from discreet._later import np, pa
from discreet.errors import CorruptStateError, DataError, DiscreetError, NotPublishedError, ParameterError
from discreet.events.arrow_calls import encoded, filled, of_numbers, sorted_places
from discreet.events.values import (
    ARROW_NAMES,
    as_arrow,
    column_of_plain,
    item_order,
    parts_of,
    plain_column,
    plain_items,
    taken,
)
from discreet.privacy.checks import probability, whole_number
from discreet.privacy.estimate import Estimate
from discreet.privacy.guarantee import Asked, Guarantee
from discreet.releases.error_model import ErrorModel, Noise
from discreet.releases.explain import COUNTED, TOGETHER, intervals_of, missing, pairs_are_listed

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd
    import polars as pl

    from discreet.releases.over_time import Increase, OverTime

Counts: TypeAlias = "npt.NDArray[np.int64]"
Places: TypeAlias = "npt.NDArray[np.int64] | memoryview"

PAYLOAD_VERSION = 4
"""Of what a ledger stores; any other is refused. The next version: write it here, and let `Release.from_payload` first
make its fields of those of this one."""
_ITEM_TYPES = ("int64", "uint64", "large_string", "large_binary", "mixed")
_IN_COLUMNS = "columns"


class Row(NamedTuple):
    """A published item, its noisy count, and bounds that hold together with those of all other rows.

    An item of several columns is a tuple of their values, those of its group first.
    """

    item: Any
    count: int  # type: ignore[assignment]  # tuple.count, which nobody needs of a row
    lower: float
    upper: float


class Release:
    """Published items with noisy counts, largest first, equal counts by item; of a histogram in the order of its list.

    Every item with a count well above the threshold is there with high probability; there may be fewer items than
    were asked for; an item that did not occur is never there (except by a mechanism over a known universe, which says
    so in its guarantee, and rarely a pair of items that both occurred). `guarantee` says what the release promises and
    hides.

    It is a collection of rows: `len(release)`, `for item, count, lower, upper in release`, `release["cats"]` and
    `"cats" in release`. What is not published is not there, whether it occurred or not. A notebook shows it as a table
    with bars.

    Attributes:
        guarantee: What the release promises.
        threshold: The mechanism's cut. For the offset release an item is published iff count - offset >= threshold. Of
            people it is the cut of discovery, in people who have nothing else: listed counts may be below.
        offset: The noisy offset that the offset release publishes; None for the others, and where every shard has its
            own (see `offsets`).
        shard_offsets: For a release in shards: the noisy offset of each. Otherwise None.
        places: For heavy hitters over time: at which place of `error_model.stretches` each item is. Otherwise None.
        followed: For heavy hitters over time: how much of each count came after the item was found. Otherwise None.
        over_time: For a release over time: its tick and its run, and what its noise is made of. Otherwise None.
        total: The noisy length of the stream, when a share of the budget was spent on it; otherwise None.
        steps: Where items have noise of different sizes: how much of each item's count one unit of the noise is,
            float64, read-only. Otherwise None.
        counted: What a count is of: "events", "people" who have the item, "rows" of people, "sums" of their values,
            or the "weights" that events give the item.
        count_name: The name of the column of the counts in tables: "sum" where values or weights were added up, else
            "count".
        left_out: Where contributions of people were bounded: the share of them that is missing in the counts, an
            `Estimate`. What `bounds` then contain is in the notes: of people the true numbers, since upper ends allow
            for what is missing. Otherwise None.
        error_model: The laws from which `bounds` follow. All of it is public.
        asked: What was asked for, and when: columns, k, public parameters. None where nothing says it, as for a
            release over time.
        by: The names of the columns that say the group of an item; empty without groups. Rows are then sorted by
            group, and within a group largest count first.
        in_list_order: Whether the items stand in the order of a public list, and not by count.
    """

    def __init__(
        self,
        items: pa.Array | _native.PlainItems,
        counts: Counts | memoryview,
        guarantee: Guarantee,
        error_model: ErrorModel,
        *,
        threshold: int | float | None = None,
        offset: int | None = None,
        shards: npt.NDArray[np.int32] | memoryview | None = None,
        shard_offsets: Sequence[int] | None = None,
        places: npt.NDArray[np.int32] | None = None,
        followed: npt.NDArray[np.int64] | None = None,
        over_time: OverTime | None = None,
        total: int | None = None,
        total_noise: Noise | None = None,
        steps: npt.NDArray[np.float64] | None = None,
        counted: str = "events",
        left_out: Estimate | None = None,
        asked: Asked | None = None,
        by: Sequence[str] = (),
        groups: pa.Array | None = None,
        in_list_order: bool = False,
    ) -> None:
        if len(items) != len(counts):
            raise ParameterError("items and counts must have the same length")
        if (shards is None) != (shard_offsets is None) or (shards is not None and offset is not None):
            raise ParameterError("a release in shards has the shard of every item and an offset for every shard")
        if shards is not None and shard_offsets is not None:
            known = range(len(shard_offsets))
            if len(shards) != len(counts) or not all(shard in known for shard in set(shards.tolist())):
                raise ParameterError("every item must belong to one of the shards")
        known = range(0 if error_model.stretches is None else len(error_model.stretches.places))
        if (places is None) != (error_model.stretches is None) or (
            places is not None
            and (len(places) != len(counts) or not all(place in known for place in set(places.tolist())))
        ):
            raise ParameterError("every item must be at one of the places of the error model, if that has any")
        if (total is None) != (total_noise is None):
            raise ParameterError("a total needs the law of its noise, and only a total has one")
        if followed is not None and len(followed) != len(counts):
            raise ParameterError("every item must have a number that came after it was found, if any has")
        if counted not in COUNTED:
            raise ParameterError(f"counted must be one of {', '.join(COUNTED)}, not {counted!r}")
        # Text, bytes and whole numbers come in plain memory, for which neither NumPy nor pyarrow is loaded.
        held = isinstance(items, _native.PlainItems)
        plain = held and isinstance(counts, memoryview)
        self._items: pa.Array | _native.PlainItems = as_arrow(items) if held and not plain else items
        self._counts: array[int] | Counts = array("q", bytes(counts)) if plain else np.asarray(counts, dtype=np.int64)
        self._values: list[Any] | None = None
        self._plain: list[tuple[str, list[Any], dict[str, Any]]] | None = None
        self._by_item: dict[Any, Row] | None = None
        self.guarantee = guarantee
        self.error_model = error_model
        self.threshold = threshold
        self.offset = offset
        self._shards = None if shards is None else array("q", shards.tolist())
        self.shard_offsets = None if shard_offsets is None else tuple(int(a0) for a0 in shard_offsets)
        self.places = None if places is None else np.asarray(places, dtype=np.int32)
        self.followed = None if followed is None else np.asarray(followed, dtype=np.int64)
        self.over_time = over_time
        self.earlier: dict[int, Release] = {}  # by tick: those that anyone who made this one remembers
        self.total = total
        self.total_noise = total_noise
        self.steps = None if steps is None else np.array(steps, dtype=np.float64)
        self.counted = counted
        self.count_name = "sum" if counted in ("sums", "weights") else "count"
        self.left_out = left_out
        self.asked = asked
        self.by = tuple(by)
        self.in_list_order = in_list_order
        self._groups = groups  # all of a public list, in order
        # How a ledger paid for it: "charged", "charged before" (and drawn now), "replayed" (and not drawn again), or
        # None without a ledger. It is about this process, not part of what is published.
        self.payment: str | None = None
        # The order is a function of what is published: group, noisy count, then item; or that of a public list.
        if not in_list_order:
            self._take(order_of(self._items, self._counts, len(self.by)))
        elif self.steps is not None:
            self.steps.setflags(write=False)

    @property
    def items(self) -> list[Any]:
        """The published items as Python values, in order; those of several columns are tuples."""
        if self._values is None:
            columns = [column.to_pylist() for _, column in columns_of(self._items)]
            self._values = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
        return list(self._values)

    @property
    def counts(self) -> Counts:
        """The noisy counts, int64, read-only."""
        counts = np.asarray(self._counts)
        counts.setflags(write=False)
        return counts

    @property
    def shards(self) -> npt.NDArray[np.int32] | None:
        """For a release in shards: which one each item belongs to, int32, read-only. Otherwise None."""
        if self._shards is None:
            return None
        shards = np.asarray(self._shards).astype(np.int32)
        shards.setflags(write=False)
        return shards

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of the items in tables: those of the data, or "item" where the data has no name.

        A name that the table has a use for (lower, upper, and `count_name`) has an underscore behind it, as has one
        that an earlier column has.
        """
        names = [name for name, _ in columns_of(self._items)]
        asked = None if self.asked is None else self.asked.columns.get("item")
        own = names[len(self.by) :]
        if isinstance(asked, str):
            many = len(own)
            names[len(self.by) :] = [asked] if many == 1 else [f"{asked}_{place + 1}" for place in range(many)]
        return free_names(names, (self.count_name, "lower", "upper"))

    @property
    def item_column(self) -> pa.Array:
        """The items as one column; of several columns a struct."""
        return as_arrow(self._items)

    @property
    def groups(self) -> dict[Any, Release]:
        """The release of every group, by its value, or by a tuple of values where several columns say it.

        With a public list of groups all of them are there, also those without any item. Empty without groups.
        """
        if not self.by:
            return {}
        found: dict[Any, list[int]] = {}
        if self._groups is not None:
            columns = [column.to_pylist() for column in parts_of(self._groups)]
            found = {group: [] for group in (columns[0] if len(columns) == 1 else zip(*columns, strict=True))}
        for place, item in enumerate(self.items):
            found.setdefault(self._group_of(item), []).append(place)
        in_order = sorted(
            found, key=lambda group: [item_order(part) for part in (group if len(self.by) > 1 else (group,))]
        )
        return {group: copy.copy(self)._take(found[group]) for group in in_order}

    def _group_of(self, item: Any) -> Any:
        return item[0] if len(self.by) == 1 else item[: len(self.by)]

    def __len__(self) -> int:
        return len(self._counts)

    def rows(self, confidence: float = 0.95) -> list[Row]:
        """(item, count, lower, upper), largest count first; see `bounds`."""
        lower, upper = self._ends(confidence)
        columns = (self.items, self._counts.tolist(), lower.tolist(), upper.tolist())
        return [Row(*row) for row in zip(*columns, strict=True)]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    def __getitem__(self, item: Any) -> Row:
        """The row of a published item; `NotPublishedError`, a KeyError, for any other."""
        if isinstance(item, slice):
            raise ParameterError("look up a release by item, not by position; head(k) has the first ones")
        row = self._row(item)
        if row is None:
            raise NotPublishedError("this release does not list that item; it may or may not have occurred")
        return row

    def __contains__(self, item: object) -> bool:
        return self._row(item) is not None

    def _row(self, item: object) -> Row | None:
        if self._by_item is None:
            self._by_item = {row.item: row for row in self.rows()}
        try:
            row = self._by_item.get(item)
        except TypeError:  # a list, which is no item
            return None
        # 1 is neither True nor 1.0.
        return None if row is None or isinstance(item, (bool, float)) != isinstance(row.item, (bool, float)) else row

    @property
    def offsets(self) -> Counts | None:
        """Of an offset release: the offset that belongs to each item. It is listed iff count - offset >= threshold."""
        if self._shards is not None:
            offsets: Counts = np.array(self.shard_offsets, dtype=np.int64)[np.asarray(self._shards)]
            return offsets
        return None if self.offset is None else np.full(len(self), self.offset, dtype=np.int64)

    def with_guarantee(self, guarantee: Guarantee) -> Release:
        """The same rows under another guarantee."""
        changed = copy.copy(self)
        changed.guarantee = guarantee
        return changed

    def head(self, k: int) -> Release:
        """The first k items, of every group where there are such: a function of the release, so it costs nothing."""
        k = whole_number("k", k, 0)
        if not self.by:
            return copy.copy(self) if k >= len(self) else copy.copy(self)._take(range(k))
        starts = self._group_starts()
        place_in_group = np.arange(len(self)) - np.repeat(starts, np.diff(starts, append=len(self)))
        return copy.copy(self)._take(np.flatnonzero(place_in_group < k))

    def first(self, rows: int) -> Release:
        """The first rows, of whichever groups; of those after them nothing is said."""
        part = copy.copy(self)._take(range(min(whole_number("rows", rows, 0), len(self))))
        part._groups = None if rows < len(self) else self._groups
        return part

    def with_items(self, items: pa.Array, by: Sequence[str] = (), groups: pa.Array | None = None) -> Release:
        """The same rows with other names: what stood for the items is replaced, and rows are put in order.

        Args:
            items: A column, or a struct with one for each part.
            by: The names of the first of its parts, which say the group.
            groups: A struct with all groups of a public list.
        """
        if len(items) != len(self):
            raise ParameterError("items and counts must have the same length")
        changed = copy.copy(self)
        changed._items, changed._counts, changed.by, changed._groups = items, self.counts, tuple(by), groups
        changed.in_list_order = False
        return changed._take(order_of(items, self.counts, len(by)))

    def in_order_of(self, places: npt.NDArray[np.int64]) -> Release:
        """The same rows in the order of a public list, within each group; `places` has the place of each."""
        group = np.zeros(len(self), np.int64)
        group[self._group_starts()[1:]] = 1
        group = np.cumsum(group)
        ordered = copy.copy(self)._take(np.lexsort((places, group)).astype(np.int64))
        ordered.in_list_order = True
        return ordered

    def _group_starts(self) -> npt.NDArray[np.int64]:
        """Where each group begins: rows are in the order of the groups."""
        new = np.zeros(len(self), np.bool_)
        new[:1] = True
        for _, column in columns_of(self._items)[: len(self.by)]:
            if pa.types.is_union(column.type):
                values = column.to_pylist()
                new[1:] |= np.array([one != next_one for one, next_one in pairwise(values)], np.bool_)
            else:
                codes = np.asarray(filled(encoded(column).indices, -1))
                new[1:] |= codes[1:] != codes[:-1]
        return np.flatnonzero(new)

    def _take(self, rows: Places | list[int] | range) -> Release:
        """Keep these rows alone, in this order; it is changed in its place."""
        rows = memoryview(array("q", rows)) if isinstance(rows, (list, range)) else rows
        held = self._items
        self._items = held.at(rows) if isinstance(held, _native.PlainItems) else taken(held, rows)
        self._values = self._plain = self._by_item = None
        for name in ("_counts", "_shards", "places", "followed", "steps"):
            numbers = getattr(self, name)
            if isinstance(numbers, array):
                setattr(self, name, array("q", bytes(_native.numbers_at(numbers, rows))))
            elif numbers is not None:
                setattr(self, name, numbers[np.asarray(rows)])
        if self.steps is not None:
            self.steps.setflags(write=False)
        return self

    def bounds(self, confidence: float = 0.95) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """(lower, upper) for every item: with probability `confidence` all of them hold at once.

        They combine the noise and the summary's error, use the published offset, and hold although the items were
        selected by their noisy counts. An upper bound is infinite where nothing finite can be published. An item that
        is listed occurred at least once (unless the mechanism lists items of a known universe).
        """
        lower, upper = self._ends(confidence)
        return np.asarray(lower), np.asarray(upper)

    def _ends(self, confidence: float) -> tuple[Any, Any]:
        """The same in plain memory, where nothing else has loaded NumPy."""
        below: Any
        above: Any
        if self._shards is not None and self.shard_offsets is not None:
            # The law of the offsets' noise counts all of them, so that they hold at once.
            needed = {offset: self.error_model.distances(confidence, offset) for offset in {*self.shard_offsets}}
            of_shards = [needed[offset] for offset in self.shard_offsets]
            below, above = (array("d", [of_shards[shard][side] for shard in self._shards.tolist()]) for side in (0, 1))
        elif self.places is not None:
            of_places = self.error_model.of_places(confidence)
            below, above = (array("d", [of_places[place][side] for place in self.places.tolist()]) for side in (0, 1))
        else:
            below, above = (array("d", [side]) for side in self.error_model.distances(confidence, self.offset))
        if self.steps is not None:
            below, above = (np.ceil(np.asarray(side) * self.steps + 0.5) for side in (below, above))  # they are rounded
        if self.error_model.scaling is not None and self.steps is not None:
            counts = self.counts
            lost = self.error_model.scaling.above(counts + above, self.steps, 1.0 - confidence)
            above = np.maximum(lost, counts + above) - counts
        cut = self.threshold if self.error_model.of_published else None
        return _native.bounds_of(self._counts, below, above, float(self.error_model.lowest), cut)

    def increase(self, since: Release | int, confidence: float = 0.95) -> Increase:
        """How much the counts rose since an earlier tick of the same stream; for releases over time.

        It is computed from the two releases and costs nothing. The noise that both ticks share cancels, so intervals
        are 2 to 4 times narrower than those of the two counts together. All of them hold at once with probability
        `confidence`. Items that the earlier tick does not list have no row (`Increase.appeared`).

        Args:
            since: The earlier release, or the number of its tick where the mechanism was made with `remember`.
            confidence: Of all intervals together.
        """
        if not isinstance(since, Release):
            tick = whole_number("since", since, 1)
            if tick not in self.earlier:
                known = ", ".join(map(str, sorted(self.earlier))) or "none"
                raise ParameterError(
                    f"tick {tick} is not remembered (remembered: {known}): pass the release of that tick, or make the "
                    "mechanism with remember=N to keep the last N"
                )
            since = self.earlier[tick]
        from discreet.releases.over_time import increase_of

        return increase_of(self, since, confidence)

    @property
    def everything_else(self) -> Estimate | None:
        """The number of events of all items that are not listed, at 95 percent confidence; None without a total."""
        return self.rest()

    def rest(self, confidence: float = 0.95) -> Estimate | None:
        """The number of events of all items that are not listed; None unless `total_share` was spent on the length.

        The value is the noisy total minus the listed counts, and at least 0, so the rows add up to the total. The
        interval holds by itself with probability `confidence`: half of what may fail goes to the total's noise, half
        to the bounds of the listed items.
        """
        if self.total is None or self.total_noise is None:
            return None
        half = (1.0 - probability("confidence", confidence)) / 2.0
        around = self.total_noise.bound(half)
        lower, upper = self.bounds(1.0 - half)
        value = max(self.total - int(self.counts.sum()), 0)
        return Estimate(
            value,
            max(self.total - around - float(upper.sum()), 0.0),
            max(self.total + around - float(lower.sum()), float(value)),
            self.guarantee,
        )

    def notes(self) -> list[str]:
        """What was counted and what is missing, in plain sentences; nothing for counts of events."""
        if self.counted == "events":
            return []
        of = COUNTED[self.counted]
        if self.counted == "weights":
            return [f"Counts are {of}."]
        scaling = None if self.error_model.scaling is None else {"covered": self.error_model.scaling.covered}
        told = [f"Counts are {of}. {intervals_of(self.counted, scaling)}"]
        told += [TOGETHER] if pairs_are_listed(self.guarantee.mechanism) else []
        if (left := self.left_out) is not None:
            bounded = scaling is not None and scaling["covered"] is not None
            told.append(missing(left.value, left.lower, left.upper, bounded))
        return told

    def to_arrow(self, confidence: float = 0.95) -> pa.Table:
        """A table with the columns of the items (`names`), their counts (`count_name`), lower and upper.

        Items of several kinds in one column are written as in JSON, all as text.
        """
        lower, upper = self.bounds(confidence)
        columns = {
            name: pa.array(list(map(str, plain_items(column.to_pylist()))), pa.large_string())
            if pa.types.is_union(column.type)
            else column
            for name, (_, column) in zip(self.names, columns_of(self.item_column), strict=True)
        }
        return pa.table({**columns, self.count_name: self.counts, "lower": lower, "upper": upper})

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self, confidence: float = 0.95) -> pd.DataFrame:
        """A data frame with the columns of `to_arrow`."""
        return self.to_arrow(confidence).to_pandas()

    def to_polars(self, confidence: float = 0.95) -> pl.DataFrame:
        """A polars data frame with the columns of `to_arrow`."""
        try:
            import polars as pl
        except ImportError as error:
            raise DiscreetError("to_polars needs polars; install it with pip install polars") from error
        frame = pl.from_arrow(self.to_arrow(confidence))
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_csv(self, path: str | os.PathLike[str] | None = None, confidence: float = 0.95) -> str:
        """The columns of `to_arrow` as CSV, also written to `path` when given. An unknown bound is empty."""
        from discreet.releases.formats import csv_text

        columns = self.columns(confidence)
        text = csv_text(columns, zip(*columns.values(), strict=True))
        if path is not None:
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text)
        return text

    def explain(self) -> str:
        """What the release promises, in words for people who do not know the field; as `discreet explain` prints it."""
        from discreet.releases.explain import explained

        lacks = None if self.left_out is None else self.left_out.numbers()
        scaling = None if self.error_model.scaling is None else self.error_model.scaling.to_dict()
        return explained(self.guarantee.to_dict(), self.counted, lacks, scaling)

    def columns(self, confidence: float = 0.95) -> dict[str, list[Any]]:
        """The columns of `to_arrow`, JSON-ready.

        Bytes are written as hexadecimal, dates, times and decimals as text; an infinite bound is None.
        """
        return dict(zip((*self.names, self.count_name, "lower", "upper"), self._columns(confidence), strict=True))

    def _columns(self, confidence: float) -> list[list[Any]]:
        lower, upper = self._ends(confidence)
        items = [list(values) for _, values, _ in self._plain_columns()]
        return [*items, self._counts.tolist(), numbers(lower.tolist()), numbers(upper.tolist())]

    def _plain_columns(self) -> list[tuple[str, list[Any], dict[str, Any]]]:
        """The columns of the items: their names, values as JSON has them, and what `column_of_plain` needs besides."""
        if self._plain is None:
            self._plain = [(name, *plain_column(column)) for name, column in columns_of(self._items)]
        return self._plain

    def to_dict(self, confidence: float = 0.95) -> dict[str, Any]:
        """A JSON-ready description, with all that `from_json` needs.

        Bytes items are written as hexadecimal; an infinite bound as null.
        """
        fields = self._fields()
        told = (
            *("error_model", "total_noise", "item_type", "item_kinds", "item_columns", *(["by"] if self.by else [])),
            *("groups", "group_columns", "steps", "places", "followed", "over_time", "in_list_order"),
        )
        needed = {name: fields[name] for name in told if fields.get(name) is not None}
        return {"guarantee": self.guarantee.to_dict(), **self.described(confidence), **needed}

    def described(self, confidence: float = 0.95) -> dict[str, Any]:
        """The same without the guarantee and the laws of the noise: what differs from tick to tick."""
        named = (*free_names([name for name, _, _ in self._plain_columns()]), "count", "lower", "upper")
        columns = dict(zip(named, self._columns(confidence), strict=True))
        if self._shards is not None:
            columns["shard"] = self._shards.tolist()
        out: dict[str, Any] = {
            "threshold": self.threshold,
            "offset": self.offset,
            "confidence": confidence,
            "items": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        }
        if self.counted != "events":
            out["counted"] = self.counted
        if self.left_out is not None:
            out["left_out"] = self.left_out.numbers()
        if self.shard_offsets is not None:
            out["shard_offsets"] = list(self.shard_offsets)
        rest = None if self.total is None else self.rest(confidence)
        if rest is not None:
            lower, upper = numbers([rest.lower, rest.upper])
            out["total"] = self.total
            out["everything_else"] = {"count": int(rest.value), "lower": lower, "upper": upper}
        if self.asked is not None:
            out.update(self.asked.to_dict())
        return out

    def to_json(self, confidence: float = 0.95) -> str:
        """The description as JSON text; `from_json` makes an equal release of it."""
        return json.dumps(self.to_dict(confidence), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Release:
        """The release of a JSON text that `to_json` or `discreet top --format json` wrote."""
        try:
            read = json.loads(text)
            rows = read["items"]
            named = [told["name"] for told in read.get("item_columns", ())]
            names = free_names(named) if len(named) > 1 else ("item",)
            columns = {
                "items": [[row[name] for name in names] if named else row["item"] for row in rows],
                "counts": [row["count"] for row in rows],
                "shards": [row["shard"] for row in rows] if "shard_offsets" in read else None,
                "asked": {name: read[name] for name in Asked("").to_dict()} if "time" in read else None,
            }
            return cls._of_fields({"total": None, "total_noise": None, **read, **columns})
        except unreadable():
            # Without the cause: it may quote an item.
            raise DataError("the text is not a release in JSON that this version can read") from None

    def to_payload(self) -> bytes:
        """Everything that was published, as bytes from which `from_payload` makes an equal histogram.

        This is what a ledger stores. Equal histograms have equal payloads.
        """
        return json.dumps(self._fields(), separators=(",", ":"), allow_nan=False).encode("ascii")

    def _fields(self) -> dict[str, Any]:
        columns = self._plain_columns()
        name, values, told = columns[0]
        if len(columns) > 1 or name != "item":
            values, told = [], {"type": _IN_COLUMNS}
        kind = told["type"] if told["type"] in _ITEM_TYPES else _IN_COLUMNS
        fields: dict[str, Any] = {
            "release": "histogram",
            "version": PAYLOAD_VERSION,
            "guarantee": self.guarantee.to_dict(),
            "error_model": self.error_model.to_dict(),
            "threshold": self.threshold,
            "offset": self.offset,
            "total": self.total,
            "total_noise": None if self.total_noise is None else self.total_noise.to_dict(),
            "item_type": kind,
            "items": values,
            "counts": self._counts.tolist(),
        }
        if kind == "mixed":
            fields["item_kinds"] = told["kinds"]
        if self._shards is not None and self.shard_offsets is not None:
            fields |= {"shards": self._shards.tolist(), "shard_offsets": list(self.shard_offsets)}
        if self.places is not None:
            fields["places"] = self.places.tolist()
        if self.followed is not None:
            fields["followed"] = self.followed.tolist()
        if self.over_time is not None:
            fields["over_time"] = self.over_time.to_dict()
        if self.counted != "events":
            fields |= {
                "counted": self.counted,
                "steps": None if self.steps is None else self.steps.tolist(),
                "left_out": None if self.left_out is None else self.left_out.numbers(),
            }
        if self.asked is not None:
            fields["asked"] = self.asked.to_dict()
        if self.in_list_order:
            fields["in_list_order"] = True
        if kind == _IN_COLUMNS:
            fields |= {
                "items": [list(row) for row in zip(*(values for _, values, _ in columns), strict=True)],
                "item_columns": [{"name": name, **of} for name, _, of in columns],
                "by": list(self.by),
                "groups": None,
            }
            if self._groups is not None:
                listed = [plain_column(column) for column in parts_of(self._groups)]
                fields["groups"] = [list(row) for row in zip(*(values for values, _ in listed), strict=True)]
                of_groups = [{"name": name, **of} for name, (_, of) in zip(self.by, listed, strict=True)]
                if of_groups != fields["item_columns"][: len(self.by)]:  # where each value has a kind of its own
                    fields["group_columns"] = of_groups
        return fields

    @classmethod
    def from_payload(cls, payload: bytes) -> Release:
        """The histogram of a payload; `CorruptStateError` for anything else."""
        try:
            fields = json.loads(payload)
            if (fields["release"], fields["version"]) != ("histogram", PAYLOAD_VERSION):
                raise CorruptStateError(f"the payload is not a list of counts of version {PAYLOAD_VERSION}")
            return cls._of_fields(fields)
        except unreadable():
            # Without the cause: it may quote an item.
            raise CorruptStateError(f"the payload is not a list of counts of version {PAYLOAD_VERSION}") from None

    @classmethod
    def _of_fields(cls, fields: dict[str, Any]) -> Release:
        kind, values, groups = fields["item_type"], fields["items"], fields.get("groups")
        by = tuple(fields.get("by") or ())
        if kind == _IN_COLUMNS:
            described = fields["item_columns"]
            array = _struct_of(values, described)
            if [told["name"] for told in described[: len(by)]] != list(by) or (groups is not None and not by):
                raise CorruptStateError("the groups are not columns of the items")
            of_groups = fields.get("group_columns") or described[: len(by)]
            if [told["name"] for told in of_groups] != list(by):
                raise CorruptStateError("the groups are not columns of the items")
            groups = None if groups is None else _struct_of(groups, of_groups, groups=True)
        elif kind in _ITEM_TYPES:
            array = column_of_plain(values, {"type": kind, "kinds": fields.get("item_kinds")})
        else:
            raise CorruptStateError("the items are of an unknown type")
        guarantee = Guarantee.from_dict(fields["guarantee"])
        left_out, steps, shards, places = (fields.get(name) for name in ("left_out", "steps", "shards", "places"))
        followed, over_time = fields.get("followed"), fields.get("over_time")
        if over_time is not None:
            from discreet.releases.over_time import OverTime

            over_time = OverTime.from_dict(over_time)
        return cls(
            array,
            np.array(fields["counts"], dtype=np.int64),
            guarantee,
            ErrorModel.from_dict(fields["error_model"]),
            threshold=fields["threshold"],
            offset=fields["offset"],
            shards=None if shards is None else np.array(shards, dtype=np.int32),
            shard_offsets=fields.get("shard_offsets"),
            places=None if places is None else np.array(places, dtype=np.int32),
            followed=None if followed is None else np.array(followed, dtype=np.int64),
            over_time=over_time,
            total=fields["total"],
            total_noise=None if fields["total_noise"] is None else Noise.from_dict(fields["total_noise"]),
            steps=None if steps is None else np.array(steps, dtype=np.float64),
            counted=fields.get("counted", "events"),
            left_out=None if left_out is None else Estimate(**left_out, guarantee=guarantee),
            asked=None if fields.get("asked") is None else Asked.from_dict(fields["asked"]),
            by=by,
            groups=groups,
            in_list_order=bool(fields.get("in_list_order")),
        )

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        ax: Any = None,
        kind: str = "bars",
        confidence: float = 0.95,
        most: int = 30,
    ) -> Any:
        """A picture of the first `most` items with their intervals; written to `path` (png, svg, pdf) when given.

        An arrow in place of an end says that the bound is not known. Returns the matplotlib figure. Needs the `plot`
        extra. `releases.plot_over_time` draws several releases, one a tick.

        Args:
            path: Where to write it.
            ax: Matplotlib's axes to draw in; by default a new figure.
            kind: "bars", one an item, or "lines": the counts from the largest to the smallest, with a band.
            confidence: Of the intervals, all together.
            most: How many items to draw at most.
        """
        from discreet.releases.plot import plot_histogram

        return plot_histogram(self, path, ax=ax, kind=kind, confidence=confidence, most=most)

    def __repr__(self) -> str:
        from discreet.releases.formats import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from discreet.releases.html import as_html

        return as_html(self)


def unreadable() -> tuple[type[Exception], ...]:
    """What reading something that is no release may raise."""
    return (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, CorruptStateError, pa.ArrowException)


def _struct_of(rows: list[list[Any]], described: list[dict[str, Any]], groups: bool = False) -> pa.Array:
    """The items of rows of values; of one column that, unless they are groups."""
    values = list(zip(*rows, strict=True)) if rows else [()] * len(described)
    columns = [column_of_plain(column, told) for column, told in zip(values, described, strict=True)]
    if len(columns) == 1 and not groups:
        return columns[0]
    return pa.StructArray.from_arrays(columns, [told["name"] for told in described])


def numbers(values: Sequence[float]) -> list[int | float | None]:
    """Bounds as JSON has them: whole ones without a point, an infinite one as null."""
    return [(int(x) if x.is_integer() else x) if math.isfinite(x) else None for x in values]


def columns_of(items: pa.Array | _native.PlainItems) -> list[tuple[str, Any]]:
    """The columns of items, each with the name that it was given, which the release may have another use for."""
    if isinstance(items, _native.PlainItems) or not pa.types.is_struct(items.type):
        return [("item", items)]
    return list(zip([field.name for field in items.type], parts_of(items), strict=True))


def order_of(items: pa.Array | _native.PlainItems, counts: Any, by: int = 0) -> Places:
    """Where rows stand by group (the first `by` columns), noisy count, then item."""
    if isinstance(items, _native.PlainItems):
        return memoryview(_native.release_order(items, counts)).cast("q")
    columns = [column for _, column in columns_of(items)]
    if len(columns) == 1 and not by and columns[0].null_count == 0 and str(columns[0].type) in ARROW_NAMES.values():
        return memoryview(_native.release_order(columns[0], counts)).cast("q")
    if any(pa.types.is_union(column.type) for column in columns):
        listed = zip(*(column.to_pylist() for column in columns), strict=True)
        values = [list(map(item_order, row)) for row in listed]
        places = sorted(range(len(values)), key=lambda i: (values[i][:by], -counts[i], values[i]))
        return np.array(places, np.int64)
    table = pa.table([*columns, of_numbers(np.asarray(counts))], [*map(str, range(len(columns))), "count"])
    keys = [(str(place), "ascending") for place in range(len(columns))]
    return sorted_places(table, [*keys[:by], ("count", "descending"), *keys[by:]])


def free_names(names: Sequence[str], taken: Sequence[str] = ("count", "lower", "upper", "shard")) -> tuple[str, ...]:
    """Names for columns that the release has no other use for (by default rows in JSON), all different.

    A name in `taken`, and one that an earlier column has, gets an underscore, or more until it is free.
    """
    free: list[str] = []
    for place, name in enumerate(names):
        made = name
        while made in taken or made in free or (made != name and made in names[place + 1 :]):
            made += "_"
        free.append(made)
    return tuple(free)


# Items in plain memory are copied and pickled with a release.
copyreg.pickle(_native.PlainItems, lambda items: (_native.PlainItems, (items.kind, items.values, items.offsets)))
