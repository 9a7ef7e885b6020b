"""`discreet plan`: what each mechanism would publish, before anything is spent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from discreet.cli import options
from discreet.cli.options import Source, flag, option
from discreet.cli.output import batches, note
from discreet.errors import ParameterError

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget


@options.command(options.QUIET)
def plan(
    files: tuple[str, ...] = options.files("Files to count the rows of, instead of --length."),
    source: Source = options.reading(nulls="skip"),
    budget: Budget = options.BUDGET,
    length: int | None = option("--length", "Approximate number of rows.", int),
    capacity: int | None = option("--capacity", "Number of counters; by default what `discreet top` takes.", int),
    memory: str | None = option("--memory", "Memory for counters, such as 256MB, instead of --capacity."),
    k: int = option("-k --k", "Number of items to list.", int, default=100),
    people: int | None = option("--people", "Approximate number of people: plan `discreet top --user`.", int),
    items_per_person: float | None = option(
        "--items-per-person", "With --people: approximate number of different items per person.", float
    ),
    questions: bool = flag(
        "--questions", "Show the error of counts, sums, means, histograms and quantiles for this budget."
    ),
    listed: int | None = option(
        "--listed", "With --questions: number of items in the list of a histogram; 100 by default.", int
    ),
    published: bool = flag("--published", "Also show the mechanisms of the papers as published."),
    max_items: int | None = option("--max-items", "Hide people with up to this many items, instead of rows.", int),
    confidence: float = options.confidence("Probability with which the errors hold."),
    as_json: bool = options.text_format(),
) -> None:
    """Compare mechanisms before anything is spent.

    For a length, budget and capacity: threshold, noise and error.
    """
    import discreet

    def show(planned: Any) -> None:
        print(json.dumps(planned.to_dict(), ensure_ascii=False) if as_json else planned)

    if published and (questions or people is not None):
        raise ParameterError("--published needs --length: it compares mechanisms for rows")
    if questions:
        others = (length, capacity, memory, people, items_per_person)
        if files or any(one is not None for one in others):
            raise ParameterError("--questions can only be combined with the budget, --listed and --max-items")
        most = max_items or 1
        return show(discreet.plan_questions(budget, listed=listed or 100, max_items=most, confidence=confidence))
    if listed is not None:
        raise ParameterError("--listed needs --questions")
    if people is not None:
        if length is not None or files or any(one is not None for one in (capacity, memory, max_items)):
            raise ParameterError("--people can only be combined with the budget, -k and --items-per-person")
        return show(discreet.plan_people(people, budget, k, items_per_person, confidence))
    if items_per_person is not None:
        raise ParameterError("--items-per-person needs --people")
    if (length is None) == (not files):
        raise ParameterError("give one of --length, --people, or files to count")
    unit = None if max_items is None else discreet.User(max_items)
    if length is None:
        length = sum(batch.num_rows for batch in batches(source.open(files)))
        note("the number of rows was counted exactly: keep this plan to yourself")
    planned = discreet.plan(
        length, budget, capacity=capacity, k=k, unit=unit, confidence=confidence, memory=memory, published=published
    )
    show(planned)
    if not planned.rows:
        for name, reason in planned.not_applicable.items():
            note(f"{name} does not apply: {reason}")
