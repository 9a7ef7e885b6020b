"""Checks shared by the calibration functions."""

from __future__ import annotations

import math
from numbers import Real

from discreet.errors import ParameterError

# Every delta returned is raised, and every tail used as a lower bound lowered, by this relative margin. It is more
# than a thousand times the rounding error of the few dozen floating-point operations behind any of them.
SAFETY = 1e-12


def positive(name: str, value: float) -> float:
    """`value` as a float, if it is a finite number greater than 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not (math.isfinite(value) and value > 0):
        raise ParameterError(f"{name} must be a finite number greater than 0, not {value!r}")
    return float(value)


def probability(name: str, value: float) -> float:
    """`value` as a float, if it lies strictly between 0 and 1 (a threshold needs a delta greater than 0)."""
    if isinstance(value, bool) or not isinstance(value, Real) or not (0.0 < value < 1.0):
        raise ParameterError(f"{name} must be greater than 0 and less than 1, not {value!r}")
    return float(value)


def whole(name: str, value: int, least: int = 1) -> int:
    """`value`, if it is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return value
