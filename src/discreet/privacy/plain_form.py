"""Frozen dataclasses as JSON has them, and back: laws of noise and sums of charges, by the types of their fields."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

from discreet._data_class import fields

if TYPE_CHECKING:
    from typing_extensions import Self


class PlainForm:
    """A frozen dataclass that is written field by field: a fraction as text, a tuple as a list, no number as null.

    `Annotated[float, math.inf]` is a number that null stands for infinity in. Fields in `added` are of later versions:
    they are written where they are not the default, and need not be there.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    added: ClassVar[frozenset[str]] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description."""
        told = ((each, getattr(self, each.name)) for each in _fields(type(self)))
        return {each.name: _written(of) for each, of in told if each.name not in self.added or of != each.default}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The inverse of `to_dict`; KeyError, TypeError or ValueError for anything else."""
        if not isinstance(values, dict):
            raise TypeError(f"fields by their names are needed, not {type(values).__name__}")
        kinds = _kinds(cls)  # type: ignore[arg-type]  # a class is hashable
        if missing := kinds.keys() - cls.added - values.keys():
            raise KeyError(min(missing))
        return cls(**{name: _read(value, kinds[name]) for name, value in values.items()})


@cache
def _kinds(form: type[PlainForm]) -> dict[str, Any]:
    hints = get_type_hints(form, include_extras=True)
    return {each.name: hints[each.name] for each in fields(form)}


_fields: Any = cache(fields)


def _written(value: Any) -> Any:
    if isinstance(value, PlainForm):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_written(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value) if isinstance(value, Fraction) else value


def _read(value: Any, kind: Any) -> Any:
    """A value of this type; a tuple with names has the types of its fields."""
    parts = get_args(kind)
    if get_origin(kind) is Annotated:
        return parts[1] if value is None else _read(value, parts[0])
    if NoneType in parts:
        return None if value is None else _read(value, parts[0])
    if isinstance(kind, type) and issubclass(kind, PlainForm):
        return kind.from_dict(value)
    if get_origin(kind) is tuple:
        several = parts[:1] * len(value) if parts[1:] == (...,) else parts
        return tuple(_read(each, of) for each, of in zip(value, several, strict=True))
    if issubclass(kind, tuple):
        return kind(*(_read(each, of) for each, of in zip(value, get_type_hints(kind).values(), strict=True)))
    return kind(value)
