"""`discreet plan`: what each mechanism would publish, before anything is spent."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from discreet.cli.options import Delta, Epsilon, InputFormat, Quiet, Rho, TextFormat, budget_of
from discreet.cli.output import note
from discreet.errors import ParameterError

__all__ = ["plan"]


def plan(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE...]", help="Files to count the rows of, instead of --length.", show_default=False
        ),
    ] = None,
    column: Annotated[str | None, typer.Option(help="The column to count the values of.", show_default=False)] = None,
    length: Annotated[int | None, typer.Option(help="How many events there are, about.", show_default=False)] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    capacity: Annotated[
        int | None,
        typer.Option(help="The number of counters; by default what `discreet top` takes.", show_default=False),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--k", help="How many items are wanted.")] = 100,
    people: Annotated[
        int | None,
        typer.Option(
            help="How many people there are, about: what `discreet top --user-column` would publish.",
            show_default=False,
        ),
    ] = None,
    items_per_person: Annotated[
        float | None,
        typer.Option(help="With --people: how many different items a person has, about.", show_default=False),
    ] = None,
    max_items_per_user: Annotated[
        int | None, typer.Option(help="Protect users with so many items instead of events.", show_default=False)
    ] = None,
    confidence: Annotated[float, typer.Option(help="Errors hold with this probability.")] = 0.95,
    input_format: InputFormat = None,
    format: Annotated[TextFormat, typer.Option("--format", help="How to print it.")] = TextFormat.table,
    quiet: Quiet = False,
) -> None:
    """Compare mechanisms for a length, budget and capacity: threshold, noise and error. Nothing is spent."""
    budget = budget_of(epsilon, delta, rho)
    import discreet

    if people is not None:
        if length is not None or files or capacity is not None or max_items_per_user is not None:
            raise ParameterError("--people goes with the budget, -k and --items-per-person alone")
        for_people = discreet.plan_people(people, budget, k, items_per_person, confidence)
        print(json.dumps(for_people.to_dict()) if format is TextFormat.json else for_people)
        return
    if items_per_person is not None:
        raise ParameterError("--items-per-person goes with --people")
    if (length is None) == (not files):
        raise ParameterError("give either --length or --people, or files to count")

    unit = None if max_items_per_user is None else discreet.User(max_items_per_user)
    if length is None:
        length = _count(files or [], column, input_format, quiet)
        note("the number of rows was counted exactly: keep this plan to yourself")
    planned = discreet.plan(length, budget, capacity=capacity, k=k, unit=unit, confidence=confidence)
    print(json.dumps(planned.to_dict(), ensure_ascii=False) if format is TextFormat.json else planned)
    if not planned.rows:
        for name, reason in planned.not_applicable.items():
            note(f"{name} does not apply: {reason}")


def _count(files: list[str], column: str | None, input_format: str | None, quiet: bool) -> int:
    from discreet.cli.progress import ReadingProgress
    from discreet.events.stream import open_stream

    stream = open_stream(files, column=column, format=input_format, nulls="skip")
    rows = 0
    with ReadingProgress(stream.bytes_total, quiet) as progress:
        for batch in stream:
            rows += batch.num_rows
            progress.update(rows, stream.bytes_read)
    return rows
