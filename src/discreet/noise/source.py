"""Random sources and the exact samplers over them."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from numbers import Rational, Real
from typing import TYPE_CHECKING, TypeAlias, overload

import discreet._native as _native
from discreet._later import np
from discreet.errors import ParameterError
from discreet.noise import laws
from discreet.noise.enclosure import Enclosure, exp_minus, is_below, rational
from discreet.noise.laws import Law, NativeSource
from discreet.privacy.checks import whole_number

if TYPE_CHECKING:
    import numpy.typing as npt

Number = Fraction | float | int
Integers: TypeAlias = "npt.NDArray[np.int64]"

MAX_SCALE = 2**50
"""Largest scale or sigma: a draw outside the 64-bit integers then has probability below exp(-8000)."""
MAX_SIZE = 2**40
"""Most draws at once."""
MAX_DIGITS = 8192
"""Largest numerator and denominator of a parameter, in bits; every finite float is far below."""
MAX_BINOMIAL_MEAN = 2**31
"""Largest mean of the rarer outcome of a binomial draw, whose cost grows with it."""
_BINOMIAL_CHUNK = 512


def exact(name: str, value: object, most: int | None = None) -> Fraction:
    """The rational number that a parameter is; a float is the rational it is, not a decimal near it.

    With `most` it must be greater than 0, and no more than that.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ParameterError(f"{name} must be a number, not {value!r}")
    if isinstance(value, Rational):
        number = Fraction(int(value.numerator), int(value.denominator))
    else:
        real = float(value)
        if not math.isfinite(real):
            raise ParameterError(f"{name} must be finite, not {value!r}")
        if real != value:  # a wider float, which would have to be rounded
            raise ParameterError(f"{name} must be a 64-bit float or a Fraction, not {value!r}")
        number = Fraction(real)
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_DIGITS:
        raise ParameterError(f"{name} must have a numerator and denominator of at most {MAX_DIGITS} bits")
    if most is not None and not 0 < number <= most:
        raise ParameterError(f"{name} must be greater than 0 and at most 2**{most.bit_length() - 1}, not {value!r}")
    return number


class Plainly(int):
    """A size: this many draws of `discrete_laplace` in plain memory (a `memoryview`), for which NumPy need not be
    loaded.

    A source that draws in a way of its own, as those of the audit, gives an array as for any other number.
    """


