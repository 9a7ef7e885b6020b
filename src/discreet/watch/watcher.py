"""The loop of `discreet watch`: follow an input, put its rows into ticks, publish one release a tick, and survive.

A tick is drawn, then the state with its release and the position after its rows is on disk, then the ledger has it, if
there is one, and only then is it handed out. So what was handed out is never drawn again, and rows of a tick that was
not are read again.

What is published is a `Task` (`tasks`). The rest (the input, the ticks, the state file) is the same for all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet._data_class import dataclass
from discreet._version import __version__
from discreet.errors import CorruptStateError, ParameterError
from discreet.privacy.checks import numbered
from discreet.storage import MAGIC, StateFile, locked, open_state, seal_state
from discreet.watch.tasks import Run, Task
from discreet.watch.ticks import Add, End, Rule, Ticker
from discreet.watch.timetable import RunSpan

if TYPE_CHECKING:
    from discreet.events.live_input import LiveInput
    from discreet.privacy import Budget
    from discreet.privacy.ledger import Account

FAMILY = 150
_POLL_SECONDS = 0.2
_IF_GIVEN = (
    "increase", "max_items_per_event", "how", "chosen", "switches", "window", "max_visits", "sets", "encoding", "per",
)  # fmt: skip
"""Settings that a state has only where they were given: to give one later is to change it."""
_SAID = {"how": "mechanism", "chosen": "k", "max_items_per_event": "max_items"}  # as they are asked for


@contextmanager
def watching(
    state: Path,
    task: Task,
    budget: Budget,
    payer: Account | None,
    reader: LiveInput,
    rule: Rule,
    *,
    restored: bool = False,
    undisturbed: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Iterator[Watcher]:
    """A watch, new or gone on with from its state file, which nobody else may use meanwhile."""
    with locked(state) as kept, closing(reader):
        watcher = Watcher.open(kept, task, budget, payer, reader, rule, restored)
        watcher.undisturbed = undisturbed
        with closing(watcher.ticker):  # rows that wait for their ticks are read again
            yield watcher


@dataclass
class Watcher:
    """The run, the input and the file that keeps both together."""

    kept: StateFile
    run: Run
    begun: Callable[[RunSpan], Run]  # a new run, where every span of the calendar has one
    settings: dict[str, Any]
    reader: LiveInput
    ticker: Ticker
    span: int | None = None  # which of them the run is for; None before the first
    input: Any = None  # what the reader needs to go on, beside the position
    published: dict[str, Any] | None = None
    resumed: bool = False
    undisturbed: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def left_out(self) -> dict[str, int]:
        """Rows that are in no tick, by the reason. NOT PRIVATE: for the operator's eyes."""
        return dict(sorted((self.reader.bad + self.ticker.left_out).items()))

    @property
    def remarks(self) -> list[str]:
        """What waits, and what was left out, for the operator, who has the data. NOT PRIVATE."""
        lag = getattr(self.reader.source, "lag", None)  # of a queue
        told = [f"waiting in the queue: {numbered(lag, 'message')}"] if lag else []
        counts = ", ".join(f"{count:,}: {reason}" for reason, count in self.left_out.items())
        return [*told, f"rows left out since the start (not private: do not publish): {counts}"] if counts else told

    @property
    def reached(self) -> str:
        """How far it is."""
        tick, horizon = self.run.mechanism.tick, self.run.task.horizon
        return f"tick {tick}" if horizon is None else f"tick {tick} of {horizon}"

    @classmethod
    def open(
        cls,
        kept: StateFile,
        task: Task,
        budget: Budget,
        payer: Account | None,
        reader: LiveInput,
        rule: Rule,
        restored: bool = False,
    ) -> Watcher:
        """Begin, or go on from the state that there is."""
        settings = {
            **task.settings,
            "budget": str(budget),
            "file": reader.topic or (reader.file if reader.file == "-" else "file"),
            "ticks": [rule.seconds, rule.by_column, rule.rows],
            "rule": [rule.by_clock, rule.late, rule.ahead, rule.start],
            "columns": list(reader.columns),
            "format": reader.format,
            "bad_rows": "skip" if reader.skip_bad else "error",
            **({} if reader.user_column is None else {"user_column": reader.user_column}),
            "cells": {} if reader.dialect is None else reader.dialect.asked,
            **({"sets": True} if reader.sets else {}),
            **({} if reader.encoding is None else {"encoding": reader.encoding}),
            "where": None if reader.query is None else reader.query.text,
            **({} if rule.days is None else {"per": [rule.days.spans.text, rule.days.spans.zone]}),
        }

        def begun(span: RunSpan) -> Run:
            assert rule.days is not None
            return Run(task, task.of_span(span, rule.days, budget, payer), rule.assumption)

        if not kept.exists:
            run = Run(task, task.new(budget, payer), rule.assumption)
            watcher = cls(kept, run, begun, settings, reader, Ticker(rule, kept.path.parent))
            watcher.ticker.begin(time.time())
            watcher.save()  # before the charge: anyone who restarts knows its id
            return watcher
        header, payload = read_state(kept)
        settings |= {key: header["settings"][key] for key in task.left_open if key in header["settings"]}
        kept_settings = header["settings"]
        others = [key for key, value in kept_settings.items() if settings.get(key) != value]  # older ones say less
        others += [key for key in _IF_GIVEN if settings.get(key) is not None and key not in kept_settings]
        if others:
            differ = ", ".join(_SAID.get(key, key).replace("_", " ") for key in others)
            raise ParameterError(f"the state {str(kept.path)!r} belongs to a watch with other settings: {differ}")
        run = Run(task, task.restored(payload, payer, restored), rule.assumption)
        position = header["position"]
        ticker = Ticker(
            rule, kept.path.parent, header["now"], position, header.get("read", position), header.get("then"),
            header.get("timetable"),
        )  # fmt: skip
        gone_on = {"span": header.get("span"), "input": header.get("input"), "published": header["published"]}
        watcher = cls(kept, run, begun, settings, reader, ticker, **gone_on, resumed=True)
        if restored and watcher.published is not None:
            dates = End(watcher.published.get("start"), watcher.published.get("end"))
            watcher.published = watcher._described(run.mechanism.last, dates)
        if ticker.begin(time.time()) or restored:
            watcher.save()  # before the second charge, for the same reason as above
        return watcher

    def save(self) -> None:
        """Put everything on disk at once: where we are, what was published, and the mechanism."""
        header = {"settings": self.settings, **self.ticker.saved, "input": self.input, "published": self.published}
        if self.span is not None:
            header["span"] = self.span
        text = json.dumps(header).encode()
        self.kept.replace(seal_state(FAMILY, 2, len(text).to_bytes(8, "little") + text + self.run.mechanism.to_bytes()))

    def releases(self, once: bool) -> Iterator[dict[str, Any]]:
        """The releases, each after it is on disk; first the last one again, in case nobody saw it.

        A tick is made, and its reader prints it, inside of `undisturbed()`. With `once` a file that is read to
        its end is whole.
        """
        if self.published is not None:
            with self.undisturbed():
                yield self.published
        self.reader.open(self.ticker.position, self.input)
        rule, is_pipe = self.ticker.rule, self.reader.file == "-"
        if is_pipe or (rule.rows is None and not rule.by_column):
            # Of a second run: ticks that were published, whose rows are gone or whose time is over.
            while self.run.mechanism.next_is_published:
                with self.undisturbed():
                    self._release(End())
        while not self.is_over:
            for step in self._round(once and not is_pipe):
                if rule.days is not None:
                    self._follow(isinstance(step, End))
                if isinstance(step, Add):
                    self.run.take(step.values, step.events)
                else:
                    with self.undisturbed():
                        yield self._release(step)
                    if self.is_over:
                        return
            if self.reader.source.ended or (once and not is_pipe and not self.reader.source.more()):
                return  # standard input that is silent has not ended
            self.reader.source.wait(_POLL_SECONDS)

    @property
    def is_over(self) -> bool:
        """Whether no tick is left. Calendar of the calendar follow each other for ever."""
        return self.ticker.rule.days is None and self.run.is_over

    def _follow(self, ended: bool) -> None:
        """Begin a run where the open tick, or the one that has just ended, is the first of its span.

        What was published last stays in the state, and so does the position: the rows of the new span are read again
        by anyone who restarts. The state is on disk before the charge.
        """
        assert self.ticker.timetable is not None
        span = self.ticker.timetable.of_tick(self.ticker.open_tick - ended)
        if span.number != self.span:
            self.run, self.span = self.begun(span), span.number
            self.save()

    def _round(self, is_whole: bool) -> Iterator[Add | End]:
        """What there is at one moment: the rows that are there now, then the ticks that have ended by now."""
        clock, ticker = time.time(), self.ticker
        for batch in self.reader.available():
            yield from ticker.take(batch, clock)
        if is_whole and not self.reader.source.more():
            for batch in self.reader.rest():
                yield from ticker.take(batch, clock)
        yield from ticker.finish(clock) if self.reader.source.ended else ticker.due(clock)

    def _release(self, end: End) -> dict[str, Any]:
        def keep(release: Any) -> None:
            self.input = self.reader.saved(self.ticker.saved["position"])
            self.published = self._described(release, end)
            self.save()

        self.run.end(keep)
        assert self.published is not None
        return self.published

    def _described(self, release: Any, end: End) -> dict[str, Any]:
        """The release of the latest tick, as it is printed."""
        task, tick = self.run.task, int(self.run.mechanism.tick)
        window: int | None = getattr(task, "window", None)
        first = 1 if window is None else max(1, tick - window + 1)
        dates: dict[str, Any] = {} if end.start is None else {"start": end.start, "end": end.end}
        if self.ticker.rule.days is not None and self.ticker.timetable is not None and self.span is not None:
            begins = self.ticker.timetable.run(self.span).begins
            dates |= {"period": self.ticker.rule.days.name(begins), "final": self.run.is_over}
        return {
            "tick": tick,
            "covers": {"first_tick": first, "last_tick": tick},
            **dates,
            "guarantee": self.run.promise,
            **task.described(self.run.mechanism, release),
            "parameters": {"horizon": task.horizon},
            "version": __version__,
        }


def read_state(kept: StateFile) -> tuple[dict[str, Any], bytes]:
    """The header and the mechanism's state."""
    data, length, header = kept.read(), 0, None
    if data.startswith(MAGIC):
        data = open_state(data, FAMILY, 2)[1]
        length = int.from_bytes(data[:8], "little")
        with suppress(ValueError, RecursionError):
            header = json.loads(data[8 : 8 + length])
    if not isinstance(header, dict):
        raise CorruptStateError(f"{str(kept.path)!r} is not the state of a watch that this version can read")
    return header, data[8 + length :]
