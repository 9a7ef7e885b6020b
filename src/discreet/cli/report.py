"""`discreet report`: several questions with one budget, on one page."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from discreet.cli import options
from discreet.cli.output import print_table, watched
from discreet.cli.publish import EXPLAIN, Place, publish_answer
from discreet.errors import ParameterError
from discreet.storage import read_toml

if TYPE_CHECKING:
    from discreet.events.assembly import Rows
    from discreet.questions.data import Data
    from discreet.questions.report import Report

_ENDINGS = {".html": "html", ".json": "json", ".csv": "csv", ".txt": "table", "": "table"}

place = options.gathers(
    "place",
    functools.partial(Place, 0.95, endings=_ENDINGS),
    options.option(
        "--format",
        "How to write the report; by default as the output's name says, or a table.",
        options.choice("html", "json", "csv", "table"),
    ),
    options.option("--output -o", "Write the report to this file; csv: one file per question.", options.PATH_OR_URL),
    EXPLAIN,
)


@click.command(epilog="Example: discreet report october.toml -o october.html. Guide: docs/report.md")
@options.takes(
    options.Argument("definition", "The report: title, data, budget and questions.", type=options.PATH,
                     metavar="REPORT.TOML"),
)  # fmt: skip
@options.files("Files to read in place of those that the report names.")
@options.takes(options.flag("--plan", "Show what each question gets of the budget; read and charge nothing."))
@place
@options.paying_by_name
@options.quiet
def report(definition: Path, files: tuple[str, ...], plan: bool, place: Place, paying: options.Paying) -> None:
    """Answer several questions with one budget, on one page.

    All answers are charged at once. The page stands alone: it needs no network, and can be printed or mailed.
    """
    from discreet.questions.data import read
    from discreet.questions.report import read_report

    asked, how = read_report(read_toml(definition))
    named = how.pop("files", ())
    paths = files or ((named,) if isinstance(named, str) else tuple(named))
    if not paths and "sql" not in how:
        raise ParameterError(
            'no files to read; name them in the report ([data], files = "access.log"), or after it on the command line'
        )
    if "endpoint" in how:
        place = place.at(how["endpoint"])
    data = read(*paths, watch=_first_watched(), **how)
    if plan:
        _show(asked, data)
        return
    if place.written_as == "csv" and place.output is None:
        raise ParameterError("CSV writes one file per question; give --output, such as report.csv")
    place.check(lambda: [*data.kept(), paying.ledger, definition])
    publish_answer(asked, data, asked.budget, place, paying)


def _first_watched() -> Callable[[Rows], Callable[[], None]]:
    """Progress, and what was left out, of the rows of one question: the others read the same files."""
    seen: list[Rows] = []

    def watch(rows: Rows) -> Callable[[], None]:
        seen.append(rows)
        return watched(rows) if len(seen) == 1 else lambda: None

    return watch


def _show(asked: Report, data: Data) -> None:
    """What each question gets."""
    rows = [
        (title, f"{float(share):.1%}", str(part), way.description)
        for share, (title, (way, part)) in zip(asked.shares, asked.ways(data, asked.budget).items(), strict=True)
    ]
    print_table(["question", "share", "budget", "mechanism"], rows, (1,))
    unit = next(iter(asked.ways(data, asked.budget).values()))[0].unit
    click.echo(f"Together: {asked.budget}. It hides {unit.describe()}. Nothing was read, and nothing charged.")
