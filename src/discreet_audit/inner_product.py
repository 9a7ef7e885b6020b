"""Auditing the inner-product counter: the law of its state at every moment, over all outcomes of its coins."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.pan import InnerProductCounter
from discreet.pan.responses import ONE, Response
from discreet.privacy import Budget
from discreet_audit.findings import Finding
from discreet_audit.registry import AuditCase, Effort, Twin, register
from discreet_audit.statistical import ScoredPair, measure

__all__: list[str] = []

_SLACK = 1 + 1e-9  # of doubles, for losses that are met exactly
_LENGTH = 2
# Three participants vote (the positions are public), then one brings a vector.
_POSITIONS = (0, 1, 1)
_VECTORS = 1
_INPUTS = [
    (votes, vectors)
    for votes in itertools.product((0, 1), repeat=len(_POSITIONS))
    for vectors in itertools.product(itertools.product((0, 1), repeat=_LENGTH), repeat=_VECTORS)
]
Inputs = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]


class _Flips:
    """A source whose coins were written beforehand."""

    seeded = True

    def __init__(self, coins: Sequence[int]) -> None:
        self.coins = list(coins)
        self.asked: list[Fraction] = []

    def bernoulli(self, p: Fraction, size: int) -> Any:
        self.asked += [p] * size
        taken, self.coins = self.coins[:size], self.coins[size:]
        return np.array(taken, np.int64)


def _small(counter: Any, source: Any = None) -> Any:
    made = type(counter)(_LENGTH, budget=Budget(counter.guarantee.epsilon), source=source)
    made._response = counter._response
    return made


def _run(made: Any, inputs: Inputs) -> tuple[Any, ...]:
    """What an adversary sees who looks at every moment."""
    votes, vectors = inputs
    seen = []
    for position, vote in zip(_POSITIONS, votes, strict=True):
        made.vote([position], [vote])
        seen.append(made.to_bytes())
    for vector in vectors:
        made.update([vector])
        seen.append(made.to_bytes())
    return (*seen, made.release().value)


def _law(counter: Any, inputs: Inputs) -> dict[Any, float]:
    """The exact law of all states and the release together."""
    law: dict[Any, float] = defaultdict(float)
    for coins in itertools.product((0, 1), repeat=len(_POSITIONS) + _VECTORS):
        source = _Flips(coins)
        seen = _run(_small(counter, source), inputs)
        chances = [float(p) if coin else float(1 - p) for p, coin in zip(source.asked, coins, strict=False)]
        law[seen] += math.prod(chances) / 2 ** (len(coins) - len(chances))  # coins that were not asked for
    return law


def _neighbours() -> Iterator[tuple[Inputs, Inputs]]:
    for first, second in itertools.combinations(_INPUTS, 2):
        changed = sum(a != b for a, b in zip((*first[0], *first[1]), (*second[0], *second[1]), strict=True))
        if changed == 1:
            yield first, second


def _structure(counter: Any, effort: Effort) -> Iterator[Finding]:
    """One participant has one answer, in one count."""
    wrong, pairs = 0, 0
    for vote in (0, 1):
        for coin in (0, 1):
            made = _small(counter, _Flips([coin]))
            made.vote([1], [vote])
            wrong += made._votes.tolist() != [0, 1] or int(made._ones[0]) != 0
            pairs += 1
    yield Finding("structure", "counts moved by one vote, other than its own", "violations", 0, wrong, pairs)


def _exact(counter: Any, effort: Effort) -> Iterator[Finding]:
    """Everything seen of three votes and a vector, for all inputs that differ in one participant."""
    laws = {inputs: _law(counter, inputs) for inputs in _INPUTS}
    worst, pairs = 0.0, 0
    for first, second in _neighbours():
        one, other = laws[first], laws[second]
        pairs += 1
        if one.keys() != other.keys():
            worst = math.inf
            break
        worst = max(worst, max(abs(math.log(p / other[seen])) for seen, p in one.items()))
    claimed = counter.guarantee.epsilon * _SLACK
    yield Finding("exact", "the state at every moment and the release", "epsilon", claimed, worst, pairs)


def _statistical(counter: Any, effort: Effort) -> Iterator[Finding]:
    def ones(bit: int) -> Any:
        made = _small(counter)
        made.vote([0], [bit])
        return made._ones[0]

    bound = max(measure(ones, ScoredPair("a vote", 1, 0, float), 0.0, effort.runs), 0.0)
    yield Finding("statistical", "a vote of 1 or of 0", "epsilon", counter.guarantee.epsilon, bound, 1)


def _coupled(counter: Any, effort: Effort) -> Iterator[Finding]:
    """Equal coins: a vector replaced by another moves the count by one at most."""
    most, pairs = 0, effort.released_pairs
    rng = np.random.default_rng(3)
    for _ in range(pairs):
        coins, vectors = rng.integers(0, 2, 20).tolist(), rng.integers(0, 2, (20, _LENGTH))
        counts = []
        for last in ([1, 1], [0, 0]):
            made = _small(counter, _Flips(coins))
            made.update(np.vstack([vectors[:-1], [last]]))
            counts.append(made._count)
        most = max(most, abs(counts[0] - counts[1]))
    yield Finding("coupled", "the count that one vector moves", "sensitivity", 1, most, pairs)


def _twins(counter: Any) -> Sequence[Twin]:
    twins = []
    for name, members, response in (
        ("coins for twice epsilon", {}, Response.of("tight", 2 * Fraction(counter.guarantee.epsilon))),
        ("votes counted as they are", {"_answer": lambda self, bits: None}, counter._response),
        ("coins that never flip", {}, Response(1, ONE - 1)),
    ):
        kind = type("NotPrivateInnerProductCounter", (InnerProductCounter,), members)
        broken: Any = object.__new__(kind)
        broken.__dict__.update(counter.__dict__)
        broken._response = response
        twins.append(Twin(name, broken))
    return twins


register(
    AuditCase(
        InnerProductCounter,
        lambda: (InnerProductCounter(4, budget=Budget(1.0)),),
        _structure,
        _exact,
        _statistical,
        _coupled,
        _twins,
    )
)
