"""The draw of the offset release, which central and continual releases share."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.noise.source import RandomSource

__all__ = ["offset_draw"]

Integers = npt.NDArray[np.int64]


def offset_draw(
    counters: Integers, alpha: int, scale: Fraction, threshold: int, source: RandomSource
) -> tuple[int, Integers, npt.NDArray[np.bool_]]:
    """(a0, v, published): a0 = alpha + Z_0 and v_x = c_x + alpha + Z_x, published iff v_x - a0 >= threshold."""
    a0 = alpha + source.discrete_laplace(scale)
    v = counters + alpha + source.discrete_laplace(scale, len(counters))
    return a0, v, v - a0 >= threshold
