"""Budgets, units, calibrations, accounting, calendars and ledgers: every number that they state, over grids."""

from __future__ import annotations

import datetime
import itertools
import math
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import numpy as np
import pytest
from tests import recorded
from tests.recorded import asked

import discreet as dc
from discreet.errors import DiscreetError
from discreet.privacy import checks, rounding, shuffle, spans, steps, zcdp_filter
from discreet.privacy.accounting import Charge, Tally, is_within
from discreet.privacy.calibration import (
    collisions,
    composition,
    correlated_noise,
    discovery,
    gaussian,
    offset_cut,
    sparse_histogram,
    tails,
    tick_noise,
    zcdp,
)
from discreet.privacy.charge_terms import differing_parameters, question_of, told_differences
from discreet.privacy.guarantee import Asked, Element, Replace, unit_from_dict, unit_named
from discreet.privacy.ledger import accounts, balance, event_log
from discreet.privacy.ledger.transfer import move
from discreet.privacy.zcdp_filter import ZcdpFilter

Budget, User, Event = dc.Budget, dc.User, dc.Event

PAIRS = [(0.05, 1e-9), (0.3, 1e-6), (1.0, 1e-9), (1.0, 1e-3), (4.0, 1e-6)]
EPSILONS = (0.05, 0.7, 4.0)
BUDGETS = [
    *(Budget(e) for e in EPSILONS),
    *(Budget(e, d) for e, d in PAIRS),
    Budget.zcdp(0.01),
    Budget.zcdp(0.6),
    Budget.zcdp(3),
    Budget(25.0),
    Budget(1.0, 0.01),
]


def table(function, *columns, **named):
    """What a function says for all combinations of arguments."""
    return [asked(function, *given, **named) for given in itertools.product(*columns)]


def rows(function, given, **named):
    return [asked(function, *each, **named) for each in given]


