"""The rows of `discreet.continual`, and their twins."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.continual import Counter, HeavyHitters, Histogram, one_shot
from discreet.continual._engines import Hidden, Meta, Sparse
from discreet.noise import RandomSource
from discreet.privacy import Budget
from discreet_audit.continual_counter import CounterOverTimeAudit, FreshNoise
from discreet_audit.continual_histogram import HistogramOverTimeAudit, node_of
from discreet_audit.continual_hitters import HittersOverTimeAudit
from discreet_audit.registry import AuditCase, Twin, register

__all__: list[str] = []

_ITEMS = tuple(range(6))
# So much that a node has noise of about 1, whose branches can all be gone through.
_PLENTY = Budget(4.0, 0.02)


class _Weakened:
    """NOT PRIVATE: a source that draws less noise than it is asked for, or a cut that is lower."""

    def __init__(self, source: RandomSource, by: float = 1.0, cut: int = 0) -> None:
        self._source, self._by, self._cut = source, Fraction(by), cut

    def _draw(self, law: str, scale: Any, size: int | None) -> Any:
        drawn = getattr(self._source, law)(Fraction(scale) / self._by, size)
        return drawn - self._cut if size is None else drawn

    def discrete_gaussian(self, sigma: Any, size: int | None = None) -> Any:
        return self._draw("discrete_gaussian", sigma, size)

    def discrete_laplace(self, scale: Any, size: int | None = None) -> Any:
        return self._draw("discrete_laplace", scale, size)

    def exponential_mechanism(self, scores: Any, epsilon: Any, sensitivity: Any = 1, k: int = 1) -> Any:
        lowered = np.array(scores)
        if self._cut:
            lowered[-1] -= self._cut  # the stop
        return self._source.exponential_mechanism(lowered, epsilon * self._by, sensitivity, k)


def _broken(audit: Any, mechanism: Any, name: str, first: str = "exact", **members: Any) -> Twin:
    """A twin of a class with other members, made anew."""
    kind = type(f"NotPrivate{type(mechanism).__name__}", (type(mechanism),), members)
    other: Any = object.__new__(kind)
    other.__dict__.update(mechanism.__dict__)
    return Twin(name, audit.anew(other), first)


_totals = CounterOverTimeAudit()
register(
    AuditCase(
        Counter,
        lambda: (
            Counter(16, Budget.zcdp(0.5)),
            Counter(7, Budget(1.0, 0.02), method="tree", base=2),
            Counter(1000, Budget(1.0, 1e-9), method="blt", size=8, max_items_per_event=2),
            Counter(12, Budget.zcdp(2.0), method="square-root"),
            Counter(None, Budget.zcdp(0.5)),
        ),
        _totals.structure,
        _totals.exact,
        _totals.statistical,
        _totals.coupled,
        _totals.twins,
        _totals.prepare,
        lambda counter: f"Counter, {counter.method}" + (", any horizon" if counter.horizon is None else ""),
    )
)

_over_time = HistogramOverTimeAudit()


def _engine_twin(histogram: Any, name: str, change: Callable[[Any], None], first: str = "exact") -> Twin:
    kind = type(histogram)

    def make(self: Any) -> Any:
        engine = kind.make_engine(self)
        change(engine)
        return engine

    return _broken(_over_time, histogram, name, first, make_engine=make)


def _weaker(by: float = 1.0, cut: int = 0) -> Callable[[Any], None]:
    def change(engine: Any) -> None:
        if isinstance(engine, Meta):
            release = engine.release
            engine.release = lambda counts, rank, source: release(counts, rank, _Weakened(source, by, cut))  # type: ignore[arg-type]
        else:
            engine.sigma = engine.sigma / Fraction(by)

    return change


def _histogram_twins(histogram: Any) -> Sequence[Twin]:
    kind, engine, most = type(histogram), histogram._engine, histogram.max_items_per_event

    def again(self: Any, events: Any, tick: int | None = None) -> Any:
        if tick is not None and tick == self.tick:
            where = np.array([self._index[item] for item in self.last.items], np.int64)
            noise = self._source.discrete_gaussian(math.ceil(self.error(self.tick)), len(where))
            return self._publish(where, self._total[where] + noise)
        return kind.step(self, events, tick)

    twins = [
        _engine_twin(histogram, "half the noise", _weaker(2.0)),
        _broken(_over_time, histogram, "other noise for a tick asked for again", "statistical", step=again),
    ]
    if most is not None and most > 1:
        twins.append(_engine_twin(histogram, "noise for one item of an event", _weaker(math.sqrt(most))))
    if isinstance(engine, Meta) and engine.levels > 1:
        twins.append(_engine_twin(histogram, "the budget at every level", _weaker(math.sqrt(engine.levels))))
    if isinstance(engine, Meta) and histogram._domain is None:
        twins.append(_engine_twin(histogram, "cut one lower", _weaker(cut=1)))
        node = node_of(engine, False)
        if node.choices:
            # [CO] Theorem 3: delta for 2 k items, where all that are looked at may be of one event.
            p = histogram.guarantee.delta / 2.0 / engine.levels
            lower = (node.shift or 0) - one_shot.gumbel_shift(Fraction(node.tau), p, 2 * node.choices)
            if lower > 0:
                twins.append(_engine_twin(histogram, "stop for 2k items (CO Thm 3)", _weaker(cut=lower)))
    if isinstance(engine, Hidden):
        twins.append(_engine_twin(histogram, *_lower_hidden_cut(engine)))
    elif isinstance(engine, Sparse):
        twins += [
            _engine_twin(histogram, "half the noise of AboveThreshold", _impatient),
            _engine_twin(histogram, "choices without a limit", _unlimited),
        ]
    elif not isinstance(engine, Meta):
        twins.append(_engine_twin(histogram, "noise anew at every tick", _fresh))
    return twins


def _lower_hidden_cut(engine: Hidden) -> tuple[str, Callable[[Any], None]]:
    """One lower, where the cut has nothing to spare; a tree's is for its worst tick."""

    def lower(engine: Any) -> None:
        cut = engine.cut
        engine.cut = lambda tick: cut(tick) - 1

    def half(engine: Any) -> None:
        cut = engine.cut
        engine.cut = lambda tick: 1 + cut(tick) // 2

    return ("cut one lower", lower) if engine.factor.lattice > 1 else ("half the cut", half)


