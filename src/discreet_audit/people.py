"""Auditing releases of people: what was added to noise of which size, read from runs of the release itself.

The release asks its source for noise and adds it to sums over people. A source that notes what its noise is added to
gives, for two neighbouring data sets, the shift and the noise of every step; a source of given noise finds the cuts.
The exact delta follows from these alone: nothing of the mechanism's own calibration is believed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from discreet.central.person_vectors import PersonVectors
from discreet.noise import RandomSource, fresh_source, seeded_source
from discreet.privacy import Budget, Unit, User
from discreet.summaries.people import LENGTH, Counts, ListedPeople, People, ValueRange
from discreet_audit.findings import Finding
from discreet_audit.registry import Effort, Twin, row
from discreet_audit.sabotage import twin
from discreet_audit.sources import ScriptedSource
from discreet_audit.statistical import clopper_pearson

__all__ = ["NoisySums", "held", "steps_of"]

_NEVER = -(10**15)
_SIZES = (1, 2, 3, 16, 256, 300)
_COMMON = [f"common {index:03d}" for index in range(3)]


class NoisySums(NamedTuple):
    """Noise of one size, and the sums that it was added to."""

    sigma: float
    sums: Counts


class _Noted(np.ndarray[Any, np.dtype[np.int64]]):
    """Noise that notes what it is added to.

    Where earlier steps are given, it is the noise with which their answers come out again: later questions depend on
    earlier answers, and what a step costs is its shift given those.
    """

    step: list[NoisySums]
    sigma: float
    again: list[NoisySums]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [np.asarray(part) for part in inputs]
        if ufunc is np.add and method == "__call__":
            (sums,) = (part for part, given in zip(plain, inputs, strict=True) if given is not self)
            self.step.append(NoisySums(self.sigma, np.array(sums, np.int64)))
            if len(self.again) >= len(self.step):
                earlier = self.again[len(self.step) - 1].sums
                answer = np.array(sums, np.int64)
                answer[: len(earlier)] = earlier[: len(answer)]
                return answer
        return getattr(ufunc, method)(*plain, **options)


class _GivenNoise(ScriptedSource):
    """A source whose noise is given for each time it is asked; afterwards 0. It notes what its noise is added to."""

    def __init__(self, again: Sequence[NoisySums] = ()) -> None:
        super().__init__()
        self.levels: list[int] = []
        self.again = [*again]
        self.steps: list[NoisySums] = []

    def discrete_gaussian(self, sigma: Any, size: Any = None) -> Any:
        """The noise that comes next."""
        self.each = np.array([self.levels.pop(0) if self.levels else 0])
        noise = super().discrete_gaussian(sigma, size).view(_Noted)
        noise.step, noise.sigma, noise.again = self.steps, float(sigma), self.again
        return noise


class _Answers(People):
    """People whose answers pass through functions: to be changed, as a broken engine would, or to be noted."""

    def __init__(
        self,
        people: People,
        weights: Callable[[People, int], Counts] = lambda people, most: people.discovery_weights(most),
        sums: Callable[[Counts], Counts] = lambda sums: sums,
        noted: Callable[[Counts], object] = lambda answer: None,
    ) -> None:
        self.people, self.weights, self.sums, self.noted = people, weights, sums, noted
        self.counted: tuple[Counts, Counts] = (np.zeros(0, np.int64), np.zeros(0, np.int64))

    def discovery_weights(self, most_items: int) -> Counts:
        answer = self.weights(self.people, most_items)
        self.noted(answer)
        return answer

    def items(self, places: Counts) -> Any:
        return self.people.items(places)

    def lengths(self, places: Counts, weights: Counts) -> tuple[Counts, Counts]:
        lengths, times = self.people.lengths(places, weights)
        self.noted(times)
        return lengths, times

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        answer = self.sums(self.people.scaled_sums(places, weights, longest))
        self.counted = places, weights
        self.noted(answer)
        return answer


class _Changed(_Answers):
    """People of a twin."""


def _listed(mechanism: Any, people: Sequence[Sequence[str]]) -> ListedPeople:
    """The people in memory; where values are summed, every row has one far above the range."""
    if mechanism.values is None:
        return ListedPeople(people, rows=mechanism.rows)
    values = [[1e6 * mechanism.values.high] * len(items) for items in people]
    return ListedPeople(people, values=values, value_range=mechanism.values)


def _crowd(mechanism: PersonVectors) -> list[list[str]]:
    """People enough for every item to be found without noise, each item with its own number of them."""
    few = len(_COMMON)
    return [_COMMON[: 1 + index % few] for index in range(math.ceil(16 * mechanism.threshold) * few)]


class Seen(NamedTuple):
    """The steps of a release, how many answers have no noise, and what was published."""

    steps: list[NoisySums]
    bare: int
    published: tuple[Any, ...]


def steps_of(mechanism: PersonVectors, people: Sequence[Sequence[str]], again: Sequence[NoisySums] = ()) -> Seen:
    """What is seen of a release without noise, or with the answers of an earlier one.

    Places follow the first appearance of items, so that a person who comes last has their own items at the end.
    """
    source, asked = _GivenNoise(again), []
    watched = _Answers(_listed(mechanism, people), noted=lambda _: asked.append(len(source.draws)))
    release = mechanism.of_snapshot(watched, source)
    # Questions after which no noise was asked for before the next one, or the end.
    bare = sum(later <= earlier for earlier, later in pairwise([*asked, len(source.draws)]))
    published = (release.rows(), release.error_model, release.left_out, release.threshold)
    return Seen(source.steps, bare, published)


def _shift(first: NoisySums, second: NoisySums) -> float:
    """(euclidean distance of the sums)/sigma, without a person's own items, which come last."""
    length = min(len(first.sums), len(second.sums))
    difference = first.sums[:length].astype(float) - second.sums[:length].astype(float)
    return float(np.linalg.norm(difference)) / min(first.sigma, second.sigma)


