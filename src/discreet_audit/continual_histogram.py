"""Auditing histograms over time: the four settings of [CO], each by the noise its engine draws and the cut it makes.

Scales, cuts and the number of nodes that hold an event are read from what the engine does with written noise.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.continual._engines import Factored, Hidden, Meta, Sparse
from discreet.continual._events import event_counts
from discreet.continual._factors import Tree
from discreet.noise import RandomSource, seeded_source, system_source
from discreet.privacy.calibration import zcdp_delta
from discreet.privacy.calibration.composition import repeated_delta
from discreet_audit.continual_counter import claimed_loss, claimed_rho, side_by_side, tries
from discreet_audit.continual_laws import (
    above_threshold_losses,
    choice_rho,
    difference_tail,
    event_delta,
    item_shown,
    published_noise,
    shown_by_one_event,
    stop_is_beaten,
    worst_norm,
)
from discreet_audit.exact import law_of
from discreet_audit.findings import Finding
from discreet_audit.histograms import in_order
from discreet_audit.laws import NoiseLaw, gaussian_split_delta, merge_ratios
from discreet_audit.registry import Effort
from discreet_audit.sources import ScriptedSource
from discreet_audit.statistical import FALSE_ALARM, epsilon_lower_bound, measure_outputs

__all__ = ["HistogramOverTimeAudit", "Node", "node_of"]

Integers = npt.NDArray[np.int64]
_SLACK = 1.0 + 1e-9
_HIGH = 10**6  # noise that shows everything; its negative hides everything
_TICKS = 6


def _rank(size: int) -> Any:
    return lambda: np.arange(size)


@dataclass(frozen=True)
class Node:
    """What a node of a tree of one-shot releases draws: the noise of its counts and of its cut, and its choices.

    ``shift`` is the least noise that shows an item of one event (None over a known domain), ``tau`` that of choices.
    """

    law: str
    scale: Fraction
    choices: int
    tau: float
    shift: int | None
    limit: int


def node_of(engine: Meta, known: bool) -> Node:
    """The numbers of the engine's node, from its behaviour."""
    many = ScriptedSource(0, _HIGH)
    engine.release(np.ones(2000, np.int64), _rank(2000), many)
    counts = next(draw for draw in reversed(many.draws) if draw.law != "choice")
    choice = next((draw for draw in many.draws if draw.law == "choice"), None)
    shift = None
    if choice is not None:
        candidates = many.scores[0]
        if not known:
            # The stop is the last score; those before it are items of count 1, and so is the largest left out.
            probe = ScriptedSource()
            engine.release(np.ones(1, np.int64), _rank(1), probe)
            shift = int(probe.scores[0][-1]) - 1
        return Node(counts.law, counts.scale, choice.size or 0, float(4 / choice.scale), shift, len(candidates) - 1)
    if not known:
        low, high = -1, _HIGH  # not shown, shown
        while high - low > 1:
            middle = (low + high) // 2
            shown = len(engine.release(np.ones(1, np.int64), _rank(1), ScriptedSource(0, middle))[0])
            low, high = (low, middle) if shown else (middle, high)
        shift = high
    return Node(counts.law, counts.scale, 0, math.inf, shift, 0)


def nodes_of_an_event(engine: Meta, horizon: int) -> int:
    """The most nodes that are released with one event in them: it enters at one of up to 64 ticks."""
    ticks = min(horizon, 4096)
    when = np.unique(np.geomspace(1, ticks, min(ticks, 64)).round().astype(int))
    held = np.zeros(len(when), np.int64)
    made = copy.copy(engine)

    def record(counts: Integers, rank: Any, source: RandomSource) -> Any:
        nonlocal held
        held = held + (counts != 0)
        return np.zeros(0, np.int64), np.zeros(0, np.int64)

    made.release = record
    for tick in range(1, ticks + 1):
        made.step(np.zeros(len(when), np.int64), (when == tick).astype(np.int64), tick, _rank(1), system_source())
    return int(held.max())


