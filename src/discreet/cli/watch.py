"""`discreet watch`: follow a growing input and publish one release a tick."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.interrupts import Interrupted, stop_if_interrupted, uninterrupted
from discreet.cli.options import AccountName, BadRows, Delta, Epsilon, Quiet, Rho, budget_of
from discreet.cli.output import note, printable, table_text
from discreet.errors import CorruptStateError, ParameterError

if TYPE_CHECKING:
    from discreet.engines.ticks import Add, End, Rule, Ticker
    from discreet.events.rows import Rows
    from discreet.privacy import Guarantee
    from discreet.privacy.ledger import Account
    from discreet.storage import StateFile

__all__ = ["watch"]

FAMILY = 150
_POLL_SECONDS = 0.2


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
    start: Annotated[
        str | None,
        typer.Option(help="The first tick, by --time-column; rows before are left out.", show_default=False),
    ] = None,
    late: Annotated[
        str | None,
        typer.Option(help="How long a tick waits for its rows, by --time-column: 0s, 10m.", show_default="0s"),
    ] = None,
    ahead: Annotated[
        str | None,
        typer.Option(help="Rows of times so far ahead of the clock are left out, by --time-column.", show_default="1h"),
    ] = None,
    by_clock: Annotated[
        bool,
        typer.Option("--by-clock", help="For live input: the clock ends the ticks of --time-column, not the rows."),
    ] = False,
    bad_rows: Annotated[
        BadRows, typer.Option(help="What becomes of rows that cannot be read: skip leaves them out.")
    ] = BadRows.skip,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    total: Annotated[
        bool, typer.Option("--total", help="Publish the number of rows instead of the top items.")
    ] = False,
    capacity: Annotated[int, typer.Option(help="The counters of each sketch.")] = 4096,
    window: Annotated[
        int | None,
        typer.Option(help="Count only the last so many ticks; by default all since the first.", show_default=False),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--k", help="How many items to print at most.")] = 20,
    input_format: Annotated[
        str | None, typer.Option(help="csv, tsv, jsonl or text; by default the name tells.", show_default=False)
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Stop at the end of the file, which is whole; the last tick stays open.")
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
    from discreet.engines.ticks import Rule

    rule = Rule.of(tick, time_column, rows, late=late, ahead=ahead, start=start, by_clock=by_clock)
    if total and window is not None:
        raise ParameterError("--window is for the top items, not for --total")
    payer: Account | None = None
    if ledger is not None and account is not None:
        from discreet.privacy.ledger import Ledger

        payer = Ledger(ledger).account(account)
    from discreet.events.rows import Rows

    reader = Rows(
        file,
        input_format,
        None if total else column,
        time_column,
        needs_items=not total,
        keep_blank=rows is not None,  # a blank row has its place among the rows of a tick
        skip_bad=bad_rows is BadRows.skip,
        remark=(lambda message: None) if quiet else note,
    )
    if total:
        settings: dict[str, Any] = {"class": "Counter", "horizon": horizon}
    else:
        settings = {"class": "HeavyHitters", "horizon": horizon, "capacity": capacity, "window": window}
    from discreet.storage import locked

    with (
        locked(state) as kept,
        closing(reader),
        closing(Watcher.open(kept, settings, budget, payer, reader, rule, restored)) as watcher,
    ):
        if watcher.resumed and not quiet:
            note(f"going on after tick {watcher.tick} of {horizon}")
        printed = None
        try:
            for result in watcher.run(once):
                with uninterrupted():
                    _print(result, watcher, k)
                    printed = result
                if not quiet and sys.stderr.isatty():  # what is left out is for the operator's eyes alone
                    _note_left_out(watcher)
                stop_if_interrupted()
        except Interrupted:
            if watcher.published is not None and watcher.published is not printed:
                _print(watcher.published, watcher, k)  # it came between the tick and its print
            if not quiet:
                note(f"stopped after tick {watcher.tick} of {horizon}; the state file goes on from there")
            return
        if not quiet and watcher.tick >= horizon:
            note(f"the {horizon} ticks are used up")


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
    ticker: Ticker
    input: Any = None  # what the reader needs to go on, beside the position
    published: dict[str, Any] | None = None
    resumed: bool = False
    _events: int = 0  # of the open tick

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
        rule: Rule,
        restored: bool = False,
    ) -> Watcher:
        from discreet import continual
        from discreet.engines.ticks import End, Ticker

        named = {key: value for key, value in settings.items() if key != "class"}
        kind = getattr(continual, settings["class"])
        described = {**settings, "budget": str(budget), "file": reader.file if reader.file == "-" else "file"}
        described["ticks"] = [rule.seconds, rule.by_column, rule.rows]
        described["rule"] = [rule.by_clock, rule.late, rule.ahead, rule.start]
        described["columns"], described["format"] = list(reader.columns), reader.format
        described["bad_rows"] = "skip" if reader.skip_bad else "error"
        if kept.exists:
            header, payload = _read_state(kept)
            if {key: described.get(key) for key in header["settings"]} != header["settings"]:  # older ones say less
                raise ParameterError(f"the state {str(kept.path)!r} belongs to a watch with other settings")
            mechanism = kind.from_bytes(payload, ledger=payer, restored=restored)
            position = header["position"]
            ticker = Ticker(
                rule, kept.path.parent, header["now"], position, header.get("read", position), header.get("then")
            )
            watcher = cls(kept, described, mechanism, reader, ticker, header.get("input"), header["published"], True)
            if restored and watcher.published is not None:
                dates = End(watcher.published.get("start"), watcher.published.get("end"))
                watcher.published = watcher._shown(mechanism.last, dates)
            if restored:
                watcher.save()  # before the second charge, for the same reason as below
            return watcher
        mechanism = kind(**named, budget=budget, ledger=payer)
        watcher = cls(kept, described, mechanism, reader, Ticker(rule, kept.path.parent))
        watcher.save()  # before the charge: whoever restarts knows its id
        return watcher

    def save(self) -> None:
        from discreet.storage import seal_state

        header = {"settings": self.settings, **self.ticker.saved(), "input": self.input, "published": self.published}
        text = json.dumps(header).encode()
        self.kept.replace(seal_state(FAMILY, 2, len(text).to_bytes(8, "little") + text + self.mechanism.to_bytes()))

    @property
    def guarantee(self) -> Guarantee:
        """What all releases together promise, and what is public beside them."""
        plain: Guarantee = self.mechanism.guarantee
        return dataclasses.replace(plain, assumptions=(*plain.assumptions, self.ticker.rule.assumption))

    def run(self, once: bool) -> Iterator[dict[str, Any]]:
        """The releases, each after it is on disk; first the last one again, in case nobody saw it."""
        if self.published is not None:
            yield self.published
        from discreet.engines.ticks import Add, End

        self.reader.open(self.ticker.position, self.input)
        if self.ticker.begin(time.time()):
            self.save()
        rule = self.ticker.rule
        if self.reader.file == "-" or (rule.rows is None and not rule.by_column):
            # Of a second run: ticks that were published, whose rows are gone or whose time is over.
            while self.mechanism.next_is_published:
                self._release(End())
        horizon = int(self.mechanism.horizon)
        while self.tick < horizon:
            for step in self._round(once):
                if isinstance(step, Add):
                    self._add(step)
                else:
                    yield self._release(step)
                    if self.tick >= horizon:
                        return
            if self.reader.ended or (once and self.reader.file != "-" and not self.reader.more()):
                return  # standard input that is silent has not ended
            self.reader.wait(_POLL_SECONDS)

    def _round(self, once: bool) -> Iterator[Add | End]:
        """What there is at one moment: the rows that are there now, then the ticks that have ended by now."""
        clock, ticker = time.time(), self.ticker
        for batch in self.reader.available():
            yield from ticker.take(batch, clock)
        if once and self.reader.file != "-" and not self.reader.more():
            for batch in self.reader.rest():
                yield from ticker.take(batch, clock)
        if self.reader.ended:
            yield from ticker.finish(clock)
        else:
            yield from ticker.due(clock)

    def close(self) -> None:
        """Forget the rows that wait for their ticks: they are read again."""
        self.ticker.close()

    def _add(self, rows: Add) -> None:
        self._events += rows.events
        if rows.items is not None and rows.events:
            self.mechanism.add(rows.items)

    def _release(self, end: End) -> dict[str, Any]:
        def keep(release: Any) -> None:
            self._events = 0
            self.input = self.reader.saved(self.ticker.saved()["position"])
            self.published = self._shown(release, end)
            self.save()

        with uninterrupted():
            self.mechanism.step(self._events if self.settings["class"] == "Counter" else (), save=keep)
        assert self.published is not None
        return self.published

    def _shown(self, release: Any, end: End) -> dict[str, Any]:
        """The release of the latest tick, as it is printed."""
        if self.settings["class"] == "Counter":
            numbers = {"total": release, "standard_deviation": self.mechanism.error(self.tick)}
        else:
            numbers = release.to_dict()
        window = self.settings.get("window")
        first = 1 if window is None else max(1, self.tick - window + 1)
        shown: dict[str, Any] = {"tick": self.tick, "covers": {"first_tick": first, "last_tick": self.tick}}
        dates = {} if end.start is None else {"start": end.start, "end": end.end}
        return {**shown, **dates, **numbers, "guarantee": self.guarantee.to_dict()}


def _read_state(kept: StateFile) -> tuple[dict[str, Any], bytes]:
    """The header and the mechanism's state. Version 1 had no envelope: the length, the header, the mechanism."""
    from discreet.storage import MAGIC, open_state

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