def _cuts(mechanism: PersonVectors, own: list[str]) -> tuple[int, int]:
    """(first look, mean of both): the least noise with which a person's own items pass, found by trying."""
    found, people, source = [], ListedPeople([own]), _GivenNoise()
    for second in (lambda level: _NEVER, lambda level: level):
        low, high = 0, 2**50
        while low < high:
            middle = (low + high) // 2
            source.levels = [middle, second(middle)]
            passes = len(mechanism.discover(people, source)[0]) > 0
            low, high = (low, middle) if passes else (middle + 1, high)
        found.append(low)
    return found[0], found[1]


def _tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def _gaussian_delta(epsilon: float, mu: float) -> float:
    if mu == 0.0:
        return max(0.0, -math.expm1(epsilon))
    return _tail(epsilon / mu - mu / 2.0) - math.exp(min(epsilon, 700.0)) * _tail(epsilon / mu + mu / 2.0)


def _bounds(mechanism: PersonVectors) -> list[Unit]:
    """The mechanism's own, and one item: much of what people have is scaled away then, and losses are asked for."""
    return list(dict.fromkeys((mechanism.unit, User(1))))


def held(mechanism: PersonVectors, people: People, seed: int, confidence: float) -> bool:
    """Whether the intervals of a seeded release contain what they are said to, all of them at once.

    That is the true number; of rows and sums with nobody longer than what the release says that it covers. It is found
    by asking for sums that are scaled to that length.
    """
    watched = _Answers(people)
    release = mechanism.of_snapshot(watched, seeded_source(seed))
    if not len(release):
        return True
    places, weights = watched.counted
    worth = 1.0 if mechanism.values is None else mechanism.values.high / ValueRange.STEPS
    scaling = release.error_model.scaling
    covered = None if scaling is None else scaling.covered
    longest = float(np.linalg.norm(weights) if covered is None else covered / worth * weights.max())
    true = people.scaled_sums(places, weights, longest) * (longest * worth / LENGTH / weights)
    truth = dict(zip(people.items(places).to_pylist(), true.tolist(), strict=True))
    exact = np.array([truth[item] for item in release.items])
    lower, upper = release.bounds(confidence)
    rounded_down = 1e-4 * exact
    return bool((lower <= exact + rounded_down).all() and (exact <= upper).all())


