"""`discreet watch`: follow a growing input and publish one release a tick."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli import options
from discreet.cli.options import Paying, flag
from discreet.cli.output import remark, table_width
from discreet.cli.process import Interrupted, interrupt_arrived, uninterrupted
from discreet.privacy.checks import numbered
from discreet.questions.live_question import LiveQuestion
from discreet.questions.words import from_text, words_of

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.watch.watcher import Watcher


@options.command(
    *(option for each in words_of(LiveQuestion) for option in options.of_word(each)),
    *options.WRITTEN,
    options.BUDGET,
    flag("--once", "Stop at the end of the file; the last tick stays open."),
    flag(
        "--restored",
        "Continue from an older copy because the newest state is lost. Charges the budget again, and goes on after "
        "the last tick in the ledger.",
    ),
    options.PAYING,
    options.QUIET,
)
def watch(
    file: str = options.argument("file", "A file that grows; '-' is standard input.", metavar="FILE"),
    state: Path = options.path(
        "--state", "File that keeps the progress. It holds raw counts: protect it.", required=True
    ),
    *,
    budget: Budget,
    once: bool,
    restored: bool,
    paying: Paying,
    **given: Any,
) -> None:
    """Publish at every tick from a growing file or standard input.

    The budget is for all ticks together and is charged once. Killed at any moment and started again with the same state
    file, it goes on: no second charge, no row counted twice, and the tick published last is printed again as it was.
    """
    live = LiveQuestion(**from_text(LiveQuestion, given))
    from discreet.events.text import dialect_of
    from discreet.watch.tasks import reader_of, task_of
    from discreet.watch.ticks import Rule, ticks_in

    rule = Rule.of(live)
    ticks = None if live.horizon is None else ticks_in(live.horizon, rule.seconds)
    task, payer = task_of(live, ticks), paying.payer
    dialect = dialect_of(given["header"], given["delimiter"], given["quote"])
    reader = reader_of(live, file, given["input_format"], dialect, remark, given["encoding"])
    from discreet.watch.watcher import watching

    shows_progress = sys.stderr.isatty()
    # What is drawn is printed: signals wait until it is, and stop the watch then.
    one_tick = partial(uninterrupted, stops=True)
    with watching(state, task, budget, payer, reader, rule, restored=restored, undisturbed=one_tick) as watcher:
        if watcher.resumed:
            remark(f"going on after {watcher.reached}")
        try:
            for result in watcher.releases(once):
                _print(result, watcher, live.k)
                if shows_progress:  # what is left out is for the operator's eyes alone
                    _note_left_out(watcher)
        except Interrupted:
            interrupt_arrived()
            remark(f"stopped after {watcher.reached}; the state file goes on from there")
            return
        if not shows_progress:
            _note_left_out(watcher)
        if watcher.is_over:
            remark(f"the horizon of {numbered(ticks or 0, 'tick')} is used up")


def _print(result: dict[str, Any], watcher: Watcher, k: int) -> None:
    shown = {**result, "items": result["items"][:k]} if "items" in result else result
    risen = shown.get("increase", {})
    if "items" in risen:
        shown["increase"] = {**risen, **{name: risen[name][:k] for name in ("items", "appeared")}}
    if not sys.stdout.isatty():
        print(json.dumps(shown, ensure_ascii=False), flush=True)
        return
    from discreet.releases.formats import tick_text

    text = tick_text(shown, watcher.run.task.horizon, watcher.run.guarantee, table_width())
    print(f"\x1b[2J\x1b[H{text}", flush=True)


def _note_left_out(watcher: Watcher) -> None:
    for told in watcher.remarks:
        remark(told)
