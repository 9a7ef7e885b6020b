"""A question: a frozen value, checked when it is made, without data.

From it follows everything else: which mechanism answers it, what a charge id stands for, what the release says was
asked, the refusals, the options of the command, the arguments in Python.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from discreet._data_class import dataclass, is_dataclass, replace
from discreet.errors import ParameterError, WordError
from discreet.privacy.guarantee import UNIT_NAMES, Event, Unit, User, unit_named
from discreet.questions.words import (
    SAID,
    Refusal,
    ValueKind,
    choice,
    column,
    columns,
    plain,
    share_of_rows,
    word,
    words_of,
)

if TYPE_CHECKING:
    from discreet.central._base import Prepared
    from discreet.events.times import Pairing
    from discreet.noise import RandomSource
    from discreet.privacy.accounting import Charge
    from discreet.privacy.budget import Budget
    from discreet.questions.answer import Data

ROW, PERSON = Event(), User()


@dataclass(frozen=True)
class Way:
    """How a question is answered: made before anything is read, when nothing is charged and nothing random happened.

    Making one refuses whatever can be refused for its parameters, and calibrates, so that nothing can fail for them
    once the ledger is charged.

    Attributes:
        description: The mechanism in words, as the ledger's history shows it.
        unit: Whose presence is hidden.
        count: Reads and counts. What it returns is NOT private.
        draw: Draws the noise: the answer, of what was counted.
        hides: What the account adds up, where that is more than `unit`.
        chosen: What was chosen for the asker and is public, for what the release says of itself.
        close: Lets go of what was counted.
        costs: Gives the rho and delta that the mechanism says it has, for accounts that add up rhos: it may take long.
    """

    description: str
    unit: Unit
    count: Callable[[], Any]
    draw: Callable[[Any, RandomSource], Any]
    hides: Unit | None = None
    chosen: Mapping[str, Any] | None = None
    close: Callable[[Any], None] = lambda found: None
    costs: Callable[[], Charge | None] = lambda: None


def _unit(name: str, value: Any) -> Unit:
    """What is hidden: row, person, or one of discreet's units."""
    if isinstance(value, str):
        return unit_named(value)
    if not isinstance(value, Unit):
        raise ParameterError(f"{name} must be one of discreet's units, such as dc.Event(), not {type(value).__name__}")
    return value


@dataclass(frozen=True, kw_only=True)
class Worded:
    """Something said in words: frozen, checked when it is made."""

    rules: ClassVar[tuple[Refusal, ...]] = ()
    shared_rules: ClassVar[tuple[Refusal, ...]] = ()

    def __post_init__(self) -> None:
        for each in words_of(type(self)):
            value = getattr(self, each.name)
            if value is not None and value is not each.default:
                object.__setattr__(self, each.name, each.kind.check(each.name, value))
        if getattr(self, "unit", None) is not None:
            _complete_spans(self)
        if getattr(self, "lookup", None) is not None or getattr(self, "on", None) is not None:
            _look_up(self)
        self.complete()
        for rule in (*self.shared_rules, *self.rules):
            if (rule.about is None or rule.about in self.given) and rule.broken(self):
                raise WordError(rule.text)

    def complete(self) -> None:
        """Say what follows from other words, before the rules are checked."""

    @cached_property
    def given(self) -> frozenset[str]:
        """The words that say anything else than their defaults."""
        said = {each.name: (getattr(self, each.name), each.default) for each in words_of(type(self))}
        return frozenset(
            name
            for name, (value, default) in said.items()
            if value is not None and value is not False and value is not default
            and not (isinstance(value, (str, int, float)) and value == default)
        )  # fmt: skip


def _complete_spans(question: Any) -> None:
    """Days are those of the zone, and a period is what its spans are called."""
    unit = question.unit
    if isinstance(unit, User) and unit.spans is not None:
        if question.zone is not None and unit.zone is None and unit.spans.of_days:
            unit = replace(unit, zone=question.zone)
            object.__setattr__(question, "unit", unit)
        if question.period is not None and unit.spans is not None:
            named = unit.spans.told(unit.spans.period(question.period)).split(" to ")
            object.__setattr__(question, "period", named[0] if len(named) == 1 else tuple(named))


_GROUPS = "{groups} needs {by} or {every} (it lists the values of their columns)"


def _groups_from_text(path: str, others: Mapping[str, Any]) -> list[tuple[str, ...]]:
    from pathlib import Path

    from discreet.events.universe import groups_written

    columns = len(others.get("by") or ()) + (others.get("every") is not None)
    if not columns:
        raise WordError(_GROUPS)
    return groups_written(Path(path), columns)


