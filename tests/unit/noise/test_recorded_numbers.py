"""Draws from seeded sources, of every law at many scales, and the tables that they are drawn from."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests import recorded
from tests.recorded import asked

from discreet.noise import enclosure, laws, places, response, seeded_source, system_source
from discreet.noise.source import Plainly, exact, offset_draw

SCALES = (0.05, 0.7, 1, Fraction(7, 3), 15.9, 16, 31, 32, 64.5, 1000.1, 2**40)


def draws(*names):
    """Draws of some laws, each from its own seed."""

    def case():
        found = {}
        for name, rows in names:
            found[name] = [asked(getattr(seeded_source(number), name), *row, 12) for number, row in enumerate(rows)] + [
                asked(getattr(seeded_source(number), name), *row) for number, row in enumerate(rows[:3])
            ]
        return found

    return case


SINGLE = [(scale,) for scale in SCALES]
CUTS = [(scale, minimum) for scale in (0.3, 2, 40.5, 900) for minimum in (-50, -1, 0, 1, 7, 300)]
TRIALS = [
    (trials, *rest) for trials in (0, 1, 50, 400) for rest in ((0.7, 3), (0.4, 1), (9, 0), (9, 1), (9, 40), (9, -5))
]
CHANCES = [(trials, p) for trials in (0, 1, 9, 100) for p in (0, 0.2, Fraction(1, 3), 0.5, 0.97, 1)]
CHANCES += [(10**7, 1e-6), (300, 0.3)]


def law_case():
    """Tables, the parts of blocks, and what a law needs to settle."""
    found = {}
    made = {
        **{f"laplace {s}": laws.laplace_law(Fraction(s)) for s in SCALES[:10]},
        **{f"geometric {s}": laws.geometric_law(Fraction(s)) for s in SCALES[:10]},
        **{f"gaussian {s}": laws.gaussian_law(Fraction(s)) for s in SCALES[:10]},
        **{f"above {s} {c}": laws.gaussian_above_law(Fraction(s), c) for s in (0.5, 70, 500) for c in (0, 3, 900)},
        "bernoulli": laws.rational_bernoulli_law(Fraction(1, 3)),
        "binomial": laws.binomial_law(30, lambda bits: enclosure.rational(Fraction(1, 10), bits), 4),
    }
    for name, law in made.items():
        found[name] = [
            law.word,
            law.block_bits,
            str(law.sign),
            law.curvature,
            law.slope(3),
            law.exponent(2, 1),
            [recorded.told(np.array(law.table(bits), dtype=object)) for bits in (8, 40)],
        ]
    return recorded.told(found)


def enclosure_case():
    several = (0, Fraction(1, 7), 1, Fraction(9, 2), 40)
    tails = [laws.laplace_tail(Fraction(s), m)(60) for s in (1, 7) for m in (-3, 0, 1, 9)]
    proposals = [(laws.gaussian_proposals(Fraction(s), m), s, m) for s in (Fraction(1, 2), 1, 7) for m in (1, 9)]
    return {
        "exp_minus": [list(map(str, enclosure.exp_minus(Fraction(x), bits))) for x, bits in product(several, (8, 64))],
        "pi": [list(map(str, enclosure.pi(bits))) for bits in (8, 64, 200)],
        "rational": [list(map(str, enclosure.rational(Fraction(x), 70))) for x in several[:3]],
        "below": [
            [enclosure.is_below(lambda bits, p=p: enclosure.rational(p, bits), source._source) for _ in range(30)]
            for p in (Fraction(1, 3), Fraction(1), Fraction(0))
            for source in [seeded_source(3)]
        ],
        "laplace_tail": [list(map(str, tail)) for tail in tails],
        "gaussian_proposals": [[list(map(str, chance(60))), s] for (chance, s), _, _ in proposals],
        "keep": [asked(response.keep_probability, k, Fraction(e)) for k in (1, 2, 1000) for e in (0.05, 1, 4)],
        "exact": recorded.taken(lambda x: exact("x", x, 100), {"x": 3}, {"x": (100, 101, Fraction(1, 3), -3)}),
        "exact, any": recorded.taken(lambda x: exact("x", x), {"x": 3}, {"x": (10**30,)}),
    }


def place_case():
    at, values = np.array([2, 5, 40]), np.array([0, 3, 60])
    return {
        f"{size} {scale} {cut}": [
            asked(places.places_above, seeded_source(1), size, at, values, scale, cut),
            *(
                asked(places.noisy_places, seeded_source(1), size, at, values, scale, cut, law)
                for law in ("laplace", "gaussian")
            ),
        ]
        for size in (41, 2000)
        for scale in (0.5, 8)
        for cut in (-2, 0, 1, 5, 30)
    }


def selection_case():
    scores = [3, 9, 9, -4, 0, 50, 49, 1]
    source = seeded_source(5)
    return {
        "exponential": [
            asked(seeded_source(n).exponential_mechanism, scores, e, s, k)
            for n, (e, s, k) in enumerate(product((0.01, 0.5, 4), (1, 3), (0, 1, 4, 8)))
        ],
        "many scores": [asked(seeded_source(1).exponential_mechanism, np.arange(3000) % 91, 0.3, 1, 5)],
        "blocks": [
            asked(
                seeded_source(n).choose_in_blocks,
                np.array([0.0, 1.5, 0.2]),
                np.array([3, 5, 100]),
                lambda b, p: Fraction(2 * b + p, 4),
            )
            for n in range(12)
        ],
        "offset": [
            recorded.told(
                [
                    value if isinstance(value, int) else np.asarray(value)
                    for value in offset_draw(np.array([5, 0, 30]), 7, Fraction(s), 4, seeded_source(n))
                ]
            )
            for n in range(3)
            for s in (1, 9)
        ],
        "others": [
            source.bytes(9).hex(),
            asked(source.uniform_integers, 1000, 5),
            asked(source.uniform_integers, 2**63, 2),
            asked(source.sample_without_replacement, 30, 7),
            asked(source.permutation, 9),
            asked(seeded_source(2).discrete_laplace, 5, Plainly(4)),
            repr(source),
            repr(system_source()),
            source.seeded,
            system_source().seeded,
        ],
    }


def range_case():
    """What each argument of each draw may be."""
    source, found = seeded_source(1), {}
    big = 2**50
    for name, given, odd in [
        ("bytes", {"count": 1}, {}),
        ("uniform_integers", {"high": 5, "size": 2}, {"high": (1, 2**63, 2**63 + 1)}),
        ("bernoulli", {"probability": 0.5, "size": 2}, {"probability": (Fraction(3, 2),)}),
        ("geometric", {"scale": 0.5, "size": 2}, {"scale": (big, big + 1)}),
        ("discrete_laplace", {"scale": 0.5, "size": 2}, {"scale": (big, big + 1)}),
        ("discrete_gaussian", {"sigma": 0.5, "size": 2}, {"sigma": (big, big + 1)}),
        ("discrete_laplace_at_least", {"scale": 0.5, "minimum": 1, "size": 2}, {"minimum": (2**62, 2**62 + 1)}),
        ("discrete_gaussian_at_least", {"sigma": 0.5, "minimum": 1, "size": 2}, {"minimum": (2**62 + 1,)}),
        (
            "discrete_laplace_exceedances",
            {"trials": 5, "scale": 0.5, "minimum": 1, "size": 2},
            {"trials": (2**64, 2**64 + 1)},
        ),
        (
            "discrete_gaussian_exceedances",
            {"trials": 5, "sigma": 0.5, "minimum": 1, "size": 2},
            {"trials": (2**64 + 1,)},
        ),
        ("binomial", {"trials": 5, "chance": 0.5, "size": 2}, {"trials": (2**33 + 2, 2**64 + 1)}),
        (
            "sample_without_replacement",
            {"population": 5, "count": 2},
            {"count": (5, 6), "population": (2**63, 2**63 + 1)},
        ),
        ("permutation", {"count": 2}, {}),
        (
            "exponential_mechanism",
            {"scores": [1, 2], "epsilon": 0.5, "sensitivity": 1, "k": 1},
            {"k": (2, 3), "scores": ([1.5], [[1]])},
        ),
    ]:
        found[f"{name} {', '.join(given)}"] = recorded.taken(getattr(source, name), given, odd)
    found["seed"] = recorded.taken(seeded_source, {"seed": 1}, {"seed": (2**64 - 1, 2**64)})
    return found


CASES = {
    "plain laws": draws(("discrete_laplace", SINGLE), ("geometric", SINGLE), ("discrete_gaussian", SINGLE)),
    "above a cut": draws(("discrete_laplace_at_least", CUTS), ("discrete_gaussian_at_least", CUTS)),
    "exceedances": draws(("discrete_laplace_exceedances", TRIALS), ("discrete_gaussian_exceedances", TRIALS)),
    "binomial": draws(("binomial", CHANCES), ("bernoulli", [(p,) for _, p in CHANCES[:6]])),
    "laws": law_case,
    "enclosures": enclosure_case,
    "places": place_case,
    "selections": selection_case,
    "ranges": range_case,
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_recorded(name):
    recorded.check("noise", name, CASES[name])


def test_nothing_else_is_recorded():
    assert set(recorded.recorded("noise")) == set(CASES)
