"""What a release says of itself: whose presence it hides, what it promises, and what was asked.

Nothing of it is computed from the data. A privacy unit is the neighbouring relation that a guarantee is proved for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from discreet._data_class import asdict, dataclass, field, replace
from discreet._version import __version__
from discreet.errors import ParameterError
from discreet.privacy.checks import whole_number

if TYPE_CHECKING:
    from discreet.privacy.budget import Budget
    from discreet.privacy.spans import Calendar


_SPANS = {"hour": "1h", "day": "1d", "week": "1w", "month": "1mo"}
UNIT_NAMES = ("row", "person", *(f"person-{span}" for span in _SPANS))
"""Units as front ends name them; person-7d and the like are understood, too."""


@dataclass(frozen=True, repr=False)
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
        per: str | None = getattr(self, "per", None)
        return None if per is None else _calendar(per, getattr(self, "zone", None))

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.details().items() if name != "name")
        return f"{type(self).__name__}({told})"

    def details(self) -> dict[str, Any]:
        """What tells it from other units, JSON-ready."""
        said = {name: value for name, value in asdict(self).items() if value is not None or name == "max_items"}
        return {"name": type(self).__name__, **said}

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


@dataclass(frozen=True, repr=False)
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

    def describe(self) -> str:
        return f"one event added to or removed from the stream{f', of {self.spans.describe()}' if self.spans else ''}"


@dataclass(frozen=True, repr=False)
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

    def describe(self) -> str:
        if self.spans is not None:
            items = "" if self.max_items is None else f" (at most {self.max_items} items)"
            return f"what one person did within {self.spans.describe()}{items}, added to or removed from the data"
        if self.max_items is None:
            return "one person, with all of their rows, added to or removed from the data"
        return f"one user with at most {self.max_items} items added to or removed from the stream"


@dataclass(frozen=True)
class Element(Unit):
    """Neighbouring streams differ in any number of occurrences of one element of the universe."""

    def describe(self) -> str:
        return "all occurrences of one element of the universe added, removed or moved"


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Guarantee:
    """The promise of one release: for whom, how much, by which mechanism, and what it rests on.

    ``epsilon`` and ``delta`` are what the release spends; ``rho`` is set when it was calibrated in zCDP (then
    ``epsilon`` may be None). ``trust`` names who sees the raw stream. ``seeded`` is True when the noise came
    from a seeded source: a seeded release is for tests and is NOT private.
    """

    unit: Unit
    epsilon: float | None
    delta: float
    mechanism: str
    reference: str = ""
    assumptions: tuple[str, ...] = ()
    rho: float | None = None
    trust: str = "central"
    chosen_because: str = ""
    seeded: bool = False

    @classmethod
    def of(cls, budget: Budget, unit: Unit, mechanism: str, reference: str, **more: Any) -> Guarantee:
        """What a mechanism promises that spends this budget and nothing else; `more` are other attributes."""
        return cls(unit, budget.epsilon, budget.delta, mechanism, reference, rho=budget.rho, **more)

    def assuming(self, *told: str, spent: Budget | None = None, **changes: Any) -> Guarantee:
        """The same, which rests on more; with all that was `spent`, where this is for a part of it.

        `changes` are other attributes.
        """
        if spent is not None:
            changes |= spent.to_dict()
        return replace(self, assumptions=(*self.assumptions, *told), **changes)

    def sentence(self) -> str:
        """The promise in one plain sentence; by which mechanism it is kept is for `explain` and `plan`."""
        if self.seeded:
            return "NOT PRIVATE: the noise came from a seeded source, for tests only."
        if self.epsilon is None:
            spend = f"rho={self.rho:g} (zCDP)"
        else:
            spend = f"epsilon={self.epsilon:g}" + (f", delta={self.delta:g}" if self.delta else "")
        several = ""
        if self.unit.spans is not None:
            more = "n times epsilon" if self.epsilon is not None else "up to n² times rho"
            several = f" What one person did {self.unit.spans.several}: {more}."
        return f"Differentially private with {spend}: it hides {self.unit.describe()}.{several}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        return {
            "unit": self.unit.to_dict(),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rho": self.rho,
            "mechanism": self.mechanism,
            "reference": self.reference,
            "assumptions": list(self.assumptions),
            "trust": self.trust,
            "chosen_because": self.chosen_because,
            "seeded": self.seeded,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Guarantee:
        """The inverse of `to_dict`."""
        return cls(
            **{
                **values,
                "unit": unit_from_dict(values["unit"]),
                "assumptions": tuple(values["assumptions"]),
            }
        )


@dataclass(frozen=True)
class Asked:
    """A question, as its release tells it: columns, k, public parameters, the version, and when it was asked.

    The asker stated all of it before anything was read. The time is that of the question, not of the
    answer: how long reading took would tell how much there was to read.

    Attributes:
        time: When it was asked, before anything was read: UTC, to the second.
        version: Of discreet, that answered.
        k: How many items at most, or None.
        columns: The names of the columns: "item", and where there are such "user" and "value".
        parameters: What else was chosen and is public, JSON-ready.
    """

    time: str
    version: str = __version__
    k: int | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, time: str, *, k: int | None = None, columns: Mapping[str, Any] | None = None, **parameters: Any
    ) -> Asked:
        """What was given; None was not. Values are as they come back from JSON."""
        given = {name: value for name, value in parameters.items() if value is not None}
        named = {name: value for name, value in (columns or {}).items() if value is not None}
        return cls(
            time, k=k, **json.loads(json.dumps({"columns": named, "parameters": given}, default=str, allow_nan=False))
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        return {
            "columns": dict(self.columns),
            "k": self.k,
            "parameters": dict(self.parameters),
            "version": self.version,
            "time": self.time,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Asked:
        """The inverse of `to_dict`; a ValueError for what is none."""
        made = cls(values["time"], values["version"], values["k"], values["columns"], values["parameters"])
        right = (
            isinstance(made.time, str)
            and isinstance(made.version, str)
            and (made.k is None or type(made.k) is int)
            and isinstance(made.columns, dict)
            and isinstance(made.parameters, dict)
        )
        if not right:
            raise ValueError("not what was asked for")
        return made
