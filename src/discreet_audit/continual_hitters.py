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

from discreet.continual import HeavyHitters
from discreet.continual.seam import CorrelatedNoise
from discreet.privacy import Budget, Event
from discreet.privacy.calibration.composition import repeated_delta
from discreet_audit import continual_base as shared
from discreet_audit.counters import CounterAudit
from discreet_audit.entries import EntriesAudit
from discreet_audit.findings import Finding
from discreet_audit.laws import NoiseLaw, threshold_delta
from discreet_audit.registry import Effort, Twin
from discreet_audit.sources import ScriptedSource
from discreet_audit.structure import Counters, counters_of, lemma_8_state

__all__ = ["HittersOverTimeAudit"]

Nodes = dict[tuple[int, int], Counters]


class HittersOverTimeAudit(shared.OverTimeAudit):
    """The four checks of `HeavyHitters`."""

    def prepare(self, mechanism: shared.C) -> shared.C:
        """Of a known horizon, as for histograms."""
        return super().prepare(shared.with_horizon(mechanism))

    # ---- structure -------------------------------------------------------------------------------------------------

    def structure(self, hitters: HeavyHitters, effort: Effort) -> Iterator[Finding]:
        """Every short stream over two ticks: which released sketches one event changes, and how."""
        kind: Any = type(hitters)
        wrong, most, pairs = _short_streams(kind, hitters.mechanism, hitters.window is not None, effort.length > 0)
        yield Finding("structure", "LT Lemma 8 in every released node", "violations", 0, wrong, pairs)
        yield Finding("structure", "released nodes that one event changes", "sensitivity", 2, most, pairs)
        if hitters.discovered is not None:
            yield _one_way(hitters)

    # ---- exact -----------------------------------------------------------------------------------------------------

    def exact(self, hitters: HeavyHitters, effort: Effort) -> Iterator[Finding]:
        """The exact delta of one node, and of as many as one event is in."""
        (whole, most), L = shared.claimed_loss(hitters), self._nodes_of_an_event(hitters)
        if hitters.discovered is not None:
            yield Finding("exact", f"{L} nodes of Gaussian noise", "delta", most, _gaussian_delta(hitters, whole, L))
            noise = CorrelatedNoise(hitters.discovered.factor, hitters.discovered.sigma)
            norm, rho, pairs = shared.moved_by_an_event(noise, 1, effort)
            claimed = shared.claimed_rho(hitters) * shared.SLACK
            yield Finding("exact", "counters of public items", "rho", claimed, rho, pairs, f"norm {norm:.6g}")
            yield self._conforms(hitters)
            return
        k = hitters.capacity if hitters.mechanism == "chan" else 1  # how much of the noise one event may cost
        epsilon = float(k / Fraction(hitters.scale))
        delta, pairs = self._node_delta(hitters, epsilon, effort)
        total = repeated_delta(whole, epsilon, delta, L)
        detail = f"a node: epsilon {epsilon:.4g}, delta {delta:.4g}"
        what = f"worst pair of a node, {L} nodes composed"
        yield Finding("exact", what, "delta", most, total, pairs, detail)
        yield self._conforms(hitters)

    def _node_delta(self, hitters: HeavyHitters, epsilon: float, effort: Effort) -> tuple[float, int]:
        claim = SimpleNamespace(epsilon=epsilon, delta=hitters.guarantee.delta)
        node: Any = SimpleNamespace(
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

    def _nodes_of_an_event(self, hitters: HeavyHitters) -> int:
        """How many released nodes hold one event, for some ticks at which it may come."""
        largest = hitters.every * hitters.base ** (hitters.levels - 1)
        ticks, most = shared.first_ticks(hitters, min(largest, 400)), 0
        for when in {1, ticks}:
            stream = [[0] if t == when else [] for t in range(1, ticks + 1)]
            nodes = _nodes(hitters.anew(ScriptedSource()), stream)
            most = max(most, sum(state.total > 0 for state in nodes.values()))
        return most if ticks >= largest else max(most, hitters.levels)  # the largest nodes are too long to run

    def _conforms(self, hitters: HeavyHitters) -> Finding:
        """A tick shows the sum of the nodes that cover it; of a node, the counters from its cut on with their noise."""
        wrong = 0
        offset = hitters.mechanism != "chan"
        law = "gaussian" if hitters.discovered is not None else "laplace"
        for around in range(-2, 3):
            source = ScriptedSource(3 if offset else 0, hitters.threshold + around - 1 + (3 if offset else 0))
            made = hitters.anew(source)
            release = _first_node(made, [0])
            # Offset: v - a0 = 1 + each - 3, so that the cut is met when `around` is 0.
            wrong += (release.items == [0]) != (around >= 0)
            wrong += any((draw.law, draw.scale) != (law, made.scale) for draw in source.draws)
            wrong += len(source.draws) != (2 if offset else 1)
        # With noise that shows everything, a tick has the counts of all ticks (or of the window).
        if hitters.discovered is not None:
            return Finding("exact", "the code draws and shows what the law says", "violations", 0, wrong)
        made = hitters.anew(ScriptedSource(0, shared.HIGH))
        for tick in range(1, shared.first_ticks(hitters, 9) + 1):
            release = made.step([7] * tick)
            first = 1 if hitters.window is None else max(1, tick - hitters.window + 1)
            count = int(release.counts[0]) % shared.HIGH
            wrong += release.items != [7] or count != sum(range(first, tick + 1))
        return Finding("exact", "the code draws and shows what the law says", "violations", 0, wrong)

    # ---- statistical -----------------------------------------------------------------------------------------------

    def statistical(self, hitters: HeavyHitters, effort: Effort) -> Iterator[Finding]:
        """All counters are runs of their own: their noises are independent, and far above the cut all are shown."""
        yield self._plumbing(hitters)
        ticks, k = shared.first_ticks(hitters, max(4, hitters.base) * hitters.every), hitters.capacity
        # The offset's noise moves the cut of all counters: stay so far above that it does not matter.
        high = hitters.threshold + math.ceil(30 * float(hitters.scale))
        together = hitters.mechanism == "chan"  # one event may lower all counters, and the noise is for that
        times = min(effort.runs, 20_000) if together else max(2, min(6 * effort.runs // k, 10**7 // (high * k)))

        def run(event: int) -> Any:
            first = np.repeat(np.arange(k), high + (0 if together else event))
            first = np.append(first, np.full(event, k)) if together else first
            rows = [shared.published_counts(hitters.anew(), first, ticks, k + 1)[:, :k].T for _ in range(times)]
            return np.array(rows).sum(axis=1) if together else np.concatenate(rows)

        what, runs = ("every counter lower", times) if together else ("one counter higher", times * k)
        yield shared.told_apart(what, hitters, run, f"{runs} runs, {ticks} ticks")
        if hitters.discovered is not None and (hitters.horizon or 0) > hitters.every:

            def later(event: int) -> Any:
                return np.concatenate([_after_the_first(hitters, high, event) for _ in range(times)])

            yield shared.told_apart("one event of a public item", hitters, later, f"{times * k} runs")

    def _plumbing(self, hitters: HeavyHitters) -> Finding:
        stream, texts = np.repeat(np.arange(min(hitters.capacity, 20)), 3 * hitters.threshold + 20), []
        for events in ([], [5]):
            other = hitters.anew(ScriptedSource(0, -shared.HIGH))
            texts.append((other.step(events).to_payload(), repr(other)))
        streams, wide = (stream, [0], stream), hitters.scale >= 1
        return self.plumbing(hitters.anew, streams, (texts[0], texts[1]), wide, fresh=12, tick=hitters.every)

    # ---- coupled ---------------------------------------------------------------------------------------------------

    def coupled(self, hitters: HeavyHitters, effort: Effort) -> Iterator[Finding]:
        """Large random streams and the same with one event more, through the sketches of all nodes."""
        rng, k, items = np.random.default_rng(6), hitters.capacity, 4 * hitters.capacity + 10
        ticks, pairs = shared.first_ticks(hitters, 8), max(5, effort.released_pairs // 5)
        weights = 1.0 / np.arange(1, items + 1)
        weights /= weights.sum()
        found = []
        for _ in range(pairs):
            stream = [rng.choice(items, 20 * min(k, 100), p=weights) for _ in range(ticks)]
            when = int(rng.integers(0, ticks))
            more = [np.append(batch, rng.integers(0, items)) if t == when else batch for t, batch in enumerate(stream)]
            hides = ScriptedSource(0, -shared.HIGH if hitters.discovered is not None else 0)
            one, two = (_nodes(hitters.anew(hides), given) for given in (stream, more))
            found.append(_compared(one, two, k))
        wrong, most = sum(wrong for wrong, _ in found), max(changed for _, changed in found)
        yield Finding("coupled", "large random streams keep LT Lemma 8", "violations", 0, wrong, pairs)
        yield Finding("coupled", "released nodes that one event changes", "sensitivity", hitters.levels, most, pairs)

    # ---- sabotage --------------------------------------------------------------------------------------------------

    def twins(self, hitters: HeavyHitters) -> Sequence[Twin]:
        """Less noise, a lower cut, the whole budget at every level, and what is drawn again."""
        kind = type(hitters)

        def less(name: str, scale: float = 1.0, threshold: int = 0) -> Twin:
            def init(self: Any, *args: Any, **options: Any) -> None:
                kind.__init__(self, *args, **options)
                self.scale = self.scale / Fraction(scale)
                self.threshold -= threshold

            return shared.broken(hitters, name, __init__=init)

        twins = [less("half the noise", 2.0), less("cut one lower", threshold=1), shared.drawn_again(hitters)]
        if hitters.discovered is not None:
            twins += [_weaker_counters(hitters), _both_ways(hitters)]
        if hitters.levels > 1:
            # Every node spends what all of them may: its scale and its cut are those of the whole budget.
            whole = kind(1, hitters.budget, hitters.capacity, mechanism=hitters.mechanism, base=2)
            by, lower = float(hitters.scale / whole.scale), hitters.threshold - whole.threshold
            twins.append(less("the budget at every level", by, lower))
        if hitters.mechanism == "chan" and hitters.capacity > 1:
            twins.append(less("noise for one counter", float(hitters.capacity)))
        return twins


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


def _first_node(made: Any, events: Any) -> Any:
    """The release with which the first node ends, when all events come at the first tick."""
    release = made.step(events)
    for _ in range(made.every - 1):
        release = made.step([])
    return release


def _gaussian_delta(hitters: HeavyHitters, epsilon: float, L: int) -> float:
    """delta of L nodes: places that differ by 1, and keys of count 1 and 0 that one of two sketches stores alone."""
    noise = NoiseLaw("gaussian", hitters.scale, 1e-30)
    together = np.array([1.0])
    for _ in range(L):
        together = np.convolve(together, noise.mass)
    # The loss depends on the sum of the L noises, which the event moves by L.
    here, there = np.pad(together, (L, 0)), np.pad(together, (0, L))
    places = float(np.maximum(here - math.exp(epsilon) * there, 0.0).sum())
    t = hitters.threshold - 1
    offsets = range(-noise.reach, noise.reach + 1)
    shown = sum(noise.at(d) * (noise.shown(t + d) + noise.shown(t + 1 + d)) for d in offsets)
    return places + (1.0 + math.exp(epsilon)) * L * shown


def _one_way(hitters: HeavyHitters) -> Finding:
    """An event of an item that is public is in its counter and in no node; all others are in nodes alone."""
    made, many, ticks = (
        hitters.anew(ScriptedSource()),
        3 * hitters.threshold,
        shared.first_ticks(hitters, 4 * hitters.every),
    )
    assert made.discovered is not None
    # Item 7 is public when the first node ends, with noise of 0; item 8 never is.
    rare = [8] * (hitters.capacity > 1)  # one counter alone would have to choose
    stream = [[7] * (many if tick <= hitters.every else 5) + rare for tick in range(1, ticks + 1)]
    nodes = _nodes(made, stream)
    wrong = 8 in made.discovered.index or 7 not in made.discovered.index
    if not wrong:
        wrong = int(made.discovered.since[made.discovered.index[7]]) != 5 * (ticks - hitters.every)
    for (first, last), state in nodes.items():
        held = {item: count + state.offset for item, count in state.counts}
        wrong |= held.get(7, 0) > (many * hitters.every if first <= hitters.every else 0)
        wrong |= held.get(8, 0) != (last - first + 1) * len(rare)
    what = "events of public items are in one counter, not in nodes"
    return Finding("structure", what, "violations", 0, int(wrong), len(nodes))


def _after_the_first(hitters: HeavyHitters, high: int, event: int) -> Any:
    """What counters add to the counts of items that are public from the first tick, one event each at the second."""
    made, k = hitters.anew(), hitters.capacity
    shown = np.zeros((2, k))
    releases = (_first_node(made, np.repeat(np.arange(k), high)), made.step(np.repeat(np.arange(k), event)))
    for row, release in zip(shown, releases, strict=True):
        row[np.asarray(release.items, np.int64)] = release.counts
    return (shown[1] - shown[0])[:, None]


def _weaker_counters(hitters: HeavyHitters) -> Twin:
    kind = type(hitters)

    def init(self: Any, *args: Any, **options: Any) -> None:
        kind.__init__(self, *args, **options)
        self.discovered.sigma /= 2

    return shared.broken(hitters, "half the noise of counters", __init__=init)


def _both_ways(hitters: HeavyHitters) -> Twin:
    kind = type(hitters)

    def take(self: Any, raw: Any) -> None:
        found, self.discovered = self.discovered, None  # all events to the nodes
        kind.take(self, raw)
        self.discovered = found
        kind.take(self, raw)

    return shared.broken(hitters, "events of public items in nodes too", "structure", take=take)


@lru_cache(maxsize=16)
def _short_streams(kind: Callable[..., Any], mechanism: str, window: bool, longer: bool) -> tuple[int, int, int]:
    """(violations, most changed nodes, pairs) over all streams of two ticks of up to two events of three items."""
    ticks = [list(batch) for size in range(3 + longer) for batch in combinations_with_replacement(range(3), size)]
    found = []
    for k in (1, 2):
        template = kind(2, Budget(1.0, 0.1), k, 2 if window else None, base=2, mechanism=mechanism)
        states = {
            key: _nodes(template.anew(ScriptedSource()), [ticks[i] for i in key])
            for key in product(range(len(ticks)), repeat=2)
        }
        for key, tick, item in product(states, range(2), range(3)):
            more = sorted([*ticks[key[tick]], item])
            if more in ticks:
                other = (*key[:tick], ticks.index(more), *key[tick + 1 :])
                found.append(_compared(states[key], states[other], k))
    return sum(wrong for wrong, _ in found), max(changed for _, changed in found), len(found)