@dataclass(frozen=True, kw_only=True)
class Question(Worded, abc.ABC):
    """What all questions that have one answer share."""

    name: ClassVar[str]
    asks: ClassVar[str]
    """What its command does, in one line."""
    example: ClassVar[str]
    """A command that asks it."""
    no_other_answer: ClassVar[frozenset[str]] = frozenset()
    """Words that say how it is computed, and not what: a charge id stands for the question without them."""
    holds: ClassVar[str] = "item"
    """What is in its column: items, or values."""
    only_shown: ClassVar[bool] = False
    """Whether the confidence of the intervals is no part of the question: they are made when it is written."""
    people_by_user: ClassVar[bool] = True
    """Whether `user` alone tells that people are hidden."""

    user: str | None = word(None, SAID["user"], column(), old=("user_column",))
    by: tuple[str, ...] | None = word(None, "Answer for every group; repeat it for several columns.", columns())
    every: str | None = word(None, "Group by time: 1h, 1d, 1w (from Monday), 1mo.", plain("SPAN"))
    groups: Sequence[Any] | None = word(
        None,
        "File with all groups, if they are public: one per line (CSV for several columns).",
        plain("FILE", _groups_from_text),
        advanced=True,
    )
    where: str | None = word(None, SAID["where"], plain("SQL"))
    lookup: Any = word(None, "Public table to join: one row per value of its key.", plain("FILE"), advanced=True)
    on: str | None = word(None, "Column that joins the data and the lookup.", column(), advanced=True)
    nulls: str = word("error", SAID["nulls"], choice("error", "skip"))
    bad_rows: str = word("skip", SAID["bad_rows"], choice("skip", "error"), old=("bad_items",))

    max_bad: float | None = word(
        None, "Stop if more rows than this cannot be read, such as 10%. Takes 5% of the budget.",
        ValueKind(share_of_rows, "SHARE"), advanced=True,
    )  # fmt: skip
    rules: ClassVar[tuple[Refusal, ...]] = (Refusal(_GROUPS, lambda q: not q.is_grouped, "groups"),)

    unit: Unit | None = word(
        None, "What to hide: one row, a person, or a person's day.", ValueKind(_unit, "row|person|person-day")
    )
    time: str | None = word(None, SAID["time"], column(), old=("time_column",))
    zone: str | None = word(
        None, "Time zone of days and spans, such as Europe/Berlin; UTC by default.", plain("ZONE"), advanced=True
    )
    period: Any = word(None, "Day to publish, such as 2026-11-15; rows of other days are skipped.", plain("DAY"))

    shared_rules: ClassVar[tuple[Refusal, ...]] = (
        Refusal("{unit} row cannot be combined with {user}", lambda q: q.unit == ROW and q.user is not None, "unit"),
        Refusal(
            "{unit} person-day needs {user}: it tells whose day it is",
            lambda q: q.spans_hidden and q.user is None,
            "unit",
        ),
        Refusal(
            "{unit} person-day needs {time}: it tells which day a row is of",
            lambda q: q.spans_hidden and not q.time,
            "unit",
        ),
        Refusal("{time} needs {every} or {unit} person-day", lambda q: not q.has_spans, "time"),
        Refusal("{zone} needs {every} or {unit} person-day", lambda q: not q.has_spans, "zone"),
        Refusal("{period} needs {unit} person-day", lambda q: not q.spans_hidden, "period"),
        Refusal(
            "{max_bad} cannot be combined with {bad_rows} error, which stops at the first bad row",
            lambda q: q.bad_rows == "error",
            "max_bad",
        ),
        Refusal(
            "{unit} must be row, person or person-day; {user} tells who is a person",
            lambda q: q.people_by_user and q.unit != ROW and not q.whole_person,
            "unit",
        ),
    )

    @property
    def whole_person(self) -> bool:
        """Whether the unit is a person with all they did, or with all they did within a span."""
        return isinstance(self.unit, User) and self.unit.max_items is None

    @property
    def spans_hidden(self) -> bool:
        """Whether a pair of person and span of time takes the place of the person."""
        return isinstance(self.unit, User) and self.unit.spans is not None

    @property
    def has_spans(self) -> bool:
        """Whether spans of time say anything here."""
        return self.spans_hidden or self.every is not None

    @property
    def pairing(self) -> Pairing | None:
        """What pairs of person and span are made of."""
        if not isinstance(self.unit, User) or self.unit.spans is None or self.time is None:
            return None
        calendar = self.unit.spans
        from discreet.events.times import Pairing

        return Pairing(self.time, calendar, None if self.period is None else calendar.period(self.period))

    def to_dict(self) -> dict[str, Any]:
        """The words and what they say, JSON-ready; also where it is the default, which another version may change."""
        said = {each.name: getattr(self, each.name) for each in words_of(type(self))}
        return {name: spoken(value) for name, value in said.items() if value is not None}

    @property
    def is_grouped(self) -> bool:
        """Whether there is an answer for every group."""
        return self.by is not None or self.every is not None

    @property
    def grouped_by(self) -> tuple[str, ...]:
        """The columns that say the group of a row, that of times first.

        A question of a report may leave the column of times to the report, so it is missed here, where it is needed.
        """
        if self.every is None:
            return self.by or ()
        if self.time is None:
            raise WordError("{every} needs {time}")
        return (self.time, *(self.by or ()))

    @property
    def in_groups(self) -> dict[str, Any]:
        """What rows are asked for where they are in groups; see `Wanted`."""
        by, spans = self.grouped_by, None
        if self.every is not None:
            from discreet.events.times import Every

            spans = Every(self.every, self.zone)
        return {"by": by, "every": spans, "groups": self.groups} if by else {}

    @property
    def people(self) -> bool:
        """Whether whole people are hidden."""
        return self.user is not None

    @abc.abstractmethod
    def way(self, data: Data, budget: Budget) -> Way:
        """How it is answered from these data; only what is public is looked at."""