class HistogramOverTimeAudit:
    """The four checks of a `Histogram`."""

    def anew(self, histogram: Any, domain: Any = None, source: RandomSource | None = None) -> Any:
        """A histogram of the same class and claim before its first tick; a known domain may be another one."""
        return type(histogram)(
            histogram.horizon,
            histogram.budget,
            None if histogram._domain is None else (histogram._domain if domain is None else domain),
            histogram.max_items_per_event,
            histogram.k,
            mechanism=histogram.mechanism,
            base=histogram.base,
            limit=histogram.limit,
            keep_discovered=histogram.keep_discovered,
            switches=histogram.switches,
            margin=histogram.margin,
            source=source,
        )

    def prepare(self, histogram: Any) -> Any:
        """A histogram that was used is audited as a new one would be."""
        return self.anew(histogram) if histogram.tick else histogram

    # ---- structure -------------------------------------------------------------------------------------------------

    def structure(self, histogram: Any, effort: Effort) -> Iterator[Finding]:
        """One event raises at most D counts by one; it is in one node a level, or moves the noises by a known shift."""
        known, most = histogram._domain is not None, histogram.max_items_per_event
        wrong, pairs = _events_move(None if most is None else min(most, 3), known)
        yield Finding("structure", "one event raises at most D counts, by one", "violations", 0, wrong, pairs)
        engine = histogram._engine
        if isinstance(engine, Meta):
            held = nodes_of_an_event(engine, histogram.horizon)
            yield Finding("structure", "released nodes with one event in them", "sensitivity", engine.levels, held, 64)
        else:
            norm, pairs = worst_norm(engine.factor, tries(effort))
            declared = engine.factor.sensitivity * _SLACK
            yield Finding("structure", "l2-shift of a counter by one event", "sensitivity", declared, norm, pairs)

    # ---- exact -----------------------------------------------------------------------------------------------------

    def exact(self, histogram: Any, effort: Effort) -> Iterator[Finding]:
        """What an event costs in all ticks together, and the code against the law."""
        engine = histogram._engine
        if isinstance(engine, Sparse):
            yield from self._exact_sparse(histogram, engine, effort)
        elif isinstance(engine, Meta):
            yield from self._exact_tree(histogram, engine)
        else:
            yield from self._exact_counters(histogram, engine, effort)

    def _exact_counters(self, histogram: Any, engine: Any, effort: Effort) -> Iterator[Finding]:
        guarantee, items = histogram.guarantee, histogram.max_items_per_event
        hidden = isinstance(engine, Hidden)
        norm, pairs = worst_norm(engine.factor, tries(effort))
        rho = items * norm * norm / (2.0 * float(engine.sigma) ** 2)
        claimed = claimed_rho(histogram, 0.5 if hidden else 1.0) * _SLACK
        yield Finding("exact", f"the counters of {items} items in all ticks", "rho", claimed, rho, pairs)
        delta = 0.0
        if guarantee.rho is None:
            delta = event_delta(engine.factor, engine.sigma, norm, items, guarantee.epsilon)
        if hidden:
            cuts, each = _cuts(engine, histogram.horizon)
            shown = items * each * shown_by_one_event(engine.factor, engine.sigma, cuts)
            half = guarantee.delta / 2.0
            yield Finding("exact", "items of one event pass the cut", "delta of hidden items", half, shown, items)
            delta += shown
            if isinstance(engine.factor, Tree) and histogram.horizon <= 3 and engine.sigma <= 2:
                reach = math.ceil(6 * engine.sigma)
                ever = items * item_shown(engine.factor, float(engine.sigma), cuts, 1, reach)
                yield Finding("exact", "the same, every noise", "delta of hidden items", half, ever, items)
        if guarantee.rho is None:
            yield Finding("exact", "one event in all ticks", "delta", guarantee.delta, delta, pairs)
        yield self._counters_conform(histogram, hidden)

    def _counters_conform(self, histogram: Any, hidden: bool) -> Finding:
        """With written noise: what is shown is the count with that noise, and for new items only from the cut on."""
        source = ScriptedSource()
        made = self.anew(histogram, list(range(5)), source)
        engine = made._engine
        z = -5 * engine.factor.lattice
        source.each = np.array([z])
        counts, wrong, before = np.zeros(5, np.int64), 0, np.zeros(5, bool)
        for tick in range(1, min(histogram.horizon, 3) + 1):
            noise = int(engine.factor.to_counts(np.array(published_noise(engine.factor, [z] * tick)[-1:]))[0])
            # Five items whose noisy counts are around the cut in steps of one.
            wanted = (engine.cut(tick) if hidden else 20) - noise + np.arange(5) - 2
            batch = np.repeat(np.arange(5), np.maximum(wanted - counts, 0))
            counts = np.maximum(counts, wanted)
            release = made.step(batch)
            shown = dict(zip(release.items, release.counts.tolist(), strict=True))
            visible = counts + noise >= engine.cut(tick) if hidden else np.ones(5, bool)
            if histogram.keep_discovered:
                visible = before = visible | before
            wrong += shown != {i: int(counts[i] + noise) for i in np.flatnonzero(visible)}
            wrong += hidden and release.threshold != engine.cut(tick)
        wrong += any((draw.law, draw.scale) != ("gaussian", engine.sigma) for draw in source.draws)
        return Finding("exact", "the code draws and shows what the law says", "violations", 0, wrong)

    def _exact_tree(self, histogram: Any, engine: Meta) -> Iterator[Finding]:
        guarantee, known, most = histogram.guarantee, histogram._domain is not None, histogram.max_items_per_event
        node, L = node_of(engine, known), nodes_of_an_event(engine, histogram.horizon)
        noise = NoiseLaw(node.law, node.scale, 1e-30)
        changed = node.choices if most is None else most  # published counts of a node that one event raises
        hidden = 0.0
        if node.shift is not None:
            if most is not None:
                hidden = L * most * difference_tail(noise, node.shift)
            else:
                hidden = L * stop_is_beaten(node.limit, node.shift, node.tau)
            if node.law == "gaussian":
                half, what = guarantee.delta / 2.0, "items of one event pass the cut"
                yield Finding("exact", what, "delta of hidden items", half * _SLACK, hidden, L)
        if node.law == "laplace":
            each = float(changed / node.scale)
            total = repeated_delta(guarantee.epsilon, each, hidden / L, L)
            yield Finding("exact", f"{L} nodes composed", "delta", guarantee.delta, total, L)
        else:
            rho = L * changed / (2.0 * float(node.scale) ** 2)
            if node.choices:
                rho += L * node.choices * choice_rho(node.tau)
            claimed = claimed_rho(histogram, 1.0 if known else 0.5) * _SLACK
            yield Finding("exact", f"counts and choices of {L} nodes", "rho", claimed, rho, L)
            if guarantee.rho is None:
                exactly = not node.choices
                eps = guarantee.epsilon
                delta = gaussian_split_delta(noise, 0, L * changed, 10**9, eps) if exactly else zcdp_delta(rho, eps)
                yield Finding("exact", f"{L} nodes composed", "delta", guarantee.delta, delta + hidden, L)
        if not known and float(node.scale) <= 2.0 and L <= 3 and node.limit <= 3:
            yield self._enumerated(histogram, engine, node, L)
        yield self._tree_conforms(histogram, engine, node, known)

    def _enumerated(self, histogram: Any, engine: Meta, node: Node, L: int) -> Finding:
        """Every branch of a node's own code on a few small histograms; L nodes with the same event in each."""
        most = histogram.max_items_per_event or 2
        high = (node.shift or 0) + 1
        worst, tried = 0.0, 0
        laws: dict[tuple[int, ...], Any] = {}
        for base in ((0, 0), (1, 0), (high, 0), (high, 1)):
            for chosen in _sets(range(2), most):
                more = tuple(c + (i in chosen) for i, c in enumerate(base))
                for counts in (base, more):
                    if counts not in laws:
                        laws[counts] = law_of(partial(_released, engine, counts), 1e-6)
                for one, two in ((base, more), (more, base)):
                    worst = max(worst, _composed(laws[one], laws[two], L, histogram.guarantee.epsilon))
                    tried += 1
        what = f"every branch of the code, {L} nodes"
        return Finding("exact", what, "delta", histogram.guarantee.delta, worst, tried, "least delta")

    def _tree_conforms(self, histogram: Any, engine: Meta, node: Node, known: bool) -> Finding:
        """A tick shows the sum of the nodes of its digits, each as its one-shot mechanism published it."""
        source, nodes = ScriptedSource(0, _HIGH), []
        made = self.anew(histogram, list(range(3)), source)
        release = made._engine.release

        def record(counts: Integers, rank: Any, source: RandomSource) -> Any:
            nodes.append(release(counts, rank, source))
            return nodes[-1]

        made._engine.release = record
        wrong, base = 0, made.base
        kept: list[tuple[int, Any]] = []  # the last tick of a node in use, and what it published
        for tick in range(1, min(histogram.horizon, 2 * base + 1) + 1):
            shown = made.step([[0], [tick % 3]])
            size = 1
            while tick % (size * base) == 0 and size * base <= histogram.horizon:
                size *= base
            kept = [(last, part) for last, part in kept if last <= tick - size] + [(tick, nodes[-1])]
            expected: dict[int, int] = {}
            for _, (where, noisy) in kept:
                for place, count in zip(where.tolist(), noisy.tolist(), strict=True):
                    item = made._items[place]
                    expected[item] = expected.get(item, 0) + count
            listed = dict(zip(shown.items, shown.counts.tolist(), strict=True))
            best = sorted(expected.items(), key=lambda pair: (-pair[1], pair[0]))[: histogram.k]
            wrong += listed != dict(best)
        wrong += any(draw.law not in ("choice", node.law) for draw in source.draws)
        wrong += any(draw.law == node.law and draw.scale != node.scale for draw in source.draws)
        return Finding("exact", "the code draws and shows what the law says", "violations", 0, wrong)

    def _exact_sparse(self, histogram: Any, engine: Sparse, effort: Effort) -> Iterator[Finding]:
        """Theorem 4 of [CO] part by part: choices, counters, and runs of AboveThreshold by their exact loss."""
        s, k = histogram.switches, histogram.k
        source = self._switching(histogram)
        choices = [draw for draw in source.draws if draw.law == "choice"]
        laplace = [draw for draw in source.draws if draw.law == "laplace"]
        norm, pairs = worst_norm(engine.factor, tries(effort))
        parts = {
            "choices": (s + 1) * k * choice_rho(float(4 / choices[0].scale)),
            "counters": (s + 1) * k * norm * norm / (2.0 * float(engine.sigma) ** 2),
        }
        if s:
            levels, queries = ({d.scale for d in laplace if (d.size == 1) is one} for one in (True, False))
            # Losses within a range r are r^2/8-zCDP.
            losses = above_threshold_losses(*(NoiseLaw("laplace", min(scales), 1e-12) for scales in (levels, queries)))
            parts["AboveThreshold"] = s * sum(losses) ** 2 / 8.0
            # A part of its own: among many choices and counters it would not be seen. It is reached, but for what the
            # tables leave out.
            share = claimed_rho(histogram) * (1.0 - 2 * k / (2 * k + 0.25)) * (1.0 + 1e-5)
            yield Finding("exact", "runs of AboveThreshold", "rho", share, parts["AboveThreshold"], 0)
        detail = ", ".join(f"{name} {value:.4g}" for name, value in parts.items())
        claimed = claimed_rho(histogram) * _SLACK
        what, rho = "choices, counters, AboveThreshold", sum(parts.values())
        yield Finding("exact", what, "rho", claimed, rho, pairs, detail)
        if histogram.guarantee.rho is None:
            delta = zcdp_delta(rho, histogram.guarantee.epsilon)
            yield Finding("exact", what, "delta", histogram.guarantee.delta, delta, pairs)
        # Every choice draws one level noise, and there are no more choices than are paid for.
        ticks = min(histogram.horizon, s + 4)
        wrong = len(choices) != min(s + 1, ticks) or sum(draw.size == 1 for draw in laplace) != len(choices)
        wrong = wrong or any(draw.size != k for draw in choices)
        yield Finding("exact", "choices are as many as paid for", "violations", 0, int(wrong), 0, f"{ticks} ticks")

    def _switching(self, histogram: Any) -> ScriptedSource:
        """What sparseGumb draws when at every tick another item is far ahead."""
        engine, source = histogram.make_engine(), ScriptedSource()
        ticks = min(histogram.horizon, histogram.switches + 4)
        total = np.zeros(histogram.k + ticks + 2, np.int64)
        for tick in range(1, ticks + 1):
            added = np.zeros_like(total)
            # Of items that never occurred the first fill the k places; this one is behind them.
            added[histogram.k + tick] = (histogram.margin + 10**6) * 2 ** min(tick, 20) * tick
            total = total + added
            engine.step(total, added, tick, _rank(len(total)), source)
        return source

    # ---- statistical -----------------------------------------------------------------------------------------------

    def statistical(self, histogram: Any, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled code with and without an event at the first tick."""
        yield self._plumbing(histogram)
        epsilon, delta = claimed_loss(histogram)
        engine, most = histogram._engine, histogram.max_items_per_event
        alone = isinstance(engine, Factored) or (most is not None and histogram.limit is None)
        if alone and histogram.k is None:
            runs, ticks, outputs = self._side_by_side(histogram, effort)
            what = f"{most} counts higher"
        else:
            runs, ticks, outputs = self._one_by_one(histogram, effort)
            what = f"{histogram.k or 1} of {(histogram.k or 1) + 1} items higher"
        bound = measure_outputs(outputs[0], outputs[1], delta)
        detail = f"{runs} runs of each, {ticks} ticks, delta={delta:g}"
        yield Finding("statistical", what, "epsilon", epsilon, bound, 1, detail)
        if isinstance(engine, Hidden):
            runs = side_by_side(effort) // 10
            made = self.anew(histogram)
            first = made.step(np.arange(runs * most))
            seen = set(first.items)
            for _ in range(min(histogram.horizon, _TICKS) - 1):
                seen.update(made.step([]).items)
            groups = len({item // most for item in seen})
            # Nothing at all is shown of the stream without them.
            bound = epsilon_lower_bound((groups, runs), (0, runs), delta, FALSE_ALARM)
            yield Finding("statistical", "items of one event appear", "epsilon", epsilon, bound, 1, f"{runs} runs")
            yield from self._late_items(histogram, effort)

    def _late_items(self, histogram: Any, effort: Effort) -> Iterator[Finding]:
        """Items that come late have noise as if it ran from the start, or the noise tells since when they are counted.

        The variance of n noises, which are normal but for rounding, has a relative deviation of sqrt(2/n); 7.5 of them
        are exceeded with probability below 1e-12.
        """
        engine, ticks = histogram._engine, range(2, min(histogram.horizon, _TICKS) + 1)
        if not ticks:
            return
        tick = max(ticks, key=engine.error)
        high = engine.cut(tick) + math.ceil(20 * engine.error(tick))
        items = max(500, min(side_by_side(effort) // 4, 10**6 // high))
        made = self.anew(histogram)
        for _ in range(tick - 1):
            made.step([])
        noise = made.step(np.repeat(np.arange(items), high)).counts - high
        off = abs(float((noise.astype(np.float64) ** 2).mean()) / engine.error(tick) ** 2 - 1)
        limit, detail = 7.5 * math.sqrt(2 / items), f"{items} items at tick {tick}"
        yield Finding("statistical", "items that come late have all noise", "relative variance", limit, off, 1, detail)

    def _side_by_side(self, histogram: Any, effort: Effort) -> tuple[int, int, list[Any]]:
        """Every D items are a run of their own: their noises are independent, and far above any cut all are shown."""
        engine, most = histogram._engine, histogram.max_items_per_event
        ticks = min(histogram.horizon, _TICKS)
        high = 0
        if histogram._domain is None:
            errors = max(engine.error(t) for t in range(1, ticks + 1))
            probe = self.anew(histogram, source=ScriptedSource(0, 0))
            cut = engine.cut(ticks) if isinstance(engine, Hidden) else (node_of(probe._engine, False).shift or 0) + 1
            high = cut + math.ceil(20 * errors)
        runs = max(500, min(side_by_side(effort) // 4, 10**6 // (most * (high + 1))))
        items, outputs = runs * most, []
        for event in (1, 0):
            made = self.anew(histogram, list(range(items)))
            shown = []
            for tick in range(ticks):
                release = made.step(np.repeat(np.arange(items), (high + event) if tick == 0 else 0))
                counts = np.zeros(items)
                counts[np.asarray(release._items, np.int64)] = release.counts
                shown.append(counts.reshape(runs, most).sum(axis=1))
            outputs.append(np.array(shown).T)
        return runs, ticks, outputs

    def _one_by_one(self, histogram: Any, effort: Effort) -> tuple[int, int, list[Any]]:
        """The engine alone, many times: k + 1 items, of which the event has the first k."""
        pristine, source = histogram.make_engine(), system_source()
        runs, ticks = effort.runs, min(histogram.horizon, 2)
        node = node_of(pristine, histogram._domain is not None) if isinstance(pristine, Meta) else None
        high = 2 * ((node.shift if node else 0) or 0) + 20
        items = max(2, (histogram.k or 1) + 1)
        outputs = []
        for event in (1, 0):
            total = np.full(items, high)
            total[: histogram.k or 1] += event
            rows = np.zeros((runs, ticks * items))
            for run in range(runs):
                engine = copy.copy(pristine)
                for tick in range(1, ticks + 1):
                    added = total if tick == 1 else np.zeros_like(total)
                    where, noisy = engine.step(total, added, tick, _rank(items), source)
                    # Being listed tells two histograms apart as well as the count does: a step of one sigma.
                    rows[run, (tick - 1) * items + where] = noisy - high + 2.0 * engine.error(1)
            outputs.append(rows)
        return runs, ticks, outputs

    def _plumbing(self, histogram: Any) -> Finding:
        wrong = []
        made = self.anew(histogram, list(range(40)))
        # No more items than are looked at: of equal ones beyond, none would be shown.
        stream = np.repeat(np.arange(min(40, histogram.limit or 40)), 10**4)
        first = made.step(stream, tick=1)
        again = [*(made.step(stream, tick=1) for _ in range(10)), type(made).from_bytes(made.to_bytes()).last]
        if any(repeated.to_payload() != first.to_payload() for repeated in again):
            wrong.append("a tick that was published is published again with other noise")
        if not in_order(first):
            wrong.append("the order of the items is not that of the counts")
        if made.error(1) >= 1.0 and len(first) == 40 and len(set(first.counts.tolist())) == 1:  # a chance below 1e-15
            wrong.append("all counts have the same noise")
        texts = []
        for events in ([], [[1]]):
            lattice = getattr(getattr(made._engine, "factor", None), "lattice", 1)
            other = self.anew(histogram, list(range(40)), ScriptedSource(0, -_HIGH * lattice))
            release = other.step(events)
            shown = release.to_payload() if histogram._domain is None else (len(release), release.guarantee)
            texts.append((shown, repr(other), other.error(1)))
        if texts[0] != texts[1]:
            wrong.append("the empty stream can be told from one event without looking at counts")
        source, restarted = seeded_source(3), seeded_source(3)
        one, two = (self.anew(histogram, list(range(4)), s) for s in (source, restarted))
        for _ in range(min(histogram.horizon, 4)):
            two = type(two).from_bytes(two.to_bytes(), source=restarted)
            if one.step([[0, 1], [2]] * 50).to_payload() != two.step([[0, 1], [2]] * 50).to_payload():
                wrong.append("a restart changes what is drawn")
                break
        if first.guarantee.seeded or not one.guarantee.seeded:
            wrong.append("a release does not say where its noise came from")
        return Finding(
            "statistical", "order, repetition, restart, metadata", "violations", 0, len(wrong), 1, "; ".join(wrong)
        )

    # ---- coupled ---------------------------------------------------------------------------------------------------

    def coupled(self, histogram: Any, effort: Effort) -> Iterator[Finding]:
        """Random streams of sets of items, and the same with one event more: how far apart is what gets the noise?"""
        rng = np.random.default_rng(4)
        most = histogram.max_items_per_event
        ticks, pairs = min(histogram.horizon, _TICKS), effort.released_pairs // 5
        worst, levels = 0.0, getattr(histogram._engine, "levels", 1)
        for _ in range(pairs):
            stream = [
                [rng.choice(12, rng.integers(0, 5), replace=False).tolist() for _ in range(30)] for _ in range(ticks)
            ]
            more = [list(events) for events in stream]
            when = int(rng.integers(0, ticks))
            event = rng.choice(12, rng.integers(1, 6), replace=False).tolist()
            more[when].insert(int(rng.integers(0, 31)), event)
            one, two = self._noised(histogram, stream), self._noised(histogram, more)
            moved = [[two[i].get(x, 0) - one[i].get(x, 0) for x in {*one[i], *two[i]}] for i in range(len(one))]
            if any(change < 0 or change > 1 for part in moved for change in part):
                worst = math.inf
            sizes = [sum(part) for part in moved]
            worst = max(worst, math.sqrt(sum(sizes) if isinstance(histogram._engine, Meta) else max(sizes)))
        declared = math.sqrt((12 if most is None else most) * levels) * _SLACK
        what = "l2-change of the nodes" if isinstance(histogram._engine, Meta) else "l2-change of a tick's counts"
        yield Finding("coupled", what, "sensitivity", declared, worst, pairs)

    def _noised(self, histogram: Any, stream: Any) -> list[dict[Any, int]]:
        """The counts that get noise, at every tick: all of them, or those of the node that is released."""
        made, parts = self.anew(histogram, list(range(12)), seeded_source(1)), []
        if isinstance(made._engine, Meta):
            release = made._engine.release

            def record(counts: Integers, rank: Any, source: RandomSource) -> Any:
                parts.append(dict(zip(made._items, counts.tolist(), strict=True)))
                return release(counts, rank, source)

            made._engine.release = record
        for events in stream:
            made.step(events)
            if not isinstance(made._engine, Meta):
                parts.append(dict(zip(made._items, made._total.tolist(), strict=True)))
        return parts


def _cuts(engine: Hidden, horizon: int) -> tuple[list[int], float]:
    """The cuts of all ticks, or those of the first ticks and what they must be multiplied with."""
    ticks = min(horizon, 4096)
    return [engine.cut(tick) for tick in range(1, ticks + 1)], horizon / ticks


def _sets(items: Sequence[int], most: int) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(items, size) for size in range(1, most + 1)))


def _released(engine: Meta, counts: tuple[int, ...], source: RandomSource) -> Any:
    where, noisy = engine.release(np.array(counts, np.int64), _rank(len(counts)), source)
    return tuple(sorted(zip(where.tolist(), noisy.tolist(), strict=True)))


def _composed(first: Any, second: Any, times: int, epsilon: float) -> float:
    """A lower bound of the divergence at epsilon of `times` independent outputs of each law."""
    outputs = {**first.mass, **second.mass}
    p, q = (np.array([law.mass.get(output, 0.0) for output in outputs]) for law in (first, second))
    one, two = merge_ratios(p, q)
    p, q = one, two
    for _ in range(times - 1):
        p, q = merge_ratios(np.outer(p, one).ravel(), np.outer(q, two).ravel())
    factor = math.exp(epsilon)
    inside = float(np.maximum(p - factor * q, 0.0).sum())
    return max(0.0, inside - factor * times * float(second.missing))


@lru_cache(maxsize=16)
def _events_move(most: int | None, known: bool) -> tuple[int, int]:
    """(wrong, pairs): whether one event more raises at most `most` counts, by one, for all short events."""
    events = [list(event) for length in range(4) for event in product(range(3), repeat=length)]
    domain = {0, 1} if known else None
    wrong = tried = 0
    for base in ([], [[0]], [[2, 1, 0]], [[0, 0, 1], [2]]):
        plain = _counted(base, most, domain)
        for event in events:
            for where in range(len(base) + 1):
                more = _counted([*base[:where], event, *base[where:]], most, domain)
                moved = [more.get(x, 0) - plain.get(x, 0) for x in range(3)]
                wrong += not set(moved) <= {0, 1} or sum(moved) > (3 if most is None else most)
                wrong += known and moved[2] != 0
                tried += 1
    return wrong, tried


def _counted(events: list[list[int]], most: int | None, domain: Any) -> dict[int, int]:
    items, counts = event_counts(events, most, domain)
    return dict(zip(items.to_pylist(), counts.tolist(), strict=True))
