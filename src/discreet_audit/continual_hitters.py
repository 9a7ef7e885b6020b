"""Auditing heavy hitters over time: a tree of sketches, each released once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from types import SimpleNamespace
from typing import Any

import numpy as np

from discreet.noise import RandomSource, seeded_source
from discreet.privacy import Budget, Event
from discreet.privacy.calibration.composition import repeated_delta
from discreet_audit.counters import CounterAudit
from discreet_audit.entries import EntriesAudit
from discreet_audit.findings import Finding
from discreet_audit.histograms import in_order
from discreet_audit.laws import NoiseLaw, threshold_delta
from discreet_audit.registry import Effort
from discreet_audit.sources import ScriptedSource
from discreet_audit.states import Counters, counters_of
from discreet_audit.statistical import measure_outputs
from discreet_audit.structure import lemma_8_state

__all__ = ["HittersOverTimeAudit"]

_HIGH = 10**6
_TICKS = 4
Nodes = dict[tuple[int, int], Counters]


class HittersOverTimeAudit:
    """The four checks of `HeavyHitters`."""

    def anew(self, hitters: Any, source: RandomSource | None = None) -> Any:
        """Heavy hitters of the same class, claim and hash seeds before their first tick."""
        made = type(hitters)(
            hitters.horizon,
            hitters.budget,
            hitters.capacity,
            hitters.window,
            mechanism=hitters.mechanism,
            base=hitters.base,
            source=source,
        )
        made._order, made._seed = hitters._order, hitters._seed
        made._sketches = [made._new_sketch() for _ in range(made.levels)]
        return made

    def prepare(self, hitters: Any) -> Any:
        """Heavy hitters that were used are audited as new ones would be."""
        return self.anew(hitters) if hitters.tick else hitters

    # ---- structure -------------------------------------------------------------------------------------------------

    def structure(self, hitters: Any, effort: Effort) -> Iterator[Finding]:
        """Every short stream over two ticks: which released sketches one event changes, and how."""
        kind: Any = type(hitters)
        broken, most, pairs = _short_streams(kind, hitters.window is not None, effort.length > 0)
        yield Finding("structure", "LT Lemma 8 in every released node", "violations", 0, broken, pairs)
        yield Finding("structure", "released nodes that one event changes", "sensitivity", 2, most, pairs)

    # ---- exact -----------------------------------------------------------------------------------------------------

    def exact(self, hitters: Any, effort: Effort) -> Iterator[Finding]:
        """The exact delta of one node, and of as many as one event is in."""
        guarantee, L = hitters.guarantee, self._nodes_of_an_event(hitters)
        k = hitters.capacity if hitters.mechanism == "chan" else 1  # how much of the noise one event may cost
        epsilon = float(k / Fraction(hitters.scale))
        delta, pairs = self._node_delta(hitters, epsilon, effort)
        total = repeated_delta(guarantee.epsilon, epsilon, delta, L)
        detail = f"a node: epsilon {epsilon:.4g}, delta {delta:.4g}"
        what = f"worst pair of a node, {L} nodes composed"
        yield Finding("exact", what, "delta", guarantee.delta, total, pairs, detail)
        yield self._conforms(hitters)

    def _node_delta(self, hitters: Any, epsilon: float, effort: Effort) -> tuple[float, int]:
        claim = SimpleNamespace(epsilon=epsilon, delta=hitters.guarantee.delta)
        node = SimpleNamespace(
            capacity=hitters.capacity, threshold=hitters.threshold, scale=hitters.scale, unit=Event(), guarantee=claim,
            universe=None,
        )  # fmt: skip
        noise = NoiseLaw("laplace", hitters.scale, min(1e-16, hitters.guarantee.delta * 1e-8))
        if hitters.mechanism == "offset":
            worst, tried, _ = CounterAudit("misra-gries", zeros=True, shared="published").worst(node, noise, effort)
            return worst, tried
        pairs = EntriesAudit(reduces=False).pairs(node, effort)
        both = [threshold_delta(one, noise, hitters.threshold, epsilon) for p in pairs for one in (p, p.swapped)]
        return max(both), len(both)

    def _nodes_of_an_event(self, hitters: Any) -> int:
        """How many released nodes hold one event, for some ticks at which it may come."""
        ticks, most = min(hitters.horizon, hitters.base ** (hitters.levels - 1), 300), 0
        for when in {1, ticks}:
            stream = [[0] if t == when else [] for t in range(1, ticks + 1)]
            nodes = _nodes(self.anew(hitters, ScriptedSource()), stream)
            most = max(most, sum(state.total > 0 for state in nodes.values()))
        return most

    def _conforms(self, hitters: Any) -> Finding:
        """A tick shows the sum of the nodes that cover it; of a node, the counters from its cut on with their noise."""
        wrong = 0
        offset = hitters.mechanism == "offset"
        for around in range(-2, 3):
            source = ScriptedSource(3 if offset else 0, hitters.threshold + around - 1 + (3 if offset else 0))
            made = self.anew(hitters, source)
            release = made.step([0])
            # Offset: v - a0 = 1 + each - 3, so that the cut is met when `around` is 0.
            wrong += (release.items == [0]) != (around >= 0)
            wrong += any((draw.law, draw.scale) != ("laplace", made.scale) for draw in source.draws)
            wrong += len(source.draws) != (2 if offset else 1)
        # With noise that shows everything, a tick has the counts of all ticks (or of the window).
        made = self.anew(hitters, ScriptedSource(0, _HIGH))
        for tick in range(1, min(hitters.horizon, 9) + 1):
            release = made.step([7] * tick)
            first = 1 if hitters.window is None else max(1, tick - hitters.window + 1)
            count = int(release.counts[0]) % _HIGH
            wrong += release.items != [7] or count != sum(range(first, tick + 1))
        return Finding("exact", "the code draws and shows what the law says", "violations", 0, wrong)

    # ---- statistical -----------------------------------------------------------------------------------------------

    def statistical(self, hitters: Any, effort: Effort) -> Iterator[Finding]:
        """All counters are runs of their own: their noises are independent, and far above the cut all are shown."""
        yield self._plumbing(hitters)
        epsilon, delta = hitters.guarantee.epsilon, hitters.guarantee.delta
        ticks, k = min(hitters.horizon, max(_TICKS, hitters.base)), hitters.capacity
        # The offset's noise moves the cut of all counters: stay so far above that it does not matter.
        high = hitters.threshold + math.ceil(30 * float(hitters.scale))
        together = hitters.mechanism == "chan"  # one event may lower all counters, and the noise is for that
        times = min(effort.runs, 20_000) if together else max(2, min(6 * effort.runs // k, 10**7 // (high * k)))
        outputs = []
        for event in (1, 0):
            first = np.repeat(np.arange(k), high + (0 if together else event))
            first = np.append(first, np.full(event, k)) if together else first
            rows = []
            for _ in range(times):
                made = self.anew(hitters)
                shown = []
                for tick in range(ticks):
                    release = made.step(first if tick == 0 else [])
                    counts = np.zeros(k + 1)
                    counts[np.asarray(release._items, np.int64)] = release.counts
                    shown.append(counts[:k])
                rows.append(np.array(shown).T)
            outputs.append(np.array(rows).sum(axis=1) if together else np.concatenate(rows))
        bound = measure_outputs(outputs[0], outputs[1], delta)
        what = "every counter lower" if together else "one counter higher"
        detail = f"{len(outputs[0])} runs, {ticks} ticks"
        yield Finding("statistical", what, "epsilon", epsilon, bound, 1, detail)

    def _plumbing(self, hitters: Any) -> Finding:
        wrong = []
        k = min(hitters.capacity, 20)
        stream = np.repeat(np.arange(k), 3 * hitters.threshold + 20)
        made = self.anew(hitters)
        first = made.step(stream, tick=1)
        again = [*(made.step([0], tick=1) for _ in range(30)), type(made).from_bytes(made.to_bytes()).last]
        if any(repeated.to_payload() != first.to_payload() for repeated in again):
            wrong.append("a tick that was published is published again with other noise")
        others = [self.anew(hitters).step(stream) for _ in range(12)]
        if not all(in_order(release) for release in (first, *others)):
            wrong.append("the order of the items is not that of the counts")
        if hitters.scale >= 1 and len({tuple(release.counts.tolist()) for release in others}) == 1:
            wrong.append("repeated releases have the same noise")
        hidden = []
        for events in ([], [5]):
            other = self.anew(hitters, ScriptedSource(0, -_HIGH))
            hidden.append((other.step(events).to_payload(), repr(other)))
        if hidden[0] != hidden[1]:
            wrong.append("the empty stream can be told from one event without looking at counts")
        source, restarted = seeded_source(3), seeded_source(3)
        one, two = (self.anew(hitters, s) for s in (source, restarted))
        for _ in range(min(hitters.horizon, 4)):
            two = type(two).from_bytes(two.to_bytes(), source=restarted)
            if one.step(stream).to_payload() != two.step(stream).to_payload():
                wrong.append("a restart changes what is drawn")
                break
        if first.guarantee.seeded or not one.guarantee.seeded:
            wrong.append("a release does not say where its noise came from")
        return Finding(
            "statistical", "order, repetition, restart, metadata", "violations", 0, len(wrong), 1, "; ".join(wrong)
        )

    # ---- coupled ---------------------------------------------------------------------------------------------------

    def coupled(self, hitters: Any, effort: Effort) -> Iterator[Finding]:
        """Large random streams and the same with one event more, through the sketches of all nodes."""
        rng = np.random.default_rng(6)
        ticks, pairs = min(hitters.horizon, 8), max(5, effort.released_pairs // 5)
        broken, most = 0, 0
        items = 4 * hitters.capacity + 10
        weights = 1.0 / np.arange(1, items + 1)
        weights /= weights.sum()
        for _ in range(pairs):
            stream = [rng.choice(items, 20 * min(hitters.capacity, 100), p=weights) for _ in range(ticks)]
            when = int(rng.integers(0, ticks))
            more = [np.append(batch, rng.integers(0, items)) if t == when else batch for t, batch in enumerate(stream)]
            wrong, changed = _compared(
                _nodes(self.anew(hitters, ScriptedSource()), stream),
                _nodes(self.anew(hitters, ScriptedSource()), more),
                hitters.capacity,
            )
            broken, most = broken + wrong, max(most, changed)
        yield Finding("coupled", "large random streams keep LT Lemma 8", "violations", 0, broken, pairs)
        yield Finding("coupled", "released nodes that one event changes", "sensitivity", hitters.levels, most, pairs)


def _nodes(made: Any, stream: Sequence[Any]) -> Nodes:
    """The state of every sketch at its release."""
    nodes: Nodes = {}
    release = made.release_node

    def record(sketch: Any, first: int, last: int) -> Any:
        nodes[first, last] = counters_of(sketch)
        return release(sketch, first, last)

    made.release_node = record
    for batch in stream:
        made.step(batch)
    return nodes


def _compared(first: Nodes, second: Nodes, k: int) -> tuple[int, int]:
    """(nodes that break Lemma 8, nodes that differ) when the second stream has one event more."""
    if first.keys() != second.keys():
        return 1, len(first)
    changed = [(second[key], first[key]) for key in first if first[key] != second[key]]
    return sum(lemma_8_state(more, less, k) is None for more, less in changed), len(changed)


@lru_cache(maxsize=8)
def _short_streams(kind: Callable[..., Any], window: bool, longer: bool) -> tuple[int, int, int]:
    """(violations, most changed nodes, pairs) over all streams of two ticks of up to two events of three items."""
    audit = HittersOverTimeAudit()
    ticks = [list(batch) for size in range(3 + longer) for batch in combinations_with_replacement(range(3), size)]
    broken = most = pairs = 0
    for k in (1, 2):
        template = kind(2, Budget(1.0, 0.1), k, 2 if window else None, base=2)
        states = {
            key: _nodes(audit.anew(template, ScriptedSource()), [ticks[i] for i in key])
            for key in product(range(len(ticks)), repeat=2)
        }
        for key, less in states.items():
            for tick, item in product(range(2), range(3)):
                more = sorted([*ticks[key[tick]], item])
                if more not in ticks:
                    continue
                other = (*key[:tick], ticks.index(more), *key[tick + 1 :])
                wrong, changed = _compared(less, states[other], k)
                broken, most, pairs = broken + wrong, max(most, changed), pairs + 1
    return broken, most, pairs
