"""The privacy unit: whose presence a guarantee hides, which is the neighbouring relation it is proved for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from discreet.errors import ParameterError
from discreet.privacy.checks import whole_number

__all__ = ["Element", "Event", "Replace", "Unit", "User", "unit_from_dict"]


@dataclass(frozen=True, slots=True)
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

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        return {"name": type(self).__name__, "description": self.describe(), **asdict(self)}


@dataclass(frozen=True, slots=True)
class Event(Unit):
    """Neighbouring streams differ by adding or removing one event."""

    def describe(self) -> str:
        return "one event added to or removed from the stream"


@dataclass(frozen=True, slots=True)
class User(Unit):
    """Neighbouring streams differ by adding or removing all events of one user.

    With `max_items` there are at most so many of them; without, any number (for the mechanisms that need no bound).
    """

    max_items: int | None = None

    def __post_init__(self) -> None:
        if self.max_items is not None:
            whole_number("max_items", self.max_items)

    def covers(self, other: Unit) -> bool:
        """The same, or people with any number of items: somebody with at most m is one of them."""
        return self == other or (self.max_items is None and isinstance(other, User))

    @property
    def limit(self) -> int:
        """max_items, for the mechanisms that need it; ParameterError where there is none."""
        if self.max_items is None:
            raise ParameterError("this mechanism must know how many items a user has at most: give dc.User(max_items)")
        return self.max_items

    def describe(self) -> str:
        if self.max_items is None:
            return "one person, with all of their rows, added to or removed from the data"
        return f"one user with at most {self.max_items} items added to or removed from the stream"


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
