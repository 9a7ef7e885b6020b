"""The rows of `discreet.continual`: configurations, and the audit of each mechanism with its twins."""

from __future__ import annotations

from discreet.continual import Counter, DistinctCount, HeavyHitters, Histogram
from discreet.privacy import Budget, User
from discreet_audit.continual_counter import CounterOverTimeAudit
from discreet_audit.continual_hitters import HittersOverTimeAudit
from discreet_audit.continual_people import DistinctOverTimeAudit, EventsOrPeopleAudit
from discreet_audit.registry import row

__all__: list[str] = []

_ITEMS = tuple(range(6))
# So much that a node has noise of about 1, whose branches can all be gone through.
_PLENTY = Budget(4.0, 0.02)


def _setting(histogram: Histogram) -> str:
    domain = "known" if histogram.domain_is_known else "unknown"
    items = "D=any" if histogram.most_items is None else f"D={histogram.most_items}"
    people = items.replace("D", "people, m") if isinstance(histogram.unit, User) else items
    weights = "" if histogram.max_weight == 1 else f", weights to {histogram.max_weight}"
    any_horizon = "" if histogram.horizon is not None else ", any horizon"
    return f"Histogram, {domain}, {people}, {histogram.mechanism}{weights}{any_horizon}"


def _tree_of_sketches(hitters: HeavyHitters) -> str:
    window = "" if hitters.window is None else f", window of {hitters.window}"
    any_horizon = "" if hitters.horizon is not None else ", any horizon"
    return f"HeavyHitters, {hitters.mechanism}{window}{any_horizon}"


_totals, _over_time, _hitters = CounterOverTimeAudit(), EventsOrPeopleAudit(), HittersOverTimeAudit()
_distinct = DistinctOverTimeAudit()

row(
    Counter,
    lambda: (
        Counter(16, Budget.zcdp(0.5)),
        Counter(7, Budget(1.0, 0.02), method="tree", base=2),
        Counter(1000, Budget(1.0, 1e-9), method="blt", size=8, max_items_per_event=2),
        Counter(12, Budget.zcdp(2.0), method="square-root"),
        Counter(None, Budget.zcdp(0.5)),
    ),
    _totals,
    _totals.twins,
    _totals.prepare,
    lambda counter: f"Counter, {counter.method}" + (", any horizon" if counter.horizon is None else ""),
)
row(
    Histogram,
    lambda: (
        Histogram(120, Budget(1.0, 0.02), None, 1),
        Histogram(3, _PLENTY, None, 1, mechanism="tree", base=2),
        Histogram(3, _PLENTY, None, 2, mechanism="meta", base=2),
        Histogram(3, _PLENTY, None, 1, mechanism="limit", base=2),
        Histogram(3, Budget(6.0, 1e-3), None, None, 2, mechanism="meta", base=2, limit=40),
        Histogram(8, Budget(1.0, 0.02), None, 2, max_weight=3),
        Histogram(16, Budget.zcdp(0.5), _ITEMS, 3),
        Histogram(7, Budget.zcdp(0.5), _ITEMS, 1, mechanism="tree", base=2),
        Histogram(7, Budget.zcdp(2.0), _ITEMS, 2, mechanism="meta", base=2),
        Histogram(3, Budget.zcdp(2.0), _ITEMS, None, 1, mechanism="meta", base=2),
        Histogram(20, Budget.zcdp(2.0), _ITEMS, None, 1, mechanism="sparse", switches=1),
        Histogram(8, Budget(1.0, 0.02), unit=User(3)),
        Histogram(3, _PLENTY, mechanism="tree", base=2, unit=User(1)),
        Histogram(16, Budget.zcdp(0.5), _ITEMS, unit=User(3)),
        Histogram(None, Budget(1.0, 0.02), None, 1),
        Histogram(None, _PLENTY, None, 2, mechanism="tree", base=2),
        Histogram(None, _PLENTY, None, 2, mechanism="meta", base=3),
        Histogram(None, Budget.zcdp(0.5), _ITEMS, 3),
        Histogram(None, Budget(1.0, 0.02), unit=User(3)),
    ),
    _over_time,
    _over_time.twins,
    _over_time.prepare,
    _setting,
)
row(
    DistinctCount,
    lambda: (
        DistinctCount(16, Budget.zcdp(0.5)),
        DistinctCount(7, Budget(1.0, 0.02), method="tree", base=2),
    ),
    _distinct,
    _distinct.twins,
    _distinct.prepare,
    lambda counter: f"DistinctCount, {counter.method}",
)
row(
    HeavyHitters,
    lambda: (
        HeavyHitters(3, Budget(2.0, 0.02), 64, base=2),
        HeavyHitters(64, Budget(1.0, 1e-6), 256),
        HeavyHitters(3, Budget(2.0, 0.02), 64, base=2, mechanism="offset"),
        HeavyHitters(365, Budget(1.0, 1e-6), 256, mechanism="offset"),
        HeavyHitters(9, Budget(2.0, 0.02), 32, window=3, base=2),
        HeavyHitters(3, Budget(2.0, 0.02), 3, mechanism="chan", base=2),
        HeavyHitters(None, Budget(2.0, 0.02), 64, base=3),
        HeavyHitters(None, Budget(1.0, 1e-6), 256),
        HeavyHitters(None, Budget(2.0, 0.02), 64, mechanism="offset", base=3),
    ),
    _hitters,
    _hitters.twins,
    _hitters.prepare,
    _tree_of_sketches,
)
