"""Counting beside the top: how many rows, people or different values, and how many of each item of a public list."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from discreet._native import MadeColumn
from discreet.api.filtering import asked_where, rows_where
from discreet.central._additive import A_PERSON
from discreet.central.noisy_count import NoisyCount
from discreet.errors import CorruptStateError, DataError, ParameterError
from discreet.events.items import (
    is_arrow,
    item_of,
    library,
    objects_of,
    read,
    refuse_single,
    skip_nulls,
)
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Estimate, Event, Guarantee, User
from discreet.privacy.question import question_of
from discreet.releases.asked import Asked, now
from discreet.releases.paying import Bill, check_payer, pay_and_draw, stored_answer, stored_release
from discreet.releases.release import Release

if TYPE_CHECKING:
    from discreet.central.chosen_distinct import ChosenDistinct
    from discreet.engines.pairs import Pairs
    from discreet.privacy.ledger import Account

__all__ = [
    "count",
    "distinct",
    "distinct_mechanism",
    "estimate_from_payload",
    "histogram",
    "histogram_of_columns",
    "histogram_of_people",
    "histogram_prepared",
    "pay_for_count",
]

_WHOLE = re.compile("-?[0-9]{1,20}")


def count(
    table: Any,
    budget: Budget,
    *,
    user: str | None = None,
    where: str | None = None,
    nulls: str = "error",
    confidence: float = 0.95,
    ledger: Account | None = None,
    charge_id: str | None = None,
    request: str | None = None,
    source: RandomSource | None = None,
) -> Estimate:
    """How many rows a table has, or with `user` how many different people it has rows of.

        count(table, dc.Budget(1.0))                        # rows; hides one
        count(table, dc.Budget(1.0), user="visitor")        # people; hides one, with all of their rows

    One row, or one person, changes the number by 1: the error is about 3/epsilon at 95 percent (`NoisyCount`).

    Args:
        table: Arrow (also a reader), pandas, polars, a DuckDB relation, or a dict of columns.
        budget: Epsilon alone, epsilon and delta, or rho.
        user: The column that says whose row it is.
        where: As for `top_k`.
        nulls: With `user`: "error" refuses rows without one, "skip" leaves them out.
        confidence: Of the interval.
        ledger: The account that pays. It is charged after the table was read and before noise is drawn.
        charge_id: As for `release`.
        request: As for `release`.
        source: For tests and audits only.
    """
    skip_nulls(nulls)
    people, began = user is not None, now()
    mechanism = NoisyCount(budget, User() if people else Event(), "people" if people else "rows", confidence=confidence)
    check_payer(ledger, charge_id, source)
    question = question_of(
        "count", user=user, where=where, nulls=nulls, confidence=confidence, secret={"request": request}
    )
    stored = stored_answer(ledger, charge_id, budget, question, estimate_from_payload)
    if stored is not None:
        return stored
    from discreet.engines.different import different_items
    from discreet.events.tables import events_of

    events = events_of(rows_where(table, where))
    found = events.all_rows().number() if user is None else different_items(events.rows(user, nulls=nulls))
    asked = {"user": user, "nulls": nulls, "request": request, **asked_where(where)}
    told = Asked.of(began, columns={"user": user}, nulls=nulls, query=where)
    return pay_for_count(mechanism, found, asked, ledger, charge_id, source, told=told, question=question)[0]


def distinct(
    table: Any,
    column: str,
    budget: Budget,
    user: str | None = None,
    *,
    max_items: int | None = None,
    where: str | None = None,
    nulls: str = "error",
    confidence: float = 0.95,
    ledger: Account | None = None,
    charge_id: str | None = None,
    request: str | None = None,
    source: RandomSource | None = None,
) -> Estimate:
    """How many different values a column has.

        distinct(table, "visitor", budget, user="visitor")  # different people; hides one, with all of their rows
        distinct(table, "url", budget, user="visitor")      # different values; hides a person, with all of their rows
        distinct(table, "url", budget)                      # different values; hides one row

    With `user` every value is credited to one of the people who have it, at most m values to a person, and as many as
    possible. A fifth of the budget chooses m (`ChosenDistinct`), or `max_items` says it (`CreditedDistinct`). The
    lower bound then holds for the number of all values, and there is no upper
    one. Otherwise one unit changes the number by 1: `NoisyCount`.

    Args:
        table: As for `count`.
        column: The column of the values.
        budget: Epsilon alone, epsilon and delta, or rho.
        user: The column that says whose row it is.
        max_items: With `user`: how many values one person is credited with at most, a public number; by default this is
            chosen privately.
        where: As for `top_k`.
        nulls: "error" refuses rows without a value, "skip" leaves them out.
        confidence: Of the interval.
        ledger: As for `count`.
        charge_id: As for `release`.
        request: As for `release`.
        source: For tests and audits only.
    """
    skip_nulls(nulls)
    began = now()
    if not isinstance(column, str):
        raise ParameterError(f"column must be the name of a column, not {type(column).__name__}")
    mechanism = distinct_mechanism(budget, column, user, max_items, confidence)
    check_payer(ledger, charge_id, source)
    question = question_of(
        "distinct", column=column, user=user, max_items=max_items, where=where, nulls=nulls, confidence=confidence,
        secret={"request": request},
    )  # fmt: skip
    stored = stored_answer(ledger, charge_id, budget, question, estimate_from_payload)
    if stored is not None:
        return stored
    from discreet.events.tables import events_of

    events = events_of(rows_where(table, where))
    if user is None or user == column:
        from discreet.engines.different import different_items

        found: Any = different_items(events.rows(column, nulls=nulls))
    else:
        from discreet.engines.pairs import Pairs

        pairs = Pairs(events.rows(column, user=user, nulls=nulls))
        found = mechanism.count_of(pairs.people, pairs.items)  # type: ignore[union-attr]
    asked = {"column": column, "user": user, "nulls": nulls, "request": request, **asked_where(where)}
    told = Asked.of(began, columns={"item": column, "user": user}, nulls=nulls, max_items=max_items, query=where)
    return pay_for_count(mechanism, found, asked, ledger, charge_id, source, told=told, question=question)[0]


def histogram(
    table: Any,
    budget: Budget,
    *,
    column: str | None = None,
    universe: Any,
    user: str | None = None,
    max_items: int | None = None,
    where: str | None = None,
    nulls: str = "error",
    ledger: Account | None = None,
    charge_id: str | None = None,
    request: str | None = None,
    source: RandomSource | None = None,
) -> Release:
    """The count of every item of a public list, also of those that did not occur.

        histogram(table, dc.Budget(1.0), column="country", universe=["de", "fr", "it"])
        histogram(table, dc.Budget.zcdp(0.1), column="country", universe=countries, user="visitor", max_items=2)

    Nothing is held back, so epsilon alone or rho will do (`UniverseHistogram`). Items that are not in the list are left
    out, also if all of them are of another kind. A column whose type says that (numbers, and a list of text) is
    refused.

    Args:
        table: As for `count`; without `column` also a column, as for `top_k`.
        budget: Epsilon alone, epsilon and delta, or rho.
        column: The column of the items.
        universe: The items to list, which are public: a list, a range, or a `dc.central.Universe`.
        user: The column that says whose row it is: counts are of people, and a person is hidden with all of their rows.
        max_items: With `user`, and needed then: of one person the first so many different items of the list count. The
            noise grows with it: by this factor for epsilon alone, by its root for rho.
        where: As for `top_k`.
        nulls: "error" refuses rows without an item, "skip" leaves them out.
        ledger: As for `count`.
        charge_id: As for `release`.
        request: As for `release`.
        source: For tests and audits only.
    """
    skip_nulls(nulls)
    prepared = histogram_prepared(budget, universe, user is not None, max_items, ledger, charge_id, source)
    question = question_of(
        "histogram", column=column, universe=prepared.mechanism.universe.to_dict(), user=user, max_items=max_items,
        where=where, nulls=nulls, secret={"request": request},
    )  # fmt: skip
    stored = stored_release(ledger, charge_id, budget, question)
    if stored is not None:
        return stored
    prepared = dataclasses.replace(prepared, question=question)
    asked = {"column": column, "user": user, "nulls": nulls, "request": request, **asked_where(where)}
    told = {"columns": {"item": column, "user": user}, "nulls": nulls, "max_items": max_items, "query": where}
    if user is not None and column is None:
        raise ParameterError("user protects people, and needs the column of the items")
    from discreet.events.tables import events_of

    found = events_of(rows_where(table, where)).rows(column, user=user, nulls=nulls, plain=True)
    columns = found.items() if user is None else None  # which refuses lists
    if found.item_type is not None:
        prepared.mechanism.universe.refuse_type(found.item_type)
    if columns is not None:
        return histogram_of_columns(prepared, columns, nulls, asked, told=told)
    from discreet.engines.pairs import Pairs

    return histogram_of_people(prepared, Pairs(found), asked, told=told)


# ---- what both Python and the command line go through ----------------------------------------------------------------


def distinct_mechanism(
    budget: Budget, column: str | None, user: str | None, max_items: int | None, confidence: float
) -> NoisyCount | ChosenDistinct:
    """The mechanism of `distinct`."""
    if user is not None and user != column:
        if max_items is None:
            from discreet.central.chosen_distinct import ChosenDistinct

            return ChosenDistinct(budget, confidence=confidence)
        from discreet.central.credited_distinct import CreditedDistinct

        return CreditedDistinct(budget, confidence=confidence, max_items=max_items)
    if max_items is not None:
        raise ParameterError("max_items is for different values of people: give user, the column of the people")
    people = user is not None
    return NoisyCount(budget, User() if people else Event(), "people" if people else "values", confidence)


def pay_for_count(
    mechanism: NoisyCount | ChosenDistinct,
    found: Any,
    request: Mapping[str, object],
    ledger: Account | None = None,
    charge_id: str | None = None,
    source: RandomSource | None = None,
    *,
    told: Asked,
    question: Mapping[str, object],
    lists: bool = False,
) -> tuple[Estimate, str | None]:
    """Charge, draw, store: the count, which says what was `told` of the question, and how it was paid.

    People may have come as `lists`, and the guarantee says so then.
    """

    def drawn() -> Estimate:
        found_out = mechanism(found, system_source() if source is None else source)
        assert found_out.guarantee is not None
        promised = _of_lists(found_out.guarantee) if lists else found_out.guarantee
        return dataclasses.replace(found_out, guarantee=promised, asked=told.to_dict())

    asked = {**request, "confidence": mechanism.confidence}
    bill = Bill(mechanism.budget, mechanism.name, mechanism.unit, asked, question=question)
    return pay_and_draw(
        ledger,
        charge_id,
        bill,
        drawn,
        to_payload=_to_payload,
        from_payload=estimate_from_payload,
    )


def histogram_prepared(
    budget: Budget,
    universe: Any,
    people: bool,
    max_items: int | None,
    ledger: Account | None = None,
    charge_id: str | None = None,
    source: RandomSource | None = None,
) -> Any:
    """The mechanism of `histogram` and who pays: all that can be refused before anything is read."""
    from discreet.central.prepared import Prepared
    from discreet.central.universe_histogram import UniverseHistogram

    if people and max_items is None:
        raise ParameterError(
            "people need max_items (--max-items-per-user), a public number: of one person the first so many items of "
            "the list count, and the noise grows with it"
        )
    mechanism = UniverseHistogram(budget, universe, User() if people else Event(), max_items)
    more = "" if max_items is None else f", {max_items} items of a person"
    described = f"{mechanism.name}, {mechanism.universe.size} items{more}"
    return Prepared(mechanism, budget, ledger=ledger, charge_id=charge_id, source=source, described=described)


def histogram_of_columns(
    prepared: Any,
    columns: Iterator[Any],
    nulls: str,
    request: Mapping[str, object],
    when_read: Callable[[], None] = lambda: None,
    *,
    told: Mapping[str, Any],
) -> Release:
    """The histogram of columns of items; `told` is what the release says of the question, see `Asked`."""
    from discreet.summaries import ExactCounts

    summary = ExactCounts()
    for column in columns:
        _refuse_type(prepared.mechanism.universe, column)
        for part in _of_known_kinds(column):
            summary.update(part, nulls=nulls, bad_items="skip")
    when_read()
    return _histogram(prepared, summary, request, told)


def histogram_of_people(
    prepared: Any,
    pairs: Pairs,
    request: Mapping[str, object],
    when_read: Callable[[], None] = lambda: None,
    *,
    written: bool = False,
    told: Mapping[str, Any],
    lists: bool = False,
) -> Release:
    """The histogram of what people have. In files that are `written`, numbers may be text, and the other way round.

    `lists` is as for `pay_for_count`.
    """
    import numpy as np

    from discreet.summaries import ExactCounts

    mechanism, values, summary = prepared.mechanism, pairs.values(), ExactCounts()
    places = _places_written(mechanism.universe, values) if written else mechanism.universe.positions(values)
    items = pairs.first_of(places >= 0, mechanism.max_items)
    summary.update(mechanism.universe.take(places[items]) if len(items) else np.zeros(0, np.int64))
    when_read()
    form = (lambda release: release.with_guarantee(_of_lists(release.guarantee))) if lists else None
    return _histogram(prepared, summary, request, {**told, "form": form})


def _of_lists(guarantee: Guarantee) -> Guarantee:
    """The same for people who came as lists."""
    told = ("every person is one list" if each == A_PERSON else each for each in guarantee.assumptions)
    return dataclasses.replace(guarantee, assumptions=tuple(told))


def _places_written(universe: Any, values: Any) -> Any:
    import numpy as np

    items = values.to_pylist()
    if universe.has_numbers:
        items = [int(item) if isinstance(item, str) and _WHOLE.fullmatch(item) else item for item in items]
    else:
        items = [str(item) if isinstance(item, int) else item for item in items]
    return np.array([universe.place(item) for item in items], np.int64)


def _histogram(prepared: Any, summary: Any, request: Mapping[str, object], told: Mapping[str, Any]) -> Release:
    listed = prepared.mechanism.universe.to_dict()
    release: Release = prepared.release(summary, {**request, "universe": listed}, **told)
    return release


def _refuse_type(universe: Any, column: Any) -> None:
    """Refuse a column whose type says that none of its items can be in the list: by the type, and not by the items."""
    from discreet.events.tables import type_of

    if (kind := read(column, lambda: type_of(column))) is not None:
        universe.refuse_type(kind)


def _of_known_kinds(column: Any) -> Iterator[Any]:
    """A column without the objects that can be in no list. It is refused where none of them can be an item at all.

    Dates, decimals and the like are items, of other kinds than those of a list: it is no error that all of them are.
    """
    objects = objects_of(column)
    if objects is None and (is_arrow(column) or library(column) or isinstance(column, MadeColumn)):
        yield column
        return
    from discreet.events.tags import tagged

    refuse_single(column)
    values, odd, useful = iter(column if objects is None else objects), False, False
    while part := list(islice(values, _OBJECTS_AT_ONCE)):
        others = [value for value in part if type(value) not in _KNOWN and item_of(value) is None]
        odd, useful = odd or bool(others), useful or len(others) < len(part) or any(map(tagged, others))
        yield [value for value in part if type(value) in _KNOWN or item_of(value) is not None] if others else part
    if odd and not useful:
        raise DataError("no value of the column can be an item, such as a text or a whole number")


_OBJECTS_AT_ONCE = 1 << 16
_KNOWN = (str, bytes, int, type(None))


# ---- what a ledger stores --------------------------------------------------------------------------------------------


def _to_payload(estimate: Estimate) -> bytes:
    assert estimate.guarantee is not None
    upper = None if math.isinf(estimate.upper) else estimate.upper
    fields = {"value": estimate.value, "lower": estimate.lower, "upper": upper}
    told = {"guarantee": estimate.guarantee.to_dict(), "asked": estimate.asked}
    return json.dumps({"release": "estimate", "version": 1, **fields, **told}, allow_nan=False).encode()


def estimate_from_payload(payload: bytes) -> Estimate:
    """A count that a ledger stores."""
    try:
        fields = json.loads(payload)
        if fields["release"] != "estimate" or fields["version"] != 1:
            raise ValueError
        upper = math.inf if fields["upper"] is None else fields["upper"]
        asked = fields.get("asked")  # which older ones do not say
        return Estimate(
            fields["value"],
            fields["lower"],
            upper,
            Guarantee.from_dict(fields["guarantee"]),
            asked=None if asked is None else Asked.from_dict(asked).to_dict(),
        )
    except (KeyError, TypeError, ValueError):
        raise CorruptStateError("what the ledger stores under this id is no count") from None
