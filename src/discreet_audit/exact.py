"""Exact evidence: sources whose draws the audit decides, and the output law of a mechanism from its own code.

A mechanism draws everything it draws from its random source. `ScriptedSource` stands in for that source to follow a
release step by step; `EnumeratedSource` takes every branch in turn, with its probability, so the law of the output is
written out by running the real code on a real summary. Branches of less than a cutoff are not followed; their mass is
kept, and every divergence comes as a lower and an upper bound. Meant for a few counters and an epsilon of 1 or more,
where a law has some thousand branches.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet.central import Mechanism
from discreet.noise import RandomSource
from discreet.noise.source import Integers, Number, exact
from discreet_audit.closed_forms import NoiseLaw

# ---- sources whose draws the audit decides ---------------------------------------------------------------------------


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
        turns: What takes the place of `each` in the first draws of many, one after the other.
    """

    def __init__(
        self, single: int = 0, each: int | Sequence[int] = 0, uniform: int = 0, turns: Iterable[Any] = ()
    ) -> None:
        super().__init__(_native.RandomSource(0))
        self.turns = list(turns)
        self.single, self.each, self.uniform = single, np.atleast_1d(np.asarray(each, np.int64)), uniform
        self.draws: list[Draw] = []
        self.scores: list[Any] = []

    def _given(self, law: str, scale: Any, size: int | None) -> Any:
        self.draws.append(Draw(law, exact("scale", scale), size))
        if size is None:
            return self.single
        return np.resize(self.turns.pop(0) if self.turns else self.each, size).astype(np.int64)

    @property
    def scales(self) -> npt.NDArray[np.float64]:
        """Of every number that was drawn, in turn."""
        return np.repeat([float(d.scale) for d in self.draws], [1 if d.size is None else d.size for d in self.draws])

    def discrete_laplace(self, scale: Any, size: Any = None) -> Any:
        return self._given("laplace", scale, size)

    def discrete_gaussian(self, sigma: Any, size: Any = None) -> Any:
        return self._given("gaussian", sigma, size)

    def discrete_laplace_exceedances(self, trials: Any, scale: Any, minimum: Any, size: Any = None) -> Any:
        """None of the items that are not stored passes the cut."""
        return 0 * self._given("laplace", scale, size)

    def discrete_gaussian_exceedances(self, trials: Any, sigma: Any, minimum: Any, size: Any = None) -> Any:
        """None of the items that are not stored passes the cut."""
        return 0 * self._given("gaussian", sigma, size)

    def bernoulli(self, probability: Any, size: Any = None) -> Any:
        """Coins as they were written: 0 or 1."""
        return self._given("bernoulli", probability, size)

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
        by: This many times less noise.
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
        drawn = self.source.discrete_gaussian(Fraction(sigma) / self._less("gaussian"), size)
        return drawn - self.cut if size is None else drawn

    def discrete_laplace(self, scale: Any, size: Any = None) -> Any:
        drawn = self.source.discrete_laplace(Fraction(scale) / self._less("laplace"), size)
        return drawn - self.cut if size is None else drawn

    def exponential_mechanism(self, scores: Any, epsilon: Any, sensitivity: Any = 1, k: int = 1) -> Any:
        """A choice with a larger epsilon, and a stop that is lower."""
        lowered = np.array(scores)
        if self.cut:
            lowered[-1] -= self.cut
        return self.source.exponential_mechanism(lowered, epsilon * self._less("choice"), sensitivity, k)


# ---- laws, branch by branch ------------------------------------------------------------------------------------------

K = TypeVar("K", bound=Hashable)
L = TypeVar("L")
Branches = tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]]
"""Values, their probabilities, largest first, and what is left after each."""


