"""Auditing heavy hitters over time: a tree of sketches, each released once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from types import SimpleNamespace
from typing import Any

import numpy as np

from discreet.continual import HeavyHitters
from discreet.continual.anatomy import EPOCHS, epoch_of
from discreet.privacy import Budget, Event
from discreet.privacy.calibration.composition import repeated_delta
from discreet.summaries import MisraGries
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

    # ---- structure -------------------------------------------------------------------------------------------------

    def structure(self, hitters: HeavyHitters, effort: Effort) -> Iterator[Finding]:
        """Every short stream over two ticks: which released sketches one event changes, and how."""
        kind: Any = type(hitters)
        wrong, most, pairs = _short_streams(
            kind, hitters.mechanism, hitters.window is not None, _in_epochs(hitters), effort.length > 0
        )
        yield Finding("structure", "LT Lemma 8 in every released node", "violations", 0, wrong, pairs)
        yield Finding("structure", "released nodes that one event changes", "sensitivity", 2, most, pairs)
        if hitters.discovered is not None:
            yield _one_way(hitters)
            if _in_epochs(hitters):
                yield from shared.shifts_of_an_event(hitters.discovered.factor, hitters.discovered.sigma, effort)

    # ---- exact -----------------------------------------------------------------------------------------------------

    def exact(self, hitters: HeavyHitters, effort: Effort) -> Iterator[Finding]:
        """The exact delta of one node, and of as many as one event is in."""
        whole, most = shared.claimed_loss(hitters)
        for name, L, plan in self._plans(hitters):
            if hitters.discovered is not None:
                delta, what = _gaussian_delta(plan, whole, L), f"{L} nodes of Gaussian noise{name}"
                yield Finding("exact", what, "delta", most, delta)
                continue
            k = hitters.capacity if hitters.mechanism == "chan" else 1  # how much of the noise one event may cost
            epsilon = float(k / Fraction(plan.scale))
            delta, pairs = self._node_delta(hitters, plan, epsilon, effort)
            total = repeated_delta(whole, epsilon, delta, L)
            detail = f"a node: epsilon {epsilon:.4g}, delta {delta:.4g}"
            what = f"worst pair of a node, {L} nodes composed{name}"
            yield Finding("exact", what, "delta", most, total, pairs, detail)
        if (known := hitters.discovered) is not None:
            norm, rho, pairs = shared.cost_of_an_event(known.factor, known.sigma, 1, effort)
            claimed = shared.claimed_rho(hitters) * shared.SLACK
            yield Finding("exact", "counters of public items", "rho", claimed, rho, pairs, f"norm {norm:.6g}")
        yield self._conforms(hitters)

    def _plans(self, hitters: HeavyHitters) -> Iterator[tuple[str, int, Any]]:
        """(name, nodes that hold one event, their noise and cut): of all ticks, or of the epochs there may be."""
        if not _in_epochs(hitters):
            yield "", self._nodes_of_an_event(hitters), hitters
            return
        seen = set()
        for epoch in range(EPOCHS):
            plan = hitters.plan(2**epoch)
            if (plan.levels, plan.scale, plan.threshold) not in seen:  # else as an epoch before
                seen.add((plan.levels, plan.scale, plan.threshold))
                yield f", epoch of {2**epoch} ticks", plan.levels, plan

    def _node_delta(self, hitters: HeavyHitters, plan: Any, epsilon: float, effort: Effort) -> tuple[float, int]:
        claim = SimpleNamespace(epsilon=epsilon, delta=hitters.guarantee.delta)
        node: Any = SimpleNamespace(
            capacity=hitters.capacity, threshold=plan.threshold, scale=plan.scale, unit=Event(), guarantee=claim,
            universe=None,
        )  # fmt: skip
        noise = NoiseLaw("laplace", plan.scale, min(1e-16, hitters.guarantee.delta * 1e-8))
        if hitters.mechanism == "offset":
            worst, tried, _ = CounterAudit("misra-gries", zeros=True, shared="published").worst(node, noise, effort)
            return worst, tried
        pairs = EntriesAudit(reduces=False).pairs(node, effort)
        both = [threshold_delta(one, noise, plan.threshold, epsilon) for p in pairs for one in (p, p.swapped)]
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
        firsts = [2**epoch for epoch in range(4)] if _in_epochs(hitters) else [1]
        for first, around in product(firsts, range(-2, 3)):
            plan = hitters.plan(first) if _in_epochs(hitters) else hitters
            source = ScriptedSource(3 if offset else 0, plan.threshold + around - 1 + (3 if offset else 0))
            made = hitters.anew(source)
            for _ in range(first - 1):
                made.step([])
            source.draws.clear()
            release = _first_node(made, [0])
            drawn = [draw for draw in source.draws if draw.size != 0]  # an epoch begins for no counters, too
            # Offset: v - a0 = 1 + each - 3, so that the cut is met when `around` is 0.
            wrong += (release.items == [0]) != (around >= 0)
            wrong += any((draw.law, draw.scale) != (law, plan.scale) for draw in drawn)
            wrong += len(drawn) != (2 if offset else 1)
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
        high = max(plan.threshold + math.ceil(30 * float(plan.scale)) for plan in _first_plans(hitters, ticks))
        together = hitters.mechanism == "chan"  # one event may lower all counters, and the noise is for that
        times = min(effort.runs, 20_000) if together else max(2, min(6 * effort.runs // k, 10**7 // (high * k)))

        def run(event: int) -> Any:
            first = np.repeat(np.arange(k), high + (0 if together else event))
            first = np.append(first, np.full(event, k)) if together else first
            rows = [shared.published_counts(hitters.anew(), first, ticks, k + 1)[:, :k].T for _ in range(times)]
            return np.array(rows).sum(axis=1) if together else np.concatenate(rows)

        what, runs = ("every counter lower", times) if together else ("one counter higher", times * k)
        yield shared.told_apart(what, hitters, run, f"{runs} runs, {ticks} ticks")
        if hitters.discovered is not None and (hitters.horizon is None or hitters.horizon > hitters.every):

            def later(event: int) -> Any:
                return np.concatenate([_after_the_first(hitters, high, event) for _ in range(times)])

            yield shared.told_apart("one event of a public item", hitters, later, f"{times * k} runs")
        if hitters.discovered is not None and _in_epochs(hitters):
            yield from _counters_of_epochs(hitters, high)

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
        levels = max(plan.levels for plan in _first_plans(hitters, ticks))
        yield Finding("coupled", "released nodes that one event changes", "sensitivity", levels, most, pairs)
        if _in_epochs(hitters):
            yield _in_one_epoch(hitters)

    # ---- sabotage --------------------------------------------------------------------------------------------------

    def twins(self, hitters: HeavyHitters) -> Sequence[Twin]:
        """Less noise, a lower cut, the whole budget at every level, and what is drawn again."""
        kind = type(hitters)

        def planned(name: str, change: Callable[[Any], dict[str, Any]]) -> Twin:
            def plan(self: Any, span: int) -> Any:
                right = kind.plan(self, span)
                return replace(right, **change(right))

            return shared.broken(hitters, name, plan=plan)

        twins = [
            planned("half the noise", lambda plan: {"scale": plan.scale / 2}),
            planned("cut one lower", lambda plan: {"threshold": plan.threshold - 1}),
            shared.drawn_again(hitters),
        ]
        if hitters.discovered is not None:
            twins += [_weaker_counters(hitters), _both_ways(hitters)]
        if hitters.levels > 1 or _in_epochs(hitters):
            # Every node spends what all of them may: its scale and its cut are those of the whole budget.
            whole = kind(1, hitters.budget, hitters.capacity, mechanism=hitters.mechanism, base=2)
            paid = {"scale": whole.scale, "threshold": whole.threshold}
            twins.append(planned("the budget at every level", lambda plan: paid))
        if hitters.mechanism == "chan" and hitters.capacity > 1:
            twins.append(planned("noise for one counter", lambda plan: {"scale": plan.scale / hitters.capacity}))
        if _in_epochs(hitters):
            if hitters.discovered is not None:
                twins.append(_unsplit_counters(hitters))
            if _left_open(hitters):
                twins.append(_lives_on(hitters))
        return twins


def _in_epochs(hitters: HeavyHitters) -> bool:
    """Without a horizon ticks are in epochs, each with nodes of its own; a window needs none."""
    return hitters.horizon is None and hitters.window is None


def _first_plans(hitters: HeavyHitters, ticks: int) -> list[Any]:
    """What has the levels, the noise and the cut of the nodes of these ticks."""
    return [hitters.plan(2**e) for e in range(ticks.bit_length())] if _in_epochs(hitters) else [hitters]


def _left_open(hitters: HeavyHitters) -> list[int]:
    """The epochs, of those that are run through, that end inside of a node."""
    plans = [(epoch, hitters.plan(2**epoch)) for epoch in range(shared.TRIED - 1)]
    return [epoch for epoch, plan in plans if 2**epoch % (plan.every * plan.base ** (plan.levels - 1))]


def _in_one_epoch(hitters: HeavyHitters) -> Finding:
    """One event, in the first tick of an epoch or in the last: it is in nodes of its epoch alone, one of each level."""
    wrong = tried = 0
    for epoch, last in product(range(shared.TRIED - 1), (False, True)):
        when = 2 ** (epoch + last) - last
        hides = ScriptedSource(0, -shared.HIGH)
        nodes = _nodes(hitters.anew(hides), [[7] * (tick == when) for tick in range(1, 2 ** (epoch + 2))])
        held = [first for (first, _), state in nodes.items() if state.total > 0]
        wrong += not held or len(held) > hitters.plan(2**epoch).levels
        wrong += any(epoch_of(first)[0] != epoch for first in held)
        tried += 1
    return Finding("coupled", "an event is in nodes of its epoch alone", "violations", 0, int(wrong), tried)


def _counters_of_epochs(hitters: HeavyHitters, high: int) -> Iterator[Finding]:
    """The noise of the counters of public items, in the first epochs and on both sides of the end of one."""
    known, k = hitters.discovered, hitters.capacity
    assert known is not None
    times, after = -(-500 // k), (2, 3, 4, 7, 8)
    noises: dict[int, list[Any]] = {tick: [] for tick in after}
    for _ in range(times):
        shown = shared.published_counts(hitters.anew(), np.repeat(np.arange(k), high), max(after), k)
        for tick in after:
            noises[tick].append(shown[tick - 1] - shown[0])  # at the first tick there are nodes only
    for tick, found in noises.items():
        limit, off = shared.variance_is_off(found, known.factor.error(tick, known.sigma))
        what, detail = "noise of public items in an epoch", f"{times * k} items at tick {tick}"
        yield Finding("statistical", what, "relative variance", limit, off, 1, detail)


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


def _gaussian_delta(nodes: Any, epsilon: float, L: int) -> float:
    """delta of L nodes: places that differ by 1, and keys of count 1 and 0 that one of two sketches stores alone."""
    noise = NoiseLaw("gaussian", nodes.scale, 1e-30)
    together = np.array([1.0])
    for _ in range(L):
        together = np.convolve(together, noise.mass)
    # The loss depends on the sum of the L noises, which the event moves by L.
    here, there = np.pad(together, (L, 0)), np.pad(together, (0, L))
    places = float(np.maximum(here - math.exp(epsilon) * there, 0.0).sum())
    t = nodes.threshold - 1
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


def _unsplit_counters(hitters: HeavyHitters) -> Twin:
    kind = type(hitters)

    def init(self: Any, *args: Any, **options: Any) -> None:
        kind.__init__(self, *args, **options)
        shared.unsplit(self.discovered.factor)

    return shared.broken(hitters, "all of rho for the totals of epochs, too", __init__=init)


def _lives_on(hitters: HeavyHitters) -> Twin:
    """Sketches are not begun anew with an epoch: an event is in nodes of the next one, too."""
    kind = type(hitters)

    def new_sketches(self: Any) -> Any:
        new = kind.new_sketches(self)
        if self.tick:
            old = [self.kept[min(level, len(self.kept) - 1)].to_bytes() for level in range(len(new))]
            new = [MisraGries.from_bytes(state) for state in old]
        self.kept = new
        return new

    return shared.broken(hitters, "sketches live on into the next epoch", "coupled", new_sketches=new_sketches)


def _both_ways(hitters: HeavyHitters) -> Twin:
    kind = type(hitters)

    def take(self: Any, raw: Any) -> None:
        found, self.discovered = self.discovered, None  # all events to the nodes
        kind.take(self, raw)
        self.discovered = found
        kind.take(self, raw)

    return shared.broken(hitters, "events of public items in nodes too", "structure", take=take)


@lru_cache(maxsize=16)
def _short_streams(
    kind: Callable[..., Any], mechanism: str, window: bool, epochs: bool, longer: bool
) -> tuple[int, int, int]:
    """(violations, most changed nodes, pairs) over all streams of two ticks of up to two events of three items.

    Without a horizon three ticks, which are two epochs, of up to one event each.
    """
    most, horizon, number = (2, None, 3) if epochs else (3, 2, 2)
    ticks = [list(batch) for size in range(most + longer) for batch in combinations_with_replacement(range(3), size)]
    found = []
    for k in (1, 2):
        template = kind(horizon, Budget(1.0, 0.1), k, 2 if window else None, base=2, mechanism=mechanism)
        states = {
            key: _nodes(template.anew(ScriptedSource()), [ticks[i] for i in key])
            for key in product(range(len(ticks)), repeat=number)
        }
        for key, tick, item in product(states, range(number), range(3)):
            more = sorted([*ticks[key[tick]], item])
            if more in ticks:
                other = (*key[:tick], ticks.index(more), *key[tick + 1 :])
                found.append(_compared(states[key], states[other], k))
    return sum(wrong for wrong, _ in found), max(changed for _, changed in found), len(found)