def calibration_case():
    e, d, sigmas = EPSILONS, (1e-9, 1e-4), (0.4, 1.7, 30.0)
    ticks = tick_noises()
    return {
        "cell_probability": table(collisions.cell_probability, (1, 10, 1024)),
        "digest_collision": table(collisions.digest_collision_probability, (1, 64, 4096)),
        "all_rows_fail": table(collisions.all_rows_fail, (1, 5, 20), (0.01, 0.3)),
        "majority_fails": table(collisions.majority_fails, (1, 5, 21), (0.01, 0.3)),
        "collisions": [
            [
                asked(c.failure, 5),
                asked(c.failure, 300),
                asked(c.failure, 9999),
                asked(c.bound, 1e-3),
                asked(c.bound, 1e-12),
            ]
            for c in (
                collisions.Collisions(rule, 64, depth, 1000, 200, 32, slack)
                for rule in ("smallest", "median")
                for depth in (3, 8)
                for slack in (0.0, 1e-6)
            )
        ],
        "collisions taken": recorded.taken(
            collisions.Collisions,
            {"rule": "median", "width": 9, "depth": 3, "length": 9, "items": 4, "max_key_bytes": 9},
            {"width": None, "depth": None, "length": None, "items": None, "max_key_bytes": None},
        ),
        "repeated_delta": table(composition.repeated_delta, (0.5, 2.0), (0.05, 0.3), (0.0, 1e-8), (1, 7)),
        "repeated_share": table(composition.repeated_share, e, d, (1, 2, 50)),
        "correlated": table(correlated_noise.correlated_calibration, (0.3, 2.0), d, (1, 9), (1, 2)),
        "correlated_delta": table(
            correlated_noise.discrete_correlated_delta, (0.5, 2.0), (4.0,), (6.0,), (12, 30), (1, 6)
        ),
        "discovery": table(discovery.discovery_calibration, e, d, (1, 5)),
        "discovery_delta": table(discovery.discovery_delta, (0.5, 2.0), (3.0, 9.0), (15, 40), (1, 5)),
        "gaussian_delta": table(gaussian.gaussian_delta, e, sigmas, (1.0, 2.5)),
        "gaussian_sigma": table(gaussian.gaussian_sigma, e, d, (1.0, 2.5)),
        "discrete_gaussian_delta": [
            asked(gaussian.discrete_gaussian_delta, *x, changes=c) for x in itertools.product(e, sigmas) for c in (1, 4)
        ],
        "discrete_gaussian_sigma": [
            asked(gaussian.discrete_gaussian_sigma, *x, changes=c) for x in itertools.product(e, d) for c in (1, 4)
        ],
        "discrete_gaussian_sigma_any": table(gaussian.discrete_gaussian_sigma_any, e, d, (1.0, 2.2)),
        "discrete_gaussian_tail": table(gaussian.discrete_gaussian_tail, sigmas, (-3, 0, 1, 9, 60)),
        "discrete_gaussian_tails": [
            asked(gaussian.discrete_gaussian_tails, s, np.array([-3.0, 0.0, 1.0, 9.0, 60.0])) for s in sigmas
        ],
        "discrete_gaussian_mass": [
            asked(gaussian.discrete_gaussian_mass, s, np.array([-3.0, 0.0, 1.0, 9.0, 60.0])) for s in sigmas
        ],
        "gaussian_reach": table(gaussian.gaussian_reach, (0.1, *sigmas, 3000.0), (0.3, 1e-3, 1e-12, 1e-200)),
        "normal": [asked(f, np.array([-40.0, -3.0, 0.0, 0.5, 6.0, 50.0])) for f in (gaussian.ndtr, gaussian.log_ndtr)],
        "ndtri": table(gaussian.ndtri, (1e-300, 1e-9, 0.2, 0.5, 0.999)),
        "sum_of_two": table(gaussian.sum_of_two, sigmas, sigmas),
        "unit_change_delta": [
            asked(gaussian.unit_change_delta, np.array([0.3, 2.0]), 4.0, np.array([1, 3]), h) for h in (1, 2)
        ],
        "offset_delta": [
            asked(offset_cut.offset_delta, *x, max_items=m) for x in itertools.product(e, (0, 1, 9, 40)) for m in (1, 3)
        ],
        "offset_threshold": [
            asked(offset_cut.offset_threshold, *x, max_items=m) for x in itertools.product(e, d) for m in (1, 3)
        ],
        "group_factor": table(offset_cut.group_factor, e, (1, 3)),
        "gshm": table(sparse_histogram.gshm_calibration, e, d, (1, 12)),
        "discrete_gshm_delta": table(sparse_histogram.discrete_gshm_delta, (0.5, 2.0), (3.0, 9.0), (15, 40), (1, 12)),
        "any_of_log_delta": table(tails.any_of_log_delta, e, (1, 20), (1, 30)),
        "chan_threshold": table(tails.chan_threshold, e, d, (1, 30)),
        "laplace_reach": table(tails.laplace_reach, e, (0.3, 1e-3, 1e-12, 1e-200)),
        "log_any_shown": [asked(tails.log_any_shown, r, [3, 9, 9], t) for r in e for t in (1, 4)],
        "log_any_shown_each": [
            asked(tails.log_any_shown_each, r, [np.array([3, 9]), np.array([1, 40])], t) for r in e for t in (1, 4)
        ],
        "tails": [
            table(f, e, (-9, 0, 1, 9)) for f in (tails.log_below, tails.log_sum_tail, tails.log_tail, tails.upper_tail)
        ],
        "smallest": [
            tails.smallest(lambda n: n >= 777),
            tails.smallest(lambda n: n >= 0, 5),
            tails.smallest_shift(lambda t: -0.1 * t, 1e-6),
            tails.smallest_shift(lambda t: -0.1 * t, 1e-6, 500),
        ],
        "weighted_sum_reach": [
            asked(tails.weighted_sum_reach, np.array([4.0, 9.0]), np.array([1.0, 2.0]), x) for x in (1.0, 30.0)
        ],
        "geometric_squares": [
            tick_noise.geometric_squares(np.array([0.5, 0.2]), np.array([0.1, 0.01]), n) for n in (1, 7, 1000)
        ],
        "best_order": table(zcdp.best_order, e, d),
        "gaussian_rho": table(zcdp.gaussian_rho, sigmas, (1.0, 2.5)),
        "pure_rho": table(zcdp.pure_rho, e),
        "rho_at_order": table(zcdp.rho_at_order, (1.5, 8.0), e, d),
        "zcdp_delta": table(zcdp.zcdp_delta, (0.01, 0.5), e),
        "zcdp_epsilon": table(zcdp.zcdp_epsilon, (0.01, 0.5, 20.0), d),
        "zcdp_rho": table(zcdp.zcdp_rho, e, d),
        "zcdp_sigma": table(zcdp.zcdp_sigma, (1, 7), (0.01, 0.5)),
        "tick noise": {
            name: [
                [noise.difference(s, t), noise.covariance(s, t)]
                for s, t in itertools.combinations_with_replacement((0, 1, 2, 7, 16), 2)
            ]
            for name, noise in ticks.items()
        },
        "tick noise out of range": [
            asked(noise.difference, s, t) for noise in ticks.values() for s, t in [(-1, 3), (3, 17), (0, 16)]
        ],
        "difference_reach": {
            f"{name} {p}": [
                tick_noise.difference_reach([(noise, s, t)], p) for s, t in [(0, 1), (0, 16), (3, 9), (9, 3), (5, 5)]
            ]
            for name, noise in ticks.items()
            for p in (0.2, 1e-6, 1e-100)
        },
        "difference_reach of two": [
            tick_noise.difference_reach([(a, 1, 9), (b, 0, 5)], p)
            for a, b in itertools.combinations_with_replacement(ticks.values(), 2)
            for p in (0.2, 1e-6)
        ],
        "no noise": rows(
            tick_noise.TickNoise,
            [
                ("other", 3, 1.0),
                ("tree", 3, 0.0),
                ("tree", 3, 1.0, 0),
                ("tree", 3, 1.0, 1, 0.0, (1.0,)),
                ("tree", 3, 1.0, 1, 0.0, (), (), 1),
                ("tree", 3, 1.0, 1, 0.0, (), (), 2),
            ],
        ),
    }


