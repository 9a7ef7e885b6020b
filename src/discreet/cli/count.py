"""`discreet count`: how many rows or people files have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from discreet.cli import options
from discreet.cli.options import Paying, Source
from discreet.cli.output import watched
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
    from discreet.central.noisy_count import NoisyCount
    from discreet.engines.different import different_items
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
    events = source.events(files)
    if people or source.column is not None:
        rows = events.rows(user_column or source.column, nulls=source.nulls, bad_rows=source.bad_rows, plain=True)
    else:  # also those without a value
        rows = events.all_rows(nulls=source.nulls, bad_rows=source.bad_rows)
    place.check([*events.files, paying.ledger])

    def read() -> int:
        over = watched(rows)
        found = different_items(rows) if people else rows.number()
        over()
        return found

    asked = {"files": list(files), **source.asked, "user": user_column}
    publish_count(what, place, paying, mechanism, read, asked, source.told(user=user_column), question)
