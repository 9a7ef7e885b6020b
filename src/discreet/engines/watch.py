"""The loop of `discreet watch`: follow an input, put its rows into ticks, publish one release a tick, and survive.

A tick is drawn, then the state with its release and the position after its rows is on disk, then the ledger has it, if
there is one, and only then is it handed out. So what was handed out is never drawn again, and rows of a tick that was
not are read again.

What is published is a `Task`: which mechanism, and how the rows of a tick become the arguments of its step. The rest
(the input, the ticks, the state file) is the same for all.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from discreet import continual
from discreet._version import __version__
from discreet.engines.ticks import Add, End, Rule, Ticker
from discreet.errors import CorruptStateError, ParameterError
from discreet.privacy import User
from discreet.storage import MAGIC, StateFile, locked, open_state, seal_state
from discreet.summaries.memory import COUNTERS

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.events.growing import Growing
    from discreet.privacy import Budget, Guarantee
    from discreet.privacy.ledger import Account

__all__ = ["Counts", "DistinctPeople", "Task", "TopItems", "Total", "Watcher", "watching"]

FAMILY = 150
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Task:
    """What a watch publishes. Its fields are the arguments of the mechanism, and are kept with the state.

    The rows of an open tick are with the mechanism, or counted: nothing else holds them.
    """

    horizon: int | None  # None: it is not known
    mechanism: ClassVar[str]  # its name in `discreet.continual`
    needs_items: ClassVar[bool] = True

    @property
    def settings(self) -> dict[str, Any]:
        """What must be the same when a state goes on."""
        return {"class": self.mechanism, **dataclasses.asdict(self)}

    @property
    def left_open(self) -> tuple[str, ...]:
        """Settings that nobody gave: a state goes on with those it has."""
        return ()

    @property
    def covers(self) -> int | None:
        """How many ticks a release is of; None for all since the first."""
        return None

    def new(self, budget: Budget, payer: Account | None, charge_id: str | None = None) -> Any:
        """The mechanism before its first tick."""
        paid = {"ledger": payer, "charge_id": charge_id}
        return getattr(continual, self.mechanism)(**dataclasses.asdict(self), budget=budget, **paid)

    def restored(self, data: bytes, payer: Account | None, again: bool) -> Any:
        """The mechanism as it was saved; `again` begins a second run."""
        return getattr(continual, self.mechanism).from_bytes(data, ledger=payer, restored=again)

    def add(self, mechanism: Any, values: pa.RecordBatch) -> None:
        """Take rows of the open tick, as the reader has them: columns "item" and "user"."""
        mechanism.add(values.column("item"))

    def step(self, mechanism: Any, events: int, save: Callable[[Any], None]) -> None:
        """End the open tick, which had so many events."""
        mechanism.step(save=save)

    def shown(self, mechanism: Any, release: Any) -> dict[str, Any]:
        """The latest release, as it is printed."""
        return dict(release.described())


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

    @property
    def covers(self) -> int | None:
        return self.window


@dataclass(frozen=True)
class Total(Task):
    """The number of events so far. There are no values to add."""

    mechanism = "Counter"
    needs_items = False

    def step(self, mechanism: Any, events: int, save: Callable[[Any], None]) -> None:
        mechanism.step(events, save=save)

    def shown(self, mechanism: Any, release: Any) -> dict[str, Any]:
        return {"total": release, "standard_deviation": mechanism.error(mechanism.tick)}


@dataclass(frozen=True)
class Counts(Task):
    """How many rows so far have each item or, with `max_items`, how many people, each with their first items."""

    universe: tuple[str, ...] | None = None  # None for whatever comes; rows need one
    max_items: int | None = None
    mechanism = "Histogram"

    @property
    def settings(self) -> dict[str, Any]:
        listed = None if self.universe is None else sha256(json.dumps(self.universe).encode()).hexdigest()
        return {**super().settings, "universe": listed}

    def new(self, budget: Budget, payer: Account | None, charge_id: str | None = None) -> Any:
        how: dict[str, Any] = {"max_items_per_event": 1} if self.max_items is None else {"unit": User(self.max_items)}
        return continual.Histogram(self.horizon, budget, self.universe, **how, ledger=payer, charge_id=charge_id)

    def add(self, mechanism: Any, values: pa.RecordBatch) -> None:
        mechanism.add(values.column("item"), users=None if self.max_items is None else values.column("user"))


@dataclass(frozen=True)
class DistinctPeople(Task):
    """The number of different people so far. The column of the items is that of the people."""

    mechanism = "DistinctCount"

    def shown(self, mechanism: Any, release: Any) -> dict[str, Any]:
        return {"people": release, "standard_deviation": mechanism.error(mechanism.tick)}


@contextmanager
def watching(
    state: Path,
    task: Task,
    budget: Budget,
    payer: Account | None,
    reader: Growing,
    rule: Rule,
    *,
    restored: bool = False,
    undisturbed: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Iterator[Watcher]:
    """A watch, new or gone on with from its state file, which nobody else may use meanwhile.

    A tick is made inside of `undisturbed()`.
    """
    with (
        locked(state) as kept,
        closing(reader),
        closing(Watcher.open(kept, task, budget, payer, reader, rule, restored)) as watcher,
    ):
        watcher.undisturbed = undisturbed
        yield watcher


@dataclass
class Watcher:
    """The mechanism, the input and the file that keeps both together."""

    kept: StateFile
    task: Task
    settings: dict[str, Any]
    mechanism: Any
    reader: Growing
    ticker: Ticker
    input: Any = None  # what the reader needs to go on, beside the position
    published: dict[str, Any] | None = None
    resumed: bool = False
    undisturbed: Callable[[], AbstractContextManager[None]] = nullcontext
    _events: int = 0  # of the open tick

    @property
    def tick(self) -> int:
        """The number of the tick that was published last."""
        return int(self.mechanism.tick)

    @property
    def is_over(self) -> bool:
        """Whether the ticks of the horizon are used up."""
        return self.task.horizon is not None and self.tick >= self.task.horizon

    @property
    def left_out(self) -> dict[str, int]:
        """Rows that are in no tick, by the reason. NOT PRIVATE: for the operator's eyes."""
        return dict(sorted((self.reader.bad + self.ticker.left_out).items()))

    @classmethod
    def open(
        cls,
        kept: StateFile,
        task: Task,
        budget: Budget,
        payer: Account | None,
        reader: Growing,
        rule: Rule,
        restored: bool = False,
    ) -> Watcher:
        """Begin, or go on from the state that there is."""
        settings = {
            **task.settings,
            "budget": str(budget),
            "file": reader.file if reader.file == "-" else "file",
            "ticks": [rule.seconds, rule.by_column, rule.rows],
            "rule": [rule.by_clock, rule.late, rule.ahead, rule.start],
            "columns": list(reader.columns),
            "format": reader.format,
            "bad_rows": "skip" if reader.skip_bad else "error",
            **({} if reader.user_column is None else {"user_column": reader.user_column}),
            "cells": {} if reader.dialect is None else reader.dialect.asked,
            "where": None if reader.query is None else reader.query.text,
        }
        if not kept.exists:
            watcher = cls(kept, task, settings, task.new(budget, payer), reader, Ticker(rule, kept.path.parent))
            watcher.save()  # before the charge: whoever restarts knows its id
            return watcher
        header, payload = read_state(kept)
        settings |= {key: header["settings"][key] for key in task.left_open if key in header["settings"]}
        others = [key for key, value in header["settings"].items() if settings.get(key) != value]  # older ones say less
        if others:
            differ = ", ".join(key.replace("_", " ") for key in others)
            raise ParameterError(f"the state {str(kept.path)!r} belongs to a watch with other settings: {differ}")
        mechanism = task.restored(payload, payer, restored)
        position = header["position"]
        ticker = Ticker(
            rule, kept.path.parent, header["now"], position, header.get("read", position), header.get("then")
        )
        watcher = cls(
            kept, task, settings, mechanism, reader, ticker, header.get("input"), header["published"], resumed=True
        )
        if restored:
            if watcher.published is not None:
                dates = End(watcher.published.get("start"), watcher.published.get("end"))
                watcher.published = watcher._shown(mechanism.last, dates)
            watcher.save()  # before the second charge, for the same reason as above
        return watcher

    def save(self) -> None:
        """Put everything on disk at once: where we are, what was published, and the mechanism."""
        header = {"settings": self.settings, **self.ticker.saved(), "input": self.input, "published": self.published}
        text = json.dumps(header).encode()
        self.kept.replace(seal_state(FAMILY, 2, len(text).to_bytes(8, "little") + text + self.mechanism.to_bytes()))

    @property
    def guarantee(self) -> Guarantee:
        """What all releases together promise, and what is public beside them."""
        plain: Guarantee = self.mechanism.guarantee
        assumed = self.ticker.rule.assumption
        if isinstance(plain.unit, User):
            assumed = self.ticker.rule.assumption_for("a person who is left out leaves blank rows")
        return dataclasses.replace(plain, assumptions=(*plain.assumptions, assumed))

    def run(self, once: bool) -> Iterator[dict[str, Any]]:
        """The releases, each after it is on disk; first the last one again, in case nobody saw it.

        With `once` a file that is read to its end is whole.
        """
        if self.published is not None:
            yield self.published
        self.reader.open(self.ticker.position, self.input)
        if self.ticker.begin(time.time()):
            self.save()
        rule, is_pipe = self.ticker.rule, self.reader.file == "-"
        if is_pipe or (rule.rows is None and not rule.by_column):
            # Of a second run: ticks that were published, whose rows are gone or whose time is over.
            while self.mechanism.next_is_published:
                self._release(End())
        while not self.is_over:
            for step in self._round(once and not is_pipe):
                if isinstance(step, Add):
                    self._events += step.events
                    if step.values is not None and step.events:
                        self.task.add(self.mechanism, step.values)
                else:
                    yield self._release(step)
                    if self.is_over:
                        return
            if self.reader.ended or (once and not is_pipe and not self.reader.more()):
                return  # standard input that is silent has not ended
            self.reader.wait(_POLL_SECONDS)

    def _round(self, is_whole: bool) -> Iterator[Add | End]:
        """What there is at one moment: the rows that are there now, then the ticks that have ended by now."""
        clock, ticker = time.time(), self.ticker
        for batch in self.reader.available():
            yield from ticker.take(batch, clock)
        if is_whole and not self.reader.more():
            for batch in self.reader.rest():
                yield from ticker.take(batch, clock)
        yield from ticker.finish(clock) if self.reader.ended else ticker.due(clock)

    def close(self) -> None:
        """Forget the rows that wait for their ticks: they are read again."""
        self.ticker.close()

    def _release(self, end: End) -> dict[str, Any]:
        events, self._events = self._events, 0

        def keep(release: Any) -> None:
            self.input = self.reader.saved(self.ticker.saved()["position"])
            self.published = self._shown(release, end)
            self.save()

        with self.undisturbed():
            self.task.step(self.mechanism, events, keep)
        assert self.published is not None
        return self.published

    def _shown(self, release: Any, end: End) -> dict[str, Any]:
        """The release of the latest tick, as it is printed."""
        first = 1 if self.task.covers is None else max(1, self.tick - self.task.covers + 1)
        dates = {} if end.start is None else {"start": end.start, "end": end.end}
        return {
            "tick": self.tick,
            "covers": {"first_tick": first, "last_tick": self.tick},
            **dates,
            **self.task.shown(self.mechanism, release),
            "guarantee": self.guarantee.to_dict(),
            "parameters": {"horizon": self.task.horizon},
            "version": __version__,
        }


def read_state(kept: StateFile) -> tuple[dict[str, Any], bytes]:
    """The header and the mechanism's state. Version 1 had no envelope: the length, the header, the mechanism."""
    data = kept.read()
    sealed = data.startswith(MAGIC)
    if sealed:
        data = open_state(data, FAMILY, 2)[1]
    length = int.from_bytes(data[:8], "little")
    header = None
    with suppress(ValueError, RecursionError):
        header = json.loads(data[8 : 8 + length])
    if not isinstance(header, dict) or not (sealed or header.get("version") == 1):
        raise CorruptStateError(f"{str(kept.path)!r} is not the state of a watch that this version can read")
    return header, data[8 + length :]
