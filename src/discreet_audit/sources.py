"""Sources whose draws the audit decides, to follow a release step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import _native
from discreet.noise import RandomSource
from discreet.noise.source import exact

__all__ = ["Draw", "ScriptedSource"]


@dataclass(frozen=True)
class Draw:
    """One request for noise: its law, its scale, and how many (None: a single number)."""

    law: str
    scale: Fraction
    size: int | None


class ScriptedSource(RandomSource):
    """Gives the noise it was told to give and writes down what was asked for. NOT PRIVATE.

    Two releases with the same script differ only by what their summaries hold.

    Args:
        single: What a draw of one number returns.
        each: What the i-th number of a draw of many is: one number for all, or a list that is repeated as needed.
        uniform: What every uniform integer is, cut to the range asked for.
    """

    def __init__(self, single: int = 0, each: int | Sequence[int] = 0, uniform: int = 0) -> None:
        super().__init__(_native.RandomSource(0))
        self.single, self.each, self.uniform = single, np.atleast_1d(np.asarray(each, np.int64)), uniform
        self.draws: list[Draw] = []
        self.scores: list[Any] = []

    def _given(self, law: str, scale: Any, size: int | None) -> Any:
        self.draws.append(Draw(law, exact("scale", scale), size))
        return self.single if size is None else np.resize(self.each, size).astype(np.int64)

    def discrete_laplace(self, scale: Any, size: Any = None) -> Any:
        """The script's noise."""
        return self._given("laplace", scale, size)

    def discrete_gaussian(self, sigma: Any, size: Any = None) -> Any:
        """The script's noise."""
        return self._given("gaussian", sigma, size)

    def discrete_laplace_exceedances(self, trials: Any, scale: Any, minimum: Any, size: Any = None) -> Any:
        """None of the items that are not stored passes the cut."""
        self.draws.append(Draw("laplace", exact("scale", scale), size))
        return 0 if size is None else np.zeros(size, np.int64)

    def uniform_integers(self, high: Any, size: Any = None) -> Any:
        """The script's number, or the largest allowed."""
        value = min(self.uniform, high - 1)
        return value if size is None else np.full(size, value, np.int64)

    def exponential_mechanism(self, scores: Any, epsilon: Any, sensitivity: Any = 1, k: int = 1) -> Any:
        """The k best, the first of equal ones; the scores are written down too."""
        self.draws.append(Draw("choice", exact("epsilon", epsilon) / exact("sensitivity", sensitivity), k))
        self.scores.append(np.array(scores))
        return np.argsort(-np.asarray(scores), kind="stable")[:k]
