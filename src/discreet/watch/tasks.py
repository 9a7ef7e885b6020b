"""What is published at every tick, and a run of it: the mechanism, the rows of its open tick, its latest draw.

A `Task` says which mechanism there is, and how the rows of a tick become the arguments of its step. A `Run` is a task
under way, for `discreet watch` and for the streams of a service alike: the order of a tick is in one place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from discreet import continual
from discreet._data_class import asdict, dataclass, field, replace
from discreet.continual._base import MOST_REMEMBERED
from discreet.events.live_input import LiveInput
from discreet.privacy import Estimate, Guarantee, User
from discreet.privacy.checks import whole_number
from discreet.summaries.memory import COUNTERS

if TYPE_CHECKING:
    from discreet.events.text import Dialect
    from discreet.privacy import Budget, Unit
    from discreet.privacy.ledger import Account
    from discreet.questions.live_question import LiveQuestion
    from discreet.watch.timetable import Days, RunSpan


@dataclass(frozen=True)
class Task:
    """What is published. Its fields are the arguments of the mechanism, and are kept with the state."""

    horizon: int | None  # None: it is not known
    remember: int = field(default=0, kw_only=True)  # over how many ticks increases are published; 0 for none
    mechanism: ClassVar[str]  # its name in `discreet.continual`
    needs_items: ClassVar[bool] = True
    number: ClassVar[str] = ""  # what is published, where that is a number and no list of items

    @property
    def settings(self) -> dict[str, Any]:
        """What must be the same when a state goes on."""
        told = {"class": self.mechanism, **asdict(self)}
        over = told.pop("remember")
        return {**told, "increase": over} if over else told

    @property
    def left_open(self) -> tuple[str, ...]:
        """Settings that nobody gave: a state goes on with those it has."""
        return ()

    def new(self, budget: Budget, payer: Account | None, charge_id: str | None = None) -> Any:
        """The mechanism before its first tick."""
        paid = {"ledger": payer, "charge_id": charge_id}
        return getattr(continual, self.mechanism)(**asdict(self), budget=budget, **paid)

    def of_span(
        self, span: RunSpan, days: Days, budget: Budget, payer: Account | None, charge_id: str | None = None
    ) -> Any:
        """The mechanism of one span of the calendar: this many ticks, and a charge about this span alone."""
        mechanism = replace(self, horizon=span.ticks).new(budget, payer, charge_id)
        mechanism.limit_to(days.spans, days.name(span.begins))
        return mechanism

    def restored(self, data: bytes, payer: Account | None, again: bool = False) -> Any:
        """The mechanism as it was saved; `again` begins a second run."""
        return getattr(continual, self.mechanism).from_bytes(data, ledger=payer, restored=again)

    def add(self, mechanism: Any, values: pa.RecordBatch) -> None:
        """Take rows of the open tick, as the reader has them: columns "item" and "user"."""
        mechanism.add(values.column("item"))

    def described(self, mechanism: Any, release: Any) -> dict[str, Any]:
        """The latest release, as it is printed, with its increase over `remember` ticks once there are this many."""
        if self.number:
            told = {self.number: release, "standard_deviation": mechanism.error(mechanism.tick)}
        else:
            told = release.described()
        since = mechanism.tick - self.remember
        if not self.remember or since < 1:
            return told
        risen = mechanism.increase(since)
        if not isinstance(risen, Estimate):
            return {**told, "increase": risen.to_dict()}
        least = 0 if getattr(self, "window", None) is None else -math.inf  # all only come, but they leave a window
        ends = {"lower": int(max(least, risen.lower)), "upper": int(max(least, risen.upper))}
        rise = {"since": since, "tick": mechanism.tick, "confidence": 0.95, "value": int(risen.value), **ends}
        return {**told, "increase": rise}


@dataclass(frozen=True)
class TopItems(Task):
    """The most frequent items of all ticks so far, or of the last ones."""

    capacity: int | None = None
    window: int | None = None
    memory: str | None = None
    mechanism = "HeavyHitters"

    @property
    def settings(self) -> dict[str, Any]:
        default = COUNTERS if self.memory is None else None
        return {**super().settings, "capacity": default if self.capacity is None else self.capacity}

    @property
    def left_open(self) -> tuple[str, ...]:
        return ("capacity", "memory") if self.capacity is None and self.memory is None else ()


@dataclass(frozen=True)
class Total(Task):
    """The number of events so far. There are no values to add."""

    mechanism = "Counter"
    needs_items = False
    number = "total"


@dataclass(frozen=True)
class Counts(Task):
    """How many rows so far have each item or, with `max_items`, how many people, each with their first items.

    Where rows are sets, a list is one event of a row, and its first `max_items_per_event` different items count.
    Of a person each of its items is a row of theirs.
    """

    universe: tuple[str, ...] | None = None  # None for whatever comes; rows of one item need one
    max_items: int | None = None
    max_items_per_event: int | None = None  # None: a row has one item, or is a person's
    how: str | None = None  # the mechanism of `continual.Histogram`; None for its default
    chosen: int | None = None  # how many items are chosen, where any number of them may be in a row
    switches: int | None = None
    window: int | None = None  # of people
    max_visits: int | None = None
    mechanism = "Histogram"

    @property
    def settings(self) -> dict[str, Any]:
        listed = None if self.universe is None else sha256(json.dumps(self.universe).encode()).hexdigest()
        told = {**super().settings, "universe": listed}
        # Which older states do not say.
        for name in ("max_items_per_event", "how", "chosen", "switches", "window", "max_visits"):
            if told[name] is None:
                del told[name]
        sets = self.max_items_per_event is not None
        return {**told, "class": "Histogram of sets"} if sets else told

    def new(self, budget: Budget, payer: Account | None, charge_id: str | None = None) -> Any:
        how: dict[str, Any] = {"max_items_per_event": self.max_items_per_event or 1}
        if self.max_items is not None:
            how = {"unit": User(self.max_items), "window": self.window, "max_visits": self.max_visits}
        elif self.chosen is not None:
            how = {"k": self.chosen}
        given = {"mechanism": self.how, "switches": self.switches}
        how |= {name: value for name, value in given.items() if value is not None}
        paid: dict[str, Any] = {"ledger": payer, "charge_id": charge_id}
        return continual.Histogram(self.horizon, budget, self.universe, **how, remember=self.remember, **paid)

    def add(self, mechanism: Any, values: pa.RecordBatch) -> None:
        items = values.column("item")
        users = None if self.max_items is None else values.column("user")
        if users is not None and pa.types.is_large_list(items.type):
            items, users = items.flatten(), users.take(pc.list_parent_indices(items))
        mechanism.add(items, users=users)


@dataclass(frozen=True)
class DistinctPeople(Task):
    """The number of different people so far, or in the last ticks. The column of the items is that of the people."""

    window: int | None = None
    max_visits: int | None = None
    mechanism = "DistinctCount"
    number = "people"


def task_of(live: LiveQuestion, horizon: int | None) -> Task:
    """What is published for a question that is asked at every tick, for this many ticks."""
    over = 0 if live.increase is None else whole_number("increase", live.increase, 1, MOST_REMEMBERED)
    if live.total:
        return Total(horizon, remember=over)
    if live.distinct:
        return DistinctPeople(horizon, live.window, live.max_visits, remember=over)
    if live.user is None and live.universe is None and not live.sets:
        return TopItems(horizon, live.capacity, live.window, live.memory, remember=over)
    return counts_of(live, horizon, over)


def counts_of(live: LiveQuestion, horizon: int | None, over: int = 0) -> Counts:
    """The same with a counter for every item, whatever the question is about."""
    how = (live.mechanism, live.k if live.chooses else None, live.switches, live.window, live.max_visits)
    return Counts(horizon, live.universe, live.items_of_a_person, live.items_of_a_row, *how, remember=over)


def reader_of(
    live: LiveQuestion,
    file: str,
    format: str | None,
    dialect: Dialect | None,
    remark: Callable[[str], None],
    encoding: str | None = None,
) -> LiveInput:
    """The rows of a growing input that it is about."""
    query: Any = None
    if live.where is not None:
        from discreet.engines.plain_where import where

        query = where(live.where)
    if live.lookup is not None:
        query = live.lookup.as_texts().over(query)
    item = live.user if live.distinct else None if live.total else live.column
    return LiveInput(
        file,
        format,
        item,
        live.time,
        needs_items=not live.total,
        keep_blank=live.rows is not None,  # a blank row has its place among the rows of a tick
        skip_bad=live.bad_rows == "skip",
        remark=remark,
        user_column=None if live.distinct else live.user,
        dialect=dialect,
        query=query,
        encoding=encoding,
        sets=live.sets,
    )


class Run:
    """A task under way, charged once. NOT private: it has the mechanism's state.

    The rows of the open tick are with the mechanism, or counted: nothing else holds them.

    Args:
        task: What is published.
        mechanism: It, new or restored.
        assumes: What is assumed of the ticks, by the unit that is hidden.
    """

    def __init__(self, task: Task, mechanism: Any, assumes: Callable[[Unit], str]) -> None:
        self.task = replace(task, horizon=mechanism.horizon)
        self.mechanism = mechanism
        self._assumes = assumes
        self._events = 0  # of the open tick
        self._unsaved: tuple[Any] | None = None  # what was drawn, and may not be saved or not be in the ledger

    @property
    def is_over(self) -> bool:
        """Whether the ticks of the horizon are used up."""
        return self.task.horizon is not None and int(self.mechanism.tick) >= self.task.horizon

    @cached_property
    def guarantee(self) -> Guarantee:
        """What all releases of the run together promise, and what that assumes of its ticks."""
        plain: Guarantee = self.mechanism.guarantee
        return plain.assuming(self._assumes(plain.unit))

    @cached_property
    def promise(self) -> dict[str, Any]:
        """The guarantee as it is printed with every tick."""
        return self.guarantee.to_dict()

    def begin(self) -> None:
        """Charge the run, unless that was done."""
        self.mechanism.begin()

    def take(self, values: pa.RecordBatch | None, events: int) -> None:
        """Take events of the open tick: this many, and their values where those matter."""
        self._events += events
        if values is not None and events:
            self.task.add(self.mechanism, values)

    def end(self, save: Callable[[Any], None]) -> None:
        """Draw the open tick, save it, have it in the ledger. After a failure the next call saves the same draw."""

        def keep(release: Any) -> None:
            self._unsaved = (release,)
            save(release)

        if self._unsaved is None:
            self.mechanism.step(*(() if self.task.needs_items else (self._events,)), save=keep)
        else:
            save(*self._unsaved)
            self.settle()
        self._unsaved, self._events = None, 0

    def settle(self) -> None:
        """The ledger has the latest tick when this returns."""
        _ = self.mechanism.last
