"""The privacy unit: whose presence a guarantee hides, which is the neighbouring relation it is proved for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from discreet.errors import ParameterError
from discreet.privacy.checks import whole_number

if TYPE_CHECKING:
    from discreet.privacy.spans import Calendar

_SPANS = {"hour": "1h", "day": "1d", "week": "1w", "month": "1mo"}
UNIT_NAMES = ("row", "person", *(f"person-{span}" for span in _SPANS))
"""Units as front ends name them; person-7d and the like are understood, too."""


@dataclass(frozen=True, slots=True, repr=False)
class Unit:
    """A neighbouring relation on streams."""

    def describe(self) -> str:
        """The relation in plain words."""
        raise ParameterError("use Event(), User(max_items), Element() or Replace(), not the bare Unit")

    def covers(self, other: Unit) -> bool:
        """Whether a guarantee for this unit is one for the other, too: the neighbours of the other are neighbours here.

        Charges for both then add up to a guarantee for the other. The argument: docs/privacy/units.md.
        """
        return self == other

    @property
    def spans(self) -> Calendar | None:
        """The spans of time of which one person is hidden in one; None where nothing is told apart by time."""
        return None

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.details().items() if name != "name")
        return f"{type(self).__name__}({told})"

    def details(self) -> dict[str, Any]:
        """What tells it from other units, JSON-ready."""
        return {"name": type(self).__name__, **asdict(self)}

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        return {"name": type(self).__name__, "description": self.describe(), **self.details()}


def _check_spans(unit: Event | User) -> None:
    """The span of a unit in one spelling, or why it has none."""
    if unit.per is not None:
        spans = _calendar(unit.per, unit.zone)
        object.__setattr__(unit, "per", spans.text)
        object.__setattr__(unit, "zone", spans.zone)
    elif unit.zone is not None:
        raise ParameterError("zone needs per, the length of a span: dc.User(per='1d', zone=...)")


@dataclass(frozen=True, slots=True, repr=False)
class Event(Unit):
    """Neighbouring streams differ by adding or removing one event.

    An event has one time, so it is in one span of the calendar. With `per="1d"` charges say which days they looked at,
    and those about different days do not add up: what is hidden is the same.
    """

    per: str | None = None
    zone: str | None = None

    def __post_init__(self) -> None:
        _check_spans(self)

    def covers(self, other: Unit) -> bool:
        return isinstance(other, Event)

    @property
    def spans(self) -> Calendar | None:
        return None if self.per is None else _calendar(self.per, self.zone)

    def describe(self) -> str:
        spans = "" if self.spans is None else f", of {self.spans.describe()}"
        return f"one event added to or removed from the stream{spans}"

    def details(self) -> dict[str, Any]:
        return {name: value for name, value in Unit.details(self).items() if value is not None}


@dataclass(frozen=True, slots=True, repr=False)
class User(Unit):
    """Neighbouring streams differ by adding or removing all events of one user; with `per`, those within one span.

    With `max_items` there are at most this many of them; without, any number (for the mechanisms that need no bound).
    With `per="1d"` a pair of person and day takes the place of the person: any span of the calendar, in a `zone`. The
    argument, and what several days of one person add up to: docs/privacy/person-days.md.
    """

    max_items: int | None = None
    per: str | None = None
    zone: str | None = None

    def __post_init__(self) -> None:
        if self.max_items is not None:
            whole_number("max_items", self.max_items)
        _check_spans(self)

    def covers(self, other: Unit) -> bool:
        """The same, or people with any number of items: somebody with at most m is one of them.

        A whole person does not cover their days, nor a week its days: who takes away one day of several changes a
        person, and does not take them away.
        """
        if self == other:
            return True
        return self.max_items is None and isinstance(other, User) and (self.per, self.zone) == (other.per, other.zone)

    @property
    def limit(self) -> int:
        """max_items, for the mechanisms that need it; ParameterError where there is none."""
        if self.per is not None:
            raise ParameterError(
                "this mechanism does not tell spans of time apart; per needs a question with user and time"
            )
        if self.max_items is None:
            raise ParameterError("this mechanism needs a limit on the items per user; give dc.User(max_items)")
        return self.max_items

    @property
    def spans(self) -> Calendar | None:
        return None if self.per is None else _calendar(self.per, self.zone)

    def describe(self) -> str:
        if self.spans is not None:
            items = "" if self.max_items is None else f" (at most {self.max_items} items)"
            return f"what one person did within {self.spans.describe()}{items}, added to or removed from the data"
        if self.max_items is None:
            return "one person, with all of their rows, added to or removed from the data"
        return f"one user with at most {self.max_items} items added to or removed from the stream"

    def details(self) -> dict[str, Any]:
        return {name: value for name, value in Unit.details(self).items() if value is not None or name == "max_items"}


@dataclass(frozen=True, slots=True)
class Element(Unit):
    """Neighbouring streams differ in any number of occurrences of one element of the universe."""

    def describe(self) -> str:
        return "all occurrences of one element of the universe added, removed or moved"


@dataclass(frozen=True, slots=True)
class Replace(Unit):
    """Neighbouring inputs have the same length and differ in the value of one item."""

    def describe(self) -> str:
        return "one item replaced by another; the number of items is public"


def unit_from_dict(values: dict[str, Any]) -> Unit:
    """The inverse of `Unit.to_dict`."""
    kinds = {kind.__name__: kind for kind in (Event, User, Element, Replace)}
    if values.get("name") not in kinds:
        raise ParameterError(f"unit must be one of {', '.join(kinds)}, not {values.get('name')!r}")
    return kinds[values["name"]](**{key: value for key, value in values.items() if key not in ("name", "description")})


def unit_named(name: str, zone: str | None = None) -> Unit:
    """The unit of a name: row, person, person-day (of a zone), or person- and any span, as in person-7d."""
    if name in ("row", "person"):
        if zone is not None:
            raise ParameterError(f"zone needs a unit of days, weeks or months, such as person-day, not {name}")
        return Event() if name == "row" else User()
    person, _, span = str(name).partition("-")
    try:
        if person == "person":
            return User(per=_SPANS.get(span, span), zone=zone)
    except ParameterError:
        if zone is not None and span in _SPANS:
            raise
    raise ParameterError(f"unit must be one of {', '.join(UNIT_NAMES)} (or as in person-7d), not {name!r}")


def _calendar(per: str, zone: str | None) -> Calendar:
    from discreet.privacy.spans import Calendar

    return Calendar(per, zone)
