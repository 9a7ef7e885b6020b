"""Auditing the inner-product counter: the law of its state at every moment, over all outcomes of its coins."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np

from discreet.noise import RandomSource
from discreet.pan.responses import ONE, Response
from discreet.privacy import Budget
from discreet.published import InnerProductCounter
from discreet_audit.exact import law_of, worst_pair
from discreet_audit.findings import Finding
from discreet_audit.registry import Effort, Twin, row
from discreet_audit.sabotage import twin
from discreet_audit.sources import ScriptedSource
from discreet_audit.statistical import ScoredPair, measure

__all__: list[str] = []

_SLACK = 1 + 1e-9  # of doubles, for losses that are met exactly
_LENGTH = 2
# Three participants vote (the positions are public), then one brings a vector.
_POSITIONS = (0, 1, 1)
Inputs = tuple[Any, ...]
_INPUTS: list[Inputs] = list(product(*[(0, 1)] * len(_POSITIONS), product((0, 1), repeat=_LENGTH)))


def _small(counter: InnerProductCounter, source: RandomSource | None = None) -> InnerProductCounter:
    made = type(counter)(_LENGTH, budget=Budget(counter.epsilon), source=source)
    made.response = counter.response
    return made


def _seen(counter: InnerProductCounter, inputs: Inputs, source: RandomSource) -> tuple[Any, ...]:
    """What an adversary sees who looks at every moment, and the release."""
    made, seen = _small(counter, source), []
    for position, vote in zip(_POSITIONS, inputs, strict=False):
        made.vote([position], [vote])
        seen.append(made.to_bytes())
    made.update([inputs[-1]])
    return (*seen, made.to_bytes(), made.release().value)


def _loss(one: Mapping[Hashable, float], other: Mapping[Hashable, float]) -> float:
    return max(abs(math.log(p / other[seen])) if seen in other else math.inf for seen, p in one.items())


class _InnerProductAudit:
    def structure(self, counter: InnerProductCounter, effort: Effort) -> Iterator[Finding]:
        """One participant has one answer, in one count."""
        wrong = 0
        for vote, coin in product((0, 1), (0, 1)):
            made = _small(counter, _Coins([coin]))
            made.vote([1], [vote])
            ones, votes, _ = made.answers
            wrong += votes != [0, 1] or ones[0] != 0
        yield Finding("structure", "counts moved by one vote, other than its own", "violations", 0, wrong, 4)

    def exact(self, counter: InnerProductCounter, effort: Effort) -> Iterator[Finding]:
        """Everything seen of three votes and a vector, for all inputs that differ in one participant."""
        pairs = [pair for pair in combinations(_INPUTS, 2) if sum(a != b for a, b in zip(*pair, strict=True)) == 1]
        worst, _ = worst_pair(pairs, lambda given: law_of(partial(_seen, counter, given), 0.0).mass, _loss)
        claimed = counter.epsilon * _SLACK
        yield Finding("exact", "the state at every moment and the release", "epsilon", claimed, worst, len(pairs))

    def statistical(self, counter: InnerProductCounter, effort: Effort) -> Iterator[Finding]:
        """One vote and its answer."""

        def ones(bit: int) -> int:
            made = _small(counter)
            made.vote([0], [bit])
            return made.answers[0][0]

        bound = max(measure(ones, ScoredPair("a vote", 1, 0, float), 0.0, effort.runs), 0.0)
        yield Finding("statistical", "a vote of 1 or of 0", "epsilon", counter.epsilon, bound, 1)

    def coupled(self, counter: InnerProductCounter, effort: Effort) -> Iterator[Finding]:
        """Equal coins: a vector replaced by another moves the count by one at most."""
        most, pairs, rng = 0, effort.released_pairs, np.random.default_rng(3)
        for _ in range(pairs):
            coins, vectors = rng.integers(0, 2, 20), rng.integers(0, 2, (20, _LENGTH))
            counts = []
            for last in ([1, 1], [0, 0]):
                made = _small(counter, _Coins(coins))
                made.update(np.vstack([vectors[:-1], [last]]))
                counts.append(made.answers[2])
            most = max(most, abs(counts[0] - counts[1]))
        yield Finding("coupled", "the count that one vector moves", "sensitivity", 1, most, pairs)


class _Coins(ScriptedSource):
    """A source whose coins were written beforehand."""

    def __init__(self, coins: Any) -> None:
        super().__init__()
        self.coins = np.asarray(coins, np.int64)

    def bernoulli(self, probability: Any, size: Any = None) -> Any:
        """The next of them."""
        taken, self.coins = self.coins[:size].copy(), self.coins[size:]
        return taken


def _twins(counter: InnerProductCounter) -> Sequence[Twin]:
    return (
        twin(counter, "coins for twice epsilon", response=Response.of("tight", 2 * Fraction(counter.epsilon))),
        twin(counter, "votes counted as they are", answer=lambda self, bits: None),
        twin(counter, "coins that never flip", response=Response(1, ONE - 1)),
    )


row(InnerProductCounter, lambda: (InnerProductCounter(4, budget=Budget(1.0)),), _InnerProductAudit(), _twins)
