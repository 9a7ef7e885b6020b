"""`discreet watch`: follow a growing input and publish one release a tick."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from discreet.cli import options
from discreet.cli.interrupts import Interrupted, interrupt_arrived, stop_if_interrupted, uninterrupted
from discreet.cli.options import Paying, flag, option
from discreet.cli.output import progress_is_shown, remark, table_width
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.watch.tasks import Task
    from discreet.watch.watcher import Watcher

__all__ = ["watch"]

_MAX_ITEMS = 10  # of a person
_MOST_LISTED = 10_000_000
_RULE = ("late", "ahead", "start", "by_clock")
# What cannot be combined with what, and why.
_ALONE = (
    ("window", ("total", "distinct", "user", "universe"), "it is for the top items of rows"),
    ("memory", ("total", "distinct", "user", "universe"), "it sizes the sketches of the top items of rows"),
    ("total", ("distinct", "user", "universe"), "it counts rows"),
    ("distinct", ("column", "universe", "max_items"), "it counts people"),
)


@click.command()
@options.takes(
    options.Argument("file", "A file that grows; '-' is standard input.", metavar="FILE"),
    option(
        "--state", "The file that keeps where we are; it holds raw counts: protect it.", options.PATH, required=True
    ),
    option(
        "--horizon",
        "How long the budget is for: a number of ticks, or a time such as 30d; without it for ever, with 1.6 times the "
        "noise.",
    ),
    options.COLUMN,
    option("--time", "Column with the time of a row (ISO 8601 or seconds since 1970), for --tick."),
    option("--tick", "Length of a tick: 30s, 15m, 1h, 1d; by --time, else by the clock."),
    option("--rows", "Number of rows in a tick.", int),
    option("--start", "First tick, by --time; rows before it are left out."),
    option("--late", "How long a tick waits for its rows, by --time: 10m; by default 0s."),
    option("--ahead", "Leave out rows whose --time is this far ahead of the clock; by default 1h."),
    flag("--by-clock", "For live input: let the clock end the ticks of --time, not the rows."),
    options.BAD_ROWS,
    options.INPUT_FORMAT,
    *options.CELLS,
    options.WHERE,
    option("--user", "Column that says whose row it is. Hides whole people."),
    option("--max-items", "With --user: count this many (10) different items of a person, the first ones.", int),
    options.universe("The items that may be published, known in advance"),
)
@options.budget
@options.takes(
    flag("--total", "Publish the number of rows instead of the top items."),
    flag("--distinct", "With --user: publish the number of different people instead of the top items."),
    option("--capacity", "The counters of each sketch; 65,536 by default, which are there as items come.", int),
    option("--memory", "200MB or 1GB: decides how many counters there are, instead of --capacity."),
    option("--window", "Count only the last so many ticks; by default all since the first.", int),
    option("-k --k", "How many items to print at most.", int, default=20),
    flag("--once", "Stop at the end of the file, which is whole; the last tick stays open."),
    flag(
        "--restored",
        "The state is an older copy and the newer one is lost: pay the budget once more and go on after the last tick "
        "that the ledger knows.",
    ),
)
@options.paying
@options.quiet
def watch(
    file: str, state: Path, budget: Budget, k: int, once: bool, restored: bool, paying: Paying, **given: Any
) -> None:
    """Publish at every tick from a growing file or standard input.

    The budget is for all ticks together and is charged once. Killed at any moment and started again with the same state
    file, it goes on: no second charge, no row counted twice, and the tick published last is printed again as it was.
    """
    from discreet.watch.ticks import Rule, ticks_in

    rule = Rule.of(*(given[name] for name in ("tick", "time", "rows")), **{name: given[name] for name in _RULE})
    ticks = None if given["horizon"] is None else ticks_in(given["horizon"], rule.seconds)
    task = _task(ticks, given)
    payer = paying.payer
    from discreet.events.growing import Growing

    total, distinct, user = given["total"], given["distinct"], given["user"]
    reader = Growing(
        file,
        given["input_format"],
        user if distinct else None if total else given["column"],
        given["time"],
        needs_items=not total,
        keep_blank=rule.rows is not None,  # a blank row has its place among the rows of a tick
        skip_bad=given["bad_rows"] == "skip",
        remark=remark,
        user_column=None if distinct else user,
        dialect=options.dialect_of(given["no_header"], given["delimiter"], given["quote"]),
        query=options.condition_of(given["where"]),
    )
    from discreet.watch.watcher import watching

    shows_progress = progress_is_shown()
    with watching(state, task, budget, payer, reader, rule, restored=restored, undisturbed=uninterrupted) as watcher:
        if watcher.resumed:
            remark(f"going on after {_reached(watcher)}")
        printed = None
        try:
            for result in watcher.releases(once):
                with uninterrupted():
                    _print(result, watcher, k)
                    printed = result
                if shows_progress:  # what is left out is for the operator's eyes alone
                    _note_left_out(watcher)
                stop_if_interrupted()
        except Interrupted:
            interrupt_arrived()
            if watcher.published is not None and watcher.published is not printed:
                _print(watcher.published, watcher, k)  # it came between the tick and its print
            remark(f"stopped after {_reached(watcher)}; the state file goes on from there")
            return
        if watcher.run.is_over:
            remark(f"the {ticks} ticks are used up")


def _reached(watcher: Watcher) -> str:
    run = watcher.run
    return f"tick {run.tick}" if run.task.horizon is None else f"tick {run.tick} of {run.task.horizon}"


def _task(horizon: int | None, given: dict[str, Any]) -> Task:
    """What is to be published; refuses what does not go together."""
    from discreet.watch.tasks import Counts, DistinctPeople, TopItems, Total

    there = {name for name, value in given.items() if value is not None and value is not False}
    for name, others, why in _ALONE:
        found = [other for other in others if name in there and other in there]
        if found:
            raise ParameterError(f"--{name} cannot be combined with --{found[0].replace('_', '-')}: {why}")
    for name in ("distinct", "max_items"):
        if name in there and "user" not in there:
            raise ParameterError(f"--{name.replace('_', '-')} is about people: give --user, whose row it is")
    if given["total"]:
        return Total(horizon)
    if given["distinct"]:
        return DistinctPeople(horizon)
    user, universe, most = given["user"], given["universe"], given["max_items"]
    if user is None and universe is None:
        return TopItems(horizon, given["capacity"], given["window"], given["memory"])
    most = None if user is None else _MAX_ITEMS if most is None else most
    return Counts(horizon, None if universe is None else _texts(universe), most)


def _texts(universe: str) -> tuple[str, ...]:
    """The items of a universe as a growing input has them: numbers by their digits."""
    from discreet.events.literals import universe_written

    listed = universe_written(universe)
    if listed.size is None or listed.size > _MOST_LISTED:
        raise ParameterError(
            f"--universe must have at most {_MOST_LISTED:,} items here: every tick counts each of them"
        )
    return tuple(map(str, listed.items(range(listed.size))))


def _print(result: dict[str, Any], watcher: Watcher, k: int) -> None:
    shown = {**result, "items": result["items"][:k]} if "items" in result else result
    if not sys.stdout.isatty():
        print(json.dumps(shown, ensure_ascii=False), flush=True)
        return
    from discreet.releases.formats import tick_text

    text = tick_text(shown, watcher.run.task.horizon, watcher.guarantee, table_width())
    print(f"\x1b[2J\x1b[H{text}", flush=True)


def _note_left_out(watcher: Watcher) -> None:
    reasons = watcher.left_out
    if reasons:
        counts = ", ".join(f"{count:,}: {reason}" for reason, count in reasons.items())
        remark(f"rows left out since the start (not private: do not publish): {counts}")
