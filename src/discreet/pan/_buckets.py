"""Estimators that hold cells for the buckets of a hash: any items are elements, without a universe."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet.errors import CorruptStateError
from discreet.noise import RandomSource
from discreet.pan._base import PanEstimator, numbers
from discreet.privacy.checks import whole_number

Vector = npt.NDArray[np.float64]
STEADY = 64.0  # elements a bucket: far from both ends of the levels, where the relative error repeats every octave
_PRIME = 2**61 - 1


class Hashed(PanEstimator):
    """Levels of buckets with one cell each: an element is in one bucket of level j with probability 2^-(j+1).

    The hash function is drawn before any data, and is not secret.
    """

    _buckets: int
    _levels: int

    def _size(self, buckets: object, least: int, levels: object) -> None:
        self._buckets = whole_number("buckets", buckets, least, 2**26)
        self._levels = whole_number("levels", levels, 8, 30)

    @property
    def buckets(self) -> int:
        """The number of buckets of a level."""
        return self._buckets

    @property
    def levels(self) -> int:
        """The number of levels; about buckets 2^levels distinct items can be told apart."""
        return self._levels

    @property
    def _modulus(self) -> int:
        """Of the counter of a cell; 1 for a bit alone."""
        return 1

    @property
    def _chance_of_level(self) -> Vector:
        chance: Vector = np.ldexp(np.ones(self._levels), -np.arange(1, self._levels + 1))
        chance[-1] *= 2  # the last level takes the rest
        return chance

    def _build(self, source: RandomSource) -> _native.PanTable:
        seeds = [source.uniform_integers(_PRIME) for _ in range(5)]
        r = self.response
        table = _native.PanTable.of_hashes(seeds, self._levels, self._buckets, r.unseen, r.seen)
        table.add_bits(numbers(self._modulus), numbers(1), self._native_source)
        return table

    def _check_table(self) -> None:
        super()._check_table()
        table = self._table
        if (table.entries, table.layers) != (self._levels * self._buckets, 1) or table.modulus(0) != self._modulus:
            raise CorruptStateError("state has a table of another size")

    def _describe(self) -> str:
        return f"buckets={self._buckets}, levels={self._levels}"