class _PeopleAudit:
    """The four checks."""

    def structure(self, mechanism: PersonVectors, effort: Effort) -> Iterator[Finding]:
        """All small data sets: one more person moves every sum by one length, and one bin by one."""
        sets = [["a"], ["b"], ["a", "b"], ["a", "b", "c"], ["c"] * 50 + ["a"]]
        places, weights, worst, pairs = np.arange(3), np.array([300, 700, 1024]), 0.0, 0
        for first, second, person in product(sets, repeat=3):
            base = [["a", "b", "c"], first, second][: 1 + effort.length + 1]
            before, after = (_listed(mechanism, data) for data in (base, [*base, person]))
            pairs += 1
            looked = after.discovery_weights(256) - before.discovery_weights(256)
            counted = after.scaled_sums(places, weights, 900.0) - before.scaled_sums(places, weights, 900.0)
            worst = max(worst, *(float(np.linalg.norm(moved)) for moved in (looked, counted)))
        yield Finding("structure", "one person's vector in every sum", "sensitivity", float(LENGTH), worst, pairs)

    def exact(self, mechanism: PersonVectors, effort: Effort) -> Iterator[Finding]:
        """delta from the shifts, the noise and the cuts of the release itself."""
        for bound in _bounds(mechanism):
            yield from self._exact(replace(mechanism, unit=bound))

    def _exact(self, mechanism: PersonVectors) -> Iterator[Finding]:
        base, of = _crowd(mechanism), f" ({mechanism.unit})"
        before = steps_of(mechanism, base)
        yield Finding("exact", f"answers that are published without noise{of}", "violations", 0, before.bare)
        worst, pairs, changed = 0.0, 0, 0
        for d in _SIZES:
            for common in {0, min(d, len(_COMMON)), min(d, 1)}:
                own = [f"own {index:03d}" for index in range(d - common)]
                after = steps_of(mechanism, [*base, [*_COMMON[:common], *own]], before.steps)
                if len(after.steps) != len(before.steps):
                    worst = math.inf
                    continue
                mu = math.sqrt(sum(_shift(a, b) ** 2 for a, b in zip(before.steps, after.steps, strict=True)))
                worst = max(worst, self._delta(mechanism, mu, after.steps, own))
                pairs += 1
                changed += after.published != before.published
        yield Finding("exact", f"all steps together{of}", "delta", mechanism.budget.delta, worst, pairs)
        # With equal noisy answers nothing that is published may differ.
        yield Finding("exact", f"what is published beside noisy answers{of}", "violations", 0, changed, pairs)

    def _delta(self, mechanism: PersonVectors, mu: float, steps: list[NoisySums], own: list[str]) -> float:
        """The larger of both directions; own items are what only the data with the person can show."""
        none, epsilon = 1.0, mechanism.guarantee.epsilon or 0.0
        if own:
            # How many of the own items take part: their sums in the first look are not 0.
            part = int(np.count_nonzero(steps[0].sums[len(_COMMON) :]))
            first, second = _cuts(mechanism, own)
            sigma = steps[0].sigma
            passes = _tail((first - 1) / sigma) + _tail((second - 1) / sigma * math.sqrt(2.0))
            none = math.exp(part * math.log1p(-min(passes, 0.5)))
        lost = math.log(max(none, 1e-300))
        with_person = 1.0 - none + none * _gaussian_delta(epsilon - lost, mu)
        return max(with_person, _gaussian_delta(epsilon + lost, mu))

    def statistical(self, mechanism: PersonVectors, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled release on one person alone: whatever it lists, it must list with probability delta."""
        source, own = fresh_source(), _listed(mechanism, [[f"own {index:03d}" for index in range(16)]])
        listed = sum(len(mechanism(own, source)) > 0 for _ in range(effort.runs))
        low, _ = clopper_pearson(listed, effort.runs, 1e-7)
        yield Finding("statistical", "a person alone is listed", "delta", mechanism.budget.delta, low, effort.runs)
        yield from self._coverage(mechanism, effort)

    def _coverage(self, mechanism: PersonVectors, effort: Effort) -> Iterator[Finding]:
        """Intervals miss no more often than stated; also where a bound of one item takes much of what people have."""
        crowd, stated, runs = _listed(mechanism, _crowd(mechanism)), 0.5, max(60, effort.runs // 100)
        for bound in _bounds(mechanism):
            bounded = replace(mechanism, unit=bound)
            missed = sum(not held(bounded, crowd, seed, stated) for seed in range(runs))
            low, _ = clopper_pearson(missed, runs, 1e-7)
            check = f"intervals of {bound} that miss the truth"
            yield Finding("statistical", check, "share of releases", 1.0 - stated, low, runs)

    def coupled(self, mechanism: PersonVectors, effort: Effort) -> Iterator[Finding]:
        """With equal noise the order of people and rows changes nothing, and nothing is listed that nobody has."""
        random, broken = np.random.default_rng(1), 0
        data = _crowd(mechanism)
        shuffled = [list(random.permutation(data[index])) for index in random.permutation(len(data))]
        for seed in range(4):
            first, second = (
                {*mechanism(_listed(mechanism, people), seeded_source(seed)).items} for people in (data, shuffled)
            )
            broken += (not first <= {*_COMMON}) + (first != second)
        yield Finding("coupled", "order of people, and items of nobody", "violations", 0, broken, 4)


def _with_people(mechanism: PersonVectors, name: str, **changes: Callable[..., Counts]) -> Twin:
    kind = type(mechanism)

    def changed(people: People) -> People:
        return people if isinstance(people, _Changed) else _Changed(people, **changes)

    def of_snapshot(self: PersonVectors, people: People, source: RandomSource | None = None) -> Any:
        return kind.of_snapshot(self, changed(people), source)

    def discover(self: PersonVectors, people: People, source: RandomSource) -> Any:
        return kind.discover(self, changed(people), source)

    return twin(mechanism, name, of_snapshot=of_snapshot, discover=discover)


def _twins(mechanism: PersonVectors) -> Sequence[Twin]:
    kind, right = type(mechanism), mechanism.calibration

    def bare_sizes(self: Any, lengths: Any, weights: Any, sums: Any, second: bool, source: Any) -> Any:
        return kind.choose_length(self, lengths, weights, sums, second, ScriptedSource())

    def bare_losses(self: Any, lengths: Any, length: Any, weights: Any, source: Any) -> Any:
        return kind.losses(self, lengths, length, weights, ScriptedSource())

    def no_losses(self: Any, lengths: Any, length: Any, weights: Any, source: Any) -> Any:
        scaling = kind.losses(self, lengths, length, weights, source)
        return replace(scaling, ratios=(1.0,), lost=(0.0,), noise=None)

    first, second = (int(0.995 * cut) for cut in right.cuts)
    return (
        twin(mechanism, "half the noise", calibration=replace(right, mu=2.0 * right.mu)),
        twin(mechanism, "cuts half a percent lower", calibration=replace(right, cuts=(first, second))),
        _with_people(
            mechanism, "weights of twice the length", weights=lambda people, most: 2 * people.discovery_weights(256)
        ),
        _with_people(mechanism, "any number of items", weights=lambda people, most: people.discovery_weights(2**30)),
        _with_people(mechanism, "counts scaled to half of the length they have", sums=lambda sums: 2 * sums),
        twin(mechanism, "sizes without noise", choose_length=bare_sizes),
        twin(mechanism, "losses without noise", losses=bare_losses),
        twin(mechanism, "intervals that forget what scaling loses", losses=no_losses),
    )


row(
    PersonVectors,
    lambda: (
        PersonVectors(Budget(1.0, 1e-4), 2),
        PersonVectors(Budget(1.0, 1e-6), 2, rows=True),
        PersonVectors(Budget(4.0, 1e-9), 100, User(2)),
        PersonVectors(Budget(1.0, 1e-4), 2, groups=3),
    ),
    _PeopleAudit(),
    _twins,
)
