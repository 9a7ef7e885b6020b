"""Random sources that draw nothing: one takes every branch in turn, one writes down what it was asked for.

Nothing of the package and nothing of its audit is imported here. What is handed to a mechanism as its source of noise
looks like one and has the laws of `naive_laws`, so that the law of everything that its code publishes can be written
out: `law_of(lambda source: mechanism.draw(summary, source))`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from tests.reference import naive_laws as naive

Options = tuple[tuple[int, float], ...]  # (value, its probability), the likeliest first


def _options(found: dict[int, Any]) -> Options:
    return tuple(sorted(((value, float(chance)) for value, chance in found.items()), key=lambda pair: -pair[1]))


@cache
def _noise(law: str, scale: Fraction, least: int | None = None) -> Options:
    """All values that have a part of 1e-18 or more, from `least` on if there is one."""
    pmf = getattr(naive, law)(scale)
    reach = naive.reach(pmf) + abs(least or 0)
    found = {z: pmf(z) for z in range(-reach if least is None else least, reach + 1)}
    whole = 1 if least is None else sum(found.values())
    return _options({z: chance / whole for z, chance in found.items()})


@cache
def _passing(law: str, scale: Fraction, trials: int, least: int) -> Options:
    """How many of so many noises are at least this."""
    return _successes(trials, float(naive.tail(getattr(naive, law)(scale), least)))


@cache
def _successes(trials: int, chance: float) -> Options:
    return _options({n: math.comb(trials, n) * chance**n * (1 - chance) ** (trials - n) for n in range(trials + 1)})


@cache
def _even(high: int) -> Options:
    return tuple((value, 1 / high) for value in range(high))


class _Source:
    """What mechanisms ask of a random source, in terms of `one(options)`."""

    seeded = True

    def one(self, options: Options) -> int:
        raise NotImplementedError

    def _take(self, options: Options, size: int | None) -> Any:
        if size is None:
            return self.one(options)
        return np.array([self.one(options) for _ in range(size)], np.int64)

    def discrete_laplace(self, scale: Any, size: int | None = None) -> Any:
        return self._take(_noise("laplace", Fraction(scale)), size)

    def discrete_gaussian(self, sigma: Any, size: int | None = None) -> Any:
        return self._take(_noise("gaussian", Fraction(sigma)), size)

    def discrete_laplace_at_least(self, scale: Any, minimum: int, size: int | None = None) -> Any:
        return self._take(_noise("laplace", Fraction(scale), int(minimum)), size)

    def discrete_gaussian_at_least(self, sigma: Any, minimum: int, size: int | None = None) -> Any:
        return self._take(_noise("gaussian", Fraction(sigma), int(minimum)), size)

    def discrete_laplace_exceedances(self, trials: int, scale: Any, minimum: int, size: int | None = None) -> Any:
        return self._take(_passing("laplace", Fraction(scale), int(trials), int(minimum)), size)

    def discrete_gaussian_exceedances(self, trials: int, sigma: Any, minimum: int, size: int | None = None) -> Any:
        return self._take(_passing("gaussian", Fraction(sigma), int(trials), int(minimum)), size)

    def bernoulli(self, probability: Any, size: int | None = None) -> Any:
        return self._take(_successes(1, float(probability)), size)

    def uniform_integers(self, high: int, size: int | None = None) -> Any:
        return self._take(_even(int(high)), size)

    def sample_without_replacement(self, population: int, count: int) -> Any:
        left = list(range(population))
        return np.array([left.pop(self.one(_even(len(left)))) for _ in range(count)], np.int64)

    def permutation(self, count: int) -> Any:
        return self.sample_without_replacement(count, count)

    def choose_in_blocks(self, lower: Any, sizes: Any, exponent: Callable[[int, int], Fraction]) -> tuple[int, int]:
        places = [(block, place) for block, size in enumerate(sizes.tolist()) for place in range(size)]
        exponents = [exponent(*each) for each in places]
        weights = [math.exp(-float(each - min(exponents))) for each in exponents]
        return places[self.one(_options({n: w / sum(weights) for n, w in enumerate(weights)}))]

    def exponential_mechanism(self, scores: Any, epsilon: Any, sensitivity: Any = 1, k: int = 1) -> Any:
        rate, left, chosen = float(epsilon) / (2 * float(sensitivity)), list(range(len(scores))), []
        for _ in range(k):
            best = max(int(scores[i]) for i in left)
            weights = [math.exp(rate * (int(scores[i]) - best)) for i in left]
            chosen.append(left.pop(self.one(_options({n: w / sum(weights) for n, w in enumerate(weights)}))))
        return np.array(chosen, np.int64)


class _Branch(_Source):
    """Follows the turns that it is given, then the likeliest ones, and says which others there were."""

    def __init__(self, turns: tuple[int, ...], cutoff: float) -> None:
        self.turns, self.cutoff, self.chance, self.taken = turns, cutoff, 1.0, 0
        self.others: list[tuple[int, ...]] = []

    def one(self, options: Options) -> int:
        if self.taken == len(self.turns):
            for turn in range(1, len(options)):
                if self.chance * options[turn][1] < self.cutoff:
                    break
                self.others.append((*self.turns, turn))
            self.turns = (*self.turns, 0)
        value, chance = options[self.turns[self.taken]]
        self.taken, self.chance = self.taken + 1, self.chance * chance
        return value


class OutputLaw(NamedTuple):
    """Outputs with their probabilities, and the probability of all branches that were not followed."""

    mass: dict[Hashable, float]
    missing: float


def law_of(run: Callable[[Any], Hashable], cutoff: float = 1e-7, like: type = object) -> OutputLaw:
    """The law of `run(source)`, without branches of less than the cutoff.

    Code that looks at the class of its source gets one of a class derived from `like`, of which nothing is used.
    """
    kind = type("Branch", (_Branch, like), {})
    mass: dict[Hashable, float] = {}
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        source = kind(waiting.pop(), cutoff)
        output = run(source)
        mass[output] = mass.get(output, 0.0) + source.chance
        waiting += source.others
    return OutputLaw(mass, max(0.0, 1.0 - math.fsum(mass.values())))


def log_ratio(first: OutputLaw, second: OutputLaw) -> float:
    """The largest |log P/Q| that is proved: what is missing may lie in any output."""
    worst = 0.0
    for p, q in ((first, second), (second, first)):
        for output, chance in p.mass.items():
            other = q.mass.get(output, 0.0) + q.missing
            worst = max(worst, math.log(chance / other) if other else math.inf)
    return worst


def delta_between(first: OutputLaw, second: OutputLaw, epsilon: float) -> tuple[float, float]:
    """(at least, at most): the larger delta at epsilon of the two directions."""
    found = []
    for p, q in ((first, second), (second, first)):
        known = math.fsum(max(0.0, c - math.exp(epsilon) * q.mass.get(output, 0.0)) for output, c in p.mass.items())
        found.append((max(0.0, known - math.exp(epsilon) * q.missing), known + p.missing))
    return max(low for low, _ in found), max(high for _, high in found)


def shown(drawn: Any) -> Hashable:
    """What a release shows: items with their numbers, offsets, and the shards of items if there are any."""
    items, keep = drawn.raw.items.to_pylist(), np.flatnonzero(drawn.keep).tolist()
    shards = drawn.shards if drawn.shards is not None else np.zeros(len(items), np.int64)
    rows = sorted((repr(items[i]), int(drawn.noisy[i]), int(shards[i])) for i in keep)
    return tuple(rows), drawn.offset, tuple(drawn.shard_offsets or ())


def counters_of(first: Any, second: Any) -> Hashable:
    """All that a release can see of two summaries, without the names of items: shards with their offsets."""

    def parts(summary: Any) -> tuple[list[Any], list[int]]:
        if hasattr(summary, "not_private_shards"):
            return summary.not_private_shards(), [*summary.not_private_offsets]
        return [summary.not_private_counts()], [getattr(summary, "not_private_offset", 0)]

    (one, offsets), (two, others) = parts(first), parts(second)
    counters = []
    for mine, theirs in zip(one, two, strict=True):
        a, b = mine.to_dict(), theirs.to_dict()
        counters.append(tuple(sorted((a.get(item, -1), b.get(item, -1)) for item in {*a, *b})))
    return tuple(counters), tuple(offsets), tuple(others), first.total, second.total


def worst_delta(
    mechanism: Any,
    summarise: Callable[[Any], Any],
    pairs: Iterable[tuple[Any, Any]],
    epsilon: float,
    cutoff: float = 1e-6,
    enough: float = math.inf,
) -> tuple[float, float]:
    """(at least, at most) of the largest delta over pairs of inputs; it stops where more than `enough` is proved.

    Pairs whose counters differ in the names of items alone are looked at once.
    """
    summary = cache(summarise)

    @cache
    def law(given: Any) -> OutputLaw:
        return law_of(lambda source: shown(mechanism.draw(summary(given), source)), cutoff)

    low = high = 0.0
    known = set()
    for first, second in pairs:
        alike = counters_of(summary(first), summary(second))
        if alike in known:
            continue
        known.add(alike)
        found = delta_between(law(first), law(second), epsilon)
        low, high = max(low, found[0]), max(high, found[1])
        if low > enough:
            break
    return low, high


def sequences_with_one_replaced(size: int, length: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for first in itertools.product(range(size), repeat=length):
        for place, item in itertools.product(range(length), range(size)):
            if item < first[place]:
                yield first, (*first[:place], item, *first[place + 1 :])


def worst_ratio(
    pairs: Iterable[tuple[Any, Any]], run: Callable[[Any, Any], Hashable], cutoff: float = 1e-7, like: type = object
) -> float:
    """The largest |log ratio| over pairs of inputs, of `run(given, source)`."""
    law = cache(lambda given: law_of(lambda source: run(given, source), cutoff, like))
    return max(log_ratio(law(first), law(second)) for first, second in pairs)


class Asked(NamedTuple):
    """One draw that was asked for."""

    law: str
    scale: Fraction
    size: int


class Silent(_Source):
    """No noise: everything is as it is, and `asked` has the noise that would have been on it."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    def _note(self, law: str, scale: Any, size: int | None, value: int = 0) -> Any:
        self.asked.append(Asked(law, Fraction(scale), 1 if size is None else int(size)))
        return value if size is None else np.full(size, value, np.int64)

    def discrete_laplace(self, scale: Any, size: int | None = None) -> Any:
        return self._note("laplace", scale, size)

    def discrete_gaussian(self, sigma: Any, size: int | None = None) -> Any:
        return self._note("gaussian", sigma, size)

    def one(self, options: Options) -> int:
        return options[0][0]