def _look_up(question: Any) -> None:
    """The public table of a question is read and checked when it is asked, before any data."""
    if (question.lookup is None) != (question.on is None):
        raise WordError("{lookup} and {on} must be given together: a public table, and the column to join it on")
    if question.lookup is not None:
        from discreet.events.lookup import Lookup

        object.__setattr__(question, "lookup", Lookup.of(question.lookup, question.on))


def way_of(
    prepared: Prepared,
    count: Callable[[], Any],
    draw: Callable[[Any, RandomSource], Any] | None = None,
    close: Callable[[Any], None] = lambda found: None,
) -> Way:
    """The way of a mechanism that publishes a `Release`; `draw` makes more of what is drawn, where it has to."""
    mechanism, share = prepared.mechanism, prepared.total_share
    described = prepared.described or mechanism.name
    return Way(
        described if share is None else f"{described}, and the total for a share of {share:g}",
        mechanism.unit,
        count,
        draw or prepared.draw,
        User() if prepared.bounded else mechanism.hides or mechanism.unit,
        {
            "capacity": getattr(mechanism, "capacity", None),
            "length": prepared.stream_length,
            "total_share": share,
        },
        close,
        lambda: mechanism.cost if prepared.total_noise is None else None,
    )


def of_lists(draw: Callable[[Any, RandomSource], Any]) -> Callable[[Any, RandomSource], Any]:
    """The same for people who came as lists, one a person: the guarantee says so."""

    def drawn(found: Any, source: RandomSource) -> Any:
        from discreet.central._additive import A_PERSON
        from discreet.releases.payment import changed

        answer = draw(found, source)
        promised = answer.guarantee
        told = tuple("every person is one list" if each == A_PERSON else each for each in promised.assumptions)
        return changed(answer, guarantee=replace(promised, assumptions=told))

    return drawn


def way_to(question: Any, data: Data, budget: Budget) -> Way:
    """How a question is answered from these data: what it hides, and what is assumed of them, is said here, once.

    A report has this of each of its questions.
    """
    way: Way = question.way(data, budget)
    if not isinstance(question, Question):
        return way
    if data.assumed:
        counted = way.draw

        def drawn(found: Any, source: RandomSource) -> Any:
            from discreet.releases.payment import changed

            answer = counted(found, source)
            return changed(answer, guarantee=answer.guarantee.assuming(*data.assumed))

        way = replace(way, draw=drawn)
    return way if question.unit is None else way_hiding(question, way)


def way_hiding(question: Question, way: Way) -> Way:
    """How a question whose unit was said is answered: it hides a whole person, or what they did within a span of time.

    Where a pair of person and span takes the place of the person, what it hides is said here, once. Mechanisms know
    people; who they are is made where rows are assembled (docs/privacy/person-days.md).
    """
    if question.whole_person and not isinstance(way.unit, User):
        raise WordError("{unit} person needs {user}: the column that says whose row it is")
    unit = question.unit
    if not isinstance(unit, User) or unit.spans is None:
        return way
    calendar = unit.spans

    def within(hidden: Unit) -> Unit:
        assert isinstance(hidden, User)
        return replace(hidden, per=unit.per, zone=unit.zone)

    def drawn(found: Any, source: RandomSource) -> Any:
        from discreet.releases.payment import changed

        answer = way.draw(found, source)
        told, promised = f"anyone who is there in several spans of {calendar.text} counts in each", answer.guarantee
        return changed(answer, guarantee=promised.assuming(told, unit=within(promised.unit)))

    described = f"{way.description}, per {calendar.text}"
    hides = None if way.hides is None else within(way.hides)
    return replace(way, description=described, unit=within(way.unit), draw=drawn, hides=hides)


def spoken(value: Any) -> Any:
    """The value of a word, JSON-ready."""
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Unit):
        return next((name for name in UNIT_NAMES if unit_named(name) == value), None) or value.to_dict()
    if hasattr(value, "to_dict") and not isinstance(value, type):
        return value.to_dict()
    if isinstance(value, type) or is_dataclass(value):
        from discreet.questions.choose import mechanism_told

        return mechanism_told(value)  # type: ignore[arg-type]
    if isinstance(value, tuple):
        return spoken(value[0]) if len(value) == 1 else [spoken(each) for each in value]
    return value


def _universe(name: str, value: Any) -> Any:
    from discreet.events.universe import Universe

    return Universe.of(value)


def _universe_from_text(text: str, others: Mapping[str, Any]) -> Any:
    from discreet.events.universe import universe_written

    return universe_written(text, empty_lines=False)


UNIVERSE = ValueKind(_universe, "FILE|N|A:B", from_text=_universe_from_text)
"""All items that can occur: a list, a range, or on a command line N, A:B or a file."""