def tick_noises():
    return {
        "powers": tick_noise.TickNoise("powers", 16, 40.0, 16, 2.0, (0.5, 0.3), (0.2, 0.01)),
        "narrow": tick_noise.TickNoise("powers", 16, 3.0, 4, 1.0, (0.9,), (0.1,)),
        "square-root": tick_noise.TickNoise("square-root", 16, 9.0, 8, 1.5),
        "tree": tick_noise.TickNoise("tree", 16, 3.5, base=3),
        "ticks": tick_noise.TickNoise("ticks", 16, 2.0),
    }


def budget_case():
    found = {}
    for b in BUDGETS:
        found[str(b)] = [
            b.weakness,
            b.is_pure,
            b.is_zcdp,
            asked(b.approximate, "it"),
            asked(b.pure, "it"),
            asked(b.pure, "it", from_zcdp=True),
            asked(b.as_zcdp, "it"),
            asked(b.as_zcdp, "it", 0.5),
            *table(b.share, (0.1, 1.0, 0, 1.1, True, "x", math.nan)),
            *table(b.split, (0.1, 1 / 3, 0, 1.0, True, "x")),
            asked(Budget.from_dict, b.to_dict()),
        ]
    found["taken"] = recorded.taken(
        Budget, {"epsilon": 1.0, "delta": 0.0}, {"delta": (1 - 1e-12,), "epsilon": (1e-300,)}
    )
    found["rho taken"] = recorded.taken(Budget.zcdp, {"rho": 1.0}, {"rho": (1e-300,)})
    return found


UNITS = (
    Event(),
    Event(per="1d"),
    Event(per="6h"),
    User(),
    User(3),
    User(per="1d"),
    User(per="1w", zone="Europe/Berlin"),
    User(2, per="2mo"),
    Element(),
    Replace(),
)


def unit_case():
    found = {repr(unit): recorded.members(unit) for unit in UNITS}
    for unit in UNITS:
        found[f"{unit!r} covers"] = [unit.covers(other) for other in UNITS]
        found[f"{unit!r} again"] = repr(unit_from_dict(unit.details()))
    found["named"] = rows(
        unit_named,
        [
            ("row",),
            ("event",),
            ("person",),
            ("user",),
            ("person-day",),
            ("person-day", "Europe/Berlin"),
            ("person-week",),
            ("person-month",),
            ("row-day",),
            ("x",),
            ("element",),
        ],
    )
    found["from dict"] = rows(
        unit_from_dict, [({"name": "User", "max_items": 3},), ({"name": "x"},), ({},), ({"name": "Unit"},)]
    )
    found["users taken"] = recorded.taken(
        User,
        {"max_items": 2, "per": "1d", "zone": "Europe/Berlin"},
        {"per": ("1d", "0d", "2w", "1h"), "zone": ("UTC", "Mars")},
    )
    found["events taken"] = recorded.taken(
        Event, {"per": "1d", "zone": "Europe/Berlin"}, {"per": ("1d", "0d", "1h"), "zone": ("UTC",)}
    )
    for budget, unit in itertools.product(BUDGETS[2:10:3], UNITS):
        made = dc.Guarantee.of(budget, unit, "a mechanism", "[X]", assumptions=("one", "two"), trust="pan")
        found[f"guarantee {budget} {unit!r}"] = [
            made.sentence(),
            made.to_dict(),
            dc.Guarantee.from_dict(made.to_dict()) == made,
        ]
    found["asked"] = [
        Asked.of("2026-11-15T21:00:00Z", k=3, columns={"item": "a", "user": None}, n=None, m=0, x=[]).to_dict(),
        asked(Asked.from_dict, {"time": "t", "version": "0.1.0"}),
    ]
    guarantee = dc.Guarantee(Event(), 1.0, 0.0, "a mechanism")
    estimates = [
        dc.Estimate(
            1.0,
            0.5,
            math.inf,
            guarantee,
            asked=Asked("t", "0.1").to_dict(),
            notes=("n",),
            left_out=dc.Estimate(0.1, 0.0, 0.2),
        ),
        dc.Estimate(2, 1, 3),
    ]
    for number, estimate in enumerate(estimates):
        found[f"estimate {number}"] = [repr(estimate), estimate.is_private, estimate.missing(), estimate._repr_html_()]
    found["payload"] = [
        estimates[0].to_payload().decode(),
        *(
            asked(dc.Estimate.from_payload, data)
            for data in (
                estimates[0].to_payload(),
                b"{}",
                b'{"release": "x", "version": 1}',
                estimates[0].to_payload().replace(b'"version": 1', b'"version": 2', 1),
            )
        ),
    ]
    return recorded.told(found)


