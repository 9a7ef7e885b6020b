"""top_k from files that are read batch by batch: rows, lists with one row a person, or rows that say whose they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.central import Mechanism
from discreet.errors import ParameterError
from discreet.privacy import Budget, Event, Unit, User
from discreet.privacy.budget import as_budget
from discreet.privacy.checks import whole_number

if TYPE_CHECKING:
    from discreet.events.assembly import Rows
    from discreet.events.keys import Keys
    from discreet.noise import RandomSource
    from discreet.privacy.ledger import Account
    from discreet.releases.release import Release

__all__ = ["top_k_of_files"]


def top_k_of_files(
    found: Rows,
    k: int,
    budget: Budget,
    *,
    lists: bool = False,
    max_items: int | None = None,
    count: str = "users",
    value_range: tuple[float, float] | None = None,
    memory: str | None = None,
    nulls: str = "error",
    mechanism: str | Mechanism | type[Mechanism] = "auto",
    workers: int | None = None,
    when_read: Callable[[], None] = lambda: None,
    ledger: Account | None = None,
    charge_id: str | None = None,
    columns: Mapping[str, Any] | None = None,
    request: str | None = None,
    question: Mapping[str, object] | None = None,
    unit: Unit | None = None,
    assumed: Sequence[str] = (),
    query: str | None = None,
    source: RandomSource | None = None,
    time: str | None = None,
    **sketch: Any,
) -> Release:
    """The most frequent items of rows; see `top_k`.

    Args:
        found: The rows. Those that say whose they are hide people, with all of their rows.
        k: How many items to list at most.
        budget: What the release may spend.
        lists: Whether the items are lists, one row a person: people are hidden as well.
        max_items: Of people as in `top_k`. Otherwise the items are lists all the same, as
            `User(max_items)`.
        count: As in `top_k`.
        value_range: Of people: sum the column "value" within these bounds.
        memory: As in `top_k`.
        nulls: As the rows are read.
        mechanism: As in `top_k`; one of your own for people takes a sample of `max_items` items of each.
        workers: As in `top_k`.
        when_read: Called when all is read and nothing is charged yet.
        ledger: As in `top_k`.
        charge_id: As in `top_k`.
        columns: The names that the columns have in the files, for what the release says of itself.
        request: As in `top_k`.
        question: What was asked, see `privacy.question`. Whoever asks has looked for what is stored under it.
        unit: For rows, as in `top_k`.
        query: What chose the rows, for what the release says of itself.
        assumed: What the guarantee has to say of how the rows were made.
        source: For tests and audits only.
        time: When it was asked for.
        sketch: Further arguments of `top_k`, for rows.
    """
    keys, users = found.keys, found.of_people
    form = None if keys is None else _in_columns(keys)
    if assumed:
        form = _assuming(assumed, form or (lambda release: release))
    said = {} if keys is None else {name: value for name, value in keys.asked.items() if name != "groups"}
    if query is not None:
        said["query"] = query
    if lists or (users and mechanism == "auto"):
        from discreet.api.top_people import asked_of_people, refuse_for_people
        from discreet.central.prepared import prepare_people
        from discreet.engines.exact_people import LEAST_MEMORY, people_of
        from discreet.summaries.memory import Memory
        from discreet.summaries.people import ValueRange

        Memory(memory, LEAST_MEMORY)  # refused before anything is read
        within = None if value_range is None else ValueRange(*value_range)
        prepared = prepare_people(
            k, budget, max_items=max_items, count=count, values=within, lists=lists, ledger=ledger, charge_id=charge_id,
            source=source, groups=1 if keys is None or not keys.by else keys.many_groups, question=question,
        )  # fmt: skip
        given = {name: sketch.get(name) for name in ("capacity", "total_share", "stream_length")}
        refuse_for_people(unit=unit, **given)
        if sketch.get("bad_items") == "error":
            raise ParameterError("bad_items is not for people: they are protected without it")
        with people_of(found, rows=count == "rows", value_range=within, memory=memory, threads=workers) as people:
            when_read()
            if keys is not None and keys.by:
                people.group_of = keys.group_of
            asked = {**asked_of_people(k, columns, nulls, max_items, count, within), **said}
            listed = prepared.release(people, {"request": request}, **asked, form=form, time=time or prepared.time)
            return listed.head(k)
    from discreet.api.top_rows import release_of_rows

    if users and max_items is None:
        raise ParameterError("users with a mechanism of your own need max_items")
    if count != "users":
        raise ParameterError("count is for people: give user, the column that says whose row it is")

    if max_items is not None:
        unit = User(max_items)
    elif unit is None:
        unit = mechanism.unit if isinstance(mechanism, Mechanism) else Event()
    return release_of_rows(
        found, whole_number("k", k), as_budget(budget), unit,
        grouped=max_items is not None, mechanism=mechanism,
        nulls=nulls, workers=workers, memory=memory, ledger=ledger, charge_id=charge_id, columns=columns,
        request=request, question=question, source=source, time=time, form=form,
        items_in_all=None if keys is None else keys.items_in_all(k), said=said, when_read=when_read, **sketch,
    )  # fmt: skip


def _in_columns(keys: Keys) -> Callable[[Release], Release]:
    """A release of keys as one of the columns that they were made of."""

    def form(release: Release) -> Release:
        if keys.are_items:
            return release
        if keys.many_groups is not None:
            told = (*release.guarantee.assumptions, "the list of groups is public: it was not made from the data")
            release = release.with_guarantee(replace(release.guarantee, assumptions=told))
        return release.with_items(keys.items(release.item_column), keys.by, keys.groups())

    return form


def _assuming(assumed: Sequence[str], form: Callable[[Release], Release]) -> Callable[[Release], Release]:
    """The same with more assumptions in the guarantee."""

    def formed(release: Release) -> Release:
        made = form(release)
        said = (*made.guarantee.assumptions, *assumed)
        return made.with_guarantee(replace(made.guarantee, assumptions=said))

    return formed
