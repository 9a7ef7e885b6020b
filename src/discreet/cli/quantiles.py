"""`discreet quantiles`: the values below which given shares of a column of numbers lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from discreet.cli import options
from discreet.cli.options import Paying, Source, choice, option
from discreet.cli.output import watched
from discreet.cli.publish import (
    QUANTILE_FORMATS,
    Place,
    answer_place,
    publish,
    publish_again,
    replayed_quantiles,
)
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.releases.quantiles import Quantiles

__all__ = ["quantiles"]


@click.command(cls=options.Question)
@options.files(required=True)
@options.reading()
@options.budget
@options.takes(
    option(
        "--quantile",
        "A share, above 0 and below 1; may be given several times, which costs nothing. 0.25, 0.5 and 0.75 by default.",
        float,
        multiple=True,
        default=(0.25, 0.5, 0.75),
        show_default=False,
    ),
    option(
        "--range",
        "A public range, chosen without looking at the data: values outside count as its ends.",
        float,
        nargs=2,
        metavar="LOW HIGH",
    ),
    option(
        "--scale",
        "How the range is divided: 'log' by ratios, for values that span several powers of ten.",
        choice("linear", "log"),
        default="linear",
    ),
    option(
        "--bins",
        "Into how many parts the range is divided; 65,536 by default. Fewer have less noise; as many as "
        "whole numbers in the range give whole numbers.",
        int,
    ),
    options.USER_COLUMN,
    option(
        "--max-rows-per-user",
        "With --user-column: so many rows of a person have a vote each; the rows of a person with more share so many. "
        "1 by default.",
        int,
    ),
)
@answer_place
@options.paying_by_name
@options.quiet
def quantiles(
    files: tuple[str, ...],
    source: Source,
    budget: Budget,
    quantile: tuple[float, ...],
    range: tuple[float, float] | None,
    scale: str,
    bins: int | None,
    user_column: str | None,
    max_rows_per_user: int | None,
    place: Place,
    paying: Paying,
) -> None:
    """Publish quantiles of a column of numbers, privately.

    0.5 is the median. One row is hidden, or with --user-column a person with all of their rows, which then share one
    vote.
    """
    from discreet.api.measuring import pay_for_quantiles, quantile_mechanism
    from discreet.releases.asked import Asked, now

    if range is None:
        raise ParameterError("--range LOW HIGH is needed: a public range, chosen without looking at the data")
    people = user_column is not None
    if people and source.column is None:
        raise ParameterError("--user-column needs --column, the column of the numbers")
    mechanism = quantile_mechanism(budget, quantile, range, people, max_rows_per_user, scale, bins, place.confidence)
    question = options.question(files)
    if publish_again(place, paying, budget, question, replayed_quantiles, files, formats=QUANTILE_FORMATS):
        return
    payer = paying.payer
    if payer is not None and paying.given_id is None:
        payer.check(budget)  # before reading, which may take long
    stream = source.open(files, user=user_column, numbers=True)
    place.check([*stream.files, paying.ledger])
    asked = {"files": list(files), **source.asked, "user": user_column}
    told = Asked.of(now(), **source.told("value", user_column, max_rows=max_rows_per_user))

    def draw(reading_is_over: Callable[[], None]) -> Quantiles:
        from discreet.engines.amounts import Amounts

        over = watched(stream)
        found = Amounts(stream, mechanism.grid.places)
        over()
        return pay_for_quantiles(
            mechanism, found, asked, payer, paying.charge_id, when_read=reading_is_over, told=told, question=question
        )

    publish(place, paying, budget, draw, formats=QUANTILE_FORMATS)