def _print(result: dict[str, Any], watcher: Watcher, k: int) -> None:
    shown = {**result, "items": result["items"][:k]} if "items" in result else result
    if not sys.stdout.isatty():
        print(json.dumps(shown, ensure_ascii=False), flush=True)
        return
    print("\x1b[2J\x1b[H" + screen(shown, int(watcher.mechanism.horizon), watcher.guarantee), flush=True)


def screen(result: dict[str, Any], horizon: int, guarantee: Guarantee) -> str:
    """A release for a terminal: what was counted, how far off it may be, and what is promised."""
    when = f", from {result['start']} to {result['end']}" if "end" in result else ""
    lines = [f"Tick {result['tick']} of {horizon}{when}."]
    covers = result.get("covers")  # a release of an older state does not say it
    if covers is not None:
        first, last = covers["first_tick"], covers["last_tick"]
        some = f"ticks {first} to {last} together" if first < last else f"tick {last} alone"
        lines.append(f"Counts are of {some}{'' if first > 1 else ', all so far'}.")
    if "items" in result:
        heading = f"{result['confidence']:.0%} interval"
        rows = [(printable(row["item"]), f"{row['count']:,}", _interval(row)) for row in result["items"]]
        table = table_text(["item", "estimate", heading], rows, right=[1]) if rows else ""
        lines += ["", table or "No item passed the threshold.\n"]
    else:
        spread = math.ceil(1.96 * result["standard_deviation"])
        low, high = max(0, result["total"] - spread), result["total"] + spread
        lines += ["", f"{result['total']:,} rows; 95% interval {low:,} to {high:,}.", ""]
    return "\n".join(lines) + "\n" + textwrap.fill(guarantee.sentence(), 100)


def _interval(row: dict[str, Any]) -> str:
    low, high = ("" if row[end] is None else f"{math.floor(row[end]):,}" for end in ("lower", "upper"))
    return f"{low or '0'} to {high}" if high else f"{low or '0'} or more"


def _note_left_out(watcher: Watcher) -> None:
    reasons = watcher.reader.bad + watcher.ticker.left_out
    if reasons:
        counts = ", ".join(f"{count:,}: {reason}" for reason, count in sorted(reasons.items()))
        note(f"rows left out since the start (not private: do not publish): {counts}")
