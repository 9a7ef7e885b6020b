"""The row for shuffled rounds: what whole batches tell about one report, and that nothing but whole batches is shown.

A report about one of two items is seen as one of few cases. Often its public function tells the two items apart; then
its value is that of the first (probability keep or other), that of the second (other or keep), or any of the rest,
which is as likely for both. Else it says nothing. What a batch shows is how many of its reports are in each case, so
its exact law is a sum over few counts, for every number of others with the second item.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.multiparty import HadamardResponse, LocalHashing
from discreet.privacy import Budget, Guarantee, Replace
from discreet_audit.findings import Finding
from discreet_audit.registry import Effort, Twin, row
from discreet_audit.sabotage import twin
from discreet_audit.statistical import ScoredPair, measure

__all__ = ["ShuffledReports", "batch_delta"]

Law = dict[tuple[int, ...], float]


@dataclass(frozen=True)
class ShuffledReports:
    """What somebody sees who sees what the aggregator of a shuffled round shows, and nothing else.

    Args:
        protocol: A round of two items.
        delta: At which the second promise is stated.
    """

    protocol: HadamardResponse | LocalHashing
    delta: float

    @property
    def budget(self) -> Budget:
        """The second promise."""
        return self.protocol.shuffled_budget(self.delta)

    @property
    def guarantee(self) -> Guarantee:
        """The same, as what is claimed."""
        name = f"{self.protocol.name}, shuffled in batches of {self.protocol.shuffled}"
        return Guarantee(Replace(), self.budget.epsilon, self.delta, name, trust="multiparty")

    def listener(self) -> Any:
        """An aggregator."""
        return self.protocol.aggregator()

    def cases(self, item: int) -> tuple[float, ...]:
        """The probabilities of the cases of a report about an item."""
        places = self.protocol.buckets if isinstance(self.protocol, LocalHashing) else 2
        keep = float(self.protocol.keep)
        other, apart = (1 - keep) / (places - 1), 1 - 1 / places
        told = (keep, other) if item == 0 else (other, keep)
        return (*(apart * p for p in told), apart * (places - 2) * other, 1 - apart)


def _law(reports: Sequence[tuple[float, ...]]) -> Law:
    """How many reports are in each case."""
    law: Law = {(0,) * len(reports[0]): 1.0}
    for cases in reports:
        grown: Law = {}
        for counts, chance in law.items():
            for case, p in enumerate(cases):
                if p > 0:
                    more = (*counts[:case], counts[case] + 1, *counts[case + 1 :])
                    grown[more] = grown.get(more, 0.0) + chance * p
        law = grown
    return law


def batch_delta(shuffled: ShuffledReports, reports: int, epsilon: float) -> float:
    """The largest divergence between batches in which one report is about the one item or the other."""
    one, two = shuffled.cases(0), shuffled.cases(1)
    lost = 0.0
    for others in range(reports):
        rest = [one] * (reports - 1 - others) + [two] * others
        laws = _law([one, *rest]), _law([two, *rest])
        for first, second in (laws, laws[::-1]):
            grown = math.exp(epsilon)
            lost = max(lost, math.fsum(max(0.0, p - grown * second.get(seen, 0.0)) for seen, p in first.items()))
    return lost


class ShuffledAudit:
    """The four checks."""

    def structure(self, shuffled: ShuffledReports, effort: Effort) -> Iterator[Finding]:
        """A report's number is a random one, whoever sends it."""
        numbers = [shuffled.protocol.open(shuffled.protocol.party().encode([i % 2]))[0].number for i in range(64)]
        alike = len(numbers) - len(set(numbers)) + (max(numbers) < 2**48)  # 2^-14 a report
        yield Finding("structure", "numbers that are not random", "violations", 0, alike, len(numbers))

    def exact(self, shuffled: ShuffledReports, effort: Effort) -> Iterator[Finding]:
        """The exact delta of a batch at the epsilon that is claimed, whatever the others answer."""
        batch, epsilon = shuffled.protocol.shuffled or 0, shuffled.budget.epsilon
        assert epsilon is not None
        what = f"a batch of {batch}, whatever the others answer"
        yield Finding("exact", what, "delta", shuffled.delta, batch_delta(shuffled, batch, epsilon), 2 * batch)

    def statistical(self, shuffled: ShuffledReports, effort: Effort) -> Iterator[Finding]:
        """Batches of the compiled code in which one report is about the one item or the other."""
        batch, epsilon = shuffled.protocol.shuffled or 0, shuffled.budget.epsilon
        assert epsilon is not None

        def seen(item: int) -> float:
            listener = shuffled.listener()
            items = [item, *([0] * (batch - 1))]
            for each in items:
                listener.receive(shuffled.protocol.party().encode([each]))
            first, second = listener.estimate([0, 1]).values
            return float(first - second)

        bound = measure(seen, ScoredPair("one report", 0, 1, lambda score: score), shuffled.delta, effort.runs // 4)
        yield Finding("statistical", "one report of a batch replaced", "epsilon", epsilon, max(bound, 0.0), 1)

    def coupled(self, shuffled: ShuffledReports, effort: Effort) -> Iterator[Finding]:
        """The same reports in another order give the same state; between two looks there is nothing, or a batch."""
        batch, generator, wrong, small = shuffled.protocol.shuffled or 0, np.random.default_rng(1), 0, 0
        for _ in range(effort.released_pairs):
            parts = [[shuffled.protocol.party().encode([i % 2]) for i in range(n)] for n in (batch, batch // 2)]
            states = set()
            for _ in range(2):
                listener, before = shuffled.listener(), 0
                for message in (part[i] for part in parts for i in generator.permutation(len(part))):
                    listener.receive(message)
                    small += 0 < listener.shown - before < batch
                    before = listener.shown
                states.add(listener.to_bytes())
            wrong += len(states) - 1
        pairs = effort.released_pairs
        yield Finding("coupled", "states that show the order", "violations", 0, wrong, pairs)
        yield Finding("coupled", "fewer reports than a batch between two looks", "violations", 0, small, pairs)

    def twins(self, shuffled: ShuffledReports) -> Sequence[Twin]:
        """Broken ones."""
        batch = shuffled.protocol.shuffled or 0
        ten = ShuffledReports(_of(shuffled.protocol, 10 * batch), shuffled.delta).budget
        return (
            twin(shuffled, "every report shown as it comes", "coupled", listener=lambda self: _Eager(self.protocol)),
            twin(shuffled, "the order kept in the state", "coupled", listener=lambda self: _Logging(self.protocol)),
            twin(shuffled, "the promise of ten batches", budget=property(lambda self: ten)),
        )


def _of(protocol: Any, batch: int) -> Any:
    return type(protocol)(protocol.round_id, protocol.budget, 2, shuffled=batch)


class _Wrapped:
    """NOT PRIVATE: an aggregator that does something else, too."""

    def __init__(self, protocol: Any) -> None:
        self.inner = protocol.aggregator()
        self.order: list[bytes] = []

    def receive(self, message: bytes) -> None:
        self.inner.receive(message)
        self.order.append(message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class _Eager(_Wrapped):
    @property
    def shown(self) -> int:
        return int(self.inner.parties)


class _Logging(_Wrapped):
    def to_bytes(self) -> bytes:
        return bytes(self.inner.to_bytes()) + b"".join(self.order)


_checks = ShuffledAudit()

row(
    ShuffledReports,
    lambda: (
        ShuffledReports(HadamardResponse("audit", Budget(1.0), 2, shuffled=20), 0.02),
        ShuffledReports(LocalHashing("audit", Budget(2.0), 2, shuffled=16), 0.05),
    ),
    _checks,
    _checks.twins,
)
