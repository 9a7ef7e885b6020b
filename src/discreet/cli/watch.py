"""`discreet watch`: follow a growing input and publish one release a tick."""

from __future__ import annotations

import json
import math
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.interrupts import Interrupted, interrupt_arrived, stop_if_interrupted, uninterrupted
from discreet.cli.options import AccountName, BadRows, Delta, Epsilon, Quiet, Rho, budget_of
from discreet.cli.output import note, printable, table_text
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.engines.watch import Watcher
    from discreet.privacy import Guarantee
    from discreet.privacy.ledger import Account

__all__ = ["watch"]


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
    from discreet.engines.watch import TopItems, Total, watching

    task = Total(horizon) if total else TopItems(horizon, capacity, window)
    with watching(state, task, budget, payer, reader, rule, restored=restored, undisturbed=uninterrupted) as watcher:
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
            interrupt_arrived()
            if watcher.published is not None and watcher.published is not printed:
                _print(watcher.published, watcher, k)  # it came between the tick and its print
            if not quiet:
                note(f"stopped after tick {watcher.tick} of {horizon}; the state file goes on from there")
            return
        if not quiet and watcher.tick >= horizon:
            note(f"the {horizon} ticks are used up")


def _print(result: dict[str, Any], watcher: Watcher, k: int) -> None:
    shown = {**result, "items": result["items"][:k]} if "items" in result else result
    if not sys.stdout.isatty():
        print(json.dumps(shown, ensure_ascii=False), flush=True)
        return
    print("\x1b[2J\x1b[H" + screen(shown, watcher.task.horizon, watcher.guarantee), flush=True)


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
    reasons = watcher.left_out
    if reasons:
        counts = ", ".join(f"{count:,}: {reason}" for reason, count in reasons.items())
        note(f"rows left out since the start (not private: do not publish): {counts}")
