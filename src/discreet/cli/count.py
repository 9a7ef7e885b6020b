"""`discreet count`: how many rows or people files have."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from discreet.cli import options
from discreet.cli.options import Paying, Source
from discreet.cli.output import batches, note_left_out
from discreet.cli.publish import Place, answer_place, publish_count, publish_count_again

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget

__all__ = ["count"]


@click.command(cls=options.Question)
@options.files(required=True)
@options.reading()
@options.budget
@options.takes(options.USER_COLUMN)
@answer_place
@options.paying_by_name
@options.quiet
def count(
    files: tuple[str, ...],
    source: Source,
    budget: Budget,
    user_column: str | None,
    place: Place,
    paying: Paying,
) -> None:
    """Publish how many rows or people files have, privately.

    With --column rows that have a value there, else all, and one of them is hidden. With --user-column people are
    counted, and a person is hidden with all of their rows.
    """
    from discreet.api.counting import different_items
    from discreet.central.noisy_count import NoisyCount
    from discreet.errors import ParameterError
    from discreet.privacy.unit import Event, User

    people = user_column is not None
    if people and source.column not in (None, user_column):
        raise ParameterError("people are counted by --user-column alone, rows by --column: give one of them")
    unit, what = (User(), "people") if people else (Event(), "rows")
    mechanism = NoisyCount(budget, unit, what, place.confidence)
    question = options.question(files)
    if publish_count_again(what, place, paying, budget, question, files):
        return
    stream = (source if user_column is None else replace(source, columns=(user_column,))).open(files)
    any_column = None if people or source.column is not None else _any_column(source, stream.files)
    if any_column is not None:
        stream = replace(source, columns=(any_column,)).open(files)

    place.check([*stream.files, paying.ledger])

    def read() -> int:
        if any_column is not None:  # also rows without a value in it
            rows = sum(len(columns[0]) for columns in stream.columns_read())
            note_left_out(stream.bad_rows, stream.first_bad_row)
            return rows
        if not people:
            return sum(len(batch) for batch in batches(stream))
        return different_items((batch.column("item") for batch in batches(stream)), source.nulls)

    asked = {"files": list(files), **source.asked, "user": user_column}
    publish_count(what, place, paying, mechanism, read, asked, source.told(user=user_column), question)


def _any_column(source: Source, files: list[str]) -> str | None:
    """A column to count all rows by, since each has all columns; None where there is none, or it cannot be known."""
    from discreet.events.files import column_names
    from discreet.events.inputs import format_named

    named = None if source.query is None else source.query.names  # of the result
    if named is not None:
        return next(iter(named))
    if files[0] == "-":
        return None
    if source.dialect is not None and not source.dialect.header:
        return "1"
    if (source.input_format or format_named(files[0])[0]) == "jsonl":
        return "1"  # a key that is missing is a null
    names = column_names(files[0], source.input_format, source.dialect)
    return names[0] if names else None