def _branches(values: Iterable[int], weights: Iterable[float], total: float | None = None) -> Branches:
    pairs = sorted(zip(values, weights, strict=True), key=lambda pair: -pair[1])
    whole = math.fsum(weight for _, weight in pairs) if total is None else total
    probabilities = tuple(weight / whole for _, weight in pairs)
    left = 1.0 - np.cumsum(probabilities)
    return tuple(value for value, _ in pairs), probabilities, tuple(np.maximum(left, 0.0).tolist())


@lru_cache(maxsize=256)
def _noise(law: str, scale: Fraction) -> Branches:
    table = NoiseLaw(law, scale)
    return _branches(range(-table.reach, table.reach + 1), table.mass.tolist(), 1.0)


@lru_cache(maxsize=256)
def _geometric(scale: Fraction, start: int) -> Branches:
    q = math.exp(-1 / scale)
    steps = range(math.ceil(40 * scale) + 2)
    return _branches([start + g for g in steps], [(1 - q) * q**g for g in steps], 1.0)


@lru_cache(maxsize=256)
def _binomial(trials: int, probability: float) -> Branches:
    k = range(trials + 1)
    return _branches(k, [math.comb(trials, i) * probability**i * (1 - probability) ** (trials - i) for i in k], 1.0)


@lru_cache(maxsize=256)
def _uniform(high: int) -> Branches:
    return _branches(range(high), [1.0] * high)


