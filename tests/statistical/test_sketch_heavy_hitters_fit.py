"""Heavy hitters from linear sketches, on the compiled code: hashing over many seeds, noise over many releases.

All seeds are fixed, so outcomes are, too; the stated chances are those over the choice of seeds.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.central import CountMinHeavyHitters, CountSketchHeavyHitters
from discreet.noise import seeded_source
from discreet.privacy.calibration.collisions import Collisions

KINDS: list[tuple[Any, Any]] = [(dc.CountMin, CountMinHeavyHitters), (dc.CountSketch, CountSketchHeavyHitters)]
both_kinds = pytest.mark.parametrize(("kind", "mechanism"), KINDS, ids=["CountMin", "CountSketch"])


@both_kinds
def test_collisions_keep_to_their_failure_probability(kind: Any, mechanism: Any) -> None:
    """4000 seeds: how often one of two light items shares its rows with one of eight heavy ones.

    A row then collects 50 or more with probability nearly 8/width, which is what the bound says. It holds with 6 sigma
    (chance 1e-9), and the twin that takes the width for twice what it is fails by as much.
    """
    width, seeds, light = 64, 4000, [0, 1]
    smallest = mechanism.rule == "smallest"
    depth = 1 if smallest else 3
    stream = np.array(light + [1000 + i % 8 for i in range(400)])
    law = Collisions(mechanism.rule, width, depth, len(stream), len(light), 7)
    twin = dataclasses.replace(law, width=2 * width)
    failures = 0
    for seed in range(seeds):
        sketch = kind(width, depth, seed=seed)
        sketch.update(stream)
        columns, _ = sketch.places(np.unique(stream))
        rows = 50 * (columns[: len(light), None] == columns[None, len(light) :]).sum(axis=1)
        mass = np.sort(rows, axis=1)[:, 0 if smallest else depth // 2]
        # Signs make an error smaller than the mass that collides; the bound is about the mass.
        assert (np.abs(sketch.estimate_many(light) - 1) <= mass + 1).all()
        failures += bool((mass > 49).any())

    def limit(law: Collisions) -> float:
        return seeds * law.failure(49)

    assert failures < limit(law) + 6 * math.sqrt(limit(law))
    assert failures > limit(twin) + 6 * math.sqrt(limit(twin))


@dataclasses.dataclass(frozen=True)
class HalfNoiseCountMin(CountMinHeavyHitters):
    @property
    def scale(self) -> Fraction:
        return super().scale / 2


@dataclasses.dataclass(frozen=True)
class HalfNoiseCountSketch(CountSketchHeavyHitters):
    @property
    def scale(self) -> Fraction:
        return super().scale / 2


@both_kinds
def test_releases_of_neighbours_are_close_and_those_of_the_twin_are_not(kind: Any, mechanism: Any) -> None:
    """P[count >= n] of n equal events against n - 1, 250 releases each, within 6 sigma (chance 1e-9).

    One row, so that a count is one cell and the ratio of the two is e^epsilon; half the noise makes it e^(2 epsilon).
    """
    n, runs, budget = 120, 250, dc.Budget(1.0, 0.1)
    twin = HalfNoiseCountMin if mechanism is CountMinHeavyHitters else HalfNoiseCountSketch
    for kind_of_release, private in ((mechanism, True), (twin, False)):
        shares = []
        for length in (n, n - 1):
            sketch = kind(2**15, 1, tracked=1, seed=3)
            sketch.update(np.zeros(length, np.int64))
            release = kind_of_release.for_summary(sketch, budget, noise="laplace", stream_length=n)
            assert release.threshold < n
            source = seeded_source(length)
            counts = [release(sketch, source).counts for _ in range(runs)]
            shares.append(sum(bool((c >= n).any()) for c in counts) / runs)
        more, less = shares
        sigma = math.sqrt((more + math.e**2 * less) / runs)
        if private:
            assert more <= math.e * less + 6 * sigma
        else:
            assert more > math.e * less + budget.delta + 4 * sigma
