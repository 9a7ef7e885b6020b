"""Rounding to the private side."""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = ["rounded_up"]


def rounded_up(value: Fraction) -> float:
    """The smallest float that is at least `value`."""
    number = float(value)
    return number if Fraction(number) >= value else math.nextafter(number, math.inf)
