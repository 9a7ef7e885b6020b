"""The interval of a ladder covers coins, multiplicities, the sample and the noise: each by itself, in the formula."""

import math

import pytest

from discreet.pan.heavy_fraction import Ladder


@pytest.mark.parametrize(("k", "rho", "most"), [(2, 1.0, 8), (3, 0.5, 20), (8, 1.0, 64)])
def test_the_bound_is_the_sum_of_what_it_covers(k, rho, most):
    ladder = Ladder(k, rho, most)
    weights, unit = ladder.parts
    rungs = ladder.rungs
    assert rungs[0] == 1.0
    assert rungs[-1] >= most > rungs[-1] / (1 + rho) - 1e-9
    # what an element with s occurrences adds without noise
    adds = {s: unit * sum(w * min(s, t) / t for w, t in zip(weights, rungs, strict=True)) for s in (0.0, *rungs)}
    assert adds[0.0] == 0.0
    m, beta = 10_000, 0.05
    spread = max(adds.values()) - min(adds.values())
    for gap in (1.0, 0.25):
        coins = (unit / gap) ** 2 * sum(w * w for w in weights)
        sampled = math.sqrt((coins + spread**2) * math.log(4 / beta) / (2 * m))
        assert ladder.bound(m, gap, 1e12, beta) == pytest.approx(sampled, rel=1e-6)
        noise = unit / gap * sum(map(abs, weights)) * math.log(4 / beta) / 0.5 / m
        assert ladder.bound(m, gap, 0.5, beta) == pytest.approx(sampled + noise, rel=1e-6)
    assert ladder.bound(4 * m, 1.0, 1e12, beta) == pytest.approx(ladder.bound(m, 1.0, 1e12, beta) / 2)
