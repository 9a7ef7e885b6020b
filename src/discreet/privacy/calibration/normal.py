"""The normal distribution, without scipy: importing `scipy.special` takes longer than calibrating a release."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import _native

Array = npt.NDArray[np.float64]


def _of_any_shape(function: Callable[[Array], Array], x: Any) -> Array:
    values = np.asarray(x, dtype=np.float64)
    return function(np.ascontiguousarray(values).ravel()).reshape(values.shape)


def ndtr(x: Any) -> Array:
    """P[N <= x], for every number of an array."""
    return _of_any_shape(_native.ndtr, x)


def log_ndtr(x: Any) -> Array:
    """log P[N <= x], for every number of an array."""
    return _of_any_shape(_native.log_ndtr, x)


def ndtri(probability: float) -> float:
    """The x with P[N <= x] = probability, which is greater than 0 and less than 1."""
    return NormalDist().inv_cdf(probability)
