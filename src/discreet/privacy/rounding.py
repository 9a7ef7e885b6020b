"""Rounding to the private side, and the margin by which every computed probability is moved there."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context
from fractions import Fraction

# Every delta returned is raised, and every tail used as a lower bound lowered, by this relative margin. It is more
# than a thousand times the rounding error of the few dozen floating-point operations behind any of them.
SAFETY = 1e-12


def safe_ceil(value: float) -> int:
    """The next whole number, after moving up by more than the rounding error of `value`."""
    return math.ceil(value * (1.0 + SAFETY))


def rounded_up(value: Fraction) -> float:
    """The smallest float that is at least `value`."""
    number = float(value)
    return number if Fraction(number) >= value else math.nextafter(number, math.inf)


def rounded_down(value: Fraction) -> float:
    """The largest float that is not more than `value`, and not less than 0."""
    return max(0.0, -rounded_up(-value))


def largest_float(holds: Callable[[float], bool], start: float) -> float:
    """The largest number for which something holds that holds for all smaller ones, found from `start` on; or 0."""
    low, high = 0.0, start
    while holds(high):
        low, high = high, 2.0 * high
    while (middle := (low + high) / 2.0) not in (low, high):
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def figure_up(value: float) -> str:
    """Three digits that say no less than `value`."""
    return f"{float(Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(value)):g}"
