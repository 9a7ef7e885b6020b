"""Continual releases: every number they state, and many ticks from seeded sources, restored in the middle."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests import recorded
from tests.recorded import asked

from discreet import Budget, User
from discreet.continual import Counter, DistinctCount, HeavyHitters, Histogram, one_shot
from discreet.continual import _doubling as doubling
from discreet.continual import _factors as factors
from discreet.continual import _late as late
from discreet.noise import seeded_source
from discreet.releases.release import Release

SOME, SMALL, RHO = Budget(1.0, 0.02), Budget(0.3, 1e-6), Budget.zcdp(0.5)
KNOWN, MUCH = tuple(range(6)), Budget(4.0, 0.02)
MADE = {
    "counter": lambda **o: Counter(16, RHO, **o),
    "counter, small": lambda **o: Counter(1000, SMALL, **o),
    "counter, tree": lambda **o: Counter(13, SOME, method="tree", base=2, **o),
    "counter, best tree": lambda **o: Counter(365, RHO, method="tree", **o),
    "counter, several": lambda **o: Counter(40, RHO, method="blt", size=3, max_items_per_event=2, remember=4, **o),
    "counter, square root": lambda **o: Counter(12, Budget.zcdp(2.0), method="square-root", **o),
    "counter, endless": lambda **o: Counter(None, RHO, **o),
    "counter, endless tree": lambda **o: Counter(None, SOME, method="tree", size=2, **o),
    "distinct": lambda **o: DistinctCount(16, RHO, **o),
    "distinct, window": lambda **o: DistinctCount(40, RHO, window=2, max_visits=1, **o),
    "distinct, window of one": lambda **o: DistinctCount(14, SOME, window=1, **o),
    "distinct, endless window": lambda **o: DistinctCount(None, RHO, window=3, max_visits=2, **o),
    "hitters": lambda **o: HeavyHitters(16, MUCH, 64, **o),
    "hitters, many": lambda **o: HeavyHitters(64, SOME, 256, every=4, remember=3, **o),
    "hitters, offset": lambda **o: HeavyHitters(16, MUCH, 8, mechanism="offset", **o),
    "hitters, window": lambda **o: HeavyHitters(16, MUCH, 32, window=5, base=2, **o),
    "hitters, chan": lambda **o: HeavyHitters(14, MUCH, 3, mechanism="chan", base=2, **o),
    "hitters, endless": lambda **o: HeavyHitters(None, MUCH, 64, base=3, **o),
    "hitters, endless offset": lambda **o: HeavyHitters(None, MUCH, 64, mechanism="offset", **o),
    "hitters, memory": lambda **o: HeavyHitters(365, SMALL, memory="400MB", **o),
    "histogram": lambda **o: Histogram(120, SOME, None, 1, remember=2, **o),
    "histogram, kept": lambda **o: Histogram(16, SOME, None, 2, keep_discovered=True, **o),
    "histogram, top": lambda **o: Histogram(16, SOME, None, 2, 3, **o),
    "histogram, tree": lambda **o: Histogram(16, MUCH, None, 1, mechanism="tree", base=2, **o),
    "histogram, meta": lambda **o: Histogram(16, MUCH, None, 2, mechanism="meta", base=3, limit=9, **o),
    "histogram, limit": lambda **o: Histogram(16, MUCH, None, 1, mechanism="limit", base=2, **o),
    "histogram, unbounded": lambda **o: Histogram(16, Budget(6.0, 1e-3), None, None, 2, limit=40, **o),
    "histogram, first": lambda **o: Histogram(16, MUCH, None, None, 2, mechanism="factorised", **o),
    "histogram, weights": lambda **o: Histogram(16, SOME, None, 2, max_weight=3, **o),
    "histogram, known": lambda **o: Histogram(16, RHO, KNOWN, 3, **o),
    "histogram, known tree": lambda **o: Histogram(16, RHO, KNOWN, 1, mechanism="tree", base=2, **o),
    "histogram, known meta": lambda **o: Histogram(16, Budget.zcdp(2.0), KNOWN, 2, mechanism="meta", base=2, **o),
    "histogram, known top": lambda **o: Histogram(16, Budget.zcdp(2.0), KNOWN, None, 2, **o),
    "histogram, sparse": lambda **o: Histogram(20, RHO, KNOWN, None, 2, mechanism="sparse", switches=3, margin=2, **o),
    "histogram, sparse by itself": lambda **o: Histogram(20, RHO, KNOWN, None, 1, mechanism="sparse", **o),
    "histogram, people": lambda **o: Histogram(16, SOME, unit=User(3), **o),
    "histogram, known people": lambda **o: Histogram(16, RHO, KNOWN, unit=User(2), window=3, **o),
    "histogram, window": lambda **o: Histogram(30, SOME, unit=User(3), window=3, max_visits=1, **o),
    "histogram, endless": lambda **o: Histogram(None, SOME, None, 1, **o),
    "histogram, endless meta": lambda **o: Histogram(None, MUCH, None, 2, mechanism="meta", base=3, **o),
    "histogram, endless people": lambda **o: Histogram(None, SOME, unit=User(3), **o),
    "histogram, endless known": lambda **o: Histogram(None, RHO, KNOWN, 3, mechanism="tree", **o),
}
TICKS, SAVED = 14, 6
WITHOUT = {"scheme", "factor", "discovered", "parameters", "charge_id", "run_name"}


def items(tick, most=40):
    return [n * n * (tick + 1) % 7 for n in range(most)] + [100] * (3 * tick)


def step(made, tick):
    if isinstance(made, DistinctCount):
        return made.step([f"p{n * (tick + 2) % 60}" for n in range(20)])
    if isinstance(made, Counter):
        return made.step(10 + tick if made.size is None else [tick, 3, 2 * tick][: made.size])
    if isinstance(made, HeavyHitters):
        return made.step(items(tick) * 2)
    if isinstance(made.unit, User):
        rows = items(tick, 60)
        return made.step(rows, users=[n * 5 % 37 for n in range(len(rows))])
    events = [[each, each % 3] if made.most_items != 1 else [each] for each in items(tick)]
    events = [[*dict.fromkeys(event)] for event in events]
    if made.max_weight > 1:
        return made.step(events, weights=[[1 + n % 3 for n, _ in enumerate(event)] for event in events])
    return made.step(events)


def answer(said):
    """What a tick published; of a release without what all ticks have in common."""
    if not isinstance(said, Release):
        return recorded.told(said)
    found = recorded.release(said)
    found.pop("guarantee", None)
    found.pop("over_time", None)
    return found


def stated(made):
    """What it states at some ticks."""
    found = recorded.members(made, without=WITHOUT)
    found["parameters"] = {name: value for name, value in made.parameters.items() if name != "universe"}
    ticks = [t for t in (1, 2, 3, 8, 14, 100) if made.horizon is None or t <= made.horizon]
    if hasattr(made, "error"):
        found["error"] = [asked(made.error, t) for t in ticks]
    if hasattr(made, "error_model"):
        found["errors"] = [asked(lambda t=t, n=n: model(made.error_model(t, n))) for t in ticks[:4] for n in (1, 5)]
    found["noises"] = [asked(lambda t=t: noises(made.over_time(t))) for t in ticks]
    if isinstance(made, Counter):
        found["noise of an event"] = [
            [name, [[float(n.sigma), n.changes, n.enters] for n in several]]
            for name, several in made.noises_of_an_event()[:4]
        ]
    if isinstance(made, Histogram):
        found["scheme"] = recorded.members(made.scheme, without={"factor"})
        if hasattr(made.scheme, "cut"):
            found["cuts"] = [made.scheme.cut(t) for t in ticks]
        if hasattr(made.scheme, "nodes"):
            found["nodes"] = [[made.scheme.nodes(t), made.scheme.noise(t, 5)] for t in ticks]
    if isinstance(made, HeavyHitters):
        found["plans"] = [asked(made.plan, span) for span in (1, 7, 64, 1000)]
    return recorded.told(found)


def model(errors):
    told = errors.to_dict()
    return [told, errors.noise_bound(0.05), errors.noise.variance]


def noises(over):
    terms = over.terms
    return [
        over.tick,
        None
        if terms is None
        else [
            [t.name, t.noise.kind, t.noise.horizon, t.noise.sigma, t.noise.lattice, t.noise.kappa, t.noise.base, t.tick]
            for t in terms
        ],
    ]


def whole(name):
    def case():
        made = MADE[name](source=seeded_source(1))
        found = {"stated": stated(made)}
        for tick in range(1, min(TICKS, made.horizon or TICKS) + 1):
            found[f"tick {tick}"] = answer(step(made, tick))
            if tick == SAVED:
                state = made.to_bytes()
                made = type(made).from_bytes(state, source=seeded_source(2))
                found["state"] = [recorded.state(state), made.to_bytes() == state]
        found["end"] = [made.guarantee.to_dict(), recorded.state(made.to_bytes()), asked(made.step, (), 3), made.tick]
        if made.remember:
            found["increases"] = [
                asked(lambda s=s, c=c: increase(made, s, c))
                for s in (TICKS - 1, TICKS - 2, TICKS - 3, 2, TICKS)
                for c in (0.5, 0.999)
            ]
        return recorded.told(found)

    return case


def increase(made, since, confidence):
    found = made.increase(since, confidence)
    return recorded.told([found.values, found.lower, found.upper, found.since, found.tick, found.confidence])


def factor_case():
    found = {}
    made = {
        "tree 2": factors.Tree(16, 2),
        "tree 3": factors.Tree(30, 3),
        "best tree": factors.Tree(365),
        "square root": factors.SquareRoot(20),
        "buffered": factors.Buffered(20),
        "buffered, long": factors.Buffered(5000),
        "each": factors.EachTick(16),
    }
    for name, factor in made.items():
        sigma = factor.sigma(0.3, 2)
        ticks = [t for t in (1, 2, 5, 16) if t <= factor.horizon]
        found[name] = {
            "members": recorded.members(factor),
            "sigma": sigma,
            "sigmas": [asked(factor.sigma, r, i, c) for r in (0.01, 1.0) for i, c in ((1, 1), (3, 1), (2, 4))],
            "sensitivity": [asked(factor.sensitivity_to, c) for c in (1, 2, 5)],
            "rows": [factor.row_squares(t) for t in ticks],
            "worst": [factor.worst_row_squares(), asked(factor.worst_error, 0.3, 2, 1)],
            "error": [factor.error(t, sigma) for t in ticks],
            "share": [factor.tick_share(t) for t in ticks],
            "shift": [asked(factor.hiding_shift, t, sigma, p) for t in ticks for p in (0.1, 1e-9)],
            "noise": factor.tick_noise(sigma).to_dict(),
            "joined": [
                asked(lambda f=factor, t=t, s=sigma: f.latest(f.join(5, t, s, seeded_source(t)))) for t in ticks
            ],
        }
        if hasattr(factor, "column_squares"):
            found[name]["columns"] = [factor.column_squares(n) for n in (1, 2, 9)]
        if hasattr(factor, "digits"):
            found[name]["digits"] = [factor.digits(t) for t in ticks]
    found["best"] = [
        [type(f).__name__, f.horizon]
        for f in (factors.best_factor(h, r, i) for h in (1, 2, 10, 3000) for r in (0.01, 2.0) for i in (1, 3))
    ]
    found["make"] = [
        asked(lambda m=m, b=b: type(factors.make_factor(m, 50, 0.5, 1, b)).__name__)
        for m in (*factors.METHODS, "x")
        for b in (None, 4)
    ]
    found["window"] = [type(factors.window_factor(f, 0.5, 2, c)).__name__ for f in made.values() for c in (1, 3, 20)]
    found["bases"] = [
        [factors.optimal_base(h), factors.levels(h, 2), factors.levels(h, 5)] for h in (1, 2, 3, 7, 16, 365, 10**5)
    ]
    found["changes"] = [
        asked(factors.changes_of_a_window, w, v, h) for w in (None, 1, 3) for v in (None, 1, 4) for h in (None, 2, 30)
    ]
    found["lattice_shift"] = [
        factors.lattice_shift([(factors.CorrelatedNoise(f, f.sigma(0.3)), 3)], p)
        for f in list(made.values())[4:6]
        for p in (0.1, 1e-9)
    ]
    found["epochs"] = [[doubling.epoch_of(t), doubling.epoch_share(t)] for t in (1, 2, 3, 4, 7, 8, 100)]
    endless = doubling.Doubling(lambda ticks, share: factors.Buffered(ticks))
    found["doubling"] = [
        [
            endless.error(t, Fraction(3)),
            endless.row_squares(t),
            endless.tick_share(t),
            asked(endless.hiding_shift, t, Fraction(3), 1e-6),
        ]
        for t in (1, 2, 3, 9)
    ] + [endless.sigma(0.3, 2, 1)]
    return recorded.told(found)


def one_shot_case():
    counts = np.array([0, 5, 90, 44, 43, 7, 90])
    rank = lambda: np.argsort(-counts, kind="stable")  # noqa: E731
    found = {}
    for seed, (sigma, tau) in enumerate(product((Fraction(1, 2), Fraction(9)), (Fraction(1), Fraction(12)))):

        def source(seed=seed):
            return seeded_source(seed)

        found[f"{sigma} {tau}"] = [
            asked(one_shot.known_gauss, counts, sigma, source()),
            asked(one_shot.known_gumbel, counts, 3, tau, source()),
            asked(one_shot.select_gumbel, counts, 3, tau, source()),
            asked(one_shot.unknown_gumbel, counts, 3, tau, 20, 5, rank, source()),
            asked(one_shot.unknown_noisy, counts, source().discrete_gaussian, sigma, 20, 5, rank),
            asked(one_shot.unknown_noisy, counts, source().discrete_laplace, sigma, 20, None, rank),
        ]
    found["shifts"] = [
        [asked(one_shot.gauss_shift, s, p), asked(one_shot.laplace_shift, s, p), asked(one_shot.gumbel_shift, s, p, n)]
        for s in (Fraction(1, 2), Fraction(9))
        for p in (0.2, 1e-9)
        for n in (1, 9)
    ]
    theta, omega = (3 << 38, 9 << 36), (1 << 38, 1 << 37)
    law = late.state_law(theta, omega, 40, 16, 9, Fraction(5), 2.0)
    found["late"] = asked(lambda: [law.bits, law.sigmas, list(law.regressions), [*law.draw(4, seeded_source(1))]])
    return recorded.told(found)


def range_case():
    counter = {
        "horizon": 8,
        "budget": SOME,
        "method": "tree",
        "base": 2,
        "size": 3,
        "max_items_per_event": 2,
        "remember": 1,
    }
    hitters = {"horizon": 8, "budget": SOME, "capacity": 4, "base": 2, "every": 2, "remember": 1}
    window = {"horizon": 8, "budget": SOME, "capacity": 4, "window": 3, "mechanism": "offset"}
    known = {
        "horizon": 8,
        "budget": RHO,
        "universe": KNOWN,
        "max_items_per_event": 2,
        "k": 2,
        "mechanism": "auto",
        "base": 2,
    }
    sparse = {"horizon": 8, "budget": RHO, "universe": KNOWN, "k": 2, "mechanism": "sparse", "switches": 2, "margin": 3}
    unknown = {
        "horizon": 8,
        "budget": SOME,
        "max_items_per_event": 2,
        "k": 2,
        "mechanism": "auto",
        "limit": 3,
        "keep_discovered": True,
        "max_weight": 2,
    }
    people = {"horizon": 8, "budget": SOME, "unit": User(2), "window": 3, "max_visits": 2, "mechanism": "auto"}
    distinct = {"horizon": 8, "budget": SOME, "window": 3, "max_visits": 2, "method": "tree", "base": 2}
    ways = {"mechanism": ("factorised", "tree", "meta", "limit", "sparse")}
    return {
        "counter": recorded.taken(
            Counter,
            counter,
            {
                "method": ("auto", "blt", "square-root"),
                "base": (8, 9),
                "remember": (10_000, 10_001),
                "horizon": (2**24 + 1,),
                "size": (2**27 + 1,),
                "max_items_per_event": (3, 4),
            },
        ),
        "hitters": recorded.taken(
            HeavyHitters, hitters, {"every": (8, 9), "capacity": (2**30 + 1,), "horizon": (2**24 + 1,)}
        ),
        "hitters, window": recorded.taken(
            HeavyHitters, window, {"window": (8, 9), "mechanism": ("discover", "chan", "offset")}
        ),
        "known": recorded.taken(Histogram, known, {**ways, "universe": ([], [1, 1], [None], ["a", 1])}),
        "sparse": recorded.taken(Histogram, sparse, {**ways, "switches": (8, 9), "margin": (2**53, 2**53 + 1)}),
        "unknown": recorded.taken(Histogram, unknown, {**ways, "limit": (2,), "max_weight": (1, 2**20, 2**20 + 1)}),
        "people": recorded.taken(
            Histogram, people, {**ways, "window": (8, 9), "max_visits": (8, 9), "unit": (User(), User(3))}
        ),
        "distinct": recorded.taken(DistinctCount, distinct, {"window": (8, 9), "max_visits": (3, 8, 9)}),
        "together": [
            asked(Histogram, 8, SOME, KNOWN, domain=KNOWN),
            asked(Histogram, 8, SOME),
            asked(Histogram, 8, SOME, window=2),
            asked(Histogram, None, RHO, KNOWN, None, 2, mechanism="sparse"),
            asked(Histogram, 8, SOME, unit=User(2), limit=3),
            asked(Histogram, 8, SOME, unit=User(2), max_items_per_event=1),
            asked(Histogram, 8, RHO, None, 1),
            asked(Histogram, 8, Budget(1.0), KNOWN, 1),
            asked(HeavyHitters, 8, RHO),
            asked(HeavyHitters, 8, SOME, window=2, every=1),
            asked(HeavyHitters, None, SOME, every=1),
            asked(HeavyHitters, 8, SOME, 4, memory="1MB"),
            asked(HeavyHitters, 8, SOME, mechanism="chan", memory="1MB"),
            asked(HeavyHitters, 8, SOME, window=2, mechanism="discover"),
            asked(Counter, 8, Budget(1.0)),
        ],
        "ticks": ticks_refused(),
    }


def ticks_refused():
    """Steps that are too late, too early, too many, or of wrong values."""
    made = Counter(2, RHO, source=seeded_source(1))
    several = Counter(2, RHO, size=2, source=seeded_source(1))
    endless = Counter(None, RHO, source=seeded_source(1))
    found = [asked(made.step, value) for value in (1.5, "x", None, [1], -1, 2**53, 2**53 + 1, True)]
    found += [asked(made.step, 1, tick) for tick in (2, 3, 4, 0, "1")] + [asked(made.step, 1)]
    found += [asked(several.step, value) for value in (3, [1], [1, 2, 3], [1, -1], [0.5, 1], [1, 2])]
    found += [asked(made.over_time, t) for t in (0, 1, 2, 3)] + [asked(endless.over_time, t) for t in (0, 2**30)]
    found += [asked(made.error, t) for t in (0, 1, 2, 3)]
    found += [asked(Counter(8, RHO, source=seeded_source(1), remember=2).increase, s) for s in (0, 1, "x")]
    histogram = Histogram(3, RHO, KNOWN, unit=User(2), source=seeded_source(1))
    found += [
        asked(histogram.step, *given, **more)
        for given, more in [
            (([1, 2],), {}),
            (([1, 2],), {"users": [1]}),
            (([1, None],), {"users": [1, 2]}),
            (([1, 2],), {"users": [1, None]}),
            (([1],), {"users": [1], "weights": [1]}),
            (([9],), {"users": [1]}),
        ]
    ]
    heavy = Histogram(3, SOME, None, 2, max_weight=3, source=seeded_source(1))
    found += [
        asked(heavy.step, [["a", "b"]], weights=w)
        for w in ([[1, 4]], [[1]], [[0, 1]], [[-1, 1]], [[1.5, 1]], [[3, 3]], None)
    ]
    return [said if isinstance(said, str) else "taken" for said in found]


CASES = {name: whole(name) for name in MADE}
CASES |= {"factors": factor_case, "one release": one_shot_case, "ranges": range_case}


@pytest.mark.parametrize("name", CASES)
def test_what_is_recorded(name):
    recorded.check("continual", name, CASES[name])


def test_nothing_else_is_recorded():
    assert set(recorded.recorded("continual")) == set(CASES)
