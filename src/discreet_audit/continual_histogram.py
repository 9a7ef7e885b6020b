"""Histograms over time, of events and of people: the four settings of [CO], each by the noise its scheme draws.

Scales, cuts and the number of nodes that hold an event are read from what the scheme does with written noise. A person
with m items costs what an event of m items costs, so the checks of histograms of events are made of histograms of
people, too, with a new person for every event. What is added for people is what events cannot do: come again, with the
same items and with others, at other ticks.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.continual import Histogram, one_shot
from discreet.continual.anatomy import (
    EPOCHS,
    CorrelatedNoise,
    Doubling,
    Factored,
    Hidden,
    Meta,
    Restarted,
    Scheme,
    Sparse,
    Tree,
    epoch_of,
    event_counts,
)
from discreet.noise import RandomSource, seeded_source, system_source
from discreet.privacy import Budget, User
from discreet.privacy.calibration.composition import repeated_delta
from discreet.privacy.calibration.zcdp import zcdp_delta
from discreet_audit import continual as shared
from discreet_audit.closed_forms import NoiseLaw, gaussian_split_delta, merge_ratios
from discreet_audit.core import SLACK, Effort, Finding, Twin, claim, row
from discreet_audit.exact import OutputLaw, ScriptedSource, WeakenedSource, law_of
from discreet_audit.statistical import FALSE_ALARM, epsilon_lower_bound

Integers = npt.NDArray[np.int64]
Runs = tuple[int, int, Callable[[int], Any]]
_TICKS = 6
_LATE = 100
_ITEM_PASSES = "items of one event pass the cut"
_CONFORMS = "the code draws and shows what the law says"


# ---- what is read from a scheme --------------------------------------------------------------------------------------


def _rank(size: int) -> Callable[[], Integers]:
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


def node_of(scheme: Meta, known: bool) -> Node:
    """The numbers of the scheme's node, from its behaviour."""

    def released(items: int, noise: int) -> tuple[int, ScriptedSource]:
        source = ScriptedSource(0, noise)
        return len(scheme.release(np.ones(items, np.int64), _rank(items), source)[0]), source

    _, many = released(2000, shared.HIGH)
    counts = next(draw for draw in reversed(many.draws) if draw.law != "choice")
    choice = next((draw for draw in many.draws if draw.law == "choice"), None)
    if choice is not None:
        # The stop is the last score; those before it are items of count 1, and so is the largest left out.
        shift = None if known else int(released(1, 0)[1].scores[0][-1]) - 1
        limit = len(many.scores[0]) - 1
        return Node(counts.law, counts.scale, choice.size or 0, float(4 / choice.scale), shift, limit)
    low, high = -1, shared.HIGH  # not shown, shown
    while not known and high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if released(1, middle)[0] else (middle, high)
    return Node(counts.law, counts.scale, 0, math.inf, None if known else high, 0)


def _every_tree(scheme: Meta | Restarted, change: Callable[[Meta], None]) -> None:
    """Change the tree of the scheme: without a horizon, that of every epoch as it is made."""
    if isinstance(scheme, Meta):
        change(scheme)
        return
    make = scheme.make

    def changed(ticks: int) -> Meta:
        tree = make(ticks)
        change(tree)
        return tree

    scheme.make, scheme.inner = changed, changed(1)


def _copied(scheme: Any) -> Any:
    """The same scheme before its first tick, with a state of its own."""
    made = copy.copy(scheme)
    if isinstance(made, Restarted):
        made.inner = made.make(1)
    return made


def _watch(scheme: Meta | Restarted, seen: Callable[[Integers, Any], None], released: Any = None) -> None:
    """Have every node's counts and what it publishes looked at; `released` is published in its place."""

    def watched(tree: Meta) -> None:
        release = tree.release

        def record(counts: Integers, rank: Any, source: RandomSource) -> Any:
            published = release(counts, rank, source) if released is None else released
            seen(counts, published)
            return published

        tree.release = record

    _every_tree(scheme, watched)


def nodes_of_an_event(scheme: Meta | Restarted, ticks: int) -> dict[int, int]:
    """The most nodes that are released with one event in them, by its epoch (0: of all); at one of some ticks."""
    epochs = isinstance(scheme, Restarted)
    some = np.arange(1, ticks + 1) if epochs else np.geomspace(1, ticks, min(ticks, 64)).round().astype(int)
    when = np.unique(some)
    held, nothing, made = np.zeros(len(when), np.int64), np.zeros(0, np.int64), _copied(scheme)
    _watch(made, lambda counts, _: np.add(held, counts != 0, out=held), (nothing, nothing))
    for tick in range(1, ticks + 1):
        made.step(np.zeros(len(when), np.int64), (when == tick).astype(np.int64), tick, _rank(1), system_source())
    if not epochs:
        return {0: int(held.max())}
    return {e: int(held[2**e - 1 : 2 ** (e + 1) - 1].max()) for e in range(ticks.bit_length())}


def _trees(scheme: Meta | Restarted, horizon: int | None) -> list[tuple[str, Meta, int]]:
    """(name, tree, nodes that hold one event): of the scheme, or of each of some epochs."""
    ticks = min(horizon or 2**shared.TRIED - 1, 4096)
    held = nodes_of_an_event(scheme, ticks)
    if isinstance(scheme, Meta):
        return [("", scheme, held[0])]
    # An epoch that is too long to run has what its levels say.
    later = {epoch: scheme.make(2**epoch).levels for epoch in (12, EPOCHS - 1)}
    return [(f", epoch of {2**e} ticks", scheme.make(2**e), L) for e, L in {**held, **later}.items()]


def _anew(histogram: Histogram, items: int, source: RandomSource | None = None) -> Histogram:
    """Over items 0, 1, ... where the domain is known."""
    return histogram.anew(source, **({"domain": range(items)} if histogram.domain_is_known else {}))


