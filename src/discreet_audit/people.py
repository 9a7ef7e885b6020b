"""Auditing releases of people: what was added to noise of which size, read from runs of the release itself.

The release asks its source for noise and adds it to sums over people. A source that notes what its noise is added to
gives, for two neighbouring data sets, the shift and the noise of every step; a source of given noise finds the cuts.
The exact delta follows from these alone: nothing of the mechanism's own calibration is believed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from discreet.central.people import PeopleRelease
from discreet.noise import fresh_source, seeded_source
from discreet.privacy import Budget, User
from discreet.summaries.people import LENGTH, Counts, ListedPeople, People
from discreet_audit.findings import Finding
from discreet_audit.registry import AuditCase, Effort, Twin, register
from discreet_audit.sabotage import twin
from discreet_audit.sources import ScriptedSource
from discreet_audit.statistical import clopper_pearson

__all__ = ["Step", "steps_of"]

_NEVER = -(10**15)
_SIZES = (1, 2, 3, 16, 256, 300)
_FEW = 3


class Step(NamedTuple):
    """Noise of one size, and the sums that it was added to."""

    sigma: float
    sums: Counts


class _Noted(np.ndarray[Any, np.dtype[np.int64]]):
    """Noise that notes what it is added to.

    Where earlier steps are given, it is the noise with which their answers come out again: later questions depend on
    earlier answers, and what a step costs is its shift given those.
    """

    step: list[Step]
    sigma: float
    again: list[Step]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [np.asarray(part) for part in inputs]
        if ufunc is np.add and method == "__call__":
            (sums,) = (part for part, given in zip(plain, inputs, strict=True) if given is not self)
            self.step.append(Step(self.sigma, np.array(sums, np.int64)))
            if len(self.again) >= len(self.step):
                earlier = self.again[len(self.step) - 1].sums
                answer = np.array(sums, np.int64)
                answer[: len(earlier)] = earlier[: len(answer)]
                return answer
        return getattr(ufunc, method)(*plain, **options)


class _GivenNoise:
    """A source whose noise is given for each time it is asked; afterwards 0. It notes what its noise is added to."""

    seeded = True

    def __init__(self, *levels: int, again: Sequence[Step] = ()) -> None:
        self.levels = [*levels]
        self.again = [*again]
        self.steps: list[Step] = []
        self.asked = 0

    def discrete_gaussian(self, sigma: Any, size: int) -> Any:
        self.asked += 1
        level = self.levels.pop(0) if self.levels else 0
        noise = np.full(size, level, np.int64).view(_Noted)
        noise.step, noise.sigma, noise.again = self.steps, float(sigma), self.again
        return noise


class _Watched(People):
    """People who note what was asked, so that an answer without noise is seen."""

    def __init__(self, people: People, source: _GivenNoise) -> None:
        self._people, self._source = people, source
        self.questions: list[tuple[int, Counts]] = []

    def _asked(self, answer: Counts) -> Counts:
        self.questions.append((self._source.asked, answer))
        return answer

    def discovery_weights(self, most_items: int) -> Counts:
        return self._asked(self._people.discovery_weights(most_items))

    def items(self, places: Counts) -> Any:
        return self._people.items(places)

    def lengths(self, places: Counts, weights: Counts) -> tuple[Counts, Counts]:
        lengths, times = self._people.lengths(places, weights)
        return lengths, self._asked(times)

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        return self._asked(self._people.scaled_sums(places, weights, longest))

    @property
    def unprotected(self) -> int:
        """Questions after which no noise was asked for before the next one, or the end."""
        moments = [moment for moment, _ in self.questions] + [self._source.asked]
        return sum(later <= earlier for earlier, later in pairwise(moments))


def _crowd(mechanism: Any) -> list[list[str]]:
    """People enough for every item to be found without noise, each item with its own number of them."""
    names = [f"common {index:03d}" for index in range(_FEW)]
    return [names[: 1 + index % _FEW] for index in range(math.ceil(16 * mechanism.threshold) * _FEW)]


def steps_of(mechanism: Any, people: Sequence[Sequence[str]], again: Sequence[Step] = ()) -> tuple[list[Step], int]:
    """The steps of a release without noise (or with the answers of earlier ones), and how many answers have no noise.

    Places follow the first appearance of items, so that a person who comes last has their own items at the end.
    """
    source = _GivenNoise(again=again)
    watched = _Watched(ListedPeople(people, rows=mechanism.rows), source)
    mechanism.of_snapshot(watched, source)
    return source.steps, watched.unprotected


def _shift(first: Step, second: Step) -> float:
    """(euclidean distance of the sums)/sigma, without a person's own items, which come last."""
    length = min(len(first.sums), len(second.sums))
    difference = first.sums[:length].astype(float) - second.sums[:length].astype(float)
    return float(np.linalg.norm(difference)) / min(first.sigma, second.sigma)