class RandomSource:
    """A source of random integers whose laws are exactly those stated; made by `system_source` or `seeded_source`.

    Every draw takes ``size``: None gives one Python int, a number gives that many as an int64 array. Parameters may be
    int, float or Fraction and are used as the exact rational they are. Any number of threads may share a source.
    """

    def __init__(self, native: _native.RandomSource) -> None:
        self._source = NativeSource(native)

    @property
    def seeded(self) -> bool:
        """Whether what is drawn can be predicted. Noise from a seeded source protects nobody."""
        return self._source.native.seeded

    def __repr__(self) -> str:
        return "seeded random source (for tests and audits only)" if self.seeded else "system random source"

    def bytes(self, count: int) -> bytes:
        """Uniform bytes."""
        return self._source.native.bytes(whole_number("count", count, 0, 2**40))

    @overload
    def uniform_integers(self, high: int, size: None = None) -> int: ...
    @overload
    def uniform_integers(self, high: int, size: int) -> Integers: ...
    def uniform_integers(self, high: int, size: int | None = None) -> int | Integers:
        """Uniform in [0, high), 1 <= high <= 2**63, without bias."""
        high = whole_number("high", high, 1, 2**63)
        count = 1 if size is None else whole_number("size", size, 0, MAX_SIZE)
        values = self._source.native.uniform_integers(high, count)
        return int(values[0]) if size is None else np.asarray(values)

    @overload
    def bernoulli(self, probability: Number, size: None = None) -> int: ...
    @overload
    def bernoulli(self, probability: Number, size: int) -> Integers: ...
    def bernoulli(self, probability: Number, size: int | None = None) -> int | Integers:
        """1 with exactly the given probability, else 0."""
        return self._draw(laws.rational_bernoulli_law(_probability(probability)), size)

    @overload
    def geometric(self, scale: Number, size: None = None) -> int: ...
    @overload
    def geometric(self, scale: Number, size: int) -> Integers: ...
    def geometric(self, scale: Number, size: int | None = None) -> int | Integers:
        """P[g] = (1 - q) q^g for g = 0, 1, ... with q = exp(-1/scale)."""
        return self._draw(laws.geometric_law(exact("scale", scale, MAX_SCALE)), size)

    @overload
    def discrete_laplace(self, scale: Number, size: None = None) -> int: ...
    @overload
    def discrete_laplace(self, scale: Number, size: int) -> Integers: ...
    def discrete_laplace(self, scale: Number, size: int | None = None) -> int | Integers:
        """P[z] = (1 - q) / (1 + q) q^|z| with q = exp(-1/scale).

        Added to an integer that one unit moves by at most s, ``scale = s / Fraction(epsilon)`` gives epsilon-DP.
        """
        return self._draw(laws.laplace_law(exact("scale", scale, MAX_SCALE)), size)

    @overload
    def discrete_laplace_at_least(self, scale: Number, minimum: int, size: None = None) -> int: ...
    @overload
    def discrete_laplace_at_least(self, scale: Number, minimum: int, size: int) -> Integers: ...
    def discrete_laplace_at_least(self, scale: Number, minimum: int, size: int | None = None) -> int | Integers:
        """Discrete Laplace noise, given that it is at least ``minimum``.

        From 0 on the law falls by q at each step: it is ``minimum`` plus a geometric. Below 0, where the condition
        holds at least every other time, draws that miss it are repeated.
        """
        return self._at_least(
            lambda count: self.discrete_laplace(scale, count), lambda count: self.geometric(scale, count), minimum, size
        )

    @overload
    def discrete_gaussian(self, sigma: Number, size: None = None) -> int: ...
    @overload
    def discrete_gaussian(self, sigma: Number, size: int) -> Integers: ...
    def discrete_gaussian(self, sigma: Number, size: int | None = None) -> int | Integers:
        """P[z] proportional to exp(-z^2 / (2 sigma^2)) over all integers z: exact, nothing to add to delta."""
        return self._draw(laws.gaussian_law(exact("sigma", sigma, MAX_SCALE)), size)

    @overload
    def binomial(self, trials: int, chance: Number | Enclosure, size: None = None) -> int: ...
    @overload
    def binomial(self, trials: int, chance: Number | Enclosure, size: int) -> Integers: ...
    def binomial(self, trials: int, chance: Number | Enclosure, size: int | None = None) -> int | Integers:
        """How many of ``trials`` independent events happen, each with this chance: a number, or an enclosure of one.

        Exact. Time grows with the mean of the rarer outcome, not with trials, which may be 2**64.
        """
        if not callable(chance):
            chance = partial(rational, _probability(chance))
        trials = whole_number("trials", trials, 0, 2**64)
        count = 1 if size is None else whole_number("size", size, 0, MAX_SIZE)
        low, high = chance(128)
        if flipped := low >= 1 << 127:
            chance, high = _complement(chance), (1 << 128) - low
        mean = (trials * high >> 128) + 1
        if mean > MAX_BINOMIAL_MEAN or (flipped and trials >= 2**63):
            raise ParameterError(
                "the mean number of the rarer outcome must be at most 2**31, and trials below 2**63 when "
                "the probability is above 1/2"
            )
        # The sum of independent binomials of the same probability is binomial.
        parts = -(-mean // _BINOMIAL_CHUNK)
        values = np.zeros(count, np.int64)
        for part_trials, repeats in ((trials // parts + 1, trials % parts), (trials // parts, parts - trials % parts)):
            if repeats == 0 or part_trials == 0:
                continue
            law = laws.binomial_law(part_trials, chance, mean // parts + 1)
            rows = max(1, 2**20 // repeats)
            for first in range(0, count, rows):
                shape = (min(rows, count - first), repeats)
                drawn = np.asarray(self._draw(law, shape[0] * repeats))
                values[first : first + rows] += drawn.reshape(shape).sum(axis=1)
        if flipped:
            values = trials - values
        return int(values[0]) if size is None else values

    @overload
    def discrete_laplace_exceedances(self, trials: int, scale: Number, minimum: int, size: None = None) -> int: ...
    @overload
    def discrete_laplace_exceedances(self, trials: int, scale: Number, minimum: int, size: int) -> Integers: ...
    def discrete_laplace_exceedances(
        self, trials: int, scale: Number, minimum: int, size: int | None = None
    ) -> int | Integers:
        """How many of ``trials`` independent discrete Laplace noises are at least ``minimum``.

        Binomial(trials, P[Z >= minimum]), exact: noise for a whole universe without drawing it. The noises themselves
        are then `discrete_laplace_at_least`.
        """
        minimum = whole_number("minimum", minimum, -(2**62), 2**62)
        return self.binomial(trials, laws.laplace_tail(exact("scale", scale, MAX_SCALE), minimum), size)

    @overload
    def discrete_gaussian_at_least(self, sigma: Number, minimum: int, size: None = None) -> int: ...
    @overload
    def discrete_gaussian_at_least(self, sigma: Number, minimum: int, size: int) -> Integers: ...
    def discrete_gaussian_at_least(self, sigma: Number, minimum: int, size: int | None = None) -> int | Integers:
        """Discrete Gaussian noise, given that it is at least ``minimum``. Exact."""

        def above(count: int) -> Integers:
            law = laws.gaussian_above_law(exact("sigma", sigma, MAX_SCALE), int(minimum))
            return np.asarray(self._draw(law, count))

        return self._at_least(lambda count: self.discrete_gaussian(sigma, count), above, minimum, size)

    def _at_least(
        self, draw: Callable[[int], Integers], above: Callable[[int], Integers], minimum: int, size: int | None
    ) -> int | Integers:
        """Noise given that it is at least a minimum: ``above`` draws what it has beyond one from 0 on."""
        minimum = whole_number("minimum", minimum, -(2**62), 2**62)
        count = 1 if size is None else whole_number("size", size, 0, MAX_SIZE)
        if minimum >= 0:
            values = minimum + above(count)
        else:
            values = draw(count)
            while (missed := np.flatnonzero(values < minimum)).size:
                values[missed] = draw(missed.size)
        return int(values[0]) if size is None else values

    @overload
    def discrete_gaussian_exceedances(self, trials: int, sigma: Number, minimum: int, size: None = None) -> int: ...
    @overload
    def discrete_gaussian_exceedances(self, trials: int, sigma: Number, minimum: int, size: int) -> Integers: ...
    def discrete_gaussian_exceedances(
        self, trials: int, sigma: Number, minimum: int, size: int | None = None
    ) -> int | Integers:
        """How many of ``trials`` independent discrete Gaussian noises are at least ``minimum``.

        Binomial(trials, P[Z >= minimum]), exact: a binomial number of candidates, each of which is then kept or not
        (see `gaussian_proposals`). The noises themselves are then `discrete_gaussian_at_least`.
        """
        minimum, parameter = whole_number("minimum", minimum, -(2**62), 2**62), exact("sigma", sigma, MAX_SCALE)
        trials = whole_number("trials", trials, 0, 2**64)
        if minimum <= 0:  # by symmetry
            if trials >= 2**63:
                raise ParameterError("trials must be below 2**63 for a minimum of at most 0, which most noises reach")
            fewer = self.discrete_gaussian_exceedances(trials, parameter, 1 - minimum, 1 if size is None else size)
            values = trials - fewer
            return int(values[0]) if size is None else values
        chance, s = laws.gaussian_proposals(parameter, minimum)
        values = np.atleast_1d(self.binomial(trials, chance, 1 if size is None else size))
        above = minimum + self.geometric(parameter**2 / s, int(values.sum()))
        exponents = ((int(z) - s) ** 2 / (2 * parameter**2) for z in above)
        kept = [is_below(partial(exp_minus, x), self._source) for x in exponents]
        ends = np.cumsum(values)
        so_far = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])
        values = so_far[ends] - so_far[ends - values]
        return int(values[0]) if size is None else values

    def exponential_mechanism(
        self, scores: npt.ArrayLike, epsilon: Number, sensitivity: Number = 1, k: int = 1
    ) -> Integers:
        """Indices of k different items, each next one with odds exp(epsilon s / (2 sensitivity)).

        Each selection is epsilon-DP when one unit moves every integer score s by at most ``sensitivity``; k of them
        compose (k epsilon, or better by an accountant). This is also the law of the k largest of score + Gumbel noise
        of scale 2 sensitivity / epsilon, in their order. Exact; the time depends little on the scores.
        """
        array = np.asarray(scores)
        if array.ndim != 1 or array.dtype.kind not in "iu" or (array.size and int(array.max()) > 2**63 - 1):
            raise ParameterError("scores must be a one-dimensional array of 64-bit integers")
        k = whole_number("k", k, 0, array.size)
        rate = _positive("epsilon", epsilon) / (2 * _positive("sensitivity", sensitivity))
        from discreet.noise.selection import select

        return select(self._source, array.astype(np.int64), rate, k)

    def choose_in_blocks(
        self,
        lower: npt.NDArray[np.float64],
        sizes: npt.NDArray[np.int64],
        exponent: Callable[[int, int], Fraction],
    ) -> tuple[int, int]:
        """(block, place in it) of one item, with odds exp(-exponent(block, place)): the exponential mechanism.

        For more items than can be listed: those of a block have exponents that are no less than its `lower`, a float
        from 0 on. Exact, whatever these bounds are; the closer they are, the faster it is.
        """
        from discreet.noise.selection import select_block

        return select_block(self._source, lower, sizes, exponent)

    def sample_without_replacement(self, population: int, count: int) -> Integers:
        """``count`` different integers from [0, population), each ordered choice equally likely."""
        population = whole_number("population", population, 0, 2**63)
        count = whole_number("count", count, 0, population)
        return np.asarray(self._source.native.sample_without_replacement(population, count))

    def permutation(self, count: int) -> Integers:
        """The integers 0 to count - 1 in uniformly random order."""
        return np.asarray(self._source.native.permutation(whole_number("count", count, 0, 2**40)))

    def _draw(self, law: Law, size: int | None) -> int | Integers:
        count = 1 if size is None else whole_number("size", size, 0, MAX_SIZE)
        values, pending = law.native.draw(self._source.native, count)
        for index, *state in pending:  # what one word does not decide is continued with as many bits as it takes
            values[index] = law.settle(self._source, *state)
        if size is None:
            return int(values[0])
        plainly = isinstance(size, Plainly) and type(self).discrete_laplace is RandomSource.discrete_laplace
        return values if plainly else np.asarray(values)


def _positive(name: str, value: object) -> Fraction:
    number = exact(name, value)
    if number <= 0:
        raise ParameterError(f"{name} must be greater than 0, not {value!r}")
    return number


def _probability(value: object) -> Fraction:
    number = exact("probability", value)
    if not 0 <= number <= 1:
        raise ParameterError(f"probability must be from 0 to 1, not {value!r}")
    return number


def _complement(chance: Enclosure) -> Enclosure:
    def enclosure(bits: int) -> tuple[int, int]:
        low, high = chance(bits)
        return (1 << bits) - high, (1 << bits) - low

    return enclosure


@cache
def system_source() -> RandomSource:
    """The process's source over the operating system's generator: what every release draws from.

    It reads getrandom(2) (arc4random on macOS) through a buffer that is cleared when a draw ends: a copy of the
    process, by a fork or by a snapshot, never begins with words that the original will use.
    """
    return RandomSource(_native.RandomSource())


def fresh_source() -> RandomSource:
    """A source over the operating system's generator with a buffer of its own, empty now and zeroed with the source.

    For pan-private estimators, which share nothing with other draws of the process.
    """
    return RandomSource(_native.RandomSource())


def seeded_source(seed: int) -> RandomSource:
    """A source that repeats itself, for tests and audits: equal seeds give equal draws on every machine (MT19937-64).

    A release made with it is not private, and says so in its guarantee.
    """
    return RandomSource(_native.RandomSource(whole_number("seed", seed, 0, 2**64 - 1)))


def offset_draw(
    counters: Integers | memoryview, alpha: int, scale: Fraction, threshold: int, source: RandomSource
) -> tuple[int, memoryview, memoryview]:
    """(a0, v, published): a0 = alpha + Z_0 and v_x = c_x + alpha + Z_x, published iff v_x - a0 >= threshold."""
    a0 = alpha + source.discrete_laplace(scale)
    noises = source.discrete_laplace(scale, Plainly(len(counters)))
    v = _native.plus_noise(counters, noises, alpha)
    return a0, v, _native.at_least(v, a0 + threshold)
