"""Fractions and parts of a whole from noisy numbers: the nearest ones that are possible. Post-processing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


def on_simplex(values: Numbers, mass: float = 1.0) -> Numbers:
    """The nearest non-negative numbers (in the Euclidean sense) that add up to `mass`."""
    order = np.sort(values)[::-1]
    cuts = (np.cumsum(order) - mass) / np.arange(1, len(order) + 1)
    cut = cuts[np.flatnonzero(order >= cuts)[-1]]
    result: Numbers = np.maximum(values - cut, 0.0)
    return result


def within_simplex(values: Numbers, mass: float = 1.0) -> Numbers:
    """The nearest non-negative numbers that add up to `mass` at most."""
    cut: Numbers = np.maximum(values, 0.0)
    return cut if cut.sum() <= mass else on_simplex(values, mass)
