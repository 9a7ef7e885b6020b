"""HRR: one bit a report, from a random row of a Hadamard matrix."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet._data_class import dataclass
from discreet.errors import MessageError
from discreet.events.universe import Words
from discreet.multiparty._base import known
from discreet.multiparty.estimates import Numbers
from discreet.multiparty.local_protocol import LocalProtocol, Reports, all_of
from discreet.multiparty.wire import Heard
from discreet.noise import RandomSource
from discreet.noise.response import keep_probability


@known
@dataclass(frozen=True)
class HadamardResponse(LocalProtocol):
    """The entry of a Hadamard matrix at a public random row r and the item's column, through randomised response.

    Unit: one item replaced. Guarantee: pure epsilon; for every row the bit of any two items has the two laws of
        randomised response, or the same.
    Message: one bit a report; the row is public, drawn from the round and the report's number.
    Estimate: c sum over the reports of bit * H[r, x] with c = (e^eps + 1)/(e^eps - 1). Unbiased: two different columns
        agree in half of the rows.
    Variance: n c^2 - f, exactly, for n reports and an item with count f.
    Follows [MDP] section 2.1.
    Argument: docs/privacy/multiparty.md.
    """

    family = 1
    name = "Hadamard randomised response (HRR)"

    @property
    def keep(self) -> Fraction:
        """The probability that a bit is sent as it is."""
        return keep_probability(2, self._exact_epsilon)

    @property
    def order(self) -> int:
        """The binary logarithm of the matrix's size."""
        return int(self.universe.word_bits)

    @property
    def _choices(self) -> int:
        return 2

    def _check(self) -> None:
        assert self.keep > Fraction(1, 2)

    def _randomise(self, words: Words, numbers: Words, source: RandomSource) -> npt.NDArray[Any]:
        bits = _native.hadamard_bits(numbers, words, self.order, self._key)
        flips = 1 - source.bernoulli(self.keep, len(words))
        return bits ^ flips.astype(np.uint8)

    def _write(self, values: npt.NDArray[Any]) -> bytes:
        return np.packbits(values).tobytes()

    def _read(self, data: bytes, count: int) -> npt.NDArray[Any]:
        if len(data) != -(-count // 8):
            raise MessageError("message has the wrong length for its reports", "size")
        bits = np.unpackbits(np.frombuffer(data, np.uint8))
        if bits[count:].any():
            raise MessageError("message has bits set after its last report", "format")
        return bits[:count]

    def _from_reports(self, reports: Reports, words: Words) -> tuple[Numbers, Numbers]:
        c, n = float(1 / (2 * self.keep - 1)), len(reports.numbers)
        sums = _native.hadamard_sums(reports.numbers, reports.values, words, self.order, self._key)
        values: Numbers = c * sums.astype(np.float64)
        return values, n * c * c - np.clip(values, 0.0, n)

    def _influence(self, heard: Heard, words: Words, count: int) -> tuple[Numbers, Numbers]:
        """A report adds c, or takes c away."""
        c, reports = float(1 / (2 * self.keep - 1)), all_of(heard)
        n = len(reports.numbers)
        sums = _native.hadamard_sums(reports.numbers, reports.values, words, self.order, self._key).astype(np.float64)
        return c * np.minimum(count, (n + sums) / 2), c * np.minimum(count, (n - sums) / 2)
