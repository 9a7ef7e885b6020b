"""Local privacy by a noisy row of a count sketch; only cells that are not zero cost bytes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet._data_class import dataclass
from discreet.errors import ParameterError
from discreet.events.universe import Words
from discreet.multiparty._base import known
from discreet.multiparty.estimates import Numbers, most_of
from discreet.multiparty.local_protocol import LocalProtocol, Reports, all_of
from discreet.multiparty.party_sketches import laplace_variance, noise_reach, read_cells
from discreet.multiparty.wire import Heard
from discreet.noise import RandomSource
from discreet.privacy.checks import whole_number


@known
@dataclass(frozen=True)
class LocalSketch(LocalProtocol):
    """One row of s cells: +-1 in the item's cell under the report's own public hash function, and noise in all of them.

    Unit: one item replaced. Guarantee: pure epsilon. The row changes by 2 in l1 at most (two cells by 1, or one by 2),
        and every cell gets discrete Laplace noise of scale 2/epsilon.
    Message: all cells, in their order, by a code in which zeros cost little; a function of the noisy row alone.
    Estimate: the sum over the reports of sign * cell. Unbiased: signs are pairwise independent.
    Variance: n v + (n - f)/s, exactly, with v = 2 q/(1 - q)^2, q = e^(-eps/2): the noise's.
    Columns: s = ceil((e^(eps/2) - 1)^2/e^(eps/2)) by default, which makes the two parts about equal.
    Follows [MDP] section 3.2.
    Argument: docs/privacy/multiparty.md.
    """

    columns: int | None = None

    family = 3
    name = "local count sketch of one row"

    def _check(self) -> None:
        if self.columns is None:
            root = math.exp(min(self.epsilon, 20.0) / 2)
            object.__setattr__(self, "columns", max(1, math.ceil((root - 1) ** 2 / root)))
        object.__setattr__(self, "columns", whole_number("columns", self.columns, 1, 2**20))
        if self._bound >= 2**31:
            raise ParameterError("epsilon is too small for cells of 32 bits")

    @property
    def scale(self) -> Fraction:
        """Of the discrete Laplace noise on every cell."""
        return 2 / self._exact_epsilon

    @property
    def _cells(self) -> int:
        assert self.columns is not None
        return self.columns

    @property
    def _bound(self) -> int:
        return 1 + noise_reach(self.scale)

    def _randomise(self, words: Words, numbers: Words, source: RandomSource) -> npt.NDArray[Any]:
        cells = _native.row_cells(numbers, words, self._cells, self._key)
        noisy = cells + source.discrete_laplace(self.scale, len(cells))
        noisy = np.clip(noisy, -self._bound, self._bound).astype(np.int32)
        return np.asarray(noisy).reshape(len(words), self._cells)

    def _write(self, values: npt.NDArray[Any]) -> bytes:
        return _native.write_integers(values.astype(np.int64).ravel())

    def _read(self, data: bytes, count: int) -> npt.NDArray[Any]:
        cells = read_cells(data, count * self._cells, self._bound, self.scale)
        return cells.astype(np.int32).reshape(count, self._cells)

    def _from_reports(self, reports: Reports, words: Words) -> tuple[Numbers, Numbers]:
        n = len(reports.numbers)
        sums = _native.row_sums(reports.numbers, reports.values.ravel(), words, self._cells, self._key)
        values = sums.astype(np.float64)
        return values, n * laplace_variance(self.scale) + (n - np.clip(values, 0.0, n)) / self._cells

    def _influence(self, heard: Heard, words: Words, count: int) -> tuple[Numbers, Numbers]:
        """A report moves an item by one of its cells, so by its largest at most."""
        largest = np.abs(all_of(heard).values.astype(np.float64)).max(axis=1, keepdims=True)
        most, _ = most_of(largest, count)
        return np.full(len(words), most[0]), np.full(len(words), most[0])
