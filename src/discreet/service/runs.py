"""One run of a stream of a curator: begun and charged once, fed with records of events, one step a tick.

It runs the tasks of `discreet watch`. `survey_stream` has the runs of surveys, `pan_stream` those that keep no event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from discreet.errors import ParameterError
from discreet.events.times import seconds_of_column
from discreet.service.definitions import StreamDefinition
from discreet.service.event_spool import Record
from discreet.watch.tasks import Run, Task, counts_of, task_of
from discreet.watch.timetable import RunSpan

if TYPE_CHECKING:
    from discreet.privacy.ledger import Account

CONFIDENCE = 0.95
_USELESS = 1_000_000  # an error larger than this is of use to nobody
_BY_CLOCK = "ticks end by the clock, also when nothing came; an event is in the tick in which it arrived"
_BY_TIME = (
    "ticks end by the clock, also when nothing came; which day an event is in is decided by its time, and in which "
    "tick of the day it counts by when it arrived"
)


def schema_of(definition: StreamDefinition) -> pa.Schema:
    """The columns that are kept of events: those that count, and no others."""
    text = pa.large_string()
    kinds = {"item": pa.large_list(text) if definition.sets else text}
    return pa.schema([(name, kinds.get(name, text)) for name in fields_of(definition)])


def fields_of(definition: StreamDefinition) -> dict[str, str]:
    """The fields of events that count, by what they are to the task: the item, whose event it is."""
    item = definition.column if definition.kind == "top" else None
    whose = definition.user if definition.kind in ("top", "distinct") else None
    named = (("item", item), ("user", whose), ("time", definition.time))
    return {name: field for name, field in named if field is not None}


def task_for(definition: StreamDefinition, ticks: int) -> Task:
    """What a stream of a trusted curator publishes; of a top list without a capacity every item has its counter."""
    live = definition.live
    assert live is not None
    if definition.kind == "top" and definition.capacity is None:
        return counts_of(live, ticks)
    return task_of(live, ticks)


def number_shown(value: float, deviation: float) -> dict[str, Any]:
    """A count with its interval; nothing is below 0."""
    reach = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * deviation + 0.5
    low, high = math.floor(value - reach), math.ceil(value + reach)
    shown = {"value": max(round(value), 0), "lower": max(low, 0), "upper": max(high, 0)}
    return {**shown, "basis": round(value)} if value < 0 else shown


def reach(deviation: float) -> int:
    """How far above a count its interval goes."""
    shown = number_shown(1e15, deviation)
    return int(shown["upper"] - 10**15)


def warnings_of(definition: StreamDefinition, run: int, publisher: Any) -> list[str]:
    """What anyone who begins or reads a horizon of the stream should know: a promise of nothing, a number of no use."""
    weak = definition.budget_of(run).weakness
    found = [] if weak is None else [f"{weak[0].upper()}{weak[1:]}."]
    if _useless(definition, publisher):
        found.append(
            "The noise is larger than any count that is likely: at this budget the numbers are of no use. Take "
            "longer ticks, a shorter horizon, or a larger epsilon."
        )
    return found


def _useless(definition: StreamDefinition, publisher: Any) -> bool:
    if definition.kind == "survey":
        return False  # more answers help
    if definition.trust == "pan":
        try:
            return bool(publisher.accurate_from(1.0) > _USELESS)
        except ParameterError:
            return True
    if definition.capacity is not None:
        return False
    return reach(publisher.error(publisher.horizon)) > _USELESS


def _bound(value: float) -> int | None:
    return None if math.isinf(value) else int(value)


def items_shown(release: Any, k: int | None) -> dict[str, Any]:
    """The items of a release with their intervals: those that `service check` states, unless more than k passed."""
    release = copy(release)
    release.error_model = release.error_model.of_at_least(k or 1)
    lower, upper = release.bounds(CONFIDENCE)
    basis = (release.counts if release.followed is None else release.followed).tolist()
    rows = zip(release.items, release.counts.tolist(), lower.tolist(), upper.tolist(), basis, strict=True)
    shown = [
        {"item": item, "count": max(count, 0), "lower": _bound(max(low, 0)), "upper": _bound(max(high, 0))}
        | ({} if counted == max(count, 0) else {"basis": counted})
        for item, count, low, high, counted in rows
    ]
    # Increases need to know of how many items those that are shown were selected.
    passed = release.error_model.noise.draws
    selected = release.error_model.of_published or release.followed is not None
    more = {"listed": passed} if selected and passed > (k or 1) else {}
    return {"items": shown if k is None else shown[:k], **more}


class Curated(Run):
    """Raw events are with a trusted curator: `continual`."""

    def __init__(self, definition: StreamDefinition, task: Task, mechanism: Any, span: RunSpan | None) -> None:
        super().__init__(task, mechanism, lambda _: _BY_CLOCK if definition.time is None else _BY_TIME)
        self.definition = definition
        self._schema = schema_of(definition)
        self._span = (-math.inf, math.inf)  # the times of events that count
        if definition.days is not None and span is not None:
            self._span = definition.days.begin(span.begins), span.ends

    @classmethod
    def of(
        cls,
        definition: StreamDefinition,
        run: int = 1,
        account: Account | None = None,
        charge_id: str | None = None,
        data: bytes | None = None,
        span: RunSpan | None = None,
    ) -> Curated:
        """A run of a stream: new, or as it was saved. Without its span, one of the usual length."""
        task = task_for(definition, definition.ticks if span is None else span.ticks)
        if data is not None:
            mechanism = task.restored(data, account)
        elif definition.days is None or span is None:
            mechanism = task.new(definition.budget_of(run), account, charge_id)
        else:
            mechanism = task.of_span(span, definition.days, definition.budget_of(run), account, charge_id)
        return cls(definition, task, mechanism, span)

    def to_bytes(self) -> bytes:
        """NOT PRIVATE."""
        data: bytes = self.mechanism.to_bytes()
        return data

    def add(self, records: Sequence[Record]) -> None:
        """Take events of the open tick."""
        if not len(self._schema):
            self.take(None, sum(record.rows for record in records))
            return
        batches = [
            pa.ipc.read_record_batch(pa.py_buffer(record.data), self._schema) for record in records if record.data
        ]
        if batches:
            for batch in pa.Table.from_batches(batches).combine_chunks().to_batches():
                counted = batch if self.definition.time is None else self._of_span(batch)
                if self.definition.kind == "distinct":
                    counted = counted.rename_columns(["item"])
                self.take(counted if counted.num_columns else None, counted.num_rows)

    def _of_span(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The events of this run by their time alone: any other is of a run before or after, or of none."""
        times = seconds_of_column(batch.column("time"))
        low, high = self._span
        kept = batch.filter(pa.array((times >= low) & (times < high)))
        return kept.select([name for name in kept.schema.names if name != "time"])

    def step(self, save: Callable[[dict[str, Any]], None]) -> None:
        """Draw the open tick, save it, have it in the ledger."""
        self.end(lambda release: save(self._numbers(release)))

    def _numbers(self, release: Any) -> dict[str, Any]:
        if self.definition.kind == "top":
            return items_shown(release, self.definition.k)
        return number_shown(release, self.mechanism.error(self.mechanism.tick))
