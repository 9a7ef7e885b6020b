"""OLH: each report hashes its item to a few buckets and answers by randomised response."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet._data_class import dataclass
from discreet.events.universe import Words
from discreet.multiparty._base import known
from discreet.multiparty.estimates import Numbers
from discreet.multiparty.local_protocol import LocalProtocol, Reports, all_of
from discreet.multiparty.wire import Heard
from discreet.noise import RandomSource
from discreet.noise.response import keep_probability

_MOST_BUCKETS = 2**16


@known
@dataclass(frozen=True)
class LocalHashing(LocalProtocol):
    """The bucket of the item under the report's own public hash function, through randomised response over g buckets.

    Unit: one item replaced. Guarantee: pure epsilon, that of the response: the function is public and fixed before.
    Message: the bucket, ceil(log2 g) bits a report.
    Estimate: (C - n/g) / (p - 1/g), with C the reports whose bucket is that of the item and p = e^eps/(e^eps + g - 1).
        Unbiased: two different items share a bucket with probability 1/g (up to g/2^32 of it).
    Variance: (n - f) v(1/g) + f v(p) with v(s) = s (1 - s)/(p - 1/g)^2; g is the best of the whole numbers beside
        e^eps + 1, and the first part is then about 4 n e^eps/(e^eps - 1)^2.
    Follows Wang, Blocki, Li, Jha (2017), the peer of [MDP] section 3.2.
    Argument: docs/privacy/multiparty.md.
    """

    family = 2
    name = "optimised local hashing (OLH)"
    reference = "Wang, Blocki, Li, Jha (2017): Locally differentially private protocols for frequency estimation"

    @cached_property
    def buckets(self) -> int:
        """g."""
        best = math.exp(min(self.epsilon, 20.0)) + 1
        near = {min(max(2, g), _MOST_BUCKETS) for g in (math.floor(best), math.ceil(best))}
        return min(sorted(near), key=lambda g: self._rates(g)[0])

    @cached_property
    def keep(self) -> Fraction:
        """The probability p that the item's own bucket is sent."""
        return keep_probability(self.buckets, self._exact_epsilon)

    def _rates(self, g: int) -> tuple[float, float]:
        """The variance of a report about another item than its own, and about its own."""
        keep = keep_probability(g, self._exact_epsilon)
        p, q, gap = float(keep), 1 / g, float(keep - Fraction(1, g))
        return q * (1 - q) / gap**2, p * (1 - p) / gap**2

    @property
    def _choices(self) -> int:
        return self.buckets

    def _check(self) -> None:
        assert self.keep > Fraction(1, self.buckets)

    @property
    def _width(self) -> int:
        return (self.buckets - 1).bit_length()

    def _randomise(self, words: Words, numbers: Words, source: RandomSource) -> npt.NDArray[Any]:
        g = self.buckets
        own = _native.hash_buckets(numbers, words, g, self._key).astype(np.int64)
        kept = source.bernoulli(self.keep, len(words))
        others = 1 + source.uniform_integers(g - 1, len(words))  # how far to go round to one of the other buckets
        return ((own + np.where(kept == 1, 0, others)) % g).astype(np.uint32)

    def _write(self, values: npt.NDArray[Any]) -> bytes:
        return _native.pack_values(values, self._width)

    def _read(self, data: bytes, count: int) -> npt.NDArray[Any]:
        return _native.unpack_values(data, count, self._width, self.buckets)

    def _support(self, reports: Reports, words: Words) -> Numbers:
        """C: the reports whose bucket is that of the item."""
        return _native.bucket_counts(reports.numbers, reports.values, words, self.buckets, self._key).astype(np.float64)

    def _from_reports(self, reports: Reports, words: Words) -> tuple[Numbers, Numbers]:
        g, n, counts = self.buckets, len(reports.numbers), self._support(reports, words)
        values: Numbers = (counts - n / g) / float(self.keep - Fraction(1, g))
        own = np.clip(values, 0.0, n)
        other_rate, own_rate = self._rates(g)
        return values, (n - own) * other_rate + own * own_rate

    def _influence(self, heard: Heard, words: Words, count: int) -> tuple[Numbers, Numbers]:
        """A report adds (1 - 1/g)/(p - 1/g) where its bucket is the item's, else takes (1/g)/(p - 1/g) away."""
        g, reports = self.buckets, all_of(heard)
        support, gap = self._support(reports, words), float(self.keep - Fraction(1, g))
        others = len(reports.numbers) - support
        return np.minimum(count, support) * (1 - 1 / g) / gap, np.minimum(count, others) / g / gap
