"""The margin by which every computed probability is moved to the safe side."""

from __future__ import annotations

import math

# Every delta returned is raised, and every tail used as a lower bound lowered, by this relative margin. It is more
# than a thousand times the rounding error of the few dozen floating-point operations behind any of them.
SAFETY = 1e-12


def safe_ceil(value: float) -> int:
    """The next whole number, after moving up by more than the rounding error of `value`."""
    return math.ceil(value * (1.0 + SAFETY))
