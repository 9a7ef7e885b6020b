"""What has cells: a sample of a universe, or the buckets of a hash, for which any items are elements."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet.errors import ParameterError
from discreet.events.universe import Universe
from discreet.noise import RandomSource
from discreet.pan._base import PanEstimate, PanEstimator, numbers
from discreet.pan.intervals import count_bound, mean_interval
from discreet.pan.responses import Response
from discreet.pan.settings import Settings
from discreet.privacy.checks import whole_number

DEFAULT_SAMPLE = 100_000
_MOST = 2**31
Vector = npt.NDArray[np.float64]
STEADY = 64.0  # elements a bucket: far from both ends of the levels, where the relative error repeats every octave
_PRIME = 2**61 - 1


class Sampled(PanEstimator):
    """One set of cells for each of m elements, drawn from the universe without replacement before any data."""

    sized = "sample_size"

    _universe: Universe
    _sample_size: int

    def _sample(self, universe: object, sample_size: int | None) -> None:
        self._universe = Universe.of(universe)
        given = DEFAULT_SAMPLE if sample_size is None else whole_number("sample_size", sample_size, 1, _MOST)
        self._sample_size = min(given, _size(self._universe))

    def _sizes_for(self, universe: object) -> tuple[int, int]:
        """The least and the most elements of a sample."""
        return 1, min(_size(Universe.of(universe)), _MOST)

    def _cells(self, source: RandomSource, shuffled: bool = False) -> _native.PanTable:
        """A table with an entry for each element of the sample, which is drawn before any data.

        With `shuffled` the entries are in random order also when all elements have one.
        """
        universe, size = self._universe, self._sample_size
        unseen, seen, signed = self.response.unseen, self.response.seen, universe.kind == "int64"
        every = size == universe.size and not shuffled
        if universe.first is not None and every:
            return _native.PanTable.of_range(universe.first % 2**64, signed, size, unseen, seen)
        places = np.arange(size) if every else source.sample_without_replacement(_size(universe), size)
        if universe.first is not None:
            keys = places.astype(np.uint64) + np.uint64(universe.first % 2**64)
            return _native.PanTable.of_integers(keys, signed, unseen, seen)
        chosen = universe.items(places)
        if universe.has_numbers:
            keys = np.array([number % 2**64 for number in chosen], np.uint64)
            return _native.PanTable.of_integers(keys, signed, unseen, seen)
        is_text = universe.kind == "string"
        return _native.PanTable.of_strings([e.encode() for e in chosen] if is_text else chosen, is_text, unseen, seen)

    @property
    def universe(self) -> Universe:
        """The public universe; of a restored list, its size and kind."""
        return self._universe

    @property
    def sample_size(self) -> int:
        """How many elements of the universe have an entry."""
        return self._sample_size

    @property
    def parameters(self) -> dict[str, Any]:
        sample = {"universe": self._universe.outline(), "sample_size": self._sample_size}
        return {**sample, **super().parameters}

    def _adopt(self, parameters: dict[str, Any]) -> None:
        self._universe = Universe.from_outline(**parameters["universe"])
        self._sample_size = whole_number("sample_size", parameters["sample_size"], 1, _size(self._universe))
        super()._adopt(parameters)

    @property
    def _entries(self) -> int:
        return self._sample_size

    def _describe(self) -> str:
        return f"universe={self._universe}, sample_size={self._sample_size}"


def _size(universe: Universe) -> int:
    if universe.size is None:
        raise ParameterError("universe must be bounded: a size, a range or a list of elements")
    return universe.size


class SampledCounters(Sampled):
    """Counters alone for each sampled element, which start at a random shift."""

    @property
    def response(self) -> Response:
        """None: there are no bits."""
        return Response(1, 1)

    def shift_law(self) -> list[Fraction]:
        """The exact probability of each initial shift, where they are listed; public."""
        return self.shift_law_at(self._settings.epsilon_state)

    def shift_law_at(self, epsilon_state: Fraction) -> list[Fraction]:
        """The same for another epsilon."""
        raise NotImplementedError


class SampledBits(Sampled):
    """A bit and a counter modulo t for each sampled element; the bit is drawn from D1 when the counter passes 0.

    P[bit = 1] = p0 + gap min(n_x, t)/t after n_x occurrences. What is estimated is the mean of min(n_x, t).
    """

    def _build(self, source: RandomSource) -> _native.PanTable:
        table = self._cells(source)
        table.add_bits(numbers(self._modulus), numbers(1), self._native_source)
        return table

    def _width(self, settings: Settings, epsilon_state: float, epsilon_output: float) -> float:
        """In units of t."""
        m = self._sample_size
        return count_bound(m, epsilon_output, settings.beta) / (m * settings.gap(epsilon_state))

    def _read(self, source: RandomSource) -> PanEstimate:
        m, scale = self._sample_size, self.noise_scale
        count = int(self.counted(source, 1, lambda noise: self._table.noisy_ones(0, 0, m, noise))[0])
        p0, gap = self._chances()
        ends = (count / m, *mean_interval(count, m, scale, self._settings.beta))
        value, lower, upper = (self._modulus * (p - p0) / gap for p in ends)
        return self._estimate(value, lower, upper, float(self._modulus))


class Hashed(PanEstimator):
    """Levels of buckets with one cell each: an element is in one bucket of level j with probability 2^-(j+1).

    The hash function is drawn before any data, and is not secret.
    """

    sized = "buckets"

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

    @property
    def _entries(self) -> int:
        return self._levels * self._buckets

    def _describe(self) -> str:
        return f"buckets={self._buckets}, levels={self._levels}"
