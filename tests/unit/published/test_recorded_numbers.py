"""The papers' mechanisms as printed: every number they state, releases from seeded sources, and what they refuse."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests import recorded
from tests.recorded import asked
from tests.reference.oracles import HashedRows, ListedCounts

import discreet as dc
from discreet import published
from discreet.multiparty import protocol_from_dict
from discreet.noise import seeded_source
from discreet.published import (
    ChanMisraGries,
    GaussianSparseHistogram,
    InnerProductCounter,
    MergedMisraGries,
    MergedMisraGriesStream,
    MergedSketch,
    OracleHeavyHitters,
    PrivateMisraGries,
    PrivateSpaceSaving,
    TextbookMisraGries,
)
from discreet.published import merged_misra_gries as merged
from discreet.published import private_misra_gries as pmg
from discreet.published import private_space_saving as pss
from discreet.published import textbook_misra_gries as textbook

Budget, User = dc.Budget, dc.User
ROWS = [item for item in range(40) for _ in range(900 // (item + 1) ** 2 + 1)]
ROWS = [ROWS[place * 617 % len(ROWS)] for place in range(len(ROWS))]
SOME = (Budget(0.3, 1e-9), Budget(1.0, 1e-6), Budget(4.0, 1e-3))
PURE = (Budget(0.05), Budget(1.0), Budget(4.0))
LONG = {"stream_length": 20_000}


def of(kind, **more):
    """A summary of this kind with the rows in it."""

    def fill(made):
        summary = kind(made.capacity, seed=1, **more)
        summary.update(ROWS)
        return summary

    return fill


def people(made):
    summary = dc.UserMisraGries(made.capacity, made.unit.limit, seed=1)
    summary.update([[n % 9, n % 4][: made.unit.limit] for n in range(900)])
    return summary


def tracked(made):
    summary = made.track()
    summary.update([n % 4 if n % 3 else 0 for n in range(900)])
    return summary


def mechanism(make, budgets, fill):
    def case():
        found, made = {}, None
        for budget in budgets:
            made = make(budget)
            found[str(budget)] = recorded.members(made)
        for seed in (1, 2, 3):
            found[f"release {seed}"] = recorded.told(made(fill(made), seeded_source(seed)))
        return found

    return case


def rows():
    return HashedRows(256, 9)


MADE = {
    "private": (lambda b: PrivateMisraGries(b, 8), SOME, of(dc.MisraGries)),
    "private, users": (lambda b: PrivateMisraGries(b, 8, User(3), **LONG), SOME, of(dc.MisraGries)),
    "private, paper": (lambda b: PrivateMisraGries(b, 8, calibration="paper"), SOME, of(dc.MisraGries)),
    "private, geometric": (lambda b: PrivateMisraGries(b, 8, User(2), "paper-geometric"), SOME, of(dc.MisraGries)),
    "textbook": (lambda b: TextbookMisraGries(b, 8, User(2)), SOME, of(dc.MisraGries)),
    "textbook, paper": (lambda b: TextbookMisraGries(b, 8, calibration="paper", **LONG), SOME, of(dc.MisraGries)),
    "chan": (lambda b: ChanMisraGries(b, 8, **LONG), SOME, of(dc.MisraGries)),
    "chan, universe": (lambda b: ChanMisraGries(b, 8, universe=range(200), spurious=0.2), PURE, of(dc.MisraGries)),
    "chan, rho": (
        lambda b: ChanMisraGries(b, 8, universe=range(50)),
        (Budget.zcdp(0.05), Budget.zcdp(1.0)),
        of(dc.MisraGries),
    ),
    "sparse": (lambda b: GaussianSparseHistogram(b, 8, **LONG), SOME, of(dc.MisraGries)),
    "sparse, users": (lambda b: GaussianSparseHistogram(b, 8, User(2)), SOME, people),
    "space saving": (lambda b: PrivateSpaceSaving(b, 8, **LONG), SOME, of(dc.SpaceSaving)),
    "space saving, users": (lambda b: PrivateSpaceSaving(b, 8, User(2), **LONG), SOME, of(dc.SpaceSaving)),
    "space saving, noisy": (
        lambda b: PrivateSpaceSaving(b, 8, stream_length="noisy", length_share=0.3),
        SOME,
        of(dc.SpaceSaving),
    ),
    "space saving, paper": (lambda b: PrivateSpaceSaving(b, 8, **LONG, calibration="paper"), SOME, of(dc.SpaceSaving)),
    "space saving, heavy": (lambda b: PrivateSpaceSaving(b, 8, **LONG, heavier_than=20), SOME, of(dc.SpaceSaving)),
    "oracle": (lambda b: OracleHeavyHitters(b, 2, ListedCounts, stream_length=900), SOME, tracked),
    "oracle, noisy": (
        lambda b: OracleHeavyHitters(b, 2, rows, 6, User(2), "gaussian", length_share=0.2),
        SOME[1:],
        tracked,
    ),
    "oracle, gaussian": (
        lambda b: OracleHeavyHitters(b, 3, rows, noise="gaussian", stream_length=900),
        SOME[1:],
        tracked,
    ),
    "oracle, laplace": (lambda b: OracleHeavyHitters(b, 3, rows), SOME[1:], tracked),
}
ROUNDS = {
    "merged": lambda b: MergedMisraGries("r", b, 50, capacity=3, max_items=2**40),
    "merged by itself": lambda b: MergedMisraGries("r", b, 50),
    "sketches": lambda b: MergedSketch("r", b, 50, columns=12),
    "sketches by itself": lambda b: MergedSketch("r", b, "strings", rows=1),
}
STREAMS = {
    "stream": lambda b: MergedMisraGriesStream("r", b, 5, epoch_steps=2, horizon=30, capacity=2),
    "window": lambda b: MergedMisraGriesStream("r", b, 5, epoch_steps=3, window=12, capacity=2, sample_share=0.25),
    "endless": lambda b: MergedMisraGriesStream("r", b, 5),
}


def stated(make):
    found = {}
    for budget in (Budget(0.1), Budget(1.0), Budget(4.0)):
        made = make(budget)
        said = recorded.members(made, without={"universe", "charge_id"})
        said["round"] = [
            made.to_dict(),
            made.digest.hex(),
            protocol_from_dict(made.to_dict()) == made,
            made.bill.budget,
        ]
        for name in ("width", "counters", "sensitivity"):
            if hasattr(type(made), name) and callable(getattr(made, name)):
                said[name] = [asked(getattr(made, name), n) for n in (0, 1, 2, 5)]
        found[str(budget)] = said
    return found


def counts(made):
    return [made.values, made.deviations, *made.bounds(0.9), *made.bounds(0.999), made.shortfall, made.excess]


def parties(make):
    def case():
        found = stated(make)
        for budget in (Budget(0.8), Budget(6.0)):
            made = make(budget)
            known = ["a", "b", "c"] * 3 if made.domain.kind == "string" else range(9)
            items = [[known[n * n * seed % 9] for n in range(1, 40)] + [known[0]] * 30 for seed in range(1, 9)]
            messages = [made.party(n, source=seeded_source(n)).encode(each) for n, each in enumerate(items)]
            aggregator = made.aggregator()
            found[f"{budget} messages"] = messages
            found[f"{budget} heard"] = [
                aggregator.receive_many(messages),
                aggregator.parties,
                aggregator.total,
                aggregator.to_bytes(),
            ]
            found[f"{budget} counts"] = [
                asked(lambda a=aggregator, k=known: counts(a.estimate(list(k[:4])))),
                asked(lambda a=aggregator, k=known: vars(a.liars(list(k[:4]), 0.2))),
            ]
        return recorded.told(found)

    return case


def streamed(make):
    def case():
        found = stated(make)
        for budget in (Budget(1.0), Budget(8.0)):
            made = make(budget)
            several = [made.party(n, source=seeded_source(n)) for n in range(3)]
            aggregator = made.aggregator(expected=[0, 9])
            for time in range(1, 25):
                for number, party in enumerate(several):
                    said = party.feed([None if (time + number) % 5 == 0 else time * time * (number + 1) % 5])
                    if said is not None:
                        found[f"{budget} {number} at {time}"] = [said, aggregator.receive(said)]
                if time in (7, 15, 24):
                    found[f"{budget} counts at {time}"] = asked(
                        lambda a=aggregator: [*counts(a.estimate(range(5))), a.estimate(range(5)).coverage]
                    )
                if time == 15:
                    aggregator = made.restore(aggregator.to_bytes())
            for share in (0.01, 0.3, 0, 1):
                found[f"{budget} heavy {share}"] = asked(
                    lambda a=aggregator, s=share: [
                        (h := a.heavy_hitters(s)).items,
                        counts(h.estimates),
                        h.threshold,
                        h.complete,
                    ]
                )
        return recorded.told(found)

    return case


def inner_case():
    found = {}
    vectors = np.array([[n * k % 3 % 2 for k in range(1, 6)] for n in range(40)])
    for epsilon, seed in ((0.3, 1), (1.0, 2), (5.0, 3)):
        made = InnerProductCounter(5, budget=Budget(epsilon), source=seeded_source(seed), confidence=0.9)
        found[f"{epsilon}"] = recorded.members(made, without={"vector", "options"})
        places = np.arange(100) % 5
        made.vote(places, places % 2)
        made.update(vectors[:20])
        found[f"{epsilon} vector"] = made.vector
        made.announce_intrusion()
        again = InnerProductCounter.from_bytes(made.to_bytes())
        found[f"{epsilon} state"] = [
            len(made.to_bytes()),
            again.to_bytes() == made.to_bytes(),
            made.guarantee.to_dict(),
        ]
        made.update(vectors[20:])
        found[f"{epsilon} answer"] = recorded.members(made.release(), without={"guarantee"})
        found[f"{epsilon} late"] = [
            asked(made.vote, [0], [1]),
            asked(made.answer, np.array([1])),
            asked(made.update, vectors),
        ]
    made = InnerProductCounter(2, budget=Budget(1.0), source=seeded_source(1))
    found["refused"] = [
        asked(made.vote, *given)
        for given in (([2], [1]), ([-1], [1]), ([0], [2]), ([0, 1], [1]), ([0.5], [1]), ([0], [1]))
    ]
    found["refused vectors"] = [
        asked(made.update, given) for given in ([[1, 2]], [[1]], [1, 0], [[0.5, 1]], [[1, 0, 1]])
    ]
    found["taken"] = recorded.taken(
        InnerProductCounter,
        {"length": 4, "budget": Budget(1.0), "confidence": 0.9},
        {"budget": (Budget(1.0, 1e-6), Budget(1e-17)), "length": (2**24 + 1,)},
    )
    return recorded.told(found)


def function_case():
    grid = [(0.1, 1e-9), (0.7, 1e-6), (4.0, 1e-3)]

    def table(function, *columns, **named):
        return [asked(function, *pair, *given, **named) for pair in grid for given in product(*columns)]

    scale = Fraction(7, 2)
    entries = np.array([1, 4]), np.array([9, -2])
    return {
        "pmg": [
            table(pmg.pmg_threshold),
            table(pmg.pmg_threshold, max_items=3),
            table(pmg.pmg_paper_threshold),
            table(pmg.pmg_geometric_threshold),
        ],
        "textbook": [table(textbook.textbook_threshold, (1, 30)), table(textbook.textbook_paper_threshold, (1, 30))],
        "space saving": [
            table(pss.space_saving_threshold),
            table(pss.space_saving_threshold, max_items=3),
            table(pss.space_saving_paper_margin),
            table(pss.space_saving_noisy_threshold, (0.1, 1.0), (2, 30)),
            table(pss.space_saving_noisy_threshold, (0.5,), (2,), max_items=2),
        ],
        "space saving deltas": [
            asked(pss.space_saving_delta, e, t, max_items=m) for e in (0.3, 2.0) for t in (0, 5, 40) for m in (1, 3)
        ]
        + [
            asked(pss.space_saving_noisy_delta, 1.0, 0.3, k, t, max_items=m)
            for k in (2, 30)
            for t in (5, 40)
            for m in (1, 2)
        ],
        "counters": [asked(merged.added_by_the_cut, s, c) for s in (scale, Fraction(1, 3)) for c in (-5, 0, 1, 30)]
        + [merged.counter_variance(scale)]
        + [asked(merged.usual_cut, scale, n) for n in (1, 50, 10**9)],
        "written": [
            merged.write_counters(entries, -3),
            asked(
                lambda: [
                    list(part)
                    for part in merged.read_counters(memoryview(merged.write_counters(entries, -3)), 9, -3, 50)[:1]
                ]
            ),
        ],
        "estimates": [merged.counts_of(entries, np.array([0, 1, 4, 7]))],
        "everything": sorted(published.__all__),
    }


def range_case():
    budget = {"budget": Budget(1.0, 1e-6)}
    several = {
        PrivateMisraGries: (
            {"capacity": 8, "calibration": "exact", "stream_length": 9, "unit": User(2)},
            {"calibration": ("paper", "paper-geometric")},
        ),
        TextbookMisraGries: (
            {"capacity": 8, "calibration": "exact", "stream_length": 9},
            {"calibration": ("paper", "paper-geometric")},
        ),
        ChanMisraGries: ({"capacity": 8, "universe": 9, "spurious": 0.1, "stream_length": 9}, {}),
        GaussianSparseHistogram: ({"capacity": 8, "stream_length": 9}, {}),
        PrivateSpaceSaving: (
            {"capacity": 8, "stream_length": 9, "length_share": 0.2, "calibration": "exact", "heavier_than": 8},
            {"stream_length": ("noisy", "public"), "heavier_than": (7, 9, 20), "calibration": ("paper",)},
        ),
        OracleHeavyHitters: (
            {"k": 2, "oracle": rows, "tracked": 6, "noise": "laplace", "length_share": 0.2, "unit": User(2)},
            {"tracked": (2, 3, 2**31 + 1), "noise": ("gaussian",)},
        ),
    }
    odd = {
        "budget": (Budget(1.0), Budget.zcdp(1.0), Budget(1e-17, 1e-6)),
        "unit": (User(), User(1), dc.Event(), User(per="1d")),
    }
    found = {}
    for kind, (given, more) in several.items():
        found[kind.__name__] = recorded.taken(kind, {**budget, **given}, {**odd, **more})
    pure = {"round_id": "r", "budget": Budget(1.0), "universe": 9}
    found["merged"] = recorded.taken(
        MergedMisraGries, {**pure, "capacity": 3, "max_items": 99}, {"capacity": (2**20, 2**31)}
    )
    found["sketches"] = recorded.taken(
        MergedSketch, {**pure, "columns": 9, "rows": 3, "max_items": 99}, {"rows": (2, 255, 257)}
    )
    found["streams"] = recorded.taken(
        MergedMisraGriesStream,
        {**pure, "epoch_steps": 2, "window": 9, "capacity": 3, "sample_share": 0.2},
        {"window": (1, 2, 3)},
    )
    return found


CASES = {name: mechanism(*given) for name, given in MADE.items()}
CASES |= {name: parties(make) for name, make in ROUNDS.items()}
CASES |= {f"{name} of counters": streamed(make) for name, make in STREAMS.items()}
CASES |= {"inner products": inner_case, "functions": function_case, "ranges": range_case}


@pytest.mark.parametrize("name", CASES)
def test_what_is_recorded(name):
    recorded.check("published", name, CASES[name])


def test_nothing_else_is_recorded():
    assert set(recorded.recorded("published")) == set(CASES)
