"""`discreet histogram`: the count of every item of a public list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from discreet.cli import options
from discreet.cli.options import Paying, Source, option
from discreet.cli.output import watched
from discreet.cli.publish import Place, place, publish, publish_again, replayed_release
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.releases.release import Release

__all__ = ["histogram"]


@click.command(cls=options.Question)
@options.files(required=True)
@options.reading()
@options.budget
@options.takes(
    options.universe("The items to list, which are public", "; other items are left out"),
    options.USER_COLUMN,
    option(
        "--max-items-per-user",
        "With --user-column, and of baskets: of a person the first so many items of the list count.",
        int,
    ),
)
@place
@options.paying_by_name
@options.quiet
def histogram(
    files: tuple[str, ...],
    source: Source,
    budget: Budget,
    universe: str | None,
    user_column: str | None,
    max_items_per_user: int | None,
    place: Place,
    paying: Paying,
) -> None:
    """Publish the count of every item of a public list, privately.

    Items of the list that did not occur are published, too. No delta is needed: --epsilon alone will do, or --rho. With
    --user-column (and of baskets) people are counted, and a person is hidden with all of their rows.
    """
    from discreet.api.counting import histogram_of_columns, histogram_of_people, histogram_prepared
    from discreet.events.literals import universe_written

    if universe is None:
        raise ParameterError("--universe is needed: N for 0 to N-1, A:B, or a file with one item a line")
    listed, people = universe_written(universe, empty_lines=False), user_column is not None or source.lists
    if paying.payer is not None and paying.given_id is None:
        paying.payer.check(budget)  # before reading, which may take long
    prepared = histogram_prepared(budget, listed, people, max_items_per_user, paying.payer, paying.charge_id)
    question = options.question(files, universe=listed.to_dict(), leave_out=("confidence",))
    if publish_again(place, paying, budget, question, replayed_release, files, lambda release: release.notes()):
        return
    prepared = replace(prepared, question=question)
    lists, written_as = (True if source.lists else None), None if people else listed
    stream = source.open(files, user=user_column, lists=lists, universe=written_as)
    place.check([*stream.files, paying.ledger])
    asked = {"files": list(files), **source.asked, "user": user_column}
    told = source.told(user=user_column, max_items=max_items_per_user)

    def draw(reading_is_over: Callable[[], None]) -> Release:
        over = watched(stream)

        def when_read() -> None:
            over()
            reading_is_over()

        if not people:
            return histogram_of_columns(prepared, stream.items(), source.nulls, asked, when_read, told=told)
        from discreet.engines.pairs import Pairs

        pairs = Pairs(stream)
        return histogram_of_people(prepared, pairs, asked, when_read, written=True, told=told, lists=source.lists)

    publish(place, paying, budget, draw, lambda release: release.notes())