def small_case():
    """Checks, roundings, questions of charges, shuffling."""
    third, values = Fraction(1, 3), (2.0, 2.0000000001, 2.1, -1.5, 0.0)
    return {
        "rounded": [
            [rounding.rounded_up(v), rounding.rounded_down(v), rounding.rounded_up(v) > rounding.rounded_down(v)]
            for v in (third, Fraction(1, 2), -third, Fraction(0), Fraction(10) ** 30 / 7)
        ],
        "safe_ceil": table(rounding.safe_ceil, values),
        "figure_up": table(rounding.figure_up, (0.0, 1.0, 1.001, 0.123456, 999.5, 1e-9, 123456.0, math.inf)),
        "numbered": table(checks.numbered, (0, 1, 2, 12345), ("charge", "person", "query", "row")),
        "whole": recorded.taken(
            lambda n: checks.whole_number("n", n, 2, 9), {"n": 3}, {"n": (1, 2, 9, 10, np.int64(4))}
        ),
        "whole from": recorded.taken(lambda n: checks.whole_number("n", n), {"n": 3}, {"n": (1, 2**70)}),
        "positive": recorded.taken(
            lambda n: checks.positive_number("n", n), {"n": 3}, {"n": (5e-324, 1e308, Fraction(1, 3))}
        ),
        "probability": recorded.taken(lambda n: checks.probability("n", n), {"n": 0.3}, {"n": (5e-324, 1 - 1e-16)}),
        "question": question_of(
            "top",
            k=3,
            x=None,
            long="y" * 300,
            edge="y" * 198,
            over="y" * 199,
            secret={"files": ["a"], "none": None},
            day=datetime.date(2026, 1, 1),
        ),
        "differing": differing_parameters({"a": 1, "b": 2, "d": None}, {"a": 1, "b": 3, "c": 4}),
        "told": told_differences(
            {
                "a": (1, None),
                "b": ({"name": "User", "max_items": 3, "per": None}, {"name": "Event"}),
                "c": ("sha256:1", "sha256:2"),
                "d": ("x", ["y"]),
                "e": ({"epsilon": 1.0, "delta": 0.0, "rho": None}, {"epsilon": 2.0, "delta": 1e-6, "rho": None}),
            }
        ),
        "shuffled": [
            asked(shuffle.shuffled, e, n, d, choices=c)
            for e, n, d in [(1.0, 200, 1e-6), (0.5, 20, 1e-3), (2.0, 1, 0.1)]
            for c in (None, 3)
        ],
        "shuffled_delta": [
            asked(shuffle.shuffled_delta, e, n, x, choices=c)
            for e, n, x in [(1.0, 300, 0.1), (0.5, 20, 0.3), (1.0, 9, 1.0), (1.0, 9, 1.5)]
            for c in (None, 3)
        ],
        "shuffled_closed_form": table(shuffle.shuffled_closed_form, (0.5, 2.0, 9.0), (100, 10**4, 10**7), (1e-6, 1e-3)),
        "shuffled taken": recorded.taken(
            lambda e, n, d, c: shuffle.shuffled(e, n, d, choices=c),
            {"e": 1.0, "n": 50, "d": 1e-3, "c": 3},
            {"e": (50, 51), "n": (1,), "c": (1, 2, 2**31, 2**31 + 1)},
        ),
    }


def calendar_case():
    found = {}
    moments = [
        "2026-11-15",
        "1969-12-31",
        "1970-01-01",
        "2024-02-29",
        "2026-11-15T13:45:10.5Z",
        "2026-03-29T01:30:00+00:00",
        "2026-11-02",
    ]
    for text, zone in [
        ("1d", None),
        ("1d", "Europe/Berlin"),
        ("3d", None),
        ("1w", "America/New_York"),
        ("2w", None),
        ("1mo", None),
        ("5mo", "Europe/Berlin"),
        ("1h", None),
        ("6h", "UTC"),
        ("90s", None),
        ("15m", None),
        ("007d", None),
    ]:
        made = spans.Calendar(text, zone)
        read = [
            datetime.datetime.fromisoformat(m.replace("Z", "+00:00")) if "T" in m else datetime.date.fromisoformat(m)
            for m in moments
        ]
        found[f"{text} {zone}"] = [
            made.text,
            made.zone,
            made.of_days,
            made.describe(),
            made.several,
            table(made.name, read),
            table(made.named, moments),
            table(made.period, moments),
            [asked(made.after, made.name(m)) for m in read],
            made.told(spans.ALWAYS),
            asked(made.period, ("2026-11-02", "2026-11-30")),
            asked(made.period, ("2026-11-30", "2026-11-02")),
            asked(made.period, spans.Period("2026-11-02", "2026-11-30")),
            asked(made.period, "9999-12-31"),
            asked(made.period, 3),
        ]
        for period in (("2026-11-15", "2026-11-15"), ("2026-11-14", "2026-11-16")):
            found[f"{text} {zone}"].append(asked(lambda c=made, p=period: c.told(c.period(p))))
    found["taken"] = recorded.taken(
        spans.Calendar,
        {"text": "1d", "zone": "Europe/Berlin"},
        {"text": ("1d", "0d", "1000000d", "999999d", "1mo", "1y", "1h", " 1d"), "zone": ("UTC", "Mars/Base", 3)},
    )
    found["parts"] = table(spans.span_parts, ("1d", "6h", "10mo", "3w", "5m", "7s", "0s", "d", "-1d"))
    found["zones"] = table(spans.check_zone, ("Europe/Berlin", "UTC", "", "no", 3, None, "../x"))
    return found


