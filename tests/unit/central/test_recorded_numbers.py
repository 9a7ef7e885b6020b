"""Central mechanisms: every number they state, over a grid of budgets, and releases from seeded sources."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests import recorded

import discreet as dc
from discreet import central
from discreet.central import (
    BadShare,
    ChosenDistinct,
    CountMinHeavyHitters,
    CountSketchHeavyHitters,
    CreditedDistinct,
    Grid,
    Merged,
    NoisyCount,
    Offset,
    PersonMoments,
    QuantileChoice,
    QuantileTree,
    ReducedMisraGries,
    RowMoments,
    ShardedOffset,
    Stability,
    StepGrid,
    Summed,
    UniverseHistogram,
    UserSketch,
)
from discreet.central._additive import additive_cost, additive_noise
from discreet.central._base import (
    choose_capacity,
    first_capacity,
    frequency_published,
    lost_by_misra_gries,
    per_event,
    prepare_people,
    split_off_total,
    summary_errors,
)
from discreet.central._noisy_entries import universe_cut
from discreet.central._quantiles import RangeTree, best_tree
from discreet.central.person_pairs import PersonPairs
from discreet.central.person_vectors import PersonVectors, calibrated, joint_delta, largest_mu
from discreet.central.quantile_grid import finer, grid_of
from discreet.central.reduced_misra_gries import (
    reduced_sensitivity,
    reduced_squared_sensitivity,
    reduced_threshold,
)
from discreet.central.row_moments import lattice_noise
from discreet.central.sketch_heavy_hitters import cells_sigma, largest_untracked, noise_sum_bound
from discreet.central.stability import stability_delta, stability_threshold
from discreet.errors import DiscreetError
from discreet.noise import seeded_source
from discreet.summaries.moments import ValueMoment
from discreet.summaries.people import ListedPeople, ValueRange

Budget, Event, User = dc.Budget, dc.Event, dc.User

ROWS = [item for item in range(40) for _ in range(900 // (item + 1) ** 2 + 1)]
ROWS = [ROWS[place * 617 % len(ROWS)] for place in range(len(ROWS))]  # 617 is a prime
LISTS = [sorted({(person * step) % 23 * (person % step) % 17 for step in range(1, 5)}) for person in range(1500)]

APPROXIMATE = (Budget(0.3, 1e-9), Budget(1.0, 1e-6), Budget(4.0, 1e-3))
FEW = (Budget(0.3, 1e-9), Budget(2.0, 1e-4))
PURE = (Budget(0.05), Budget(1.0), Budget(4.0))
ALL = (Budget(0.05), Budget(2.0), Budget(0.3, 1e-6), Budget(1.5, 0.02), Budget.zcdp(0.01), Budget.zcdp(0.7))
RHO = (Budget.zcdp(0.02), Budget.zcdp(1.0))


def mechanism(make, budgets, fill=None, more=(), sources=(1, 2)):
    """A case: what a mechanism says for each budget, and what it publishes for the last one."""

    def case():
        found, made = {}, None
        for budget in budgets:
            made = make(budget)
            found[str(budget)] = recorded.members(made, more)
        for seed in sources if fill else ():
            found[f"release {seed}"] = recorded.told(made(fill(made), seeded_source(seed)))
        return found

    return case


def misra_gries(made):
    summary = dc.MisraGries(made.capacity, seed=1)
    summary.update(ROWS)
    return summary


def merged(made):
    summary, other = misra_gries(made), dc.MisraGries(made.capacity, seed=2)
    other.update(ROWS[:500])
    summary.merge(other)
    return summary


def shards(made):
    summary = dc.ShardedMisraGries(made.capacity, made.shards, seed=1)
    summary.update(ROWS)
    return summary


def exact(made):
    summary = dc.ExactCounts(seed=1)
    summary.update(ROWS)
    return summary


def several(made):
    parts = [dc.MisraGries(made.capacity, seed=1) for _ in range(made.sketches)]
    for place, part in enumerate(parts):
        part.update(ROWS[place :: made.sketches])
    return parts


def lists(made):
    summary = dc.UserMisraGries(made.capacity, made.unit.limit, seed=1)
    summary.update([items[: made.unit.limit] for items in LISTS])
    return summary


def cells(kind):
    def fill(made):
        summary = kind(made.width, made.depth, tracked=made.capacity, seed=1)
        summary.update(ROWS * 3)
        return summary

    return fill


def people(made):
    return ListedPeople(LISTS)


SMALL = {"width": 256, "depth": 11}
LONG = {"stream_length": 20_000}

CASES = {
    "offset": mechanism(lambda b: Offset(b, 8), APPROXIMATE, misra_gries),
    "offset of users": mechanism(lambda b: Offset(b, 12, User(3)), APPROXIMATE, misra_gries),
    "sharded": mechanism(lambda b: ShardedOffset(b, 5, 3), APPROXIMATE, shards),
    "sharded of users": mechanism(lambda b: ShardedOffset(b, 4, 2, User(2)), APPROXIMATE, shards),
    "merged": mechanism(lambda b: Merged(b, 6, stream_length=5000), FEW, merged),
    "merged of users": mechanism(lambda b: Merged(b, 5, User(2)), FEW, merged),
    "user sketch": mechanism(lambda b: UserSketch(b, 8, User(3)), FEW, lists),
    "user sketch in parts": mechanism(lambda b: UserSketch(b, 6, User(2), 9000, 2), FEW, lists),
    "stability": mechanism(lambda b: Stability(b), APPROXIMATE, exact),
    "stability of users": mechanism(lambda b: Stability(b, User(3), distinct=True), APPROXIMATE, exact),
    "stability of many": mechanism(lambda b: Stability(b, User(3)), APPROXIMATE, exact),
    "stability, gaussian": mechanism(lambda b: Stability(b, noise="gaussian", max_distinct=50), FEW, exact),
    "stability, gaussian, users": mechanism(lambda b: Stability(b, User(2), "gaussian", distinct=True), FEW, exact),
    "reduced": mechanism(lambda b: ReducedMisraGries(b, 7, **LONG), APPROXIMATE, misra_gries),
    "reduced, users": mechanism(lambda b: ReducedMisraGries(b, 7, User(2)), APPROXIMATE, misra_gries),
    "reduced, universe": mechanism(
        lambda b: ReducedMisraGries(b, 7, universe=range(200), spurious=0.3), PURE, misra_gries
    ),
    "reduced, rho": mechanism(lambda b: ReducedMisraGries(b, 7, User(2), universe=range(200)), RHO, misra_gries),
    "summed": mechanism(lambda b: Summed(b, 7, sketches=3), APPROXIMATE, several),
    "summed, universe": mechanism(lambda b: Summed(b, 7, User(2), range(90), sketches=2), PURE, several),
    "count-min": mechanism(lambda b: CountMinHeavyHitters(b, 6, **SMALL, **LONG), FEW, cells(dc.CountMin)),
    "count-min, noisy length": mechanism(
        lambda b: CountMinHeavyHitters(b, 6, User(2), "laplace", **SMALL), FEW, cells(dc.CountMin)
    ),
    "count-sketch": mechanism(
        lambda b: CountSketchHeavyHitters(b, 6, User(2), **SMALL, length_share=0.2), FEW, cells(dc.CountSketch)
    ),
    "count-sketch, laplace": mechanism(
        lambda b: CountSketchHeavyHitters(b, 6, noise="laplace", **SMALL, **LONG), FEW, cells(dc.CountSketch)
    ),
    "universe": mechanism(lambda b: UniverseHistogram(b, range(15)), ALL, exact),
    "universe of people": mechanism(lambda b: UniverseHistogram(b, range(15), User(), 4), ALL),
    "people": mechanism(lambda b: PersonVectors(b, 6), FEW, people),
    "people, few items": mechanism(lambda b: PersonVectors(b, 4, User(2), groups=3), FEW, people),
    "people, rows": mechanism(lambda b: PersonVectors(b, 4, rows=True), FEW, people),
    "people, values": mechanism(lambda b: PersonVectors(b, 4, values=ValueRange(0, 10)), FEW, people),
    "pairs": mechanism(lambda b: PersonPairs(b, 5), FEW, people),
    "triples": mechanism(lambda b: PersonPairs(b, 5, size=3), FEW[1:], people),
    "people's values": mechanism(
        lambda b: PersonMoments.of(b, ValueMoment("mean", 0, 1, 2**20), None, 0.9), (*FEW, Budget(1.0, 1e-4))
    ),
    "people's counts": mechanism(lambda b: PersonMoments.of(b, ValueMoment("count"), 40), (*FEW, *RHO)),
}


# ---- numbers, not items ----------------------------------------------------------------------------------------------


def numbers(make, budgets, draws=None, more=()):
    """The same for mechanisms whose answers are numbers; `draws` asks one with a source."""

    def case():
        found = {}
        for budget in budgets:
            try:
                made = make(budget)
            except DiscreetError as error:
                found[str(budget)] = recorded.refusal(error)
                continue
            found[str(budget)] = recorded.members(made, more)
            for seed in (1, 2, 3) if draws else ():
                found[f"{budget}, drawn {seed}"] = recorded.asked(draws, made, seeded_source(seed))
        return found

    return case


VALUES = [n * n % 97 / 9.7 for n in range(600)]
MOMENTS = {
    "count": ValueMoment("count"),
    "mean": ValueMoment("mean", 0, 10, 2**20),
    "sum": ValueMoment("sum", -1, 11, 2**26),
    "variance": ValueMoment("variance", 0, 10, 2**20),
    "signed": ValueMoment("signed", -2, 10),
    "split": ValueMoment("split", -2, 10, 2**20),
}
SETS = [(person, value) for person in range(60) for value in range(person % 7) if (person * value) % 3]
PEOPLE, DIFFERENT = np.array(SETS).T


def row_sums(made, source):
    groups = made.groups or 3
    sums = np.array([made.moment.entries(np.array(VALUES[g::groups])).sum(axis=0) for g in range(groups)])
    noisy = made.draw(sums, source)
    return {"sums": sums, "noisy": noisy, "passed": made.passed(noisy), "intervals": list(made.intervals(noisy))}


def quantiles_of(made, source):
    counts = made.of_bins(np.bincount([n * n % made.grid.bins for n in range(700)], minlength=made.grid.bins))
    return made._publish(counts, source) if hasattr(made, "_publish") else made(counts, source)


for _kind, _moment in MOMENTS.items():
    CASES[f"row {_kind}"] = numbers(
        lambda b, moment=_moment: RowMoments(b, moment, 2 if b.delta == 0 else None, 0.9), ALL[1:], row_sums
    )
CASES |= {
    "row count of people": numbers(
        lambda b: RowMoments(b, MOMENTS["count"], 3, unit=User(), counted="values", max_items=2), ALL, row_sums
    ),
    "noisy count": numbers(lambda b: NoisyCount(b), ALL, lambda made, source: made(1000, source)),
    "noisy count of people": numbers(
        lambda b: NoisyCount(b, User(), "people", 0.8), ALL, lambda made, source: made(10, source)
    ),
    "bad rows": numbers(
        lambda b: BadShare(b, Fraction(1, 10)),
        ALL,
        lambda made, source: [made.draw(made.statistic(bad, 900), source) for bad in (0, 90, 100, 110, 600)],
    ),
    "bad rows of people": numbers(lambda b: BadShare(b, Fraction(3, 4), User()), ALL),
    "credited": numbers(
        lambda b: CreditedDistinct(b, max_items=2),
        ALL,
        lambda made, source: [made.count_of(PEOPLE, DIFFERENT), made(30, source)],
    ),
    "chosen": numbers(
        lambda b: ChosenDistinct(b),
        ALL,
        lambda made, source: [made.count_of(PEOPLE, DIFFERENT), made.draw(made.count_of(PEOPLE, DIFFERENT), source)],
    ),
}
GRIDS = {
    "linear": Grid(0.0, 64.0, 64),
    "log": Grid(1.0, 64.0, 16, "log"),
    "whole": StepGrid(0, 40),
    "wide": StepGrid(0, 99, width=5),
    "dates": grid_of(("2026-01-01", "2026-12-31")),
    "times": grid_of(("2026-01-01T00:00:00", "2026-01-02T00:00:00"), 48),
}
SHARES = (0.1, 0.5, 0.9)
for _name, _grid in GRIDS.items():
    for _kind in (QuantileTree, QuantileChoice):
        CASES[f"{_kind.__name__}, {_name}"] = numbers(
            lambda b, grid=_grid, kind=_kind: kind(b, grid, SHARES, confidence=0.9),
            ALL[1::2],
            quantiles_of,
            [("reach", 0.5, 0.1)] if _kind is QuantileTree else (),
        )
CASES |= {
    "QuantileTree of people": numbers(lambda b: QuantileTree(b, GRIDS["whole"], SHARES, User(), 3), ALL, quantiles_of),
    "QuantileChoice of people": numbers(
        lambda b: QuantileChoice(b, GRIDS["whole"], SHARES, User(), 3, parts=8, cells=4), ALL, quantiles_of
    ),
}


# ---- functions that state numbers ------------------------------------------------------------------------------------


def grid_case():
    found = {}
    for name, grid in GRIDS.items():
        found[name] = recorded.members(grid)
        found[f"{name}, bins"] = [
            [recorded.told(grid.lower(place)), recorded.told(grid.upper(place)), recorded.told(grid.value(place, 0.25))]
            for place in (0, 1, grid.bins - 1)
        ]
        found[f"{name}, finer"] = recorded.told(recorded.members(finer(grid)))
    found["places"] = recorded.told(GRIDS["linear"].places(np.array([-1.0, 0.0, 0.5, 1.0, 63.5, 64.0, 65.0, np.inf])))
    found["places, log"] = recorded.told(GRIDS["log"].places(np.array([0.0, 1.0, 1.3, 63.9, 64.0, 99.0])))
    found["usual grids"] = {
        str(ends): recorded.asked(lambda ends=ends: recorded.members(grid_of(*ends)))
        for ends in [((0, 1),), ((0.5, 3),), ((-5, 10**9),), ((1, 1000), 10, "log"), ((0, 10), None, "whole")]
    }
    return found


def function_case():
    grid = [(0.1, 1e-9), (0.5, 1e-6), (1.0, 1e-4), (4.0, 1e-3)]
    asked = recorded.asked
    found = {
        "additive_noise": {
            f"{budget} {m} {h}": asked(additive_noise, budget, m, h, 10) for budget in ALL for m, h in [(1, 1), (3, 2)]
        },
        "additive_cost": [asked(additive_cost, law, Fraction(7, 2), 3, 2) for law in ("gaussian", "laplace")],
        "per_event": [asked(per_event, e, d, m) for e, d in grid for m in (1, 2, 5)],
        "lost": [asked(lost_by_misra_gries, length, k) for length, k in [(None, 3), (100, 3), (99, 9)]],
        "reduced": [
            [reduced_sensitivity(k, max_items=m), reduced_squared_sensitivity(k, max_items=m)]
            for k in (1, 2, 7)
            for m in (1, 3)
        ],
        "reduced_threshold": [
            asked(reduced_threshold, e, d, k, max_items=m) for e, d in grid for k, m in [(3, 1), (9, 2)]
        ],
        "universe_cut": [asked(universe_cut, e, s, u, b) for e, s, u, b in [(0.1, 3, 10, 0.01), (2.0, 1, 10**6, 0.3)]],
        "stability": [
            [
                asked(stability_threshold, e, d, max_items=m, distinct=x),
                asked(stability_delta, e, 9, max_items=m, distinct=x),
            ]
            for e, d in grid
            for m in (1, 3)
            for x in (False, True)
        ],
        "cells_sigma": [asked(cells_sigma, e, d, 11, m) for e, d in grid for m in (1, 2)],
        "largest_untracked": [
            asked(largest_untracked, 1000, k, g, r) for k in (1, 9) for g in (0, 7) for r in ("min", "median")
        ],
        "noise_sum_bound": [
            asked(noise_sum_bound, law, Fraction(9, 2), n, 1e-6) for law in ("laplace", "gaussian") for n in (1, 30)
        ],
        "joint_delta": [asked(joint_delta, e, 0.3, 4.0, m) for e in (0.5, 2.0) for m in (1, 20, 256)],
        "largest_mu": [asked(largest_mu, e, d, t, 0.4) for e, d in grid for t in (1, 10)],
        "calibrated": [recorded.members(calibrated(e, d, n)) for e, d in grid[1:3] for n in (100, 10**5)],
        "lattice_noise": [asked(lattice_noise, b, one) for b in ALL for one in (1, 1024)],
        "best_tree": [
            [recorded.told(part) for part in best_tree(bins, b, h)]
            for bins in (2, 64, 1000)
            for b in ALL[::2]
            for h in (1, 12)
        ],
        "range tree": [
            recorded.told([tree.leaves, tree.nodes, *tree.noises(np.arange(0, tree.leaves, 3), 0.5)])
            for tree in (RangeTree(2, 4), RangeTree(4, 3))
        ],
        "split_off_total": [
            [recorded.told(part) for part in split_off_total(b, share, unit, n)]
            for b in (*APPROXIMATE, RHO[0])
            for share, unit, n in [(0.1, Event(), 1), (0.3, User(4), 2)]
        ],
    }
    kinds = (Offset, Merged, ReducedMisraGries, CountMinHeavyHitters, Stability)
    found["capacity"] = {
        f"{kind.__name__} {k} {unit} {length} {memory}": asked(
            choose_capacity, k, Budget(1.0, 1e-6), unit, length, kind, memory, 2
        )
        for kind in kinds[:3]
        for k in (1, 30)
        for unit in (Event(), User(3))
        for length in (None, 10**6)
        for memory in (None, "64 kB")
    }
    found["first_capacity"] = [
        asked(first_capacity, k, b, Event(), n) for k in (1, 50) for b in FEW for n in (None, 1000)
    ]
    offset = Offset(Budget(1.0, 1e-6), 50)
    found["frequency"] = [
        [asked(frequency_published, offset, n, 50, c), asked(summary_errors, offset, n, 50, 0.1)]
        for n in (1000, 10**6)
        for c in (0.5, 0.95)
    ]
    return found


def people_case():
    """What is prepared for people, with each of its words."""
    found = {}
    words = [{}, {"max_items": 3}, {"count": "rows"}, {"lists": True}, {"groups": 4}, {"groups": None}, {"pairs": 2}]
    words += [{"values": ValueRange(0, 5), "count": "values"}, {"pairs": 3, "max_items": 2}]
    for each in words:
        for budget in FEW[: 2 if not each else 1]:
            made = recorded.asked(lambda b=budget, e=each: vars(prepare_people(5, b, **e)))
            found[f"{each} {budget}"] = made
    return found


def questions_case():
    """Answers of the questions that no summary is released by."""
    table = {
        "v": VALUES,
        "u": [f"u{n % 90}" for n in range(600)],
        "g": ["abc"[n % 3] for n in range(600)],
        "w": [f"w{n * 7 % 50}" for n in range(600)],
        "t": [f"2026-11-{1 + n % 4:02d}T0{n % 10}:00:00" for n in range(600)],
    }
    found = {}
    within = {"column": "v", "range": (0, 10)}
    for budget in (Budget(2.0, 1e-4), Budget.zcdp(0.5)):
        for who in ({}, {"user": "u"}):
            for by in ({}, {"by": "g"}, {"by": "g", "groups": ["a", "c", "z"]})[
                1 if who else 0 : 3 if budget.delta else 1
            ]:
                for name, words in {
                    "count": {},
                    "distinct": {"column": "w"},
                    "sum": within,
                    "mean": within,
                    "variance": within,
                    "quantiles": {**within, "quantiles": [0.25, 0.5]},
                    "histogram": {
                        "column": "g" if not by else "w",
                        "universe": ["a", "w0", "w1", "b"],
                        **({"max_items": 2} if who else {}),
                    },
                    "top_k": {"column": "w", "k": 4},
                }.items():
                    if name == "top_k" and not who:
                        continue  # a summary draws its own hash
                    asked = {**words, **who, **by, "source": seeded_source(7)}
                    told = recorded.asked(answer, getattr(dc, name), table, budget, asked)
                    found[f"{name} {budget} {who} {by}"] = told
    return found


def answer(question, table, budget, words):
    given = (words.pop("k"), budget) if "k" in words else (budget,)
    made = question(table, *given, **words)
    if isinstance(made, dc.Release):
        return made
    if hasattr(made, "to_dict"):
        return {name: value for name, value in made.to_dict().items() if name not in ("time", "version")}
    return recorded.members(made, without={"asked"})


def merge_case():
    """The sum of releases."""
    found = {}
    made = [
        Offset(Budget(e, 1e-6), 8)(misra_gries(Offset(Budget(e, 1e-6), 8)), seeded_source(n))
        for n, e in enumerate((1.0, 2.0, 0.5))
    ]
    for parts in (1, 2, 3):
        found[f"offset {parts}"] = recorded.asked(central.merge_releases, made, parts_per_user=parts)
    counts = [UniverseHistogram(Budget.zcdp(r), range(5))(exact(None), seeded_source(1)) for r in (0.5, 0.1)]
    found["universe"] = recorded.asked(central.merge_releases, counts)
    stable = Stability(Budget(1.0, 1e-6))
    found["stability"] = recorded.asked(central.merge_releases, [stable(exact(None), seeded_source(n)) for n in (1, 2)])
    found["different"] = recorded.asked(central.merge_releases, [made[0], counts[0]])
    return found


CASES |= {
    "grids": grid_case,
    "functions": function_case,
    "prepared people": people_case,
    "questions": questions_case,
    "sums of releases": merge_case,
}


SLOW = {"questions", "row variance"}  # tests/statistical/test_slow_numbers.py


@pytest.mark.parametrize("name", [name for name in CASES if name not in SLOW])
def test_what_is_recorded(name):
    recorded.check("central", name, CASES[name])


def test_nothing_else_is_recorded():
    assert set(recorded.recorded("central")) == set(CASES)
