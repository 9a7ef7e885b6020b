"""Quantiles of a column of numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.api.filtering import asked_where, rows_where
from discreet.errors import ParameterError
from discreet.events.items import skip_nulls
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Event, User
from discreet.privacy.question import question_of
from discreet.releases.asked import Asked, now
from discreet.releases.paying import Bill, check_payer, pay_and_draw, stored_answer
from discreet.releases.quantiles import Quantiles

if TYPE_CHECKING:
    from discreet.central.quantile_tree import QuantileTree
    from discreet.engines.amounts import Amounts
    from discreet.privacy.ledger import Account

__all__ = ["asked_of_quantiles", "pay_for_quantiles", "quantile_mechanism", "quantiles"]


def quantiles(
    table: Any,
    column: str | None,
    budget: Budget,
    quantiles: float | Sequence[float] = (0.25, 0.5, 0.75),
    *,
    range: Sequence[float],
    where: str | None = None,
    user: str | None = None,
    max_rows: int | None = None,
    scale: str = "linear",
    bins: int | None = None,
    nulls: str = "error",
    confidence: float = 0.95,
    ledger: Account | None = None,
    charge_id: str | None = None,
    request: str | None = None,
    source: RandomSource | None = None,
) -> Quantiles:
    """The values below which given shares of a column of numbers lie: 0.5 is the median.

        quantiles(table, "amount", dc.Budget(1.0), [0.5, 0.9], range=(0, 1000))                    # hides one row
        quantiles(table, "amount", dc.Budget(1.0), [0.5, 0.9], range=(0, 1000), user="customer")   # hides a person

    All shares come from one look at the data (`QuantileTree`), so more of them cost nothing. The rank of an answer
    is off by about 20/epsilon rows, whatever the range; how far the value is off depends on how dense the values are
    there, and the interval says it. With `user` the rows of a person share one vote.

    Args:
        table: As for `count`.
        column: The column of the numbers; None if the table is that column itself.
        budget: Epsilon alone, epsilon and delta, or rho.
        quantiles: The shares, above 0 and below 1.
        range: (LOW, HIGH), a public range: chosen without looking at the data. Values outside count as its ends.
        where: As for `top_k`.
        user: The column that says whose row it is.
        max_rows: With `user`: so many rows of a person have a vote each; of a person with more, the rows share so many
            votes. The noise grows by this factor. 1 by default.
        scale: "log" divides the range by ratios, for values that span several powers of ten.
        bins: Into how many parts the range is divided; 65,536 by default. Fewer have less noise. With
            as many as there are whole numbers, `range=(0, 121), bins=121` for ages, values are whole.
        nulls: "error" refuses rows without a value, "skip" leaves them out.
        confidence: With this probability all intervals hold together.
        ledger: As for `count`.
        charge_id: As for `release`.
        request: As for `release`.
        source: For tests and audits only.
    """
    skip_nulls(nulls)
    if column is not None and not isinstance(column, str):
        raise ParameterError(f"column must be the name of a column, not {type(column).__name__}")
    people, began = user is not None, now()
    mechanism = quantile_mechanism(budget, quantiles, range, people, max_rows, scale, bins, confidence)
    check_payer(ledger, charge_id, source)
    question = question_of(
        "quantiles", column=column, where=where, user=user, nulls=nulls, **asked_of_quantiles(mechanism),
        secret={"request": request},
    )  # fmt: skip
    stored = stored_answer(ledger, charge_id, budget, question, Quantiles.from_payload)
    if stored is not None:
        return dataclasses.replace(stored, payment="replayed")
    from discreet.engines.amounts import Amounts
    from discreet.events.tables import events_of

    if where is not None and column is None:
        raise ParameterError("where chooses rows of a table: name the column of the numbers, too")
    rows = events_of(rows_where(table, where)).rows(column, user=user, nulls=nulls, numbers=True)
    found = Amounts(rows, mechanism.grid.places)
    asked = {"column": column, "user": user, "nulls": nulls, "request": request, **asked_where(where)}
    told = Asked.of(began, columns={"value": column, "user": user}, nulls=nulls, max_rows=max_rows, query=where)
    return pay_for_quantiles(mechanism, found, asked, ledger, charge_id, source, told=told, question=question)


def quantile_mechanism(
    budget: Budget,
    quantiles: float | Sequence[float],
    range: Sequence[float],
    people: bool,
    max_rows: int | None = None,
    scale: str = "linear",
    bins: int | None = None,
    confidence: float = 0.95,
) -> QuantileTree:
    """The mechanism of `quantiles`: all that can be refused before anything is read."""
    from discreet.central.quantile_tree import BINS, Grid, QuantileTree

    if isinstance(range, (str, bytes, dict)) or not hasattr(range, "__len__") or len(range) != 2:
        raise ParameterError("range is two numbers, LOW and HIGH, which are public")
    grid = Grid(range[0], range[1], BINS if bins is None else bins, scale)
    return QuantileTree(budget, grid, quantiles, User() if people else Event(), max_rows, confidence)  # type: ignore[arg-type]


def asked_of_quantiles(mechanism: QuantileTree) -> dict[str, object]:
    """What is public of quantiles and makes them others."""
    grid = mechanism.grid
    return {
        "quantiles": list(mechanism.quantiles),
        "confidence": mechanism.confidence,
        "grid": [grid.low, grid.high, grid.bins, grid.scale],
        "max_rows": mechanism.max_rows,
    }


def pay_for_quantiles(
    mechanism: QuantileTree,
    found: Amounts,
    request: Mapping[str, object],
    ledger: Account | None = None,
    charge_id: str | None = None,
    source: RandomSource | None = None,
    when_read: Callable[[], None] = lambda: None,
    *,
    told: Asked,
    question: Mapping[str, object],
) -> Quantiles:
    """Charge, draw, store: the quantiles, which say what was `told` of the question, and how they were paid."""
    asked = {**request, **asked_of_quantiles(mechanism)}
    bill = Bill(mechanism.budget, mechanism.name, mechanism.unit, asked, question=question)
    counts = mechanism.counts(found.places, found.people)
    when_read()
    drawn, payment = pay_and_draw(
        ledger,
        charge_id,
        bill,
        lambda: dataclasses.replace(mechanism(counts, system_source() if source is None else source), asked=told),
        to_payload=Quantiles.to_payload,
        from_payload=Quantiles.from_payload,
    )
    return dataclasses.replace(drawn, payment=payment)