def accounting_case():
    several = {
        "pure": [Charge(0.1)] * 7 + [Charge(0.5)],
        "approximate": [Charge(0.2, 1e-8)] * 5,
        "rho": [Charge(None, rho=0.02), Charge(None, 1e-8, 0.01)],
        "gaussian": [Charge(None, rho=0.02, noise="gaussian")] * 3,
        "mixed": [Charge(0.2, 1e-9), Charge(None, rho=0.01), Charge(None, rho=0.02, noise="gaussian")],
        "nothing": [Charge(0.0), Charge(0.0, 1e-9)],
        "many": [Charge(0.01 + 0.001 * n) for n in range(80)],
        "one": [Charge(0.7, 1e-7)],
        "large": [Charge(150.0)] * 2,
    }
    found = {}
    for name, charges in several.items():
        tally = Tally.of(charges)
        found[name] = {
            "tally": recorded.told(recorded.members(tally)),
            "sums": [tally.total_delta, tally.total_rho],
            "cost": [six(asked(tally.cost, d, adaptive=a)) for d in (0.0, 1e-9, 1e-6, 0.1) for a in (False, True)],
            "more": [
                six(asked(tally.cost, 1e-6, more=m))
                for m in (Charge(0.3), Charge(0.3, 1e-8), Charge(None, rho=0.1, noise="gaussian"))
            ],
            "fits": [asked(tally.fits, b, adaptive=a) for b in BUDGETS for a in (False, True)],
            "filter": [
                [
                    asked(lambda f=f, c=charges: [f.cost(each) for each in c][:2]),
                    asked(lambda f=f, t=tally: f.left(t)),
                    f.pays(tally),
                ]
                for f in (ZcdpFilter.of(Budget(1.0, 1e-6)), ZcdpFilter.of(Budget(3.0, 1e-4), 0.1, 8.0))
            ],
        }
    found["within"] = [is_within(Fraction(x), 0.3) for x in (0.3, 0.3 * (1 + 1e-13), 0.3 * (1 + 1e-11), 0.1 + 0.2)]
    found["charges"] = [
        asked(Charge, *given)
        for given in [
            (None,),
            (1.0, 0.0, 1.0),
            (-0.1,),
            (math.inf,),
            (math.nan,),
            (1.0, 1.0),
            (1.0, -0.1),
            (1.0, 0.0, None, "gaussian"),
            (None, 1e-9, 1.0, "gaussian"),
            (None, 0.0, 1.0, "x"),
            (None, 0.0, 1.0, "gaussian"),
            (0.0, 1 - 1e-9),
        ]
    ]
    found["delta"] = [asked(Tally().cost, d) for d in (-0.1, 0.0, 0.5, 1.0)]
    found["filters"] = [asked(ZcdpFilter.of, b, s) for b in BUDGETS for s in (0.25, 0.0, 0.9)] + rows(
        ZcdpFilter.of,
        [(Budget(1.0, 1e-6), s) for s in (1.0, -0.1, True, "x", math.nan)]
        + [(Budget(1e-300, 1e-300),), (Budget(1.0, 1e-6), 0.25, 4.0)],
    )
    one, two = (
        ZcdpFilter.of(Budget(1.0, 1e-6)),
        ZcdpFilter.of(Budget(2.0, 1e-5), 0.25, ZcdpFilter.of(Budget(1.0, 1e-6)).order),
    )
    found["covers"] = [a.covers(b) for a in (one, two) for b in (one, two, ZcdpFilter.of(Budget(2.0, 1e-6)))]
    found["largest"] = [f.largest_epsilon(rho) for f in (one, two) for rho in (0.0, 1e-4, 0.02, 3.0)]
    found["response_rho"] = table(zcdp_filter.response_rho, (1e-9, 0.01, 0.5, 4.0, 40.0), (1.5, 8.0, 60.0))
    return recorded.told(found)


def six(cost):
    """Of composition by convolution, six digits."""
    return float(f"{cost:.6g}") if isinstance(cost, float) and math.isfinite(cost) else cost


# ---- ledgers -------------------------------------------------------------------------------------------------------


@contextmanager
def ledger(*names):
    """Ledgers in a folder of their own, a clock that is set, and names of hosts that do not differ."""
    clock = [datetime.datetime(2026, 11, 15, 12, tzinfo=datetime.timezone.utc)]
    with (
        TemporaryDirectory() as folder,
        mock.patch.object(accounts, "_who", return_value={"user": "u", "host": "h"}),
        mock.patch.object(accounts, "utc_now", side_effect=lambda: clock[0]),
        mock.patch.object(event_log, "utc_now", side_effect=lambda: clock[0]),
    ):
        yield [*(dc.Ledger(Path(folder) / f"{name}.sqlite") for name in names), clock]


def told(question, /, *given, **named):
    """An answer without the folder of this run."""
    return without_places(asked(question, *given, **named))


def without_places(value):
    if isinstance(value, str):
        return " ".join("PLACE" if "/tmp" in word or ".sqlite" in word else word for word in value.split(" "))
    if isinstance(value, dict):
        return {key: without_places(each) for key, each in value.items() if key not in ("digest",)}
    return [without_places(each) for each in value] if isinstance(value, list) else value


def standing(account):
    """All that an account says of itself."""
    return [
        str(asked(lambda: str(account.spent()))),
        str(asked(lambda: str(account.remaining()))),
        asked(lambda: str(account.remaining(1e-9))),
        recorded.told(told(lambda: account.statement().to_dict())).get("charges"),
    ]


