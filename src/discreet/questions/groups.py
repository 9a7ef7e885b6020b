"""Answers about rows or people that are numbers: of all of them, or of every group."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet._data_class import dataclass, replace
from discreet.central._additive import PUBLIC_GROUPS
from discreet.privacy.estimate import Estimate
from discreet.questions.question import Question, Way
from discreet.releases.explain import missing
from discreet.releases.group_list import GroupRelease

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from discreet.central.row_moments import Bounded
    from discreet.engines.person_sums import PersonSums
    from discreet.events.assembly import Rows
    from discreet.noise import RandomSource
    from discreet.privacy.budget import Budget
    from discreet.privacy.guarantee import Guarantee
    from discreet.questions.answer import Data
    from discreet.summaries.moments import GroupSums, ValueMoment

    Integers = npt.NDArray[np.int64]


def way_of_moments(
    question: Question, data: Data, budget: Budget, moment: ValueMoment, value: str | None, of: str
) -> Way:
    """How a count, a sum, a mean or a variance is answered, of rows or of people; `value` has the numbers."""
    data.refuse_strict(question)
    confidence: float = question.confidence  # type: ignore[attr-defined]
    if question.grouped_by:
        rows = data.rows(question, None, user=question.user, value=value, only_groups=True, **question.in_groups)
    else:
        rows = data.rows(question, value, user=question.user, numbers=True)
    mechanism: Any
    if question.people:
        from discreet.central.person_moments import PersonMoments

        mechanism = PersonMoments.of(budget, moment, _many(rows), confidence)
    else:
        from discreet.central.row_moments import RowMoments

        mechanism = RowMoments(budget, moment, _many(rows), confidence)

    def count() -> PersonSums | GroupSums:
        if question.people:
            from discreet.engines.person_sums import person_sums

            return person_sums(rows, moment)
        from discreet.engines.group_sums import group_sums

        return _all_listed(rows.gathered(partial(group_sums, moment=moment)), rows)

    def draw(found: Any, source: RandomSource) -> Estimate | GroupRelease:
        drawn, keys = mechanism(found, source), None
        if question.people:
            keys = None if found.groups is None else found.groups.items(drawn.kept)
        elif found.keys is not None:
            keys = found.keys.take(drawn.kept)
        return published(drawn, rows, keys, of, confidence)

    # What the ledger writes down: a charge id stands for one range.
    within = "" if moment.kind == "count" else f", values from {float(moment.low)!r} to {float(moment.high)!r}"
    many = _many(rows)
    groups = "" if many == 1 else f", {many} groups" if many else ", discovered groups"
    described = f"{mechanism.name}{within}{groups}"
    return Way(described, mechanism.unit, count, draw, costs=lambda: mechanism.cost)


def _many(rows: Rows) -> int | None:
    """How many groups there are, if that is public."""
    return 1 if rows.keys is None or not rows.keys.by else rows.keys.many_groups


def _all_listed(found: GroupSums, rows: Rows) -> GroupSums:
    """With a row for every group of a public list, in its order."""
    if rows.keys is None or rows.keys.many_groups is None:
        return found
    sums = np.zeros((rows.keys.many_groups, found.sums.shape[1]), np.int64)
    if found.keys is not None and len(found.keys):
        sums[rows.keys.listed_at(found.keys)] = found.sums
    return replace(found, sums=sums, keys=None)


def _notes(drawn: Bounded) -> tuple[str, ...]:
    """What intervals are about, where that is not everything."""
    covered = getattr(drawn, "covered", None)
    if covered is None:
        return ()
    of_sums = "sum" in drawn.guarantee.mechanism
    more = f"values that add up to more than {covered:,.4g}" if of_sums else f"more than {covered:,.4g} rows"
    return (f"The intervals contain the true numbers if nobody has {more}. Anyone with more counts for this much.",)


def published(
    drawn: Bounded, rows: Rows, keys: pa.Array | None, of: str, confidence: float,
    groups: pa.StructArray | None = None,
) -> Estimate | GroupRelease:  # fmt: skip
    """What was drawn, as a number or as a list of groups; `keys` are those of discovered ones, unless `groups` are."""
    promised = drawn.guarantee
    whole = of in ("rows", "people", "values")
    if rows.keys is None or not rows.keys.by:
        value, lower, upper = (column[0].item() for column in (drawn.values, drawn.lower, drawn.upper))
        left_out = getattr(drawn, "left_out", None)
        notes = _notes(drawn)
        if left_out is not None:
            notes += (missing(**left_out.numbers(), covered=bool(notes)),)
        return Estimate(int(value) if whole else value, lower, upper, promised, left_out=left_out, notes=notes)
    groups = rows.keys.groups() if groups is None else groups
    if groups is None:
        assert keys is not None
        groups = rows.keys.struct(keys)
    return GroupRelease.in_order(
        groups,
        drawn.values,
        drawn.lower,
        drawn.upper,
        promised,
        confidence,
        of,
        "whole" if whole else "number",
        left_out=getattr(drawn, "left_out", None),
        notes_told=_notes(drawn),
    )


def counted_keys(rows: Rows, people: bool) -> tuple[pa.Array, Integers | None, Any]:
    """(the keys of groups and items in rows, how many rows each has, or of people whose they are). NOT private."""
    if people:
        from discreet.engines.pairs import Pairs

        pairs = rows.gathered(Pairs, apart="user")
        return pairs.values(), None, pairs
    from discreet.summaries import ExactCounts

    summary = ExactCounts(max_key_bytes=rows.max_key_bytes)
    rows.feed(summary)
    raw = summary.not_private_counts()
    return raw.items, raw.counts, None


@dataclass(frozen=True, repr=False)
class Grouped:
    """Groups by number, as far as they occur, or all of a public list. NOT private.

    Attributes:
        groups: A struct with the columns of every group.
        numbers: The group of each row, or of each of what was counted.
    """

    groups: pa.StructArray
    numbers: Integers

    @classmethod
    def of(cls, rows: Rows, keys: pa.Array) -> Grouped:
        """The groups of keys. Those that are not listed are numbered in their own order, which no row decides."""
        assert rows.keys is not None
        listed = rows.keys.groups()
        if listed is not None:
            return cls(listed, rows.keys.listed_at(keys))
        import pyarrow as pa

        from discreet.events.values import parts_of, taken
        from discreet.releases.release import order_of

        many, names = len(rows.keys.by), list(rows.keys.by)
        columns = parts_of(rows.keys.struct(keys))[:many]
        values = list(zip(*(column.to_pylist() for column in columns), strict=True))
        first: dict[Any, int] = {}
        numbers = np.array([first.setdefault(value, len(first)) for value in values], np.int64)
        _, at = np.unique(numbers, return_index=True)
        groups = pa.StructArray.from_arrays([taken(column, at) for column in columns], names)
        order = order_of(groups, np.zeros(len(at), np.int64), many)
        return cls(taken(groups, order), np.argsort(order)[numbers])

    def __repr__(self) -> str:
        return "Grouped(NOT PRIVATE)"


class GroupFinder:
    """Which groups are answered for, where the answer has no number of rows or people that says it by itself.

    With a public list these are all, for nothing. Otherwise groups are discovered first: from their rows for a quarter
    of epsilon (`RowMoments`), from their people for half of it (the looks of `PersonMoments`), and for all of delta.

    Attributes:
        budget: What is left for the answers. All groups share it: one unit is in one of them, or is bounded over all.
    """

    def __init__(self, question: Question, budget: Budget, rows: Rows) -> None:
        self.listed, self.budget = _many(rows), budget
        self._finder: Any = None
        if self.listed is None:
            from discreet.central.person_moments import PersonMoments
            from discreet.central.row_moments import RowMoments
            from discreet.summaries.moments import ValueMoment

            found = PersonMoments.of if question.people else RowMoments
            found(budget, ValueMoment("count"), None)  # which refuses a budget that has no delta
            self.budget, rest = budget.split(0.5 if question.people else 0.75)
            self._finder = found(rest, ValueMoment("count"), None)

    def __call__(
        self, found: Grouped, source: RandomSource, people: Integers | None = None, times: Integers | None = None
    ) -> Integers:
        """The numbers of the groups that are answered for; `times` is how many rows each of what was counted has."""
        many = len(found.groups)
        if self._finder is None:
            return np.arange(many)
        if people is not None:
            from discreet.engines.person_sums import people_in_groups

            places, _, _ = self._finder.discover(members := people_in_groups(people, found.numbers, many), source)
            return np.sort(members.numbers_at(places))
        sums = np.bincount(found.numbers, times, many).astype(np.int64)[:, None]
        return np.flatnonzero(self._finder.passed(self._finder.draw(sums, source)))

    def promised(self, guarantee: Guarantee, budget: Budget) -> Guarantee:
        """The guarantee of the answers, for all that was spent; the list of groups is public where there is one."""
        rests = tuple(each for each in guarantee.assumptions if each != PUBLIC_GROUPS)
        listed = () if self.listed is None else (PUBLIC_GROUPS,)
        return replace(guarantee, assumptions=rests).assuming(*listed, spent=budget)