def _begun(histogram: Histogram, tick: int) -> Histogram:
    """Before this tick, with nothing in those before it."""
    made = histogram.anew()
    for _ in range(tick - 1):
        made.step([])
    return made


def _column(items: int, times: int) -> pa.Array:
    """Each of the items 0, 1, ... so many times, an event each."""
    return pa.array(np.repeat(np.arange(items), times))


class HistogramOverTimeAudit(shared.OverTimeAudit):
    """The four checks of a `Histogram`."""

    def label(self, histogram: Histogram) -> str:
        """Its setting."""
        domain = "known" if histogram.domain_is_known else "unknown"
        items = "D=any" if histogram.most_items is None else f"D={histogram.most_items}"
        people = items.replace("D", "people, m") if isinstance(histogram.unit, User) else items
        weights = "" if histogram.max_weight == 1 else f", weights to {histogram.max_weight}"
        return f"Histogram, {domain}, {people}, {histogram.mechanism}{weights}{shared.any_horizon(histogram)}"

    # ---- structure -------------------------------------------------------------------------------------------------

    def structure(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """One event raises at most D counts by one; it is in one node a level, or moves the noises by a known shift."""
        most, scheme = histogram.most_items, histogram.scheme
        wrong, pairs = _events_move(None if most is None else min(most, 3), histogram.domain_is_known)
        yield Finding("structure", "one event raises at most D counts, by one", "violations", 0, wrong, pairs)
        if isinstance(scheme, Meta | Restarted):
            for name, tree, held in _trees(scheme, histogram.horizon):
                what = f"released nodes with one event in them{name}"
                yield Finding("structure", what, "sensitivity", tree.levels, held, 64)
        else:
            counters: Any = scheme
            yield from shared.shifts_of_an_event(counters.factor, counters.sigma, effort)

    # ---- exact -----------------------------------------------------------------------------------------------------

    def exact(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """What an event costs in all ticks together, and the code against the law."""
        scheme = histogram.scheme
        if isinstance(scheme, Sparse):
            yield from self._exact_sparse(histogram, effort)
        elif isinstance(scheme, Meta | Restarted):
            for name, tree, held in _trees(scheme, histogram.horizon):
                yield from self._exact_tree(histogram, tree, held, name)
            yield self._tree_conforms(histogram)
        else:
            yield from self._exact_counters(histogram, scheme, effort)

    def _exact_counters(self, histogram: Histogram, scheme: Any, effort: Effort) -> Iterator[Finding]:
        guarantee, items, horizon = histogram.guarantee, histogram.most_items or 1, histogram.horizon or 1
        hidden, delta = isinstance(scheme, Hidden), 0.0
        noise = CorrelatedNoise(scheme.factor, scheme.sigma)
        heavy, epochs = histogram.max_weight, isinstance(scheme.factor, Doubling)
        norm, rho, pairs = shared.cost_of_an_event(scheme.factor, scheme.sigma, items * heavy**2, effort)
        claimed = shared.claimed_rho(histogram, 0.5 if hidden else 1.0) * SLACK
        yield Finding("exact", f"the counters of {items} items in all ticks", "rho", claimed, rho, pairs)
        if guarantee.epsilon is not None:
            moved = items * heavy**2
            delta = (
                zcdp_delta(rho, guarantee.epsilon)
                if epochs
                else shared.event_delta(noise, norm, moved, guarantee.epsilon)
            )
        if hidden and epochs:
            every = shared.shown_in_any_epoch(
                scheme.factor, scheme.sigma, lambda tick: scheme.cut(tick) - heavy + 1, 8 + effort.length
            )
            half, shown = guarantee.delta / 2.0, items * math.fsum(every)
            shares = math.fsum(2**e * scheme.factor.tick_share(2**e) for e in range(EPOCHS))
            yield Finding("exact", "what all epochs together may spend", "share of delta", 1.0, shares, EPOCHS)
            what = f"{_ITEM_PASSES}, in all epochs there may be"
            yield Finding("exact", what, "delta of hidden items", half, shown, items, f"{len(every)} epochs")
            delta += shown
        elif hidden:
            # The cuts of all ticks, or those of the first ticks and what they must be multiplied with.
            cuts = [scheme.cut(tick) for tick in range(1, min(horizon, 4096) + 1)]
            shown = items * (horizon / len(cuts)) * shared.shown_by_one_event(noise, [cut - heavy + 1 for cut in cuts])
            half = guarantee.delta / 2.0
            yield Finding("exact", _ITEM_PASSES, "delta of hidden items", half, shown, items)
            delta += shown
            if isinstance(scheme.factor, Tree) and horizon <= 3 and scheme.sigma <= 2:
                reach = math.ceil(6 * scheme.sigma)
                ever = items * shared.item_shown(scheme.factor, float(scheme.sigma), cuts, heavy, reach)
                yield Finding("exact", "the same, every noise", "delta of hidden items", half, ever, items)
        if guarantee.epsilon is not None:
            yield Finding("exact", "one event in all ticks", "delta", guarantee.delta, delta, pairs)
        yield self._counters_conform(histogram, hidden)

    def _counters_conform(self, histogram: Histogram, hidden: bool) -> Finding:
        """With written noise: what is shown is the count with that noise, and for new items only from the cut on.

        Without a horizon over the first epochs: counts have the noises of the epoch and of totals.
        """
        written, heavy = shared.WrittenNoise(), 5 * _lattice(histogram.scheme)
        made = _anew(histogram, 5, written.source)
        scheme: Any = made.scheme
        epochs = isinstance(scheme.factor, Doubling)
        around, wrong = _AroundTheCut(made, hidden), 0
        for tick in range(1, (9 if epochs else shared.first_ticks(histogram, 3)) + 1):
            z = -heavy * 2**tick  # so that all noise before is less, and the counts are around the cut again
            parts = shared.doubled(scheme.factor, scheme.sigma, tick) if epochs else [(_noise_of(scheme), tick)]
            wrong += around.step(tick, written.noise(z, parts))
        asked = [(draw.law, draw.scale) for draw in written.source.draws]
        law = [("gaussian", sigma) for sigma in written.sigmas]
        wrong += asked != law if epochs else {*asked} != {*law}  # trees draw several times for items that come late
        return Finding("exact", _CONFORMS + (", in every epoch" if epochs else ""), "violations", 0, int(wrong))

    def _exact_tree(self, histogram: Histogram, scheme: Meta, L: int, name: str) -> Iterator[Finding]:
        guarantee, known, most = histogram.guarantee, histogram.domain_is_known, histogram.most_items
        node = node_of(scheme, known)
        noise = NoiseLaw(node.law, node.scale, 1e-30)
        changed = node.choices if most is None else most  # published counts of a node that one event raises
        hidden = 0.0
        if node.shift is not None:
            stopped = shared.stop_is_beaten(node.limit, node.shift, node.tau) if most is None else 0.0
            hidden = L * stopped if most is None else L * most * shared.difference_tail(noise, node.shift)
            if node.law == "gaussian":
                half = guarantee.delta / 2.0 * SLACK
                yield Finding("exact", f"{_ITEM_PASSES}{name}", "delta of hidden items", half, hidden, L)
        composed, epsilon = f"{L} nodes composed{name}", guarantee.epsilon
        if node.law == "laplace" and epsilon is not None:
            total = repeated_delta(epsilon, float(changed / node.scale), hidden / L, L)
            yield Finding("exact", composed, "delta", guarantee.delta, total, L)
        else:
            rho = L * changed / (2.0 * float(node.scale) ** 2)
            if node.choices:
                rho += L * node.choices * shared.choice_rho(node.tau)
            claimed = shared.claimed_rho(histogram, 1.0 if known else 0.5) * SLACK
            yield Finding("exact", f"counts and choices of {L} nodes{name}", "rho", claimed, rho, L)
            if epsilon is not None:
                counts = gaussian_split_delta(noise, 0, L * changed, 10**9, epsilon)
                delta = zcdp_delta(rho, epsilon) if node.choices else counts
                yield Finding("exact", composed, "delta", guarantee.delta, delta + hidden, L)
        if not known and float(node.scale) <= 2.0 and L <= 3 and node.limit <= 3:
            yield self._enumerated(histogram, scheme, node, L)

    def _enumerated(self, histogram: Histogram, scheme: Meta, node: Node, L: int) -> Finding:
        """Every branch of a node's own code on a few small histograms; L nodes with the same event in each."""
        most, high = histogram.most_items or 2, (node.shift or 0) + 1
        worst, tried = 0.0, 0
        laws: dict[tuple[int, ...], OutputLaw] = {}
        events = chain.from_iterable(combinations(range(2), size) for size in range(1, most + 1))
        for base, event in product(((0, 0), (1, 0), (high, 0), (high, 1)), list(events)):
            more = tuple(c + (i in event) for i, c in enumerate(base))
            for counts in (base, more):
                if counts not in laws:
                    laws[counts] = law_of(partial(_released, scheme, counts), 1e-6)
            for one, two in ((base, more), (more, base)):
                worst = max(worst, _composed(laws[one], laws[two], L, histogram.guarantee.epsilon or 0.0))
                tried += 1
        what = f"every branch of the code, {L} nodes"
        return Finding("exact", what, "delta", histogram.guarantee.delta, worst, tried, "least delta")

    def _tree_conforms(self, histogram: Histogram) -> Finding:
        """A tick shows the sum of the nodes of its digits, each as its one-shot mechanism published it.

        Without a horizon the nodes of earlier epochs stay.
        """
        source, right = ScriptedSource(0, shared.HIGH), histogram.scheme
        assert isinstance(right, Meta | Restarted)
        nodes: list[Any] = []
        made = _anew(histogram, 3, source)
        scheme: Any = made.scheme
        _watch(scheme, lambda _, published: nodes.append(published))
        wrong, last = 0, shared.first_ticks(made, 2 * (made.base or 2) + 5)
        nodes_of = {first: node_of(tree, histogram.domain_is_known) for first, tree in _first_trees(right, last)}
        kept: list[tuple[int, Any]] = []  # the last tick of a node in use, and what it published
        for tick in range(1, last + 1):
            source.draws.clear()
            shown = made.step([[0], [tick % 3]])
            first, span = (1, made.horizon) if made.horizon else (epoch_of(tick)[1],) * 2
            tree: Meta = scheme.inner if isinstance(scheme, Restarted) else scheme
            inside, base, size = tick - first + 1, tree.base, 1
            while inside % (size * base) == 0 and size * base <= span:
                size *= base
            kept = [(last, part) for last, part in kept if last <= tick - size] + [(tick, nodes[-1])]
            expected: dict[Any, int] = {}
            items = list(made.not_private_counts())
            for _, (where, noisy) in kept:
                for place, count in zip(where.tolist(), noisy.tolist(), strict=True):
                    expected[items[place]] = expected.get(items[place], 0) + count
            best = sorted(expected.items(), key=lambda pair: (-pair[1], pair[0]))[: histogram.k]
            wrong += _listed(shown) != dict(best)
            draws = list(source.draws)
            node = nodes_of[first]
            wrong += any(draw.law not in ("choice", node.law) for draw in draws)
            wrong += any(draw.law == node.law and draw.scale != node.scale for draw in draws)
        return Finding("exact", _CONFORMS, "violations", 0, wrong)

    def _exact_sparse(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """Theorem 4 of [CO] part by part: choices, counters, and runs of AboveThreshold by their exact loss."""
        s, k = histogram.switches, histogram.k or 1
        source = self._switching(histogram)
        choices = [draw for draw in source.draws if draw.law == "choice"]
        laplace = [draw for draw in source.draws if draw.law == "laplace"]
        _, counters, pairs = shared.moved_by_an_event(_noise_of(histogram.scheme), (s + 1) * k, effort)
        parts = {"choices": (s + 1) * k * shared.choice_rho(float(4 / choices[0].scale)), "counters": counters}
        if s:
            levels, queries = ({d.scale for d in laplace if (d.size == 1) is one} for one in (True, False))
            # Losses within a range r are r^2/8-zCDP.
            losses = shared.above_threshold_losses(
                *(NoiseLaw("laplace", min(scales), 1e-12) for scales in (levels, queries))
            )
            parts["AboveThreshold"] = s * sum(losses) ** 2 / 8.0
            # A part of its own: among many choices and counters it would not be seen. It is reached, but for what the
            # tables leave out.
            share = shared.claimed_rho(histogram) * (1.0 - 2 * k / (2 * k + 0.25)) * (1.0 + 1e-5)
            yield Finding("exact", "runs of AboveThreshold", "rho", share, parts["AboveThreshold"], 0)
        detail = ", ".join(f"{name} {value:.4g}" for name, value in parts.items())
        what, rho, guarantee = "choices, counters, AboveThreshold", sum(parts.values()), histogram.guarantee
        yield Finding("exact", what, "rho", shared.claimed_rho(histogram) * SLACK, rho, pairs, detail)
        if guarantee.epsilon is not None:
            yield Finding("exact", what, "delta", guarantee.delta, zcdp_delta(rho, guarantee.epsilon), pairs)
        # Every choice draws one level noise, and there are no more choices than are paid for.
        ticks = shared.first_ticks(histogram, s + 4)
        wrong = len(choices) != min(s + 1, ticks) or sum(draw.size == 1 for draw in laplace) != len(choices)
        wrong = wrong or any(draw.size != k for draw in choices)
        yield Finding("exact", "choices are as many as paid for", "violations", 0, int(wrong), 0, f"{ticks} ticks")

    def _switching(self, histogram: Histogram) -> ScriptedSource:
        """What sparseGumb draws when at every tick another item is far ahead."""
        scheme, source, k = histogram.make_scheme(), ScriptedSource(), histogram.k or 1
        ticks = shared.first_ticks(histogram, histogram.switches + 4)
        total = np.zeros(k + ticks + 2, np.int64)
        for tick in range(1, ticks + 1):
            added = np.zeros_like(total)
            # Of items that never occurred the first fill the k places; this one is behind them.
            added[k + tick] = (histogram.margin + 10**6) * 2 ** min(tick, 20) * tick
            total = total + added
            scheme.step(total, added, tick, _rank(len(total)), source)
        return source

    # ---- statistical -----------------------------------------------------------------------------------------------

    def statistical(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled code with and without an event at the first tick."""
        yield self._plumbing(histogram)
        epsilon, delta = claim(histogram)
        scheme, most, k = histogram.scheme, histogram.most_items, histogram.k
        if k is None and (isinstance(scheme, Factored) or histogram.limit is None):
            what, (runs, ticks, run) = f"{most} counts higher", self._side_by_side(histogram, effort)
        else:
            what, (runs, ticks, run) = f"{k or 1} of {(k or 1) + 1} items higher", self._one_by_one(histogram, effort)
        yield shared.told_apart(what, histogram, run, f"{runs} runs of each, {ticks} ticks, delta={delta:g}")
        if isinstance(scheme, Hidden) and most is not None:
            runs, ticks = shared.side_by_side(effort) // 10, shared.first_ticks(histogram, _TICKS)
            shown = shared.published_counts(histogram.anew(), _column(runs * most, 1), ticks, runs * most)
            groups = int(shown.any(axis=0).reshape(runs, most).any(axis=1).sum())
            # Nothing at all is shown of the stream without them.
            bound = epsilon_lower_bound((groups, runs), (0, runs), delta, FALSE_ALARM)
            yield Finding("statistical", "items of one event appear", "epsilon", epsilon, bound, 1, f"{runs} runs")
            yield from self._late_items(histogram, scheme, effort)
            if isinstance(scheme.factor, Doubling):
                yield from self._at_the_cut(histogram, scheme, effort)

    def _late_items(self, histogram: Histogram, scheme: Hidden, effort: Effort) -> Iterator[Finding]:
        """Items that come late have noise as if it ran from the start, or the noise tells since when they are counted.

        Without a horizon also on both sides of the end of an epoch.
        """
        ticks = range(2, shared.first_ticks(histogram, _TICKS) + 1)
        if not ticks:
            return
        # Where most of the noise is of ticks before; and past the first ticks, where the noise need not be run through.
        some = {max(ticks, key=scheme.error), shared.first_ticks(histogram, _LATE)}
        if isinstance(scheme.factor, Doubling):
            some |= {7, 8}  # the last of an epoch and the first of the next
        for tick in sorted(some):
            high = scheme.cut(tick) + math.ceil(20 * scheme.error(tick))
            items = max(500, min(shared.side_by_side(effort) // 4, 10**6 // high))
            made = _begun(histogram, tick)
            limit, off = shared.variance_is_off(made.step(_column(items, high)).counts - high, scheme.error(tick))
            what, detail = "items that come late have all noise", f"{items} items at tick {tick}"
            yield Finding("statistical", what, "relative variance", limit, off, 1, detail)
            if tick in (1, 7) and isinstance(scheme.factor, Doubling):
                limit, off = shared.variance_is_off(made.step([]).counts - high, scheme.error(tick + 1))
                what, detail = "and in the next epoch", f"{items} items of tick {tick} at tick {tick + 1}"
                yield Finding("statistical", what, "relative variance", limit, off, 1, detail)

    def _at_the_cut(self, histogram: Histogram, scheme: Hidden, effort: Effort) -> Iterator[Finding]:
        """Of items whose count is the cut as many are shown as have no negative noise, on both sides of an epoch's end.

        Noise is symmetric. A share of n items is off by more than the limit with probability 1e-9 (Hoeffding).
        """
        for tick in (1, 3, 4, 7, 8):
            cut, error = scheme.cut(tick), scheme.error(tick)
            items = max(500, min(shared.side_by_side(effort) // 4, 10**6 // cut))
            made = _begun(histogram, tick)
            share = len(made.step(_column(items, cut))) / items
            law = 0.5 + 0.5 / (error * math.sqrt(2.0 * math.pi))
            limit = math.sqrt(math.log(2.0 / FALSE_ALARM) / (2 * items)) + 0.01 / max(error, 1.0)
            what, detail = "items at the cut are shown as the law says", f"{items} items at tick {tick}"
            yield Finding("statistical", what, "difference of shares", limit, abs(share - law), 1, detail)

    def _side_by_side(self, histogram: Histogram, effort: Effort) -> Runs:
        """Every D items are a run of their own: their noises are independent, and far above any cut all are shown."""
        scheme, most = histogram.scheme, histogram.most_items or 1
        ticks, high = shared.first_ticks(histogram, _TICKS), 0
        if not histogram.domain_is_known:
            cut = 0
            if isinstance(scheme, Hidden):
                cut = max(scheme.cut(tick) for tick in range(1, ticks + 1))
            elif isinstance(scheme, Meta | Restarted):
                cut = max((node_of(tree, False).shift or 0) + 1 for _, tree in _first_trees(scheme, ticks))
            high = cut + math.ceil(20 * max(scheme.error(t) for t in range(1, ticks + 1)))
        runs = max(500, min(shared.side_by_side(effort) // 4, 10**6 // (most * (high + 1))))

        def run(event: int) -> Any:
            first = _column(runs * most, high + event)
            shown = shared.published_counts(_anew(histogram, runs * most), first, ticks, runs * most)
            return shown.reshape(ticks, runs, most).sum(axis=2).T

        return runs, ticks, run

    def _one_by_one(self, histogram: Histogram, effort: Effort) -> Runs:
        """The scheme alone, many times: k + 1 items, of which the event has the first k."""
        pristine, source, k = histogram.make_scheme(), system_source(), histogram.k or 1
        runs, ticks, items = effort.runs, shared.first_ticks(histogram, 2), k + 1
        trees = _first_trees(pristine, ticks) if isinstance(pristine, Meta | Restarted) else []
        high = 2 * max([node_of(tree, histogram.domain_is_known).shift or 0 for _, tree in trees], default=0) + 20

        def run(event: int) -> Any:
            total, rows = np.full(items, high), np.zeros((runs, ticks, items))
            total[:k] += event
            for seen in rows:
                scheme = _copied(pristine)
                for tick in range(1, ticks + 1):
                    added = total if tick == 1 else np.zeros_like(total)
                    where, noisy = scheme.step(total, added, tick, _rank(items), source)
                    # Being listed tells two histograms apart as well as the count does: a step of one sigma.
                    seen[tick - 1, where] = noisy - high + 2.0 * scheme.error(1)
            return rows.reshape(runs, -1)

        return runs, ticks, run

    def _plumbing(self, histogram: Histogram) -> Finding:
        # No more items than are looked at: of equal ones beyond, none would be shown.
        scheme, limit = histogram.scheme, histogram.limit or 40
        if isinstance(scheme, Meta | Restarted):
            limit = node_of(_first_trees(scheme, 1)[0][1], histogram.domain_is_known).limit or limit
        stream, texts = _column(min(40, limit), 10**4), []
        lattice = _lattice(scheme)
        for events in ([], [[1]]):
            other = _anew(histogram, 40, ScriptedSource(0, -shared.HIGH * lattice))
            release = other.step(events)
            shown = (len(release), release.guarantee) if histogram.domain_is_known else release.to_payload()
            texts.append((shown, repr(other), other.error(1)))
        streams, wide = (stream, stream, [[0, 1], [2]] * 50), histogram.error(1) >= 1.0
        return self.plumbing(lambda source: _anew(histogram, 40, source), streams, (texts[0], texts[1]), wide)

    # ---- coupled ---------------------------------------------------------------------------------------------------

    def coupled(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """Random streams of sets of items, and the same with one event more: how far apart is what gets the noise?"""
        rng, most, scheme = np.random.default_rng(4), histogram.most_items, histogram.scheme
        ticks, pairs, tree = (
            shared.first_ticks(histogram, _TICKS),
            effort.released_pairs // 5,
            isinstance(scheme, Meta | Restarted),
        )
        worst, levels = 0.0, 1
        if isinstance(scheme, Meta | Restarted):
            levels = max(made.levels for _, made in _first_trees(scheme, ticks))
        for _ in range(pairs):
            stream = [
                [rng.choice(12, rng.integers(0, 5), replace=False).tolist() for _ in range(30)] for _ in range(ticks)
            ]
            more = [list(events) for events in stream]
            when = int(rng.integers(0, ticks))
            event = rng.choice(12, rng.integers(1, 6), replace=False).tolist()
            more[when].insert(int(rng.integers(0, 31)), event)
            both = zip(_noised(histogram, stream), _noised(histogram, more), strict=True)
            moved = [[two.get(x, 0) - one.get(x, 0) for x in {*one, *two}] for one, two in both]
            if any(change < 0 or change > 1 for part in moved for change in part):
                worst = math.inf
            sizes = [sum(part) for part in moved]
            worst = max(worst, math.sqrt(sum(sizes) if tree else max(sizes)))
        declared = math.sqrt((12 if most is None else most) * levels) * SLACK
        what = "l2-change of the nodes" if tree else "l2-change of a tick's counts"
        yield Finding("coupled", what, "sensitivity", declared, worst, pairs)

    # ---- sabotage --------------------------------------------------------------------------------------------------

    def twins(self, histogram: Histogram) -> Sequence[Twin]:
        """Less noise, lower cuts, choices that are not paid for: changes of the scheme; and what is drawn again."""
        scheme, most, known = histogram.scheme, histogram.most_items, histogram.domain_is_known
        changes: list[tuple[str, Callable[[Any], None]]] = [("half the noise", _weaker(2.0))]
        if most is not None and most > 1:
            changes.append(("noise for one item of an event", _weaker(math.sqrt(most))))
        if histogram.max_weight > 1:
            changes.append(("noise for a weight of one", _weaker(histogram.max_weight)))
        if isinstance(scheme, Hidden) and histogram.max_weight > 1:
            changes.append(("cut for a weight of one", _other_cut(lambda cut: cut - histogram.max_weight + 1)))
        if isinstance(scheme, Restarted) or (isinstance(scheme, Meta) and scheme.levels > 1):
            changes.append(("the budget at every level", _every_level))
        if isinstance(scheme, Meta | Restarted) and not known:
            changes.append(("cut one lower", _weaker(cut=1)))
            first_tree = scheme if isinstance(scheme, Meta) else scheme.make(1)
            node = node_of(first_tree, False)
            if node.choices:
                # [CO] Theorem 3: delta for 2 k items, where all that are looked at may be of one event.
                p = histogram.guarantee.delta / 2.0 / first_tree.levels
                lower = (node.shift or 0) - one_shot.gumbel_shift(Fraction(node.tau), p, 2 * node.choices)
                if lower > 0:
                    changes.append(("stop for 2k items (CO Thm 3)", _weaker(cut=lower)))
        if isinstance(scheme, Hidden):
            # One lower, where the cut has nothing to spare; a tree's is for its worst tick.
            if scheme.factor.lattice > 1:
                changes.append(("cut one lower", _other_cut(lambda cut: cut - 1)))
            else:
                changes.append(("half the cut", _other_cut(lambda cut: 1 + cut // 2)))
            if _lattice(scheme) > 1 and scheme.factor.horizon > _LATE:
                changes.append(("late items without the noise before", _less_before))
        elif isinstance(scheme, Sparse):
            changes += [("half the noise of AboveThreshold", _impatient), ("choices without a limit", _unlimited)]
        elif isinstance(scheme, Factored):
            changes.append(("noise anew at every tick", _fresh))
        if isinstance(scheme, Factored) and isinstance(scheme.factor, Doubling):
            changes.append(("all of rho for the totals of epochs, too", lambda made: shared.unsplit(made.factor)))
            if isinstance(scheme, Hidden):
                changes.append(("delta not shared by the epochs", _delta_every_epoch))
        first, *others = (
            changed_scheme(histogram, name, change, "statistical" if change is _less_before else "exact")
            for name, change in changes
        )
        return first, shared.drawn_again(histogram), *others


class _AroundTheCut:
    """Five items whose noisy counts are brought around the cut, in steps of one, at every tick."""

    def __init__(self, made: Histogram, hidden: bool) -> None:
        self._made, self._hidden = made, hidden
        self._scheme: Any = made.scheme
        self._counts, self._before = np.zeros(5, np.int64), np.zeros(5, bool)

    def step(self, tick: int, noise: int) -> int:
        """How much of what the next tick shows is wrong, if its noise is this."""
        cut = self._scheme.cut(tick) if self._hidden else None
        wanted = (20 if cut is None else cut) - noise + np.arange(5) - 2
        batch = np.repeat(np.arange(5), np.maximum(wanted - self._counts, 0))
        self._counts = np.maximum(self._counts, wanted)
        release = self._made.step(batch)
        visible = np.ones(5, bool) if cut is None else self._counts + noise >= cut
        if self._made.keep_discovered:
            visible = self._before = visible | self._before
        right = {i: int(self._counts[i] + noise) for i in np.flatnonzero(visible)}
        return (_listed(release) != right) + (cut is not None and release.threshold != cut)


def changed_scheme(histogram: Histogram, name: str, change: Callable[[Any], None], kind: str = "exact") -> Twin:
    """A twin whose schemes are changed as they are made."""
    right = type(histogram).make_scheme

    def make_scheme(self: Any) -> Scheme:
        scheme = right(self)
        change(scheme)
        return scheme

    return shared.broken(histogram, name, kind, make_scheme=make_scheme)


def _weaker(by: float = 1.0, cut: int = 0) -> Callable[[Any], None]:
    def change(scheme: Any) -> None:
        if isinstance(scheme, Meta | Restarted):
            _every_tree(scheme, lambda tree: _weaker_tree(tree, by, cut))
        else:
            scheme.sigma = scheme.sigma / Fraction(by)

    return change


def _weaker_tree(tree: Meta, by: float, cut: int = 0) -> None:
    release = tree.release
    tree.release = lambda counts, rank, source: release(counts, rank, WeakenedSource(source, by, cut))


def _every_level(scheme: Any) -> None:
    _every_tree(scheme, lambda tree: _weaker_tree(tree, math.sqrt(tree.levels)))


def _delta_every_epoch(scheme: Any) -> None:
    scheme.factor.tick_share = lambda tick: 1.0 / epoch_of(tick)[1]


def _other_cut(lower: Callable[[int], int]) -> Callable[[Any], None]:
    def change(scheme: Any) -> None:
        cut = scheme.cut
        scheme.cut = lambda tick: lower(cut(tick))

    return change


def _less_before(scheme: Any) -> None:
    join = scheme.factor.join
    scheme.factor.join = lambda size, tick, sigma, source: join(size, tick, sigma / 1000, source)


def _fresh(scheme: Any) -> None:
    scheme.sigma = scheme.sigma / Fraction(scheme.factor.sensitivity)
    scheme.factor = shared.FreshNoise(min(scheme.factor.horizon, 127))
    scheme.state = scheme.factor.start(scheme.state[next(iter(scheme.state))].shape[-1])


def _impatient(scheme: Any) -> None:
    step = scheme.step
    scheme.step = lambda *given: step(*given[:-1], WeakenedSource(given[-1], 2, laws=("laplace",)))


def _unlimited(scheme: Any) -> None:
    scheme.left = np.array([2**40], np.int64)


# ---- parts -----------------------------------------------------------------------------------------------------------


def _noise_of(scheme: Any) -> CorrelatedNoise:
    return CorrelatedNoise(scheme.factor, scheme.sigma)


def _lattice(scheme: Any) -> int:
    """The finest steps of a count in which noise is drawn."""
    factor = getattr(scheme, "factor", None)
    if isinstance(factor, Doubling):
        return max(factor.totals.lattice, *(factor.of_epoch(epoch).lattice for epoch in range(4)))
    return getattr(factor, "lattice", 1)


def _first_trees(scheme: Meta | Restarted, ticks: int) -> list[tuple[int, Meta]]:
    """(first tick, tree) of the epochs of these ticks, or of all."""
    if isinstance(scheme, Meta):
        return [(1, scheme)]
    return [(2**epoch, scheme.make(2**epoch)) for epoch in range(ticks.bit_length())]


def _listed(release: Any) -> dict[Any, int]:
    return dict(zip(release.items, release.counts.tolist(), strict=True))


def _noised(histogram: Histogram, stream: Any) -> list[dict[Any, int]]:
    """The counts that get noise, at every tick: all of them, or those of the node that is released."""
    made = _anew(histogram, 12, seeded_source(1))
    parts: list[dict[Any, int]] = []
    if isinstance(made.scheme, Meta | Restarted):
        _watch(
            made.scheme,
            lambda counts, _: parts.append(dict(zip(made.not_private_counts(), counts.tolist(), strict=True))),
        )
    for events in stream:
        made.step(events)
        if not isinstance(made.scheme, Meta | Restarted):
            parts.append(made.not_private_counts())
    return parts


def _released(scheme: Meta, counts: tuple[int, ...], source: RandomSource) -> Any:
    where, noisy = scheme.release(np.array(counts, np.int64), _rank(len(counts)), source)
    return tuple(sorted(zip(where.tolist(), noisy.tolist(), strict=True)))


def _composed(first: OutputLaw, second: OutputLaw, times: int, epsilon: float) -> float:
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
    wrong = tried = 0

    def counted(given: list[list[int]]) -> dict[int, int]:
        items, counts = event_counts(given, most, {0, 1} if known else None)
        return dict(zip(items.to_pylist(), counts.tolist(), strict=True))

    for base in ([], [[0]], [[2, 1, 0]], [[0, 0, 1], [2]]):
        plain = counted(base)
        for event, where in product(events, range(len(base) + 1)):
            more = counted([*base[:where], event, *base[where:]])
            moved = [more.get(x, 0) - plain.get(x, 0) for x in range(3)]
            wrong += not set(moved) <= {0, 1} or sum(moved) > (3 if most is None else most)
            wrong += known and moved[2] != 0
            tried += 1
    return wrong, tried


# ---- people ----------------------------------------------------------------------------------------------------------


Rows = Sequence[tuple[int, int]]  # people and items, of one tick
_ITEMS = 12


class _NewPeople:
    """Where nobody says whose the rows are, every event is a new person's; the rest is the class that comes next."""

    tick: int

    def step(self, events: Any = (), tick: int | None = None, *, users: Any = None, **more: Any) -> Any:
        if users is None:
            owners = np.arange(len(events))
            if not isinstance(events, np.ndarray | pa.Array):
                sets = [list(event) if isinstance(event, Iterable) else [event] for event in events]
                owners = np.repeat(owners, [len(event) for event in sets]).astype(np.int64)
                events = [item for event in sets for item in event]
            users = owners + (self.tick << 32)
        return super().step(events, tick, users=users, **more)  # type: ignore[misc]


class _PeopleOverTimeAudit(HistogramOverTimeAudit):
    """The four checks of a `Histogram` of people."""

    def prepare(self, histogram: Any) -> Any:
        """Before its first tick, and able to take events."""
        kind: Any = type(histogram)
        if not issubclass(kind, _NewPeople):
            kind = type(f"Events{kind.__name__}", (_NewPeople, kind), {})
        return kind(histogram.horizon, histogram.budget, **histogram.parameters)

    def structure(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """All rows of a person raise at most m counts by one, each from one tick on; and the shift of a counter."""
        wrong, pairs = _people_move(type(histogram), min(histogram.most_items or 1, 3), histogram.domain_is_known)
        yield Finding("structure", "a person raises at most m counts, by one", "violations", 0, wrong, pairs)
        yield from list(super().structure(histogram, effort))[1:]

    def coupled(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """Random rows of people over the ticks, and the same with all rows of one person more."""
        rng, most = np.random.default_rng(4), histogram.most_items or 1
        ticks, pairs, worst = min(histogram.horizon or 6, 6), effort.released_pairs // 5, 0.0
        for _ in range(pairs):
            stream = [_rows(rng, 0, 9, 30) for _ in range(ticks)]
            more = [_mixed(rng, rows, _rows(rng, 9, 10, int(rng.integers(0, 6)))) for rows in stream]
            worst = max(worst, _moved(histogram, stream, more))
        declared = math.sqrt(most) * SLACK
        yield Finding("coupled", "l2-change of all counts by a person", "sensitivity", declared, worst, pairs)

    def twins(self, histogram: Histogram) -> Sequence[Twin]:
        """Those of events, and people who count more often than they may."""
        right, most = type(histogram), histogram.most_items or 1

        def told(name: str, user: Callable[[Any, int, int], str]) -> Twin:
            def step(self: Any, events: Any = (), tick: int | None = None, *, users: Any = None, **more: Any) -> Any:
                if users is not None:
                    users = [user(person, self.tick, row) for row, person in enumerate(users)]
                return right.step(self, events, tick, users=users, **more)

            return shared.broken(histogram, name, "coupled", step=step)

        found = [
            *super().twins(histogram),
            told("a person counts at every row", lambda person, tick, row: f"{person} {tick} {row}"),
            told("m items a tick", lambda person, tick, row: f"{person} {tick}"),
        ]
        if isinstance(histogram.scheme, Hidden) and most > 1:
            half = histogram.guarantee.delta / 2.0

            def for_one(scheme: Any) -> None:
                factor = scheme.factor
                scheme.cut = lambda tick: 1 + factor.hiding_shift(tick, scheme.sigma, half * factor.tick_share(tick))

            found.append(changed_scheme(histogram, "delta not divided by m", for_one))
        return found


def _rows(rng: np.random.Generator, first: int, last: int, number: int) -> Rows:
    """So many rows of these people; some items are of many."""
    return [(int(rng.integers(first, last)), int(rng.integers(0, _ITEMS) ** 2 // _ITEMS)) for _ in range(number)]


def _mixed(rng: np.random.Generator, rows: Rows, more: Rows) -> Rows:
    """The rows with more of them somewhere in between, each in its order."""
    places = np.sort(rng.integers(0, len(rows) + 1, len(more)))
    out = list(rows)
    for place, added in reversed(list(zip(places.tolist(), more, strict=True))):
        out.insert(place, added)
    return out


def _counts(made: Any, stream: Sequence[Rows]) -> list[dict[Any, int]]:
    """The counts after every tick, before noise."""
    out = []
    for rows in stream:
        made.step([item for _, item in rows], users=[person for person, _ in rows])
        out.append(made.not_private_counts())
    return out


def _moved(histogram: Histogram, stream: Sequence[Rows], more: Sequence[Rows]) -> float:
    """How far the second stream's increments are from the first's, in l2; infinite where a count falls or jumps."""
    changes = {"domain": range(_ITEMS)} if histogram.domain_is_known else {}
    one, two = (_counts(histogram.anew(seeded_source(1), **changes), rows) for rows in (stream, more))
    before: dict[Any, int] = {}
    for plain, raised in zip(one, two, strict=True):
        now = {item: raised.get(item, 0) - plain.get(item, 0) for item in {*plain, *raised}}
        if not all(before.get(item, 0) <= now[item] <= 1 for item in now):
            return math.inf
        before = now
    return math.sqrt(sum(before.values()))


@lru_cache(maxsize=16)
def _people_move(kind: type[Histogram], most: int, known: bool) -> tuple[int, int]:
    """(wrong, pairs) over tiny streams of two ticks: three rows of one person, and one of another among them."""
    histogram = kind(2, Budget(1.0, 0.1), range(_ITEMS) if known else None, mechanism="tree", unit=User(most))
    wrong = tried = 0
    for items, other, place in product(product(range(3), repeat=3), range(2), range(4)):
        rows = [(1, item) for item in items]
        rows.insert(place, (2, other))
        stream = rows[:2], rows[2:]
        alone = [[row for row in part if row[0] == 2] for part in stream]
        wrong += _moved(histogram, alone, stream) > math.sqrt(most) * SLACK
        tried += 1
    return wrong, tried


# ---- rows ------------------------------------------------------------------------------------------------------------

_KNOWN = tuple(range(6))
# So much that a node has noise of about 1, whose branches can all be gone through.
_PLENTY = Budget(4.0, 0.02)


_events, _people = HistogramOverTimeAudit(), _PeopleOverTimeAudit()

row(
    Histogram,
    lambda: (
        Histogram(120, Budget(1.0, 0.02), None, 1),
        Histogram(3, _PLENTY, None, 1, mechanism="tree", base=2),
        Histogram(3, _PLENTY, None, 2, mechanism="meta", base=2),
        Histogram(3, _PLENTY, None, 1, mechanism="limit", base=2),
        Histogram(3, Budget(6.0, 1e-3), None, None, 2, mechanism="meta", base=2, limit=40),
        Histogram(8, Budget(1.0, 0.02), None, 2, max_weight=3),
        Histogram(16, Budget.zcdp(0.5), _KNOWN, 3),
        Histogram(7, Budget.zcdp(0.5), _KNOWN, 1, mechanism="tree", base=2),
        Histogram(7, Budget.zcdp(2.0), _KNOWN, 2, mechanism="meta", base=2),
        Histogram(3, Budget.zcdp(2.0), _KNOWN, None, 1, mechanism="meta", base=2),
        Histogram(20, Budget.zcdp(2.0), _KNOWN, None, 1, mechanism="sparse", switches=1),
        Histogram(8, Budget(1.0, 0.02), unit=User(3)),
        Histogram(3, _PLENTY, mechanism="tree", base=2, unit=User(1)),
        Histogram(16, Budget.zcdp(0.5), _KNOWN, unit=User(3)),
        Histogram(None, Budget(1.0, 0.02), None, 1),
        Histogram(None, _PLENTY, None, 2, mechanism="tree", base=2),
        Histogram(None, _PLENTY, None, 2, mechanism="meta", base=3),
        Histogram(None, Budget.zcdp(0.5), _KNOWN, 3),
        Histogram(None, Budget(1.0, 0.02), unit=User(3)),
    ),
    lambda histogram: _people if isinstance(histogram.unit, User) else _events,
)
