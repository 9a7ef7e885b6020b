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

__all__ = ["Draw", "ScriptedSource", "WeakenedSource"]


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

    def discrete_gaussian_exceedances(self, trials: Any, sigma: Any, minimum: Any, size: Any = None) -> Any:
        """None of the items that are not stored passes the cut."""
        self.draws.append(Draw("gaussian", exact("sigma", sigma), size))
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


class WeakenedSource(RandomSource):
    """NOT PRIVATE: draws less noise than it is asked for from another source, or as if a cut were lower.

    Args:
        source: Where the noise comes from.
        by: So many times less noise.
        cut: How much lower the cut is: of single noises (a cut's own), and of the last score of a choice (the stop).
        laws: The laws that are weakened; all by default.
    """

    def __init__(self, source: RandomSource, by: float = 1.0, cut: int = 0, laws: Sequence[str] = ()) -> None:
        super().__init__(_native.RandomSource(0))
        self.source, self.by, self.cut, self.laws = source, Fraction(by), cut, laws

    @property
    def seeded(self) -> bool:
        return self.source.seeded

    def _less(self, law: str) -> Fraction:
        return self.by if not self.laws or law in self.laws else Fraction(1)

    def discrete_gaussian(self, sigma: Any, size: Any = None) -> Any:
        """Less noise."""
        drawn = self.source.discrete_gaussian(Fraction(sigma) / self._less("gaussian"), size)
        return drawn - self.cut if size is None else drawn

    def discrete_laplace(self, scale: Any, size: Any = None) -> Any:
        """Less noise."""
        drawn = self.source.discrete_laplace(Fraction(scale) / self._less("laplace"), size)
        return drawn - self.cut if size is None else drawn

    def exponential_mechanism(self, scores: Any, epsilon: Any, sensitivity: Any = 1, k: int = 1) -> Any:
        """A choice with a larger epsilon, and a stop that is lower."""
        lowered = np.array(scores)
        if self.cut:
            lowered[-1] -= self.cut
        return self.source.exponential_mechanism(lowered, epsilon * self._less("choice"), sensitivity, k)
