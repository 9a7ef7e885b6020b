"""`discreet top`: a log file in, a private top list out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from discreet.cli import options
from discreet.cli.options import Paying, Source, choice, option
from discreet.cli.output import watched
from discreet.cli.publish import Place, place, publish, publish_again, replayed_release
from discreet.errors import ParameterError
from discreet.privacy.unit import User

if TYPE_CHECKING:
    from pathlib import Path

    from discreet.privacy.budget import Budget
    from discreet.releases.release import Release

__all__ = ["top"]


@click.command(cls=options.Question)
@options.files(required=True)
@options.reading(whole=True)
@options.budget
@options.takes(
    option("-k --k", "How many items to list at most, of every group.", int, default=100),
    option(
        "--by",
        "The column that says the group of a row: the top K of every group, in one release at one price. It may be "
        "given more than once.",
        multiple=True,
    ),
    option(
        "--groups",
        "With --by or --every: a file with one group a line (of several columns as CSV), which is public: all of them "
        "are listed, also empty ones, and rows of others are left out.",
        options.PATH,
    ),
    option(
        "--every", "With --time-column: groups are spans of time, 1h, 1d, 1w (from Monday), 1mo or several of them."
    ),
    option("--time-column", "With --every: the column of times, seconds since 1970 or ISO 8601."),
    option("--zone", "With --every: the time zone of the spans, such as Europe/Berlin; UTC by default."),
    options.USER_COLUMN,
    option(
        "--max-items-per-user",
        "With --user-column: a person with at most so many items is counted in full; by default this is chosen "
        "privately. Without it: the column holds lists, one row a person, which are counted in one pass.",
        int,
    ),
    option(
        "--count",
        "With --user-column: count the people who have an item, or their rows with it.",
        choice("users", "rows"),
        default="users",
    ),
    option(
        "--value-column",
        "With --user-column: sum the numbers of this column; items are found by how many people "
        "have them, and listed by their sums.",
    ),
    option(
        "--value-range",
        "With --value-column: a value counts as at least LOW and at most HIGH, which are public.",
        float,
        nargs=2,
        metavar="LOW HIGH",
    ),
    options.universe(
        "All items that can occur, known without the data: then --epsilon alone will do, or --rho",
        ". Of rows; `discreet histogram` lists all of them, and counts people",
    ),
    option(
        "--memory",
        "2GB or 512MB. With --user-column what does not fit goes to a private folder; without, it decides how many "
        "counters there are, instead of --capacity.",
    ),
    option(
        "--unit",
        "'person': the column holds lists, one row a person, and people are protected as by --user-column. 'row' says "
        "you know that without either a row is hidden, not a person.",
        choice("row", "person"),
    ),
    option("--capacity", "The number of counters; by default as `discreet plan` chooses it.", int),
    option("--length", "A public number, at least as many as there are events: it decides the capacity.", int),
    option("--mechanism", "The mechanism, by a name that `discreet plan` shows.", default="auto"),
    option("--workers", "How many threads count the items, each its own; one by default.", int),
    option("--total-share", "Spend this share of the budget on the number of all events.", float),
)
@place
@options.paying_by_name
@options.quiet
def top(
    files: tuple[str, ...],
    source: Source,
    k: int,
    budget: Budget,
    place: Place,
    paying: Paying,
    user_column: str | None,
    max_items_per_user: int | None,
    count: str,
    value_column: str | None,
    value_range: tuple[float, float] | None,
    memory: str | None,
    unit: str | None,
    length: int | None,
    universe: str | None,
    by: tuple[str, ...],
    groups: Path | None,
    every: str | None,
    time_column: str | None,
    zone: str | None,
    **sketch: Any,
) -> None:
    """Publish the most frequent items of files, privately.

    Every item well above the threshold is listed with high probability. There may be fewer than K. An item that did not
    occur is never listed (with --universe: with a probability of 1 % at most).
    """
    one_pass = user_column is not None or max_items_per_user is not None or sketch["mechanism"] != "auto"
    persons = unit == "person" or (unit is None and source.input_format == "baskets" and not one_pass)
    if persons and (user_column is not None or value_column is not None or sketch["mechanism"] != "auto"):
        raise ParameterError("--unit person is for lists: it goes with no --user-column, --value-column or --mechanism")
    people = persons or (user_column is not None and sketch["mechanism"] == "auto")
    if people:
        given = {"capacity": sketch["capacity"], "length": length, "total-share": sketch["total_share"]}
        for name, value in given.items():
            if value is not None:
                raise ParameterError(f"--{name} is not for people: they are protected without it")
    elif user_column is not None and max_items_per_user is None:
        raise ParameterError("--user-column with a --mechanism of your own needs --max-items-per-user")
    elif count != "users" or value_column is not None or value_range is not None:
        raise ParameterError("--count and --value-column are for people: give --user-column")
    if (value_column is None) != (value_range is None):
        raise ParameterError("--value-column needs --value-range LOW HIGH, a public range, and a range needs a column")
    if unit == "row" and (user_column is not None or max_items_per_user is not None):
        raise ParameterError("--unit row is for rows: --user-column and --max-items-per-user protect people")
    listed = None
    if universe is not None:
        if people or user_column is not None or max_items_per_user is not None or sketch["mechanism"] != "auto":
            raise ParameterError(
                "--universe is for rows, and chooses the mechanism: `discreet histogram` counts people over a list"
            )
        if len(source.columns) > 1 or by or every is not None:
            raise ParameterError("--universe lists the items of one column: it goes with one --column and no groups")
        listed, sketch["mechanism"] = _over_a_universe(universe, budget, k, sketch["capacity"])
    grouping = _grouping(by, groups, every, time_column, zone)
    question = options.question(
        files,
        universe=None if listed is None else listed.to_dict(),
        groups=grouping.get("groups"),
        leave_out=("confidence", "memory", "workers") if people else ("confidence",),
    )

    def remarks(release: Release) -> list[str]:
        return [*_remarks(release, k, unit is not None), *source.remarks]

    if publish_again(place, paying, budget, question, replayed_release, files, remarks):
        return
    payer = paying.payer
    if payer is not None and paying.given_id is None:
        payer.check(budget)  # before reading, which may take long
    lists = persons or (max_items_per_user is not None and user_column is None)
    if lists and (len(source.columns) > 1 or by or every is not None):
        raise ParameterError("columns of items and groups hold one a row: lists of items come in one --column, alone")
    stream = source.open(
        files, joint=True, user=user_column, value=value_column, lists=lists, universe=listed, **grouping
    )
    place.check([*stream.files, paying.ledger, groups])
    column = list(source.columns) if len(source.columns) > 1 else source.column
    asked = [list(files), column, user_column, source.input_format, source.nulls, source.bad_rows]
    asked += [] if listed is None else [listed.to_dict()]
    more: list[Any] = ([] if value_column is None else [value_column]) + (
        [source.asked_more] if source.asked_more else []
    )
    grouped = stream.keys.by if stream.keys is not None else ()
    if stream.keys is not None and grouped:
        more.append({"by": list(grouped), **stream.keys.asked})
    request = json.dumps([*asked, *more])

    def draw(reading_is_over: Callable[[], None]) -> Release:
        from discreet.api.top_files import top_k_of_files

        over = watched(stream)

        def when_read() -> None:
            over()
            reading_is_over()

        return top_k_of_files(
            stream,
            k,
            budget,
            lists=persons,
            max_items=max_items_per_user,
            count=count,
            value_range=value_range,
            memory=memory,
            nulls=source.nulls,
            when_read=when_read,
            ledger=payer,
            charge_id=paying.charge_id,
            columns={"item": column, "by": list(grouped) or None, "user": user_column, "value": value_column},
            request=request,
            question=question,
            assumed=source.assumed,
            query=None if source.query is None else source.query.text,
            stream_length=length,
            **sketch,
        )

    publish(place, paying, budget, draw, remarks)


def _over_a_universe(universe: str, budget: Budget, k: int, capacity: int | None) -> tuple[Any, Any]:
    """The universe, and the mechanism that spends no delta over it."""
    from discreet.central import ReducedMisraGries
    from discreet.events.literals import universe_written

    listed = universe_written(universe, empty_lines=False)
    if listed.size is None:
        raise ParameterError("--universe must list the items: N for 0 to N-1, A:B, or a file with one item a line")
    # Its noise does not grow with the counters.
    return listed, ReducedMisraGries(budget, capacity or max(1 << 16, 32 * k), universe=listed)


def _grouping(
    by: tuple[str, ...], groups: Path | None, every: str | None, time_column: str | None, zone: str | None
) -> dict[str, Any]:
    """What the options say of groups, in the words of `events.assembly.Wanted`."""
    if (every is None) != (time_column is None) or (zone is not None and every is None):
        raise ParameterError("spans of time need both --every, such as 1d, and --time-column; --zone goes with them")
    if time_column is not None:
        by = (time_column, *by)
    if groups is not None and not by:
        raise ParameterError("--groups lists the values of a column: say which, with --by or --every")
    if not by:
        return {}
    from discreet.events.literals import groups_written
    from discreet.events.times import Every

    return {
        "by": by,
        "groups": None if groups is None else groups_written(groups, len(by)),
        "every": None if every is None else Every(every, zone),
    }


def _remarks(release: Release, k: int, row_known: bool) -> list[str]:
    """What a reader should know beside the guarantee: who is hidden, what is missing, why the list is short."""
    told, unit = release.notes(), release.guarantee.unit
    if release.counted != "events" and isinstance(unit, User) and unit.max_items is not None:
        told.append(f"People with more than {unit.max_items} items are hidden, too.")
    if release.counted == "events" and not row_known and not isinstance(unit, User):
        told.append(
            "It hides one row: a person with many rows can put their own text on this list. --user-column hides people "
            "(--unit row says that you know)."
        )
    if len(release) < (1 if release.by else k):  # of groups, some always have fewer
        short = f"{len(release)} of at most {k} items are listed" if len(release) else "No item passed the threshold"
        told.append(f"{short}: {_needed(release)}, and twice the epsilon about half of that.")
    return told


def _needed(release: Release) -> str:
    cut = math.ceil(release.threshold or 0)
    if release.counted == "events":
        return f"an item needs about {cut:,} rows{' more than the offset' if release.offset is not None else ''}"
    many = math.ceil(math.sqrt(50) * (release.threshold or 0))
    return f"an item needs about {cut:,} people who have nothing else, {many:,} if each of them has 50 items"