GRANTS = {
    "tight": (Budget(1.0, 1e-6), {}),
    "basic": (Budget(1.0, 1e-6), {"accounting": "basic"}),
    "adaptive": (Budget(1.0), {"adaptive": True}),
    "zcdp": (Budget(1.0, 1e-6), {"accounting": "zcdp"}),
    "zcdp, another share": (Budget(2.0, 1e-6), {"accounting": "zcdp", "delta_share": 0.1}),
    "rho": (Budget.zcdp(0.1), {}),
    "until": (Budget(1.0, 1e-6), {"until": "2026-11-16", "approver": "somebody", "reason": "because"}),
    "renews": (Budget(1.0, 1e-6), {"renews": "2d", "different_people": True}),
    "renews weekly": (Budget(1.0, 1e-6), {"renews": "1w", "different_people": True, "unit": User()}),
}
CHARGES = [
    ("one", Budget(0.3, 1e-9), {}),
    ("two", Budget(0.2), {"mechanism": "it", "unit": Event()}),
    ("three", Budget(0.2, 1e-8), {}),
    ("four", Budget.zcdp(0.01), {}),
    ("five", Budget(0.5, 1e-7), {}),
    ("six", Budget(0.25, 1e-7), {"unit": User()}),
    ("seven", Budget(0.1, 9e-7), {}),
    ("one", Budget(0.3, 1e-9), {}),
]


def balance_case():
    """What each kind of account says after each of some charges; each is tried first."""
    found = {}
    for name, (budget, words) in GRANTS.items():
        with ledger("it") as (made, clock):
            made.grant("a", budget, **words)
            account = made.account("a")
            found[f"{name}: granted"] = standing(account)
            for number, (charge_id, amount, more) in enumerate(CHARGES):
                unit = words.get("unit") if "unit" not in more else more["unit"]
                more = {**more, **({} if unit is None else {"unit": unit})}
                before = told(account.check, amount, **{key: more[key] for key in more if key == "unit"})
                said = told(account.charge, amount, charge_id, **more)
                found[f"{name}: {number} {charge_id}"] = [before, said, *standing(account)]
                clock[0] += datetime.timedelta(hours=9)
            found[f"{name}: members"] = recorded.told(
                [account.granted, account.adaptive, account.accounting, account.unit, list(account.assumptions)]
            )
            found[f"{name}: history"] = [told(event.to_dict) for event in made.history()][-3:]
            found[f"{name}: verified"] = [
                made.verify(),
                told(account.statement),
                told(lambda a=account: a._balance().to_dict()),
            ]
            for other in (Budget(0.1), Budget(3.0, 1e-5), Budget.zcdp(2.0)):
                for terms in (
                    {},
                    {"accounting": "tight"},
                    {"accounting": "basic"},
                    {"accounting": "zcdp"},
                    {"delta_share": 0.5},
                    {"renews": "5d", "different_people": True},
                    {"unit": User(per="1d")},
                    {"adaptive": False},
                ):
                    said = told(made.grant, "a", other, **terms)
                    found[f"{name}: {other} {terms}"] = [said, str(account._balance().granted)]
    return found


def days_case():
    """Accounts of person-days."""
    found = {}
    day = User(per="1d", zone="Europe/Berlin")
    with ledger("it") as (made, clock):
        made.grant("a", Budget(2.0, 1e-6), unit=day)
        account = made.account("a")
        charges = [
            ("2026-11-15", Budget(0.5)),
            (("2026-11-10", "2026-11-20"), Budget(0.75, 1e-8)),
            (("2026-11-18", "2026-12-02"), Budget(1.0)),
            ("2026-11-15", Budget(1.0, 1e-7)),
            ("2026-11-15T12:00:00Z", Budget(0.1)),
            (None, Budget(0.1)),
            (("2026-11-02", "2026-11-01"), Budget(0.1)),
        ]
        for number, (period, budget) in enumerate(charges):
            found[f"charge {number}"] = [
                told(account.check, budget, unit=day, period=period),
                told(account.charge, budget, f"c{number}", unit=day, period=period),
                *standing(account),
            ]
            found[f"days {number}"] = [told(account.statement, d) for d in ("2026-11-15", "2026-11-19", "2026-01-01")]
        found["another unit"] = [
            told(account.charge, Budget(0.1), unit=unit, period="2026-11-15")
            for unit in (User(), User(per="1d"), User(per="1w"), Event(), User(3, per="1d", zone="Europe/Berlin"))
        ]
        found["check"] = [
            told(account.check, Budget(5.0), unit=day, period="2026-11-15"),
            told(account.check, Budget(0.1), unit=User()),
            told(account.check, Budget(0.1)),
        ]
        found["history"] = [told(event.to_dict) for event in account.history()]
        clock[0] += datetime.timedelta(days=1)
        made.grant("b", Budget(1.0))
        found["no days"] = [
            told(made.account("b").statement, "2026-11-15"),
            told(made.account("b").charge, Budget(0.1), unit=day, period="2026-11-15"),
            told(made.account("b").charge, Budget(0.1), unit=Event(), period="2026-11-15"),
        ]
    return found


