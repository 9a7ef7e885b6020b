"""`discreet report`: several questions with one budget, on one page."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from discreet.cli import options
from discreet.cli.output import print_table, show_progress
from discreet.cli.publish import EXPLAIN, Place, publish
from discreet.errors import ParameterError
from discreet.storage import read_toml

_ENDINGS = {".html": "html", ".json": "json", ".csv": "csv", ".txt": "table", "": "table"}

_PLACE: Any = options.Gathered(
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


@options.command(options.QUIET, epilog="Example: discreet report october.toml -o october.html. Guide: docs/report.md")
def report(
    definition: Path = options.argument(
        "definition", "The report: title, data, budget and questions.", options.PATH, metavar="REPORT.TOML"
    ),
    files: tuple[str, ...] = options.files("Files to read in place of those that the report names."),
    plan: bool = options.flag("--plan", "Show what each question gets of the budget; read and charge nothing."),
    place: Place = _PLACE,
    paying: options.Paying = options.PAYING_BY_NAME,
) -> None:
    """Answer several questions with one budget, on one page.

    All answers are charged at once. The page stands alone: it needs no network, and can be printed or mailed.
    """
    from discreet.questions.answer import read
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
    several = [show_progress]  # with the rows of one question: the others read the same files
    data = read(*paths, watch=lambda rows: several.pop()(rows) if several else lambda: None, **how)
    if not plan:
        return publish(asked, data, asked.budget, place, paying, [definition])
    ways = asked.ways(data, asked.budget)
    rows = [
        (title, f"{float(share):.1%}", str(part), way.description)
        for share, (title, (way, part)) in zip(asked.shares, ways.items(), strict=True)
    ]
    print_table(["question", "share", "budget", "mechanism"], rows, (1,))
    unit = next(way.unit for way, _ in ways.values())
    print(f"Together: {asked.budget}. It hides {unit.describe()}. Nothing was read, and nothing charged.")