class EnumeratedSource(RandomSource):
    """A source that takes every branch in turn: `for probability in source: use(source)` runs once for each.

    After the loop `missing` is the probability of the branches that were not followed. It is `seeded`: what is drawn
    from it protects nobody.
    """

    def __init__(self, cutoff: float = 1e-7) -> None:
        self.cutoff = cutoff
        self.missing = 0.0
        # For each draw of the current run: the law, the branch taken, the probability before it.
        self._path: list[tuple[Branches, int, float]] = []
        self._depth = 0
        self._probability = 1.0

    @property
    def seeded(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "enumerated random source (for audits only)"

    def __iter__(self) -> Iterator[Callable[[], float]]:
        """Yields a function that gives the probability of the run, to be called after it."""
        while True:
            self._depth, self._probability = 0, 1.0
            yield lambda: self._probability
            while self._path:
                law, taken, before = self._path.pop()
                if taken + 1 < len(law[0]) and before * law[1][taken + 1] >= self.cutoff:
                    self._path.append((law, taken + 1, before))
                    break
                self.missing += before * law[2][taken]
            else:
                return

    def _one(self, law: Branches) -> int:
        if self._depth == len(self._path):
            self._path.append((law, 0, self._probability))
        values, probabilities, _ = law
        taken = self._path[self._depth][1]
        self._depth += 1
        self._probability *= probabilities[taken]
        return values[taken]

    def _take(self, law: Branches, size: int | None) -> Any:
        if size is None:
            return self._one(law)
        return np.array([self._one(law) for _ in range(size)], np.int64)

    def discrete_laplace(self, scale: Number, size: int | None = None) -> Any:
        return self._take(_noise("laplace", Fraction(scale)), size)

    def discrete_gaussian(self, sigma: Number, size: int | None = None) -> Any:
        return self._take(_noise("gaussian", Fraction(sigma)), size)

    def _above(self, law: Branches, minimum: int, size: int | None) -> Any:
        kept = {v: p for v, p in zip(*law[:2], strict=True) if v >= minimum}
        return self._take(_branches(kept, kept.values()), size)

    def _passing(self, law: Branches, trials: int, minimum: int, size: int | None) -> Any:
        return self._take(_binomial(trials, math.fsum(p for v, p in zip(*law[:2], strict=True) if v >= minimum)), size)

    def discrete_laplace_at_least(self, scale: Number, minimum: int, size: int | None = None) -> Any:
        if minimum >= 0:
            return self._take(_geometric(Fraction(scale), minimum), size)
        return self._above(_noise("laplace", Fraction(scale)), minimum, size)

    def discrete_gaussian_at_least(self, sigma: Number, minimum: int, size: int | None = None) -> Any:
        return self._above(_noise("gaussian", Fraction(sigma)), minimum, size)

    def discrete_laplace_exceedances(self, trials: int, scale: Number, minimum: int, size: int | None = None) -> Any:
        return self._passing(_noise("laplace", Fraction(scale)), trials, minimum, size)

    def discrete_gaussian_exceedances(self, trials: int, sigma: Number, minimum: int, size: int | None = None) -> Any:
        return self._passing(_noise("gaussian", Fraction(sigma)), trials, minimum, size)

    def bernoulli(self, probability: Number, size: int | None = None) -> Any:
        return self._take(_binomial(1, float(probability)), size)

    def uniform_integers(self, high: int, size: int | None = None) -> Any:
        return self._take(_uniform(high), size)

    def sample_without_replacement(self, population: int, count: int) -> Integers:
        left = list(range(population))
        return np.array([left.pop(self._one(_uniform(len(left)))) for _ in range(count)], np.int64)

    def permutation(self, count: int) -> Integers:
        return self.sample_without_replacement(count, count)

    def exponential_mechanism(
        self, scores: npt.ArrayLike, epsilon: Number, sensitivity: Number = 1, k: int = 1
    ) -> Integers:
        left = [(index, float(score)) for index, score in enumerate(np.asarray(scores).tolist())]
        chosen = []
        for _ in range(k):
            best = max(score for _, score in left)
            weights = [math.exp(float(epsilon) * (score - best) / (2 * float(sensitivity))) for _, score in left]
            chosen.append(left.pop(self._one(_branches(range(len(left)), weights)))[0])
        return np.array(chosen, np.int64)


@dataclass(frozen=True)
class OutputLaw:
    """The probability of each output; `missing` was not followed."""

    mass: dict[Hashable, float]
    missing: float


@dataclass(frozen=True)
class Divergence:
    """Bounds of a hockey-stick divergence sup_S P[S] - e^epsilon Q[S], the delta that is needed at epsilon."""

    lower: float
    upper: float


def law_of(
    run: Callable[[RandomSource], Hashable], cutoff: float = 1e-7, source: EnumeratedSource | None = None
) -> OutputLaw:
    """The law of `run(source)`."""
    source = source or EnumeratedSource(cutoff)
    mass: dict[Hashable, float] = {}
    for probability in source:
        output = run(source)
        mass[output] = mass.get(output, 0.0) + probability()
    return OutputLaw(mass, source.missing)


def least_whole(passes: Callable[[int], bool], most: int = 2**50) -> int:
    """The least whole number that passes, of which all larger ones do."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle + 1, high)
    return low


def divergence(first: OutputLaw, second: OutputLaw, epsilon: float) -> Divergence:
    """What separates the first law from the second at epsilon.

    The mass that is missing from the first may all count, that missing from the second may all be where it hurts.
    """
    factor = math.exp(epsilon)
    known = math.fsum(max(0.0, p - factor * second.mass.get(output, 0.0)) for output, p in first.mass.items())
    return Divergence(max(0.0, known - factor * second.missing), known + first.missing)


class Published(NamedTuple):
    """What a release shows, as a value that can be compared: (repr of the item, count), sorted, and the offset.

    With shards, instead of the offset: the offsets of all shards, and the shard of every item.
    """

    counts: tuple[tuple[str, int], ...]
    offset: Any


def published(mechanism: Mechanism, summary: Any, source: RandomSource) -> Published:
    """What the mechanism publishes."""
    mechanism.check(summary)
    drawn = mechanism.draw(summary, source)
    items = drawn.raw.items.to_pylist()
    rows = sorted((repr(items[i]), int(drawn.noisy[i]), i) for i in np.flatnonzero(drawn.keep))
    offset: Any = drawn.offset
    if drawn.shards is not None:
        offset = tuple(drawn.shard_offsets or ()), tuple(int(drawn.shards[i]) for _, _, i in rows)
    return Published(tuple((item, count) for item, count, _ in rows), offset)


def release_law(mechanism: Mechanism, summary: Any, cutoff: float = 1e-7) -> OutputLaw:
    """The law of what a mechanism publishes of a summary."""
    return law_of(lambda source: published(mechanism, summary, source), cutoff)


def ratio_loss(first: OutputLaw, second: OutputLaw) -> float:
    """The largest |log ratio| of the probabilities of an output.

    What is missing of a law is added to every output of it: the loss is then no smaller than what is returned.
    """
    worst = 0.0
    for one, other in ((first, second), (second, first)):
        for output, p in one.mass.items():
            q = other.mass.get(output, 0.0) + other.missing
            worst = max(worst, math.log(p / q) if q else math.inf)
    return worst


def worst_pair(pairs: Iterable[tuple[K, K]], law: Callable[[K], L], loss: Callable[[L, L], float]) -> tuple[float, int]:
    """The largest loss over pairs of neighbours, and how many there were; the law of an input is written out once."""
    known = cache(law)
    losses = [loss(known(one), known(other)) for one, other in pairs]
    return max(losses, default=0.0), len(losses)


def apart(first: Mapping[K, int], second: Mapping[K, int]) -> list[int]:
    """By how much each count is larger in the first; what is not there counts 0."""
    return [first.get(key, 0) - second.get(key, 0) for key in {*first, *second}]


def neighbouring_streams(
    universe: Sequence[Any], longest: int, removed: int = 1
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Every stream of at most `longest` events with each of the streams that lack `removed` of them."""
    for length in range(removed, longest + 1):
        for stream in itertools.product(universe, repeat=length):
            seen = set()
            for left_out in itertools.combinations(range(length), removed):
                shorter = tuple(x for i, x in enumerate(stream) if i not in left_out)
                if shorter not in seen:
                    seen.add(shorter)
                    yield stream, shorter


def signature(first: Any, second: Any) -> Hashable:
    """All that the releases of two summaries can depend on, up to the names of the items, and of shards."""

    def parts(summary: Any) -> Iterable[tuple[Any, Any]]:
        if hasattr(summary, "not_private_shards"):
            return zip(summary.not_private_shards(), summary.not_private_offsets, strict=True)
        return [(summary.not_private_counts(), (summary.total, getattr(summary, "not_private_offset", None)))]

    found = []
    for (one, of), (other, beside) in zip(parts(first), parts(second), strict=True):
        a, b = one.to_dict(), other.to_dict()
        found.append((tuple(sorted((a.get(x, -1), b.get(x, -1)) for x in {*a, *b})), of, beside))
    return tuple(sorted(found))


def worst_divergence(
    mechanism: Mechanism,
    summarise: Callable[[Any], Any],
    pairs: Iterable[tuple[Any, Any]],
    epsilon: float,
    cutoff: float = 1e-7,
    signature: Callable[[Any, Any], Hashable] = signature,
    enough: float = math.inf,
) -> Divergence:
    """The largest divergence over pairs of streams, in both directions, through the real summary and release.

    Pairs whose summaries differ in the items' names only are looked at once: the mechanism must not depend on names.
    The search ends with a pair whose lower bound is above `enough`: a claim of that much is refuted.
    """
    summary = cache(summarise)
    law = cache(lambda stream: release_law(mechanism, summary(stream), cutoff))
    seen = set()
    lower = upper = 0.0
    for pair in pairs:
        name = signature(*map(summary, pair))
        for one, other in (pair, pair[::-1]) if name not in seen else ():
            found = divergence(law(one), law(other), epsilon)
            lower, upper = max(lower, found.lower), max(upper, found.upper)
            if lower > enough:
                return Divergence(lower, math.inf)
        seen.add(name)
    return Divergence(lower, upper)