def storing_case():
    """Charges with releases, steps, holders, moving and copying."""
    found = {}
    with ledger("it", "other", "third") as (made, other, third, clock):
        made.grant("a", Budget(4.0, 1e-6), unit=User())
        account = made.account("a")
        one = {"mechanism": "m", "unit": User(3), "hides": User(), "question": {"k": 3}}
        found["pay"] = [
            told(account.pay, "p", Budget(0.5), **one),
            told(account.stored, "p", Budget(0.5), {"k": 3}),
            told(account.store, "p", b'{"x": 1}'),
            told(account.store, "p", b"other"),
            told(account.pay, "p", Budget(0.5), **one),
        ]
        found["again"] = [
            told(account.pay, "p", Budget(0.6), **one),
            told(account.pay, "p", Budget(0.5), **{**one, "question": {"k": 4}}),
            told(account.pay, "p", Budget(0.5), **{**one, "mechanism": "n"}),
            told(account.pay, "p", Budget(0.5), **{**one, "unit": User(4)}),
            told(account.pay, "p", Budget(0.5), **one, request="r"),
            told(account.begin, "p", Budget(0.5), mechanism="m", unit=User()),
            told(account.charge, Budget(0.5), "p"),
            told(account.stored, "p", Budget(0.5), {"k": 3}),
            told(account.stored, "p", Budget(0.6), {"k": 3}),
            told(account.stored, "p", Budget(0.5), {"k": 4}),
            told(account.stored, "none", Budget(0.5), {}),
        ]
        found["begin"] = [
            told(account.begin, "s", Budget(0.25), unit=User(), request="r"),
            told(account.is_begun, "s"),
            told(account.is_stored, "s"),
            told(account.is_begun, "t"),
            told(account.begin, "s", Budget(0.25), unit=User(), request="q"),
            told(account.store, "none", b""),
        ]
        store = account.store_step
        found["steps"] = [
            told(store, "s", 2, "t2", b"2", previous=None),
            told(store, "s", 1, "t1", b"1", previous="x"),
            told(store, "s", 1, "t1", b"1", previous=None),
            told(store, "s", 2, "t2", b"2", previous="t1"),
            told(store, "s", 2, "t9", b"9", previous="t1"),
            told(store, "s", 4, "t4", b"4", previous="t2"),
            told(store, "s", 3, "t3", b"3", previous="t1"),
            told(account.last_step, "s"),
            told(account.step, "s", 1),
            told(account.step, "s", 3),
            told(account.last_step, "p"),
            *(told(account.step, "s", n) for n in (0, True, 2**63, "1", 2**63 - 1)),
            told(store, "s", 3, "", b"", previous="t2"),
            told(store, "s", 3, "t", "text", previous="t2"),
        ]
        mine = account.take_over("page", "me")
        found["holders"] = [
            told(mine.check_held),
            told(account.held_by("page", "you").check_held),
            told(account.held_by("page", None).check_held),
            told(account.held_by("none", None).check_held),
            told(account.held_by("page", "you").charge, Budget(0.1), unit=User()),
        ]
        theirs = account.take_over("page", "you")
        found["taken over"] = [
            told(mine.check_held),
            told(theirs.check_held),
            told(mine.store, "p", b""),
            told(mine.store_step, "s", 3, "t3", b"3", previous="t2"),
        ]
        found["published"] = [
            told(made.published, *given)
            for given in [("p",), ("p", "a"), ("p", "b"), ("s",), ("none",), ("none", "a"), ("",)]
        ]
        found["names"] = [told(made.account, name) for name in ("a", "none", "", "x" * 200, "x" * 201, "\n", 3, None)]
        found["accounts"] = [each.name for each in made.accounts()]
        found["export"] = [told(lambda line=line: line) for line in made.export()]
        found["history"] = [told(event.to_dict) for event in made.history("a")]
        found["payload"] = [told(made.release_payload, event) for event in made.history()[:3]]
        account.begin("open", Budget(0.1), unit=User())
        found["move"] = [
            told(move, "a", made, other),
            told(account.store, "open", b"x"),
            told(move, "none", made, other),
            told(move, "a", made, other),
            told(move, "a", made, other),
            told(move, "a", made, third),
        ]
        moved = other.account("a")
        found["moved"] = [
            told(account.charge, Budget(0.1), unit=User()),
            told(account.check, Budget(0.1)),
            told(account.store_step, "s", 3, "t3", b"3", previous="t2"),
            told(made.grant, "a", Budget(9.0)),
            moved.ledger_identity == account.ledger_identity,
            *standing(moved),
            told(moved.charge, Budget(0.1), "new", unit=User()),
            told(move, "a", other, made),
        ]
        third.grant("a", Budget(1.0))
        found["there already"] = [told(move, "a", other, third), made.verify(), other.verify()]
        clock[0] += datetime.timedelta(days=400)
    return found