def _fresh(engine: Any) -> None:
    engine.sigma = engine.sigma / Fraction(engine.factor.sensitivity)
    engine.factor = FreshNoise(engine.factor.horizon)
    engine.state = engine.factor.start(engine.state[next(iter(engine.state))].shape[-1])


def _impatient(engine: Any) -> None:
    engine._tau1 = engine._tau1 / 2


def _unlimited(engine: Any) -> None:
    engine.left = np.array([2**40], np.int64)


def _setting(histogram: Any) -> str:
    domain = "unknown" if histogram._domain is None else "known"
    items = "any" if histogram.max_items_per_event is None else str(histogram.max_items_per_event)
    return f"Histogram, {domain}, D={items}, {histogram.mechanism}"


register(
    AuditCase(
        Histogram,
        lambda: (
            Histogram(8, Budget(1.0, 0.02), None, 1),
            Histogram(3, _PLENTY, None, 1, mechanism="tree", base=2),
            Histogram(3, _PLENTY, None, 2, mechanism="meta", base=2),
            Histogram(3, _PLENTY, None, 1, mechanism="limit", base=2),
            Histogram(3, Budget(6.0, 1e-3), None, None, 2, mechanism="meta", base=2, limit=40),
            Histogram(16, Budget.zcdp(0.5), _ITEMS, 3),
            Histogram(7, Budget.zcdp(0.5), _ITEMS, 1, mechanism="tree", base=2),
            Histogram(7, Budget.zcdp(2.0), _ITEMS, 2, mechanism="meta", base=2),
            Histogram(3, Budget.zcdp(2.0), _ITEMS, None, 1, mechanism="meta", base=2),
            Histogram(20, Budget.zcdp(2.0), _ITEMS, None, 1, mechanism="sparse", switches=1),
        ),
        _over_time.structure,
        _over_time.exact,
        _over_time.statistical,
        _over_time.coupled,
        _histogram_twins,
        _over_time.prepare,
        _setting,
    )
)

_hitters = HittersOverTimeAudit()


def _hitters_twins(hitters: Any) -> Sequence[Twin]:
    kind = type(hitters)

    def broken(name: str, first: str = "exact", scale: float = 1.0, threshold: int = 0, **members: Any) -> Twin:
        def init(self: Any, *args: Any, **options: Any) -> None:
            kind.__init__(self, *args, **options)
            self.scale = self.scale / Fraction(scale)
            self.threshold -= threshold

        return _broken(_hitters, hitters, name, first, __init__=init, **members)

    def again(self: Any, items: Any, tick: int | None = None, **options: Any) -> Any:
        if tick is not None and tick == self.tick:
            node = self._nodes[-1]
            drawn = self._source.discrete_laplace(self.scale, len(node.counts)).tolist()
            noisy = {item: count + z for (item, count), z in zip(node.counts.items(), drawn, strict=True)}
            return self._sum([replace(node, counts=noisy)])
        return kind.step(self, items, tick, **options)

    twins = [
        broken("half the noise", scale=2.0),
        broken("cut one lower", threshold=1),
        broken("other noise for a tick asked for again", "statistical", step=again),
    ]
    if hitters.levels > 1:
        # Every node spends what all of them may: its scale and its cut are those of the whole budget.
        whole = kind(1, hitters.budget, hitters.capacity, mechanism=hitters.mechanism)
        less = float(hitters.scale / whole.scale)
        twins.append(broken("the budget at every level", scale=less, threshold=hitters.threshold - whole.threshold))
    if hitters.mechanism == "chan" and hitters.capacity > 1:
        twins.append(broken("noise for one counter", scale=float(hitters.capacity)))
    return twins


def _tree_of_sketches(hitters: Any) -> str:
    window = "" if hitters.window is None else f", window of {hitters.window}"
    return f"HeavyHitters, {hitters.mechanism}{window}"


register(
    AuditCase(
        HeavyHitters,
        lambda: (
            HeavyHitters(3, Budget(2.0, 0.02), 64, base=2),
            HeavyHitters(365, Budget(1.0, 1e-6), 256),
            HeavyHitters(9, Budget(2.0, 0.02), 32, window=3, base=2),
            HeavyHitters(3, Budget(2.0, 0.02), 3, mechanism="chan", base=2),
        ),
        _hitters.structure,
        _hitters.exact,
        _hitters.statistical,
        _hitters.coupled,
        _hitters_twins,
        _hitters.prepare,
        _tree_of_sketches,
    )
)
