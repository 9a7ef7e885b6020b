"""The laws a release draws from, as tables of enclosures for the native sampler.

A law is value = +-(block * m + offset), m = 2^block_bits. The block comes from a table, the offset is uniform in [0, m)
and is accepted with probability exp(-x(block, offset)). Narrow laws have m = 1 and need no acceptance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

import discreet._native as _native
from discreet._data_class import dataclass, field
from discreet.noise.enclosure import Bits, Cumulative, Enclosure, exp_minus, invert, is_below, pi, rational, table

_WORD = 63  # bits of a random word that choose the block; the last one is the sign


class NativeSource(Bits):
    """The native source, with its bits as Python integers."""

    def __init__(self, native: _native.RandomSource) -> None:
        self.native = native

    def bits(self, count: int) -> int:
        return int.from_bytes(self.native.bytes(-(-count // 8)), "little") >> (-count % 8)


@dataclass(frozen=True)
class Law:
    """A law on the integers that can be drawn exactly.

    ``cumulative`` encloses P[block <= h]; ``exponent`` is x(block, offset) = slope(block) (offset/m) + curvature
    (offset/m)^2. ``word`` below 63 makes the native sampler leave more to the exact continuation: tests use it.
    """

    cumulative: Cumulative
    sign: _native.Sign = _native.Sign.none
    block_bits: int = 0
    slope: Callable[[int], Fraction] = lambda block: Fraction(0)
    curvature: Fraction = Fraction(0)
    word: int = _WORD
    _tables: dict[int, list[int]] = field(default_factory=dict, repr=False, compare=False)
    native: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        bounds = self.table(self.word)
        slopes = [_fixed(self.slope(block)) for block in range(len(bounds))] if self.block_bits else []
        native = _native.IntegerLaw(bounds, self.word, self.sign, self.block_bits, slopes, _fixed(self.curvature))
        object.__setattr__(self, "native", native)

    def table(self, bits: int) -> list[int]:
        """The table at this many bits; see `discreet.noise.enclosure.table`."""
        if bits not in self._tables:
            self._tables[bits] = table(self.cumulative, bits)
        return self._tables[bits]

    def exponent(self, block: int, offset: int) -> Fraction:
        """x, where the offset is accepted with probability exp(-x)."""
        part = Fraction(offset, 1 << self.block_bits)
        return (self.slope(block) + self.curvature * part) * part

    def settle(
        self,
        source: Bits,
        negative: bool = False,
        block_known: bool = False,
        bits: int = 0,
        word: int = 0,
        block: int = 0,
        offset: int = 0,
    ) -> int:
        """Finishes a draw of which the sign and the first bits of one uniform are known."""
        while True:
            if not block_known:
                block = invert(self.table, source, word, bits)
                offset = source.bits(self.block_bits) if self.block_bits else 0
                word = bits = 0
            magnitude = (block << self.block_bits) + offset
            counted_twice = self.sign == _native.Sign.reject_negative_zero and negative and magnitude == 0
            x = self.exponent(block, offset)
            if not counted_twice and (x == 0 or is_below(lambda b, x=x: exp_minus(x, b), source, word, bits)):  # type: ignore[misc]
                return -magnitude if negative else magnitude
            negative = self.sign != _native.Sign.none and source.bits(1) == 1
            block_known, word, bits = False, 0, 0


def _fixed(value: Fraction) -> int:
    return (value.numerator << 62) // value.denominator


def _floor_log2(value: Fraction) -> int:
    return (value.numerator // value.denominator).bit_length() - 1


def _times(a: tuple[int, int], b: tuple[int, int], bits: int) -> tuple[int, int]:
    return a[0] * b[0] >> bits, -(-a[1] * b[1] >> bits)


def _geometric_cumulative(x: Fraction) -> Cumulative:
    """P[G <= h] = 1 - exp(-x (h+1))."""

    def cumulative(bits: int) -> Iterator[tuple[int, int]]:
        one, ratio = 1 << bits, exp_minus(x, bits)
        power = ratio
        while True:
            yield one - power[1], one - power[0]
            power = _times(power, ratio, bits)

    return cumulative


def _folded_cumulative(x: Fraction) -> Cumulative:
    """P[|Z| <= h] = 1 - 2 exp(-x (h+1)) / (1 + exp(-x))."""

    def cumulative(bits: int) -> Iterator[tuple[int, int]]:
        one, ratio = 1 << bits, exp_minus(x, bits)
        # 2/(1+q) is between 1 and 2
        factor = (2 << 2 * bits) // (one + ratio[1]), -(-(2 << 2 * bits) // (one + ratio[0]))
        tail = _times(ratio, factor, bits)
        while True:
            yield one - tail[1], one - tail[0]
            tail = _times(tail, ratio, bits)

    return cumulative


def _gaussian_cumulative(x: Fraction, folded: bool, y: Fraction = Fraction(0)) -> Cumulative:
    """Weights exp(-x h^2 - y h) for h >= 0, those of h >= 1 twice when folded, over their sum."""

    def cumulative(bits: int) -> Iterator[tuple[int, int]]:
        one, ratio = 1 << bits, exp_minus(x, bits)
        step = _times(ratio, ratio, bits)
        if y:
            ratio = exp_minus(x + y, bits)
        sums, weight, factor = [(one, one)], (one, one), 2 if folded else 1
        while weight[1] > 1:
            weight, ratio = _times(weight, ratio, bits), _times(ratio, step, bits)
            sums.append((sums[-1][0] + factor * weight[0], sums[-1][1] + factor * weight[1]))
        # The weights after the last fall at least as fast as a geometric series of the current ratio.
        tail = factor * (weight[1] * ratio[1] // (one - ratio[1]) + 1)
        total = sums[-1][0], sums[-1][1] + tail
        for low, high in sums:
            yield (low << bits) // total[1], min(one, -(-(high << bits) // total[0]))

    return cumulative


@lru_cache(maxsize=256)
def geometric_law(scale: Fraction, word: int = _WORD) -> Law:
    """P[g] = (1 - q) q^g for g >= 0, q = exp(-1/scale)."""
    block_bits = max(0, _floor_log2(scale / 8))
    x = (1 << block_bits) / scale
    return Law(_geometric_cumulative(x), block_bits=block_bits, slope=lambda block: x, word=word)


@lru_cache(maxsize=256)
def laplace_law(scale: Fraction, word: int = _WORD) -> Law:
    """P[z] = (1 - q) / (1 + q) q^|z|, q = exp(-1/scale)."""
    block_bits = max(0, _floor_log2(scale / 8))
    if block_bits == 0:
        return Law(_folded_cumulative(1 / scale), _native.Sign.folded, word=word)
    x = (1 << block_bits) / scale
    sign = _native.Sign.reject_negative_zero
    return Law(_geometric_cumulative(x), sign, block_bits, slope=lambda block: x, word=word)


@lru_cache(maxsize=256)
def gaussian_law(sigma: Fraction, word: int = _WORD) -> Law:
    """P[z] proportional to exp(-z^2 / (2 sigma^2)).

    In blocks: (hm + l)^2 = (hm)^2 + 2 h m l + l^2, so the block has weight exp(-(hm)^2 / (2 sigma^2)) and the offset is
    accepted with exp(-(2 h m l + l^2) / (2 sigma^2)).
    """
    block_bits = max(0, _floor_log2(sigma / 32))
    x = Fraction(1 << 2 * block_bits) / (2 * sigma**2)
    if block_bits == 0:
        return Law(_gaussian_cumulative(x, folded=True), _native.Sign.folded, word=word)
    sign = _native.Sign.reject_negative_zero
    return Law(_gaussian_cumulative(x, False), sign, block_bits, lambda block: 2 * block * x, x, word)


@lru_cache(maxsize=256)
def gaussian_above_law(sigma: Fraction, minimum: int) -> Law:
    """How far a discrete Gaussian lies above a minimum c >= 0, given that it is at least c.

    (c + hm + l)^2 - c^2 = ((hm)^2 + 2 c h m) + (2 (c + hm) l + l^2): the weight of a block, and what accepts an offset.
    """
    block_bits = max(0, _floor_log2(min(sigma / 32, sigma**2 / (8 * max(minimum, 1)))))
    m = 1 << block_bits
    x, y = Fraction(m * m) / (2 * sigma**2), Fraction(minimum * m) / sigma**2
    weights = _gaussian_cumulative(x, False, y)
    if block_bits == 0:
        return Law(weights)
    return Law(weights, block_bits=block_bits, slope=lambda block: y + 2 * block * x, curvature=x)


def _gaussian_total(sigma: Fraction) -> Enclosure:
    """The sum of exp(-z^2 / (2 sigma^2)) over all integers; by Poisson's formula from sigma = 1 on.

    It is then sigma sqrt(2 pi) (1 + 2 sum over j >= 1 of exp(-2 pi^2 sigma^2 j^2)).
    """

    def series(x: Callable[[int], tuple[Fraction, Fraction]], bits: int) -> tuple[int, int]:
        """1 + 2 sum of exp(-x(j)), x(j) between two rationals; from the first term that is below a unit on, a unit."""
        low, high, j = 1 << bits, 1 << bits, 1
        while True:
            least, most = x(j)
            upper = exp_minus(least, bits)[1]
            low, high, j = low + 2 * exp_minus(most, bits)[0], high + 2 * upper, j + 1
            if upper <= 1:
                return low, high + 2

    def enclosure(bits: int) -> tuple[int, int]:
        if sigma < 1:
            return series(lambda j: (j * j / (2 * sigma**2),) * 2, bits)
        work = bits + 2 * sigma.numerator.bit_length() + 64
        low, high = pi(work)
        squares = [Fraction(2 * p * p, 1 << 2 * work) * sigma**2 for p in (low, high)]
        theta = series(lambda j: (squares[0] * j * j, squares[1] * j * j), work)
        # sqrt(2 pi sigma^2), times 2^work
        roots = [2 * p * sigma.numerator**2 << work for p in (low, high)]
        root = math.isqrt(roots[0] // sigma.denominator**2), math.isqrt(-(-roots[1] // sigma.denominator**2)) + 1
        least, most = _times(root, theta, work)
        return least >> (work - bits), (most >> (work - bits)) + 1

    return enclosure


def gaussian_proposals(sigma: Fraction, minimum: int) -> tuple[Enclosure, Fraction]:
    """(p, s): with probability p a place is looked at closely, for P[Z >= c] of a discrete Gaussian, c >= 1.

    exp(-z^2/(2 sigma^2)) = exp(s^2/(2 sigma^2)) exp(-z s/sigma^2) exp(-(z - s)^2/(2 sigma^2)) for every s: with
    z = c + g, g geometric of scale sigma^2/s, and acceptance by the last factor, c + g is Z given Z >= c, and

        P[Z >= c] = p P[accepted],    p = exp((s^2 - 2 c s)/(2 sigma^2)) / ((1 - exp(-s/sigma^2)) W),

    W the sum of exp(-z^2/(2 sigma^2)) over all z.

    s = max(c, sigma) keeps p <= 1 (at most 0.67 for sigma >= 1, and less than 0.14 below) and the acceptance above 0.6.
    """
    s = max(Fraction(minimum), sigma)
    total, x, step = _gaussian_total(sigma), (2 * minimum * s - s * s) / (2 * sigma**2), s / sigma**2

    def enclosure(bits: int) -> tuple[int, int]:
        work = bits + 2 * sigma.numerator.bit_length() + 64
        one, q, weight = 1 << work, exp_minus(step, work), total(work)
        first = exp_minus(abs(x), work)
        if x < 0:
            first = (one << work) // first[1], -(-(one << work) // first[0])
        least = (first[0] << 2 * work) // ((one - q[0]) * weight[1])
        most = -(-(first[1] << 2 * work) // ((one - q[1]) * weight[0]))
        return least >> (work - bits), min((most >> (work - bits)) + 1, 1 << bits)

    return enclosure, s


def bernoulli_law(probability: Enclosure, word: int = _WORD) -> Law:
    """1 with the given probability, else 0."""

    def cumulative(bits: int) -> Iterator[tuple[int, int]]:
        low, high = probability(bits)
        yield (1 << bits) - high, (1 << bits) - low
        yield 1 << bits, 1 << bits

    return Law(cumulative, word=word)


@lru_cache(maxsize=256)
def rational_bernoulli_law(probability: Fraction) -> Law:
    """1 with a rational probability, else 0."""
    return bernoulli_law(lambda bits: rational(probability, bits))


def laplace_tail(scale: Fraction, minimum: int) -> Enclosure:
    """P[Z >= minimum] for discrete Laplace noise: q^t / (1 + q) for t >= 1."""

    def enclosure(bits: int) -> tuple[int, int]:
        t = minimum if minimum >= 1 else 1 - minimum
        low, high = exp_minus(t / scale, bits)
        q = exp_minus(1 / scale, bits)
        one = 1 << bits
        low, high = (low << bits) // (one + q[1]), -(-(high << bits) // (one + q[0]))
        return (low, high) if minimum >= 1 else (one - high, one - low)

    return enclosure


def binomial_law(trials: int, probability: Enclosure, mean: int) -> Law:
    """How many of ``trials`` events of a probability of at most 1/2 happen; ``mean`` bounds their mean from above.

    P[0] = (1-p)^n >= 4^(-np) by repeated squaring, then P[k+1] = P[k] (n-k)/(k+1) p/(1-p).
    """

    def cumulative(bits: int) -> Iterator[tuple[int, int]]:
        work = bits + 2 * mean + trials.bit_length() + 64
        one, p = 1 << work, probability(work)
        mass, square, n = (one, one), (one - p[1], one - p[0]), trials
        while n:
            if n & 1:
                mass = _times(mass, square, work)
            square, n = _times(square, square, work), n >> 1
        low, high = mass
        for k in range(trials):
            yield low >> (work - bits), min(1 << bits, (high >> (work - bits)) + 1)
            mass = (
                mass[0] * (trials - k) * p[0] // ((k + 1) * (one - p[0])),
                -(-mass[1] * (trials - k) * p[1] // ((k + 1) * (one - p[1]))),
            )
            low, high = low + mass[0], high + mass[1]
        yield 1 << bits, 1 << bits

    return Law(cumulative)