def grant_case():
    found = {}
    with ledger("it") as (made, _):

        def grant(account="a", budget=Budget(1.0, 1e-6), **more):  # noqa: B008 (a frozen value)
            made.grant(account, budget, **more)
            return made.account(account).statement()

        words = {
            "accounting": "tight",
            "delta_share": 0.3,
            "adaptive": True,
            "unit": User(),
            "until": "2027-01-01",
            "renews": "3d",
            "different_people": False,
            "approver": "a",
            "reason": "r",
        }
        odd = {
            "accounting": ("basic", "zcdp"),
            "renews": ("3d", "2w", "3h", "1mo"),
            "unit": (Event(), dc.privacy.Unit()),
            "until": ("2027-01-01", "2027-01-01T00:00:00Z"),
            "approver": ("x" * 200, "x" * 201),
            "delta_share": (0.999,),
        }
        for name, value in words.items():
            found[name] = recorded.taken(lambda n=name, **given: grant(f"for {n}", **given), {name: value}, odd)
        found["account"] = recorded.taken(
            grant, {"account": "a", "budget": Budget(1.0)}, {"account": ("x" * 200, "x" * 201)}
        )
        both = [
            ("accounting", "adaptive"),
            ("accounting", "delta_share"),
            ("renews", "different_people"),
            ("renews", "unit"),
            ("until", "reason"),
        ]
        found["two"] = {f"{a} {b}": told(grant, f"{a} {b}", **{a: words[a], b: words[b]}) for a, b in both}
        found["renews, people"] = told(grant, "r", renews="3d", different_people=True, unit=User(per="1d"))
        found["shares"] = told(grant, "s", accounting="zcdp", delta_share=0.3)
        made.grant("a", Budget(1.0))
        found["charges"] = recorded.taken(
            lambda **g: made.account("a").charge(g.pop("budget"), **g),
            {"budget": Budget(1e-3), "charge_id": "c", "mechanism": "m", "unit": Event()},
            {"charge_id": ("x" * 200, "x" * 201)},
        )
    found["places"] = rows(dc.Ledger, [("mysql://x",), ("s3://y/z",)])
    return without_places(found)


def text_case():
    amounts = [
        balance.Amount(e, d, r, way)
        for e, d, r in [
            (0.1 + 0.2, 0.0, None),
            (1 / 3, 1e-9 / 3, None),
            (None, 0.0, 2 / 3),
            (1.0, 0.0, 0.5),
            (math.inf, 0.0, None),
            (0.0, 0.0, None),
        ]
        for way in ("up", "down")
    ]
    limits = [
        balance.Limit(b, a, f)
        for b, a, f in [
            (Budget(1.0), False, None),
            (Budget(1.0, 1e-6), True, None),
            (Budget(1.0, 1e-6), True, ZcdpFilter.of(Budget(1.0, 1e-6))),
            (Budget.zcdp(0.1), False, None),
        ]
    ]
    chain = steps.Steps("c")
    chain.drawn()
    first = chain.to_dict()
    chain.drawn()
    states = [
        {"charge_id": "c", "number": n, "token": t, "previous": p, "ledger": None}
        for n, t, p in [
            (0, None, None),
            (0, "t", None),
            (1, None, None),
            (1, "t", 3),
            (-1, "t", None),
            (2, "t", "s"),
            (True, "t", None),
        ]
    ]
    return {
        "amounts": [str(amount) for amount in amounts],
        "limits": [[str(limit), limit.how, limit.accounting, limit.to_dict()] for limit in limits],
        "no grant": [
            asked(lambda: balance.Balance().granted),
            asked(balance.Balance().check_open),
            balance.Balance().to_dict(),
        ],
        "steps": [first, chain.to_dict(), *table(steps.Steps.from_dict, states)],
        "spends": [asked(balance.Limit.charge, limits[2], b) for b in BUDGETS],
    }


CASES = {
    "calibration": calibration_case,
    "budgets": budget_case,
    "units": unit_case,
    "small": small_case,
    "calendars": calendar_case,
    "accounting": accounting_case,
    "balances": balance_case,
    "days": days_case,
    "stored": storing_case,
    "grants": grant_case,
    "texts": text_case,
}


SLOW = {"small", "accounting"}  # tests/statistical/test_slow_numbers.py


@pytest.mark.parametrize("name", [name for name in CASES if name not in SLOW])
def test_what_is_recorded(name):
    recorded.check("privacy", name, CASES[name])


def test_nothing_else_is_recorded():
    assert set(recorded.recorded("privacy")) == set(CASES)


def test_sums_of_charges_are_those_of_fractions():
    """What accounts that add up have spent, against the sums of the charges, exactly."""
    for name in ("basic", "zcdp", "rho"):
        budget, words = GRANTS[name]
        amounts = [Budget.zcdp(0.01)] * 4 if name == "rho" else [Budget(0.1, 1e-8), Budget(0.05), Budget(1 / 7, 1e-9)]
        with ledger("it") as (made, _):
            made.grant("a", budget, **words)
            account = made.account("a")
            for amount in amounts:
                account.charge(amount)
            spent = account.spent()
            if name == "basic":
                sums = [sum(Fraction(getattr(a, kind)) for a in amounts) for kind in ("epsilon", "delta")]
                assert [Fraction(spent.epsilon), Fraction(spent.delta)] >= sums
                assert (spent.epsilon, spent.delta) == pytest.approx([*map(float, sums)], rel=1e-15)
            elif name == "rho":
                assert spent.rho == pytest.approx(0.04, rel=1e-15)
            else:  # rho of epsilon-DP is at most epsilon^2/2
                assert spent.rho <= sum(a.epsilon**2 / 2 for a in amounts)
                assert spent.delta == pytest.approx(sum(a.delta for a in amounts), rel=1e-15)
            with pytest.raises(DiscreetError):
                account.charge(Budget(2.0) if name != "rho" else Budget.zcdp(1.0))
