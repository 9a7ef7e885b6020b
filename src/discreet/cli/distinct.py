"""`discreet distinct`: how many different people or values files have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from discreet.cli import options
from discreet.cli.options import Paying, Source, option
from discreet.cli.output import watched
from discreet.cli.publish import Place, answer_place, publish_count, publish_count_again

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget

__all__ = ["distinct"]


@click.command(cls=options.Question)
@options.files(required=True)
@options.reading()
@options.budget
@options.takes(
    options.USER_COLUMN,
    option(
        "--max-items-per-user",
        "With --user-column: a person is credited with at most so many values, a public number; by default this is "
        "chosen privately.",
        int,
    ),
)
@answer_place
@options.paying_by_name
@options.quiet
def distinct(
    files: tuple[str, ...],
    source: Source,
    budget: Budget,
    user_column: str | None,
    max_items_per_user: int | None,
    place: Place,
    paying: Paying,
) -> None:
    """Publish how many different values a column has, privately.

    With --user-column a person is hidden with all of their rows: where it is the same as --column people are counted,
    else values, each credited to one of the people who have it; so are those of baskets. Without, one row is hidden.
    """
    from discreet.api.counting import distinct_mechanism

    whose = "line" if source.lists and user_column is None else user_column
    mechanism = distinct_mechanism(budget, source.column, whose, max_items_per_user, place.confidence)
    question = options.question(files)
    if publish_count_again(mechanism.counted, place, paying, budget, question, files):
        return
    pairs = whose is not None and whose != source.column
    lists = True if source.lists else None
    stream = source.open(files, joint=True, user=user_column if pairs else None, lists=lists)

    place.check([*stream.files, paying.ledger])

    def read() -> Any:
        from discreet.engines.different import different_items
        from discreet.engines.pairs import Pairs

        over = watched(stream)
        if pairs:
            both = Pairs(stream)
            found = mechanism.count_of(both.people, both.items)  # type: ignore[union-attr]
        else:
            found = different_items(stream)
        over()
        return found

    asked = {"files": list(files), **source.asked, "user": user_column}
    told = source.told(user=user_column, max_items=max_items_per_user)
    publish_count(mechanism.counted, place, paying, mechanism, read, asked, told, question, source.lists)