def _cuts(mechanism: Any, own: list[str]) -> tuple[int, int]:
    """(first look, mean of both): the least noise with which a person's own items pass, found by trying."""

    def passes(*levels: int) -> bool:
        return len(mechanism.discover(ListedPeople([own]), _GivenNoise(*levels))[0]) > 0

    found = []
    for looks in (lambda level: (level, _NEVER), lambda level: (level, level)):
        low, high = 0, 2**50
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if passes(*looks(middle)) else (middle + 1, high)
        found.append(low)
    return found[0], found[1]


def _tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2.0))


def _gaussian_delta(epsilon: float, mu: float) -> float:
    if mu == 0.0:
        return max(0.0, -math.expm1(epsilon))
    return _tail(epsilon / mu - mu / 2.0) - math.exp(min(epsilon, 700.0)) * _tail(epsilon / mu + mu / 2.0)


class _PeopleAudit:
    """The four checks."""

    def structure(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """All small data sets: one more person moves every sum by one length, and one bin by one."""
        sets = [["a"], ["b"], ["a", "b"], ["a", "b", "c"], ["c"] * 50 + ["a"]]
        places, weights, worst, pairs = np.arange(3), np.array([300, 700, 1024]), 0.0, 0
        for first in sets:
            for second in sets:
                base = [["a", "b", "c"], first, second][: 1 + effort.length + 1]
                for person in sets:
                    before, after = (ListedPeople(data, rows=mechanism.rows) for data in (base, [*base, person]))
                    pairs += 1
                    looked = after.discovery_weights(256) - before.discovery_weights(256)
                    counted = after.scaled_sums(places, weights, 900.0) - before.scaled_sums(places, weights, 900.0)
                    worst = max(worst, *(float(np.linalg.norm(moved)) for moved in (looked, counted)))
        yield Finding("structure", "one person's vector in every sum", "sensitivity", float(LENGTH), worst, pairs)

    def exact(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """delta from the shifts, the noise and the cuts of the release itself."""
        epsilon, delta = mechanism.budget.epsilon, mechanism.budget.delta
        base = _crowd(mechanism)
        before, bare = steps_of(mechanism, base)
        yield Finding("exact", "answers that are published without noise", "violations", 0, bare)
        worst, pairs = 0.0, 0
        for d in _SIZES:
            for common in {0, min(d, _FEW), min(d, 1)}:
                shared = [f"common {index:03d}" for index in range(common)]
                own = [f"own {index:03d}" for index in range(d - common)]
                after, _ = steps_of(mechanism, [*base, [*shared, *own]], before)
                if len(after) != len(before):
                    worst = math.inf
                    continue
                mu = math.sqrt(sum(_shift(a, b) ** 2 for a, b in zip(before, after, strict=True)))
                worst = max(worst, self._delta(mechanism, epsilon, mu, after, own))
                pairs += 1
        yield Finding("exact", "all steps together", "delta", delta, worst, pairs)

    def _delta(self, mechanism: Any, epsilon: float, mu: float, steps: list[Step], own: list[str]) -> float:
        """The larger of both directions; own items are what only the data with the person can show."""
        none = 1.0
        if own:
            # How many of the own items take part: their sums in the first look are not 0.
            part = int(np.count_nonzero(steps[0].sums[_FEW:]))
            first, second = _cuts(mechanism, own)
            sigma = steps[0].sigma
            passes = _tail((first - 1) / sigma) + _tail((second - 1) / sigma * math.sqrt(2.0))
            none = math.exp(part * math.log1p(-min(passes, 0.5)))
        lost = math.log(max(none, 1e-300))
        with_person = 1.0 - none + none * _gaussian_delta(epsilon - lost, mu)
        return max(with_person, _gaussian_delta(epsilon + lost, mu))

    def statistical(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled release on one person alone: whatever it lists, it must list with probability delta."""
        source, own = fresh_source(), ListedPeople([[f"own {index:03d}" for index in range(16)]], rows=mechanism.rows)
        listed = sum(len(mechanism(own, source)) > 0 for _ in range(effort.runs))
        low, _ = clopper_pearson(listed, effort.runs, 1e-7)
        yield Finding("statistical", "a person alone is listed", "delta", mechanism.budget.delta, low, effort.runs)

    def coupled(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """With equal noise the order of people and rows changes nothing, and nothing is listed that nobody has."""
        random, broken = np.random.default_rng(1), 0
        data = _crowd(mechanism)
        shuffled = [list(random.permutation(data[index])) for index in random.permutation(len(data))]
        for seed in range(4):
            releases = [
                mechanism(ListedPeople(people, rows=mechanism.rows), seeded_source(seed)) for people in (data, shuffled)
            ]
            shown = [dict(zip(release.items, release.counts.tolist(), strict=True)) for release in releases]
            broken += not {*shown[0]} <= {f"common {index:03d}" for index in range(_FEW)}
            broken += {*shown[0]} != {*shown[1]}
        yield Finding("coupled", "order of people, and items of nobody", "violations", 0, broken, 4)


class _Changed(People):
    """People whose answers are changed: what a broken engine would give."""

    def __init__(self, people: People, **changes: Any) -> None:
        self._people, self._changes = people, changes

    def discovery_weights(self, most_items: int) -> Counts:
        change = self._changes.get("discovery_weights")
        return change(self._people) if change else self._people.discovery_weights(most_items)

    def items(self, places: Counts) -> Any:
        return self._people.items(places)

    def lengths(self, places: Counts, weights: Counts) -> tuple[Counts, Counts]:
        return self._people.lengths(places, weights)

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        change = self._changes.get("scaled_sums")
        sums = self._people.scaled_sums(places, weights, longest)
        return change(sums) if change else sums


def _with_people(mechanism: Any, name: str, **changes: Any) -> Twin:
    kind = type(mechanism)

    def changed(people: Any) -> Any:
        return (
            _Changed(people, **changes) if isinstance(people, People) and not isinstance(people, _Changed) else people
        )

    def of_snapshot(self: Any, people: People, source: Any = None) -> Any:
        return kind.of_snapshot(self, changed(people), source)

    def discover(self: Any, people: People, source: Any) -> Any:
        return kind.discover(self, changed(people), source)

    return twin(mechanism, name, of_snapshot=of_snapshot, discover=discover)


def _twins(mechanism: PeopleRelease) -> Sequence[Twin]:
    choose, right = type(mechanism).choose_length, mechanism.calibration

    def bare_sizes(self: Any, people: Any, places: Any, weights: Any, sizes: Any, second: bool, source: Any) -> Any:
        return choose(self, people, places, weights, sizes, second, ScriptedSource())

    def unscaled(people: Any) -> Counts:
        return np.asarray(people.discovery_weights(256) * 2, np.int64)

    first, second = (int(0.995 * cut) for cut in right.cuts)
    return (
        twin(mechanism, "half the noise", calibration=replace(right, mu=2.0 * right.mu)),
        twin(mechanism, "cuts half a percent lower", calibration=replace(right, cuts=(first, second))),
        _with_people(mechanism, "weights of twice the length", discovery_weights=unscaled),
        _with_people(
            mechanism, "any number of items", discovery_weights=lambda people: people.discovery_weights(2**30)
        ),
        _with_people(mechanism, "counts scaled to half of the length they have", scaled_sums=lambda sums: 2 * sums),
        twin(mechanism, "sizes without noise", choose_length=bare_sizes),
    )


_AUDIT = _PeopleAudit()
register(
    AuditCase(
        PeopleRelease,
        lambda: (
            PeopleRelease(Budget(1.0, 1e-4), 2),
            PeopleRelease(Budget(1.0, 1e-6), 2, rows=True),
            PeopleRelease(Budget(4.0, 1e-9), 100, User(2)),
        ),
        _AUDIT.structure,
        _AUDIT.exact,
        _AUDIT.statistical,
        _AUDIT.coupled,
        _twins,
    )
)
