"""Pan-private estimators: what they state, their states and answers from seeded sources, and what they refuse."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests import recorded
from tests.recorded import asked

from discreet import Budget, pan
from discreet.errors import DiscreetError
from discreet.noise import seeded_source
from discreet.pan import intervals, responses
from discreet.pan.cropped_mean import largest_ratio
from discreet.pan.heavy_fraction import Ladder, ladder_weights
from discreet.pan.incidence import square_filter, square_levels
from discreet.pan.settings import Settings

ITEMS = np.array([n * n % 61 for n in range(400)])
MADE = {
    "density": lambda **o: pan.Density(80, **o),
    "density of few": lambda **o: pan.Density(range(-20, 60), sample_size=50, response="paper", **o),
    "distinct": lambda **o: pan.DistinctCount(buckets=128, levels=8, **o),
    "cropped mean": lambda **o: pan.CroppedMean(80, 3, **o),
    "cropped mean, many": lambda **o: pan.CroppedMean(80, 40, confidence=0.8, **o),
    "heavy": lambda **o: pan.HeavyFraction(80, 4, **o),
    "heavy, fine": lambda **o: pan.HeavyFraction(80, 4, rho=0.01, **o),
    "heavy, counters": lambda **o: pan.HeavyFraction(80, 4, method="counters", max_count=50, **o),
    "heavy, two tables": lambda **o: pan.HeavyFraction(80, 5, method="two_tables", rho=0.5, **o),
    "heavy, ladder": lambda **o: pan.HeavyFraction(80, 3, method="ladder", max_count=9, **o),
    "modular": lambda **o: pan.ModularIncidence(80, 4, **o),
    "modular, squares": lambda **o: pan.ModularIncidence(80, 7, shift="squares", **o),
    "modular, paper": lambda **o: pan.ModularIncidence(80, 5, shift="paper", solver="linear_program", **o),
    "incidence": lambda **o: pan.Incidence(80, 2, **o),
    "incidence, small": lambda **o: pan.Incidence(80, 2, max_count=10, **o),
    "incidence, primes": lambda **o: pan.Incidence(80, 2, method="primes", max_count=30, primes=3, **o),
    "occurrences": lambda **o: pan.Occurrences(3, buckets=192, levels=8, **o),
}
LATER = {
    "cropped mean": [{"t": 1}, {"t": 3}, {"t": 4}],
    "cropped mean, many": [{"t": 2}, {"t": 0}],
    "heavy, counters": [{"k": 1}, {"k": 9, "rho": 0.2}, {"k": 50}, {"k": 51}, {"k": 0}],
    "heavy, ladder": [{"k": 2}, {"k": 9}, {"k": 10}, {"k": 4, "rho": 0.5}],
    "heavy": [{"k": 2}, {"k": 5}, {"k": 4, "rho": 0.0}],
    "incidence": [{"t": 0}, {"t": 7}, {"t": 2**30}, {"t": 2**30 + 1}],
    "incidence, small": [{"t": 10}, {"t": 11}],
    "incidence, primes": [{"t": 1}, {"t": 30}, {"t": 31}],
    "heavy, two tables": [{"k": 4}],
}
WITHOUT = {"options", "settings"}


def estimate(made):
    """An answer and what it says beside the guarantee."""
    if not hasattr(made, "at_least"):
        return recorded.members(made, without={"guarantee", "is_private"}, more=()) | {"said": repr(made)}
    more = [("at_least", k) for k in (0, 1, 3, 4)] + [("exactly", t) for t in (0, 1, 3, 4)]
    more += [("cropped_sum",), ("cropped_sum", 2), ("cropped_sum", 4)]
    found = recorded.members(made, without={"guarantee", "is_private"})
    for name, *given in more:
        try:
            answer = getattr(made, name)(*given)
            found[f"{name}{given}"] = [answer.value, answer.lower, answer.upper, answer.unbiased]
        except DiscreetError as error:
            found[f"{name}{given}"] = recorded.refusal(error)
    return found


def whole(name):
    """What it states for several budgets, then one run: updates, an announced look, releases, a restored state."""

    def case():
        found = {}
        for epsilon, options in product((0.1, 1.0, 4.0), ({}, {"announced_intrusions": 2, "releases": 3})):
            made = asked_to_make(MADE[name], budget=Budget(epsilon), source=seeded_source(1), **options)
            if isinstance(made, str):
                found[f"{epsilon} {options}"] = made
                continue
            said = recorded.members(made, without=WITHOUT)
            said["settings"] = made.settings.to_list()
            found[f"{epsilon} {options}"] = said
        for epsilon, seed in ((0.5, 1), (3.0, 2)):
            made = MADE[name](budget=Budget(epsilon), source=seeded_source(seed), releases=8, announced_intrusions=1)
            made.update(ITEMS)
            run = f"run {epsilon}"
            found[f"{run}: cells"] = recorded.told(repr(made.seen_by_intruder()).encode())
            found[f"{run}: first"] = estimate(made.release())
            made.announce_intrusion()
            found[f"{run}: looked at"] = [
                made.guarantee.to_dict(),
                made.noise_scale,
                *made.response.after(made.intrusions),
            ]
            found[f"{run}: cells again"] = recorded.told(repr(made.seen_by_intruder()).encode())
            made.update(ITEMS[:100] + 5)
            found[f"{run}: second"] = estimate(made.release())
            found[f"{run}: later"] = [answer(made, words) for words in LATER.get(name, ())]
            state = made.to_bytes()
            again = type(made).from_bytes(state)
            found[f"{run}: state"] = [state, again.to_bytes() == state, again.parameters, again.settings.to_list()]
            found[f"{run}: text"] = [repr(made), asked(made.question)]
        return recorded.told(found)

    return case


def asked_to_make(make, **options):
    try:
        return make(**options)
    except DiscreetError as error:
        return recorded.refusal(error)


def answer(made, words):
    try:
        return estimate(made.release(**words))
    except DiscreetError as error:
        return recorded.refusal(error)


def interval_case():
    scales, betas = (Fraction(1, 2), Fraction(7)), (0.3, 0.05, 1e-9)

    def table(function, *columns):
        return [asked(function, *given) for given in product(*columns)]

    return {
        "count_bound": table(intervals.count_bound, (10, 1000), (0.1, 2.0), betas),
        "noise_bound": table(intervals.noise_bound, (0.1, 2.0), betas),
        "signs_bound": table(intervals.signs_bound, (0.5, 90.0), scales, betas),
        "mean_interval": table(intervals.mean_interval, (-5, 0, 3, 99, 100, 130), (100,), scales, betas),
        "linear_bound": table(intervals.linear_bound, ([1.0], [0.5, -2.0, 3.0], [0.0], []), scales, betas),
        "choose_share": [
            asked(intervals.choose_share, e, i, r, lambda s, o: 1 / s + 3 / o)
            for e in (0.3, 4.0)
            for i in (1, 3)
            for r in (1, 5)
        ],
        "smallest_sample": [
            asked(intervals.smallest_sample, lambda m, n=n: m >= n, 1000) for n in (1, 2, 3, 700, 1000, 1001)
        ],
        "largest_ratio": table(largest_ratio, (0, 1, 5)),
        "ladders": [
            [ladder.parts, ladder.rungs, asked(ladder.bound, 500, 0.3, 0.7, 0.05)]
            for ladder in (Ladder(k, rho, most) for k in (1, 3, 9) for rho in (0.3, 1.0) for most in (9, 20))
        ],
        "ladder_weights": [
            asked(ladder_weights, [1.0, 2.0, 4.0, 8.0], k, only) for k in (1, 3, 8) for only in (False, True)
        ],
        "squares": [
            [asked(square_levels, p, Fraction(e)), asked(square_filter, p, Fraction(e), r)]
            for p in (7, 103)
            for e in (0.2, 2)
            for r in (0, 2)
        ],
        "responses": [
            [
                asked(responses.Response.of, name, Fraction(e)),
                *(asked(lambda n=name, e=e, r=r: responses.Response.of(n, Fraction(e)).after(r)) for r in (0, 1, 4)),
                asked(responses.gap_of, name, e, 2),
            ]
            for name in ("tight", "paper")
            for e in (0.05, 0.5, 3.0)
        ],
        "weights": [
            asked(f, k, Fraction(e))
            for f in (responses.paper_weights, responses.response_weights)
            for k in (2, 7)
            for e in (0.1, 2)
        ],
        "square laws": [
            [asked(responses.square_law, p, Fraction(e)), asked(responses.square_threshold, p, Fraction(e))]
            for p in (3, 7, 11)
            for e in (0.1, 2)
        ],
    }


BUDGET = {"budget": Budget(1.0)}
SETTINGS = {"confidence": 0.9, "releases": 2, "announced_intrusions": 1, "response": "tight", "output_share": 0.3}
RANGES = {
    "settings": (
        lambda **o: Settings.of(1.0, o, lambda *_: 1.0).to_list(),
        SETTINGS,
        {
            "announced_intrusions": (16, 17),
            "releases": (2**20, 2**20 + 1),
            "confidence": (0.499,),
            "response": ("paper",),
            "output_share": (Fraction(1, 7), Fraction(1)),
        },
    ),
    "density": (
        pan.Density,
        {"universe": 20, "sample_size": 9, **BUDGET},
        {"sample_size": (20, 21), "budget": (Budget(1.0, 1e-6), Budget.zcdp(1.0), Budget(1e-17))},
    ),
    "distinct": (
        pan.DistinctCount,
        {"buckets": 64, "levels": 8, **BUDGET},
        {"buckets": (2, 15, 16, 63), "levels": (2, 3, 64, 65)},
    ),
    "cropped mean": (pan.CroppedMean, {"universe": 20, "t": 3, "sample_size": 9, **BUDGET}, {"t": (2**40, 2**40 + 1)}),
    "heavy": (
        pan.HeavyFraction,
        {"universe": 20, "k": 3, "rho": 0.5, "sample_size": 9, **BUDGET},
        {"k": (2**40, 2**40 + 1)},
    ),
    "heavy, ladder": (
        pan.HeavyFraction,
        {"universe": 20, "k": 3, "rho": 0.5, "method": "ladder", "max_count": 9, **BUDGET},
        {"max_count": (2, 3), "rho": (1 / 64, 1 / 65, 1.01), "method": ("two_tables", "counters")},
    ),
    "modular": (
        pan.ModularIncidence,
        {"universe": 20, "k": 5, "shift": "auto", "solver": "fft", **BUDGET},
        {"k": (2, 4097), "shift": ("squares", "paper", "response"), "solver": ("linear_program",)},
    ),
    "incidence": (
        pan.Incidence,
        {"universe": 20, "t": 2, "max_count": 10, **BUDGET},
        {"t": (10, 11), "max_count": (2, 3, 2**30, 2**30 + 1)},
    ),
    "incidence, primes": (
        pan.Incidence,
        {"universe": 20, "t": 2, "method": "primes", "max_count": 30, "primes": 3, "collision": 0.5, **BUDGET},
        {"primes": (65,), "method": ("squares",)},
    ),
    "occurrences": (
        pan.Occurrences,
        {"max_count": 2, "buckets": 192, "levels": 8, **BUDGET},
        {"max_count": (64, 65), "buckets": (191,), "levels": (3, 64)},
    ),
}
ACCURATE = {
    "density": (pan.Density, {"universe": 10**6}),
    "distinct": (pan.DistinctCount, {"levels": 20}),
    "cropped mean": (pan.CroppedMean, {"universe": 10**6, "t": 4}),
    "heavy": (pan.HeavyFraction, {"universe": 10**6, "k": 4, "rho": 0.5}),
    "modular": (pan.ModularIncidence, {"universe": 10**6, "k": 4}),
    "incidence": (pan.Incidence, {"universe": 10**6, "t": 4}),
    "occurrences": (pan.Occurrences, {"max_count": 2, "levels": 20}),
}


def range_case():
    return {name: recorded.taken(make, given, odd) for name, (make, given, odd) in RANGES.items()}


def accuracy_case():
    """How large a sample an accuracy needs."""
    found = {}
    for name, (kind, words) in ACCURATE.items():
        for alpha, beta, epsilon in ((0.2, 0.01, 3.0), (0, 0.1, 1.0), (0.1, 1.0, 1.0)):
            made = asked_to_make(
                lambda k=kind, g=(alpha, beta, epsilon), w=words: k.for_accuracy(*g, **w, source=seeded_source(1))
            )
            found[f"{name} {alpha} {beta} {epsilon}"] = (
                made if isinstance(made, str) else [made.parameters, made.settings.to_list()]
            )
        both = {**words, "confidence": 0.9}
        found[f"{name} with confidence"] = asked_to_make(lambda k=kind, w=both: k.for_accuracy(0.1, 0.1, 1.0, **w))
    found["accurate from"] = [
        asked(pan.DistinctCount(buckets=b, levels=10, budget=Budget(e)).accurate_from, a)
        for b in (1024, 2**16)
        for e in (0.5, 2.0)
        for a in (0.2, 0.5, 0)
    ]
    return found


CASES = {name: whole(name) for name in MADE}
CASES |= {"intervals": interval_case, "ranges": range_case, "accuracy": accuracy_case}


SLOW = {"accuracy"}  # tests/statistical/test_slow_numbers.py


@pytest.mark.parametrize("name", [name for name in CASES if name not in SLOW])
def test_what_is_recorded(name):
    recorded.check("pan", name, CASES[name])


def test_nothing_else_is_recorded():
    assert set(recorded.recorded("pan")) == set(CASES)
