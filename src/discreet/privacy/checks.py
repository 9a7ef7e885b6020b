"""Checks of parameters where they enter: the error says what was given and what is allowed."""

from __future__ import annotations

import math
import operator
from numbers import Real

from discreet.errors import ParameterError

_PLURALS = {"person": "people", "party": "parties", "batch": "batches", "sketch": "sketches"}


def numbered(number: int, noun: str) -> str:
    """A number and what it counts: "1 row", "1,200 rows"."""
    return f"{number:,} {noun if number == 1 else _PLURALS.get(noun, f'{noun}s')}"


def whole_number(name: str, value: object, low: int = 1, high: int | None = None) -> int:
    """A whole number from `low` to `high`."""
    allowed = f"of at least {low}" if high is None else f"from {low} to {high}"
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ParameterError(f"{name} must be a whole number {allowed}, not {value!r}") from None
    if isinstance(value, bool) or number < low or (high is not None and number > high):
        raise ParameterError(f"{name} must be a whole number {allowed}, not {value!r}")
    return number


def whole_or_none(name: str, value: object, low: int = 1, high: int | None = None) -> int | None:
    """The same where nothing may be given."""
    return None if value is None else whole_number(name, value, low, high)


def positive_number(name: str, value: object) -> float:
    """A finite number greater than 0."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not (math.isfinite(number) and number > 0.0):
        raise ParameterError(f"{name} must be a finite number greater than 0, not {value!r}")
    return number


def probability(name: str, value: object) -> float:
    """A number strictly between 0 and 1."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not 0.0 < number < 1.0:
        raise ParameterError(f"{name} must be greater than 0 and less than 1, not {value!r}")
    return number
