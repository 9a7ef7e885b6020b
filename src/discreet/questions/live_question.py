"""LiveQuestion: a question that is asked again at every tick, about all rows that have come until then.

`discreet watch` and the streams of a service are this question, one with options and one with keys of TOML. What is
refused, and in which words, is said here for both; which mechanism answers it is in `discreet.watch.tasks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from discreet._data_class import dataclass
from discreet.errors import ParameterError, WordError
from discreet.questions.question import Worded
from discreet.questions.words import SAID, Refusal, ValueKind, choice, excludes, flag, needs, plain, whole, word
from discreet.questions.words import column as one_column

MAX_ITEMS = 10
_MOST_LISTED = 10_000_000
_MECHANISMS = ("factorised", "tree", "meta", "sparse")


def _texts(path: str, others: Mapping[str, Any]) -> tuple[str, ...]:
    """The items of a universe as a growing input has them: numbers by their digits."""
    from discreet.events.universe import universe_written

    listed = universe_written(path)
    if listed.size is None or listed.size > _MOST_LISTED:
        raise WordError(
            f"{{universe}} must have at most {_MOST_LISTED:,} items here, because every tick counts each of them"
        )
    return tuple(map(str, listed.items(range(listed.size))))


def _alone(name: str, because: str, *others: str) -> tuple[Refusal, ...]:
    return tuple(excludes(name, other, because) for other in others)


@dataclass(frozen=True, kw_only=True)
class LiveQuestion(Worded):
    """The top items so far; with `total` the number of rows, with `distinct` the number of different people."""

    column: str | None = word(None, "Column of the items; by default the only one.", one_column())
    user: str | None = word(None, SAID["user"], one_column())
    max_items: int | None = word(
        None, f"Count the first N different items of a person, or of a set; {MAX_ITEMS} by default.", whole(1)
    )
    sets: bool = word(False, "Rows hold sets of items: JSON lists, or lines of baskets.", flag())
    total: bool = word(False, "Publish the number of rows instead of the top items.", flag())
    distinct: bool = word(False, "Publish the number of different people instead of the top items.", flag())
    universe: tuple[str, ...] | None = word(
        None, "List of all items that may be published, known in advance.", plain("FILE|N|A:B", _texts)
    )
    where: str | None = word(None, SAID["where"], plain("SQL"))
    lookup: Any = word(None, "Public table to join: one row per value of its key.", plain("FILE"))
    on: str | None = word(None, "Column that joins the input and the lookup.", one_column())
    bad_rows: str = word("skip", SAID["bad_rows"], choice("skip", "error"))
    k: int = word(20, "List at most N items.", whole(1), letter="k")
    horizon: str | int | None = word(
        None, "Ticks the budget covers, or a time such as 30d. Without it: for ever, with 1.6 times the noise.",
        plain("N|TIME"),
    )  # fmt: skip
    tick: str | None = word(
        None, "Length of a tick: 30s, 15m, 1h, 1d; by the times of rows, or the clock.", plain("TIME")
    )
    rows: int | None = word(None, "Number of rows in a tick.", whole(1))
    per: str | None = word(
        None, "Start over with every calendar span, such as 1d; hides a person's day. Needs a time column.",
        plain("SPAN"),
    )  # fmt: skip
    zone: str | None = word(None, "Time zone of these spans, such as Europe/Berlin; UTC by default.", plain("ZONE"))
    time: str | None = word(None, SAID["time"], one_column())
    start: str | None = word(None, "First tick; rows before it are left out.", plain("WHEN"))
    late: str | None = word(None, "How long a tick waits for its rows, such as 10m; 0s by default.", plain("TIME"))
    ahead: str | None = word(
        None, "Leave out rows whose time is this far ahead of the clock; 1h by default.", plain("TIME")
    )
    by_clock: bool = word(False, "For live input: let the clock end the ticks, not the rows.", flag())
    window: int | None = word(None, "Count only the last N ticks; by default all since the first.", whole(1))
    max_visits: int | None = word(
        None, "Count the first N visits of a person; a visit ends after a window without rows.", whole(1)
    )
    increase: int | None = word(None, "Also publish how much each tick rose over N ticks; costs nothing.", whole(1))
    mechanism: str | None = word(
        None, "How noise is added over time; by default the most accurate way.",
        choice(*_MECHANISMS),
    )  # fmt: skip
    switches: int | None = word(None, "With mechanism sparse: how often the top K may change; 1 by default.", whole(0))
    capacity: int | None = word(None, "Counters of each sketch; 65,536 by default.", whole(1))
    memory: str | None = word(
        None, "Memory for counters, such as 200MB, instead of their number.", ValueKind(shown="SIZE")
    )

    rules: ClassVar[tuple[Refusal, ...]] = (
        Refusal(
            "a tick is either a time ({tick}, such as 1h) or a number of {rows}: give one of them",
            lambda q: (q.tick is None) == (q.rows is None),
        ),
        excludes("rows", "time", "a tick is this many rows, whenever they come"),
        needs("per", "time", because="a row belongs to the span of its time"),
        needs("zone", "per"),
        excludes("horizon", "per", "every span is a run of its own, for ever"),
        *(needs(name, "time") for name in ("start", "late", "ahead", "by_clock")),
        excludes("window", "total", "{increase} has the number of rows of the last ticks"),
        Refusal(
            "{window} cannot be combined with {universe} or {sets} of rows: {increase} counts rows of the last ticks, "
            "{user} counts people",
            lambda q: q.user is None and (q.universe is not None or q.sets),
            "window",
        ),
        needs("max_visits", "window", because="without it a person counts once, and for ever"),
        needs("max_visits", "user", because="it bounds how often a person counts"),
        Refusal(
            "{window} of people needs {horizon} or {max_visits}: noise must cover how often a person may come back",
            lambda q: q.user is not None and q.horizon is None and q.max_visits is None,
            "window",
        ),
        *_alone("memory", "it sizes the sketches of the top items of rows", "total", "distinct", "user", "universe"),
        *_alone("total", "it counts rows", "distinct", "user", "universe", "column"),
        *_alone("distinct", "it counts people", "column", "universe", "max_items"),
        needs("distinct", "user", because="it counts people"),
        needs("max_items", "user", "sets", because="it bounds what counts of a person, or of a set"),
        *_alone("sets", "it is for the top items", "total", "distinct"),
        *(excludes(name, "sets", "it sizes the sketches of single items") for name in ("capacity", "memory")),
        *_alone("capacity", "it sizes the sketches of the top items of rows", "total", "distinct", "user", "universe"),
        needs("mechanism", "universe", "sets", "user", because="the top items of rows have one mechanism"),
        *_alone("mechanism", "it is for counts of items", "total", "distinct"),
        Refusal(
            "{mechanism} must be factorised or tree where people are hidden ({user})",
            lambda q: q.mechanism in ("meta", "sparse") and q.user is not None,
            "mechanism",
        ),
        Refusal(
            "{mechanism} sparse needs {universe} and {horizon}: it chooses among listed items, for all ticks together",
            lambda q: q.mechanism == "sparse" and (q.universe is None or q.horizon is None),
            "mechanism",
        ),
        Refusal(
            "{mechanism} sparse cannot be combined with {max_items} (any number of items of a set count)",
            lambda q: q.mechanism == "sparse" and q.max_items is not None,
            "mechanism",
        ),
        Refusal("{switches} is for {mechanism} sparse", lambda q: q.mechanism != "sparse", "switches"),
    )

    @property
    def items_of_a_person(self) -> int | None:
        """How many items of a person count; None where rows are counted."""
        return None if self.user is None else self.max_items or MAX_ITEMS

    @property
    def items_of_a_row(self) -> int | None:
        """How many items of a row that is a set count; None where a row has one item, or whole people are hidden."""
        return self.max_items or MAX_ITEMS if self.sets and self.user is None and not self.chooses else None

    @property
    def chooses(self) -> bool:
        """Whether k items are chosen at each tick, of rows that hold any number of them ("meta", "sparse")."""
        return self.mechanism == "sparse" or (self.mechanism == "meta" and self.sets and self.max_items is None)

    def complete(self) -> None:
        if self.universe is not None and not isinstance(self.universe, tuple):
            raise ParameterError(f"universe must be a tuple of texts here, not {type(self.universe).__name__}")
        if self.sets and self.lookup is not None and self.column in self.lookup.columns:
            raise WordError("{sets} are lists in the input; {column} cannot come from {lookup}")
