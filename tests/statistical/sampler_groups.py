"""The samplers with their exact laws: everything that is drawn from a random source, and the twin of each.

What is tested of them is in samplers.py, which tests the noise of whole releases the same way; their laws are in
tests/reference/noise_laws.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tests.reference.noise_laws import (
    Array,
    coin,
    even,
    gaussian,
    gaussian_above,
    geometric,
    laplace,
    laplace_above,
    listed,
    pan_chance,
    response_law,
    square_law,
    successes,
    tail_of_laplace,
)
from tests.statistical.samplers import (
    ALARM,
    MISS,
    OFF,
    Draw,
    Sampler,
    Samplers,
    ends_to,
    finding,
    less_by,
)

from discreet import _native
from discreet.noise import RandomSource, fresh_source, system_source
from discreet.noise.enclosure import exp_minus
from discreet.noise.places import noisy_places
from discreet.pan.responses import ONE, Response, response_weights, square_threshold
from discreet.summaries import UserMisraGries
from discreet_audit.core import Effort, Finding, cases

__all__ = ["groups"]

_BEST, _GAP = 256, 6  # so many best items, and so much worse the others, of which there are e^(rate gap) as many


@dataclass(frozen=True)
class Choice(Sampler):
    """The exponential mechanism: some of a few best items and of many that are worse.

    Of those left, B of the best and W of the others, the next one chosen is one of the others with probability
    W / (W + B e^(rate gap)). The sum of what differs from that, over its standard deviation, is a normal variable.
    Many bad items make a choice tell much about the rate: at first both kinds have the same weight.
    """

    def findings(self, effort: Effort) -> Iterator[Finding]:
        """How often a worse one is chosen."""
        rate, others = float(self.parameter), _others(self.parameter)
        away, spread, count = 0.0, 0.0, 0
        # A choice of chance p adds (rate gap)^2 p (1 - p) to the information about log(rate).
        needed = ((ALARM + MISS) / float(OFF) / (rate * _GAP)) ** 2 * (4.0 if effort.name == "full" else 1.1)
        while spread < needed:
            worse = np.asarray(self.draw(system_source(), self.parameter, _BEST)) >= _BEST
            before: Array = np.cumsum(worse) - worse
            weight = (_BEST - (np.arange(len(worse)) - before)) * math.exp(rate * _GAP)
            chance = (others - before) / (others - before + weight)
            away += float((worse - chance).sum())
            spread += float((chance * (1 - chance)).sum())
            count += len(worse)
        yield finding(f"{self.name}: the rate", "standard deviations", ALARM, abs(away) / math.sqrt(spread), count)


def _others(rate: Fraction) -> int:
    return round(_BEST * math.exp(rate * _GAP))


# ---- laws ----


# ---- what is drawn -----------------------------------------------------------------------------------------------


def _all_places(source: RandomSource, scale: Fraction, count: int) -> npt.ArrayLike:
    """How many places of an empty universe are shown."""
    none = np.zeros(0, np.int64)
    return [len(noisy_places(source, 10**6, none, none, scale, 36)[0]) for _ in range(count)]


def _orders(source: RandomSource, parameter: Fraction, count: int) -> npt.ArrayLike:
    """Permutations of four, as numbers from 0 to 23."""
    rows = np.array([source.permutation(4) for _ in range(count)])
    inversions = np.array([(rows[:, i, None] > rows[:, i + 1 :]).sum(axis=1) for i in range(3)])
    return np.asarray(np.array([6, 2, 1]) @ inversions)


def _samples(source: RandomSource, parameter: Fraction, count: int) -> npt.ArrayLike:
    """Ordered pairs out of five, as numbers from 0 to 19."""
    rows = np.array([source.sample_without_replacement(5, 2) for _ in range(count)])
    return np.asarray(rows[:, 0] * 4 + rows[:, 1] - (rows[:, 1] > rows[:, 0]))


def _blocks(part: float) -> Draw:
    """Where sixteen blocks of a large array go: the block before and after, as a number from 0 to 255.

    A part of the array is shuffled.
    """

    def draw(source: RandomSource, parameter: Fraction, count: int) -> npt.ArrayLike:
        array = np.arange(count)
        moved = math.ceil(part * count)
        array[:moved] = array[source.permutation(moved)]
        return array * 16 // count * 16 + np.arange(count) * 16 // count

    return draw


def _repeated_words(source: RandomSource, parameter: Fraction, count: int) -> npt.ArrayLike:
    """1 if one of many 64-bit words comes twice (2^32 / 2^65 = 1e-10 for chance), from this source or fresh ones."""
    sources = (source, fresh_source(), fresh_source(), fresh_source())
    words = np.frombuffer(b"".join(some.bytes(2 * count) for some in sources), np.uint64)
    return [int(len(np.unique(words)) < len(words))]


def _choose(source: RandomSource, rate: Fraction, count: int) -> npt.ArrayLike:
    scores = np.repeat(np.array([_GAP, 0]), [_BEST, _others(Fraction(1))])
    return source.exponential_mechanism(scores, 2 * rate, k=count)


def _spoilt(draw: Draw, value: int) -> Draw:
    """One in a hundred draws is a fixed value."""

    def spoilt(source: RandomSource, parameter: Fraction, count: int) -> npt.ArrayLike:
        drawn = np.array(draw(source, parameter, count))
        drawn[::100] = value
        return drawn

    return spoilt


def _of_users(short: int) -> Draw:
    """Which of six items a user-level sketch keeps of each user, when it keeps one. `short` users have the first."""

    def draw(source: RandomSource, parameter: Fraction, count: int) -> npt.ArrayLike:
        ends = np.cumsum(np.where(np.arange(count) % 100 < short, 1, 6), dtype=np.int64)
        items = np.arange(ends[-1]) - np.repeat(np.append(0, ends[:-1]), np.diff(ends, prepend=0))
        sketch = UserMisraGries(6, 1, oversized="sample")
        sketch.update(pa.LargeListArray.from_arrays(np.append(0, ends), items))
        raw = sketch.not_private_counts()
        return np.repeat(raw.items.to_numpy(), raw.counts)

    return draw


def _pan_bits(seen: bool, announced: bool) -> Draw:
    """Cells of a fresh pan-private table, after their element came, after an announced intrusion."""

    def draw(source: RandomSource, epsilon: Fraction, count: int) -> npt.ArrayLike:
        coins = Response.of("tight", epsilon)
        table = _native.PanTable.of_range(0, False, count, coins.unseen, coins.seen)
        table.add_bits(np.ones(1, np.uint64), np.ones(1, np.uint64), None)
        if seen:
            table.update(pa.array(np.arange(count)), False, None)
        if announced:
            table.rerandomise(None)
        return table.noisy_ones(0, 0, 1, np.zeros(count, np.int64))

    return draw


def _pan_counters(source: RandomSource, epsilon: Fraction, count: int) -> npt.ArrayLike:
    """Counters modulo 5 of a fresh table, shifted by randomised response."""
    table = _native.PanTable.of_range(0, False, count, ONE // 4, ONE // 2)
    sums = np.array(np.cumsum(response_weights(5, epsilon), dtype=object)[:-1], np.uint64)
    table.add_counters(np.array([5], np.uint64), np.ones(1, np.uint64), sums, None)
    return np.repeat(np.arange(5), table.noisy_residues(0, np.zeros(5, np.int64)))


def _pan_squares(source: RandomSource, epsilon: Fraction, count: int) -> npt.ArrayLike:
    """Counters modulo 7 of a fresh table, shifted by a square more often than by the others."""
    table = _native.PanTable.of_range(0, False, count, ONE // 4, ONE // 2)
    chance = square_threshold(7, epsilon)
    table.add_square_counters(np.array([7], np.uint64), np.ones(1, np.uint64), chance, None)
    return np.repeat(np.arange(7), table.noisy_residues(0, np.zeros(7, np.int64)))


# ---- the groups -----------------------------------------------------------------------------------------------------


_WIDTHS = [Fraction(1, 2), Fraction(10), Fraction(777, 10), Fraction(10**8)]
"""One for each way in which a table is made: without blocks, with blocks drawn from one word, and from two."""


def _parameters_of_releases(law: str) -> set[Fraction]:
    """The scales that the examples of the other rows declare; those that agree to nine digits are one."""
    found: set[Fraction] = set()
    others: set[Fraction] = set()
    for example in (made for case in cases() for made in case.examples()):
        model, scale = getattr(example, "error_model", None), getattr(example, "scale", None)
        model = None if callable(model) else model  # over time there is one a tick
        noises = (getattr(model, "noise", None), getattr(model, "offset_noise", None))
        found |= {Fraction(noise.scale) for noise in noises if noise is not None and noise.law == law}
        drawn = getattr(getattr(example, "noise", None), "law", "laplace")
        if model is None and law == drawn and isinstance(scale, Fraction):
            others.add(scale)
    for scale in sorted(others):
        if not any(abs(scale - known) <= scale / 10**9 for known in found):
            found.add(scale)
    return found


def _laplace_sampler(scale: Fraction, draw: Draw = RandomSource.discrete_laplace, **options: Any) -> Sampler:
    ends = ends_to(17 * float(scale) + 2)
    return replace(Sampler(f"scale {float(scale):g}", laplace, draw, scale, ends), **options)


def _gaussian_sampler(sigma: Fraction) -> Sampler:
    ends = ends_to(5.5 * float(sigma) + 2)
    return Sampler(f"sigma {float(sigma):g}", gaussian, RandomSource.discrete_gaussian, sigma, ends)


def _at_least(minimum: int) -> Sampler:
    ends = ends_to(max(minimum, 0) + 51, minimum - 1)
    draw: Draw = lambda source, scale, count: source.discrete_laplace_at_least(scale, minimum, count)  # noqa: E731
    return Sampler(f"Laplace of scale 3, at least {minimum}", laplace_above(minimum), draw, Fraction(3), ends)


def _gaussian_at_least(sigma: Fraction, minimum: int) -> Sampler:
    ends = ends_to(max(minimum, 0) + 5.5 * float(sigma) + 2, minimum - 1)
    draw: Draw = lambda source, sigma, count: source.discrete_gaussian_at_least(sigma, minimum, count)  # noqa: E731
    name = f"Gaussian of sigma {float(sigma):g}, at least {minimum}"
    return Sampler(name, gaussian_above(minimum), draw, sigma, ends)


def _binomials(trials: int, chance: Fraction, low: int, high: int) -> Sampler:
    draw: Draw = lambda source, p, count: source.binomial(trials, p, count)  # noqa: E731
    return Sampler(f"{trials} of {float(chance):g}", successes(trials, float), draw, chance, ends_to(high, low - 1))


def _plain(name: str, values: int, draw: Draw, draws: int, broken: tuple[str, Draw] | None = None) -> Sampler:
    """A uniform law; its twin has one draw in a hundred fixed, or is the one given, whose draws have no order."""
    twin = broken or (f"{name}: one in a hundred is fixed", _spoilt(draw, 0))
    return Sampler(name, even(values), draw, Fraction(1), ends_to(values - 1, -1), draws, twin, broken is None)


@lru_cache(maxsize=1)
def groups() -> tuple[Samplers, ...]:
    """All samplers, in the groups in which they are tested."""
    one, zero, three = Fraction(1), np.array([0.0]), Fraction(3)
    singly: Draw = lambda source, scale, count: [source.discrete_laplace(scale) for _ in range(count)]  # noqa: E731
    exceed = successes(10**6, lambda scale: tail_of_laplace(scale, 36))
    above: Draw = lambda source, scale, count: source.discrete_laplace_exceedances(10**6, scale, 36, count)  # noqa: E731
    many = successes(10**4, lambda sigma: 1.0 - float(gaussian(np.array([10.0]), sigma)[0]))
    larger: Draw = lambda source, sigma, count: source.discrete_gaussian_exceedances(10**4, sigma, 11, count)  # noqa: E731
    fewer = ("how many Gaussians are above: 5 % too small", less_by(larger, Fraction(19, 20)))
    less = ("a universe: 5 % too small", less_by(_all_places, Fraction(19, 20)))
    rare: Draw = lambda source, x, count: source.binomial(10**12, partial(exp_minus, x), count)  # noqa: E731
    once: Draw = lambda source, x, count: source.binomial(1, partial(exp_minus, x), count)  # noqa: E731
    minus: Callable[[float], float] = lambda x: math.exp(-x)  # noqa: E731
    coins = [((False, False), 2, "not seen"), ((True, False), 2, "seen"), ((True, True), 3, "seen, then announced")]
    groups: dict[str, Iterable[Sampler]] = {
        "discrete Laplace": (
            *map(_laplace_sampler, sorted({*_WIDTHS, *_parameters_of_releases("laplace")})),
            _laplace_sampler(
                Fraction(2),
                singly,
                name="one at a time",
                draws=20_000,
                broken=("one at a time: 20 % too small", less_by(singly, Fraction(4, 5))),
            ),
        ),
        "discrete Gaussian": map(
            _gaussian_sampler, sorted({*(4 * w for w in _WIDTHS), *_parameters_of_releases("gaussian")})
        ),
        "geometric, and noise above a cut": (
            Sampler("geometric, scale 3", geometric, RandomSource.geometric, three, ends_to(51, -1)),
            Sampler("geometric, scale 40", geometric, RandomSource.geometric, Fraction(40), ends_to(680, -1)),
            *map(_at_least, (-1, 0, 7)),
            *(_gaussian_at_least(sigma, c) for sigma, c in ((three, -1), (three, 7), (Fraction(200), 300))),
            Sampler("how many are above", exceed, above, three, ends_to(30, -1)),
            Sampler("how many Gaussians are above", many, larger, three, ends_to(30, -1), 20_000, fewer),
            Sampler("a universe", exceed, _all_places, three, ends_to(30, -1), 20_000, less),
        ),
        "Bernoulli and binomial": (
            Sampler("Bernoulli, 1/2", coin(float), RandomSource.bernoulli, Fraction(1, 2), zero),
            Sampler("Bernoulli, 3/4", coin(float), RandomSource.bernoulli, Fraction(3, 4), zero),
            Sampler("Bernoulli, exp(-1.5)", coin(minus), once, Fraction(3, 2), zero),
            _binomials(40, Fraction(3, 10), 0, 40),
            _binomials(40, Fraction(9, 10), 0, 40),
            _binomials(5000, Fraction(1, 2), 2200, 2800),
            Sampler("10^12 of exp(-25)", successes(10**12, minus), rare, Fraction(25), ends_to(60, -1)),
        ),
        "exponential mechanism": (Choice("256 of many", laplace, _choose, one, zero),),
        "uniform numbers, orders and samples": (
            _plain("bytes", 256, lambda source, _, count: np.frombuffer(source.bytes(count), np.uint8), 2_000_000),
            _plain("words come once", 1, _repeated_words, 1 << 16, ("a word comes twice", lambda *_: [1])),
            _plain("below 7", 7, lambda source, _, count: source.uniform_integers(7, count), 500_000),
            # Where 64 bits leave the largest remainder, in twelve cells.
            _plain(
                "below 3 * 2^61", 12, lambda source, _, n: source.uniform_integers(3 << 61, n) // (1 << 59), 500_000
            ),
            _plain("orders of 4", 24, _orders, 100_000),
            _plain("2 of 5", 20, _samples, 130_000),
            _plain("a large array", 256, _blocks(1), 1 << 20, ("1 % of a large array left where it is", _blocks(0.99))),
            _plain(
                "items of a user",
                6,
                _of_users(0),
                500_000,
                ("items of a user: 1 % of the users keep the first", _of_users(1)),
            ),
        ),
        "cells of pan-private tables": (
            *(Sampler(name, coin(pan_chance(*how)), _pan_bits(*how), Fraction(e), zero) for how, e, name in coins),
            Sampler("counters", listed(response_law), _pan_counters, Fraction(2), ends_to(3, 0), independent=False),
            Sampler("squares", listed(square_law), _pan_squares, three, ends_to(5, 0), independent=False),
        ),
    }
    return tuple(Samplers(name, tuple(members)) for name, members in groups.items())
