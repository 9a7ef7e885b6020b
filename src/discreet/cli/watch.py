"""`discreet watch`: follow a growing input and publish one release a tick."""

from __future__ import annotations

import datetime
import json
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.interrupts import Interrupted, uninterrupted
from discreet.cli.options import AccountName, Delta, Epsilon, Quiet, Rho, budget_of
from discreet.cli.output import note, printable, table_text
from discreet.errors import CorruptStateError, ParameterError

if TYPE_CHECKING:
    from discreet.cli.rows import Batch, Rows
    from discreet.io.durable import StateFile
    from discreet.privacy.ledger import Account

__all__ = ["watch"]

FAMILY = 150
_POLL_SECONDS = 0.2
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def watch(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file that grows; '-' is standard input.")],
    state: Annotated[
        Path,
        typer.Option(help="The file that keeps where we are; it holds raw counts: protect it.", show_default=False),
    ],
    horizon: Annotated[int, typer.Option(help="The number of ticks that the budget is for.", show_default=False)],
    column: Annotated[str | None, typer.Option(help="The column of the items.", show_default=False)] = None,
    time_column: Annotated[
        str | None,
        typer.Option(help="The column of the times (seconds since 1970, or ISO 8601), for --tick.", show_default=False),
    ] = None,
    tick: Annotated[
        str | None,
        typer.Option(
            help="The length of a tick: 30s, 15m, 1h, 1d; by --time-column, else by the clock.", show_default=False
        ),
    ] = None,
    rows: Annotated[int | None, typer.Option(help="A tick is so many rows.", show_default=False)] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    total: Annotated[
        bool, typer.Option("--total", help="Publish the number of rows instead of the top items.")
    ] = False,
    capacity: Annotated[int, typer.Option(help="The counters of each sketch.")] = 4096,
    window: Annotated[int | None, typer.Option(help="Only the last so many ticks.", show_default=False)] = None,
    k: Annotated[int, typer.Option("-k", "--k", help="How many items to print at most.")] = 20,
    input_format: Annotated[
        str | None, typer.Option(help="csv, tsv, jsonl or text; by default the name tells.", show_default=False)
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop at the end of the file; the last tick stays open.")
    ] = False,
    ledger: Annotated[Path | None, typer.Option(help="The ledger that keeps the budget.", show_default=False)] = None,
    account: AccountName = None,
    restored: Annotated[
        bool,
        typer.Option(
            "--restored",
            help="The state is an older copy and the newer one is lost: pay the budget once more and go on after the "
            "last tick that the ledger knows.",
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Publish at every tick from a growing file or standard input.

    The budget is for all ticks together and is charged once. Killed at any moment and started again with the same state
    file, it goes on: no second charge, no row counted twice, and the tick published last is printed again as it was.
    """
    if (ledger is None) != (account is None):
        raise ParameterError("--ledger and --account go together")
    budget = budget_of(epsilon, delta, rho)
    ticks = Ticks.of(tick, time_column, rows)
    if total and window is not None:
        raise ParameterError("--window is for the top items, not for --total")
    payer: Account | None = None
    if ledger is not None and account is not None:
        from discreet.privacy.ledger import Ledger

        payer = Ledger(ledger).account(account)
    from discreet.cli.rows import Rows

    counted = rows is not None  # a blank row has its place among the rows of a tick
    reader = Rows(file, input_format, None if total else column, time_column, needs_items=not total, keep_blank=counted)
    if total:
        settings: dict[str, Any] = {"class": "Counter", "horizon": horizon}
    else:
        settings = {"class": "HeavyHitters", "horizon": horizon, "capacity": capacity, "window": window}
    from discreet.io.durable import locked

    with locked(state) as kept, closing(reader):
        watcher = Watcher.open(kept, settings, budget, payer, reader, ticks, restored)
        if watcher.resumed and not quiet:
            note(f"going on after tick {watcher.tick} of {horizon}")
        try:
            for result in watcher.run(once):
                _print(result, horizon, k)
        except Interrupted:
            if not quiet:
                note(f"stopped after tick {watcher.tick} of {horizon}; the state file goes on from there")
            return
        if not quiet and watcher.tick >= horizon:
            note(f"the {horizon} ticks are used up")


@dataclass
class Ticks:
    """Where one tick ends and the next begins."""

    seconds: float | None
    by_column: bool
    rows: int | None

    @classmethod
    def of(cls, tick: str | None, time_column: str | None, rows: int | None) -> Ticks:
        if (tick is None) == (rows is None):
            raise ParameterError("say what a tick is: either --tick 1h or --rows 1000")
        if rows is not None:
            if rows < 1 or time_column is not None:
                raise ParameterError("--rows must be at least 1, and goes without --time-column")
            return cls(None, False, rows)
        assert tick is not None
        number, unit = tick[:-1], tick[-1:]
        if not number.isdecimal() or int(number) < 1 or unit not in _UNITS:
            raise ParameterError(f"--tick must be a whole number and s, m, h or d, as in 15m, not {tick!r}")
        return cls(float(int(number) * _UNITS[unit]), time_column is not None, None)

    @property
    def assumption(self) -> str:
        """What is public beside the releases."""
        if self.rows is not None:
            return "the number of rows is public: an event that is left out leaves a blank row"
        if self.by_column:
            return "the ends of ticks are public: rows come in the order of their times"
        return "which tick a row is in is decided by the clock, not by other rows"


@dataclass
class Watcher:
    """The mechanism, the input and the file that keeps both together.

    A tick is drawn, then the state with its release and the position after its rows is on disk, then the ledger has it,
    if there is one, and only then is it printed. So what was printed is never drawn again, and rows of a tick that was
    not printed are read again.
    """

    kept: StateFile
    settings: dict[str, Any]
    mechanism: Any
    reader: Rows
    ticks: Ticks
    position: int = 0
    now: int | None = None  # the number of the current tick on the clock of the ticks
    published: dict[str, Any] | None = None
    resumed: bool = False
    _held: list[Any] = field(default_factory=list)  # the items of the open tick, in pieces
    _count: int = 0  # the rows of the open tick
    _events: int = 0  # those of them that are not blank
    _after: int = 0

    @property
    def tick(self) -> int:
        return int(self.mechanism.tick)

    @classmethod
    def open(
        cls,
        kept: StateFile,
        settings: dict[str, Any],
        budget: Any,
        payer: Account | None,
        reader: Rows,
        ticks: Ticks,
        restored: bool = False,
    ) -> Watcher:
        from discreet import continual

        named = {key: value for key, value in settings.items() if key != "class"}
        kind = getattr(continual, settings["class"])
        described = {**settings, "budget": str(budget), "file": reader.file if reader.file == "-" else "file"}
        described["ticks"] = [ticks.seconds, ticks.by_column, ticks.rows]
        if kept.exists:
            header, payload = _read_state(kept)
            if header["settings"] != described:
                raise ParameterError(f"the state {str(kept.path)!r} belongs to a watch with other settings")
            mechanism = kind.from_bytes(payload, ledger=payer, restored=restored)
            watcher = cls(
                kept, described, mechanism, reader, ticks, header["position"], header["now"], header["published"], True
            )
            if restored and watcher.published is not None:
                watcher.published = watcher._shown(mechanism.last, watcher.published.get("start"))
            if restored:
                watcher.save()  # before the second charge, for the same reason as below
            return watcher
        mechanism = kind(**named, budget=budget, ledger=payer)
        watcher = cls(kept, described, mechanism, reader, ticks)
        watcher.save()  # before the charge: whoever restarts knows its id
        return watcher

    def save(self) -> None:
        from discreet.summaries.state import seal_state

        header = {"settings": self.settings, "position": self.position, "now": self.now, "published": self.published}
        text = json.dumps(header).encode()
        self.kept.replace(seal_state(FAMILY, 2, len(text).to_bytes(8, "little") + text + self.mechanism.to_bytes()))

    def run(self, once: bool) -> Iterator[dict[str, Any]]:
        """The releases, each after it is on disk; first the last one again, in case nobody saw it."""
        if self.published is not None:
            yield self.published
        self.reader.open(self.position)
        self._after = self.position
        if self.reader.file == "-" or (self.ticks.rows is None and not self.ticks.by_column):
            # Of a second run: ticks that were published, whose rows are gone or whose time is over.
            while self.mechanism.next_is_published:
                self._release()
        horizon = int(self.mechanism.horizon)
        started = time.monotonic()
        while self.tick < horizon:
            for batch in self.reader.available():
                yield from self._take(batch, horizon)
                if self.tick >= horizon:
                    return
                if self._clock_is_due(started):
                    started += self.ticks.seconds or 0.0
                    yield self._release()
            if self._clock_is_due(started):
                started += self.ticks.seconds or 0.0
                yield self._release()
            elif self.reader.ended:
                # Standard input cannot be read again. By the clock the last tick ends here, with rows or without:
                # whether it is published must not tell whether it has any.
                by_clock = self.ticks.rows is None and not self.ticks.by_column
                if by_clock or self._count:
                    yield self._release()
                return
            elif once and self.reader.file != "-":  # standard input that is silent has not ended
                return
            else:
                time.sleep(_POLL_SECONDS)

    def _take(self, batch: Batch, horizon: int) -> Iterator[dict[str, Any]]:
        """Add rows to the open tick; the releases of the ticks that end among them."""
        import numpy as np

        numbers = None
        if self.ticks.by_column and batch.times is not None and self.ticks.seconds is not None:
            numbers = np.floor_divide(batch.times, self.ticks.seconds).astype(np.int64)
            self.now = int(numbers[0]) if self.now is None else self.now
        first = 0
        while first < len(batch) and self.tick < horizon:
            last = len(batch)
            if numbers is not None:
                assert self.now is not None
                later = np.flatnonzero(numbers[first:] > self.now)
                last = first + int(later[0]) if len(later) else last
            elif self.ticks.rows is not None:
                last = min(last, first + self.ticks.rows - self._count)
            if last > first:
                self._hold(batch, first, last)
                self._after = int(batch.ends[last - 1])
            if numbers is not None and last < len(batch):
                assert self.now is not None
                while numbers[last] > self.now and self.tick < horizon:
                    yield self._release(self.now + 1)
            elif self.ticks.rows is not None and self._count >= self.ticks.rows:
                yield self._release()
            first = last

    def _hold(self, batch: Batch, first: int, last: int) -> None:
        """Add the rows from first to before last to the open tick."""
        import pyarrow as pa

        items = None if batch.items is None else batch.items[first:last]
        self._count += last - first
        if batch.there is None:
            self._events += last - first
        else:
            there = batch.there[first:last]
            self._events += int(there.sum())
            if isinstance(items, pa.Array):
                items = items.filter(pa.array(there))
            elif items is not None:
                items = [item for item, is_there in zip(items, there, strict=True) if is_there]
        if items is not None:
            self._held.append(items)

    def _items(self) -> Any:
        """What the open tick holds: a column if all of it came in columns."""
        import pyarrow as pa

        if self._held and all(isinstance(piece, pa.Array) for piece in self._held):
            return pa.chunked_array(self._held)
        return [item for piece in self._held for item in (piece.to_pylist() if isinstance(piece, pa.Array) else piece)]

    def _clock_is_due(self, started: float) -> bool:
        seconds = self.ticks.seconds
        return not self.ticks.by_column and seconds is not None and time.monotonic() - started >= seconds

    def _release(self, now: int | None = None) -> dict[str, Any]:
        start = self._start()  # before anything is drawn

        def keep(release: Any) -> None:
            self._held, self._count, self._events = [], 0, 0
            self.position = self._after
            self.now = now if now is not None else self.now
            self.published = self._shown(release, start)
            self.save()

        with uninterrupted():
            self.mechanism.step(self._events if self.settings["class"] == "Counter" else self._items(), save=keep)
        assert self.published is not None
        return self.published

    def _shown(self, release: Any, start: str | None) -> dict[str, Any]:
        """The release of the latest tick, as it is printed."""
        if self.settings["class"] == "Counter":
            error = self.mechanism.error(self.tick)
            shown = {"total": release, "standard_deviation": error, "guarantee": self.mechanism.guarantee.to_dict()}
        else:
            shown = release.to_dict()
        shown["guarantee"]["assumptions"].append(self.ticks.assumption)
        return {"tick": self.tick, **shown} if start is None else {"tick": self.tick, **shown, "start": start}

    def _start(self) -> str | None:
        """When the open tick began, if ticks are by a column of times."""
        if not self.ticks.by_column or self.now is None or self.ticks.seconds is None:
            return None
        from discreet.cli.rows import YEAR_1

        seconds = max(self.now * self.ticks.seconds, YEAR_1)  # no date can say what is before, and no row is there
        return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat()


def _read_state(kept: StateFile) -> tuple[dict[str, Any], bytes]:
    """The header and the mechanism's state. Version 1 had no envelope: the length, the header, the mechanism."""
    from discreet.summaries.state import MAGIC, open_state

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


def _print(result: dict[str, Any], horizon: int, k: int) -> None:
    shown = {**result, "items": result["items"][:k]} if "items" in result else result
    if not sys.stdout.isatty():
        print(json.dumps(shown, ensure_ascii=False), flush=True)
        return
    print("\x1b[2J\x1b[H", end="")  # a fresh screen
    print(f"tick {result['tick']} of {horizon}", f"from {result['start']}" if "start" in result else "")
    if "total" in shown and "items" not in shown:
        print(f"{shown['total']:,} rows, standard deviation {shown['standard_deviation']:.1f}")
    else:
        lines = [(printable(row["item"]), f"{row['count']:,}") for row in shown["items"]]
        print(table_text(["item", "estimate"], lines, right=[1]) if lines else "No item passed the threshold.")
    sys.stdout.flush()
