"""One run of a stream whose raw events wait in a spool: begun and charged once, fed with records, one step a tick.

Streams of a curator run the tasks of `discreet watch`; a survey gathers reports. `pan_stream` has the streams without a
spool.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Callable, Sequence
from copy import copy
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from discreet import multiparty
from discreet.errors import CorruptStateError, MessageError
from discreet.events.times import seconds_of_column
from discreet.privacy import Guarantee
from discreet.releases.payment import begin
from discreet.service.definitions import StreamDefinition
from discreet.service.event_spool import Record
from discreet.storage import open_state, seal_state
from discreet.watch.tasks import Run, Task, counts_of, task_of
from discreet.watch.timetable import RunSpan

if TYPE_CHECKING:
    from discreet.privacy.ledger import Account

CONFIDENCE = 0.95
_BY_CLOCK = "ticks end by the clock, also when nothing came; an event is in the tick in which it arrived"
_BY_TIME = (
    "ticks end by the clock, also when nothing came; which day an event is in is decided by its time, and in which "
    "tick of the day it counts by when it arrived"
)
_SURVEY_FAMILY = 151


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


def protocol_of(definition: StreamDefinition, name: str, run: int) -> multiparty.Protocol:
    """The round of a survey: what every client has to know."""
    kind = getattr(multiparty, definition.protocol or "HadamardResponse")
    round_id = f"{name} {definition.digest}" + ("" if run == 1 else f" {run}")
    made: multiparty.Protocol = kind(round_id, definition.budget_of(run), list(definition.options or ()))
    return made


class Survey:
    """Nobody is trusted: reports are private before they come, and what is published is computed from them."""

    def __init__(
        self,
        definition: StreamDefinition,
        name: str,
        run: int,
        account: Account | None,
        charge_id: str | None,
        data: bytes | None,
    ) -> None:
        self.definition = definition
        self._payer: tuple[Any, Any] = account, charge_id
        protocol: Any = protocol_of(definition, name, run)
        if data is None:
            self._token = uuid.uuid4().hex
            self.aggregator: multiparty.Aggregator = protocol.aggregator(max_reports=None)
            return
        _, payload = open_state(data, _SURVEY_FAMILY, 1)
        if len(payload) < 32:
            raise CorruptStateError("the state of a survey is truncated")
        self._token = payload[:32].decode("ascii", "replace")
        self.aggregator = protocol.restore(payload[32:], max_reports=None)

    @property
    def guarantee(self) -> Guarantee:
        """Of every report."""
        return self.aggregator.guarantee

    def begin(self) -> None:
        """Register the survey in the ledger, unless that was done."""
        bill = self.aggregator.protocol.bill
        begin(*self._payer, bill, self._token.encode(), what="survey")

    def to_bytes(self) -> bytes:
        """As private as the reports, which anyone may see."""
        return seal_state(_SURVEY_FAMILY, 1, self._token.encode() + self.aggregator.to_bytes())

    def add(self, records: Sequence[Record]) -> None:
        """Take reports. One whose number was heard before changes nothing."""
        for record in records:
            try:
                self.aggregator.receive(record.data or b"")
            except MessageError:
                continue

    def step(self, save: Callable[[dict[str, Any]], None]) -> None:
        """Publish what the reports so far tell: counts that could be, which add up to them. Nothing random is drawn."""
        options = list(self.definition.options or ())
        counts = self.aggregator.estimate(options, consistent=True)
        lower, upper = counts.bounds(CONFIDENCE)
        rows = [
            {"item": option, "count": round(count), "lower": math.floor(low), "upper": math.ceil(high)}
            for option, count, low, high in zip(options, counts.values, lower, upper, strict=True)
        ]
        save({"items": sorted(rows, key=lambda row: -row["count"]), "reports": self.aggregator.total})

    def settle(self) -> None:
        """The ledger knows no ticks of a survey."""


def run_for(
    definition: StreamDefinition,
    name: str,
    run: int,
    account: Account | None,
    charge_id: str | None,
    data: bytes | None = None,
    span: RunSpan | None = None,
) -> Curated | Survey:
    """A run of a stream with a spool: new, or as it was saved. Without its span, one of the usual length."""
    if definition.kind == "survey":
        return Survey(definition, name, run, account, charge_id, data)
    task = task_for(definition, definition.ticks if span is None else span.ticks)
    if data is not None:
        mechanism = task.restored(data, account)
    elif definition.days is None or span is None:
        mechanism = task.new(definition.budget_of(run), account, charge_id)
    else:
        mechanism = task.of_span(span, definition.days, definition.budget_of(run), account, charge_id)
    return Curated(definition, task, mechanism, span)


def description_of_round(definition: StreamDefinition, name: str, run: int) -> dict[str, Any]:
    """What `discreet.js` needs."""
    made: dict[str, Any] = json.loads(json.dumps(protocol_of(definition, name, run).to_dict()))
    return made
