"""Heavy hitters from CountMin and CountSketch: parameters, accounting, what is published and with which bounds."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.central import CountMinHeavyHitters, CountSketchHeavyHitters
from discreet.central.sketch_heavy_hitters import noise_sum_bound
from discreet.noise import seeded_source
from discreet.privacy.calibration.collisions import Collisions, all_rows_fail, majority_fails
from discreet.releases.error_model import ErrorModel, Noise
from discreet_audit.exact import ScriptedSource

BUDGET = dc.Budget(1.0, 1e-6)
KINDS: list[tuple[Any, Any]] = [(dc.CountMin, CountMinHeavyHitters), (dc.CountSketch, CountSketchHeavyHitters)]
both_kinds = pytest.mark.parametrize(("kind", "mechanism"), KINDS, ids=["CountMin", "CountSketch"])
every_option = pytest.mark.parametrize(
    ("noise", "length"), list(itertools.product(["laplace", "gaussian"], ["noisy", 40_000]))
)


@pytest.fixture(scope="module")
def stream() -> np.ndarray[Any, Any]:
    """Ten heavy items and many light ones."""
    rng = np.random.default_rng(5)
    return rng.permutation(np.concatenate([np.repeat(np.arange(10), 3000), rng.integers(100, 4000, 10_000)]))


@pytest.fixture(scope="module")
def sketches(stream: Any) -> dict[Any, Any]:
    made = {}
    for kind, mechanism in KINDS:
        sketch = kind(4096, 15 if kind is dc.CountMin else 31, tracked=64, seed=8)
        sketch.update(stream)
        made[mechanism] = sketch
    return made


@both_kinds
@every_option
def test_heavy_items_are_published_and_only_items_above_the_cut(
    kind: Any, mechanism: Any, noise: str, length: Any, sketches: Any, stream: Any
) -> None:
    sketch = sketches[mechanism]
    release = mechanism.for_summary(sketch, BUDGET, noise=noise, stream_length=length)
    before = sketch.to_bytes()
    histogram = release(sketch, seeded_source(1))
    assert sketch.to_bytes() == before
    assert sorted(histogram.items) == list(range(10))
    assert (histogram.counts - (histogram.offset or 0) >= histogram.threshold).all()
    assert (histogram.offset is not None) == (length == "noisy")
    lower, upper = histogram.bounds(0.95)
    assert (lower <= 3000).all()
    assert (upper >= 3000).all()
    assert (upper < 4500).all()
    assert (lower > 1500).all()
    assert dc.Release.from_payload(histogram.to_payload()).bounds(0.95)[0].tolist() == lower.tolist()
    assert histogram.guarantee.seeded
    assert "seed" in histogram.guarantee.assumptions[0]
    assert ("the length of the stream is public" in histogram.guarantee.assumptions) == (length != "noisy")


@both_kinds
@every_option
def test_an_empty_sketch_gives_an_empty_release(kind: Any, mechanism: Any, noise: str, length: Any) -> None:
    sketch = kind(64, 3, tracked=1)
    histogram = mechanism.for_summary(sketch, BUDGET, noise=noise, stream_length=length)(sketch)
    assert len(histogram) == 0
    assert histogram.guarantee.epsilon == 1.0


@both_kinds
def test_the_error_allowed_for_grows_with_the_length(kind: Any, mechanism: Any) -> None:
    """So a length that is overstated can only raise the cut: what a noisy length rests on."""
    made = mechanism(dc.Budget(1.0, 1e-6), 8, width=64, depth=3)
    lengths = [*range(60), 100, 1000, 10**4, 10**6, 10**9]
    errors = [made._collisions(n).bound(made.deltas.hashing) for n in lengths]
    assert errors == sorted(errors)
    assert [made.untracked(n) for n in lengths] == sorted(made.untracked(n) for n in lengths)


@both_kinds
def test_the_parts_of_delta_sum_to_no_more_than_delta(kind: Any, mechanism: Any) -> None:
    for epsilon, delta, noise, length in itertools.product(
        [0.01, 1.0, 12.0], [1e-12, 1e-6, 0.3], ["laplace", "gaussian"], ["noisy", 1000]
    ):
        made = mechanism(dc.Budget(epsilon, delta), 8, width=64, depth=3, noise=noise, stream_length=length)
        parts = made.deltas
        failing = Fraction(parts.cells) + Fraction(parts.length)
        streams = 2 if length == "noisy" else 1  # whose hashing must be good on its own account
        hashing = streams * Fraction(parts.hashing)
        spent = Fraction(parts.gaussian) + hashing + Fraction(1 + math.exp(epsilon)) * failing
        assert spent <= Fraction(delta)
        assert spent > Fraction(delta) * Fraction(999, 1000)
        assert sum(made._epsilons) == Fraction(epsilon)
    with pytest.raises(dc.ParameterError, match="too small"):
        _ = mechanism(dc.Budget(800.0, 1e-6), 8, width=64, depth=3, stream_length=5).threshold


@both_kinds
def test_noise_covers_every_changed_cell(kind: Any, mechanism: Any) -> None:
    shape = {"width": 64, "depth": 7, "stream_length": 1000}
    assert mechanism(BUDGET, 8, noise="laplace", **shape).scale == 7
    assert mechanism(BUDGET, 8, dc.User(3), noise="laplace", **shape).scale == 21
    one, three = (mechanism(BUDGET, 8, unit, **shape).scale for unit in (dc.User(1), dc.User(3)))
    assert mechanism(BUDGET, 8, **shape).scale == one
    assert 3 * one <= three < Fraction(7, 2) * one
    if mechanism is CountSketchHeavyHitters:
        noisy = mechanism(BUDGET, 8, noise="laplace", width=64, depth=7, length_share=0.5)
        assert noisy.scale == 14


@both_kinds
def test_the_margin_is_the_smallest_that_no_cell_reaches(kind: Any, mechanism: Any) -> None:
    for noise in ("laplace", "gaussian"):
        made = mechanism(BUDGET, 8, width=50, depth=3, noise=noise, stream_length=10)
        draws = 150 * (2 if mechanism is CountSketchHeavyHitters else 1)
        law = Noise(noise, made.scale)
        assert draws * law.upper_tail(made._margin) <= made.deltas.cells
        assert draws * law.upper_tail(made._margin - 1) > made.deltas.cells


@both_kinds
def test_thresholds_grow_with_the_length_and_fall_with_the_sketch(kind: Any, mechanism: Any) -> None:
    def threshold(**changed: Any) -> int:
        options = {"width": 4096, "depth": 15, "stream_length": 10**6, "noise": "laplace", **changed}
        return int(mechanism(BUDGET, options.pop("capacity", 1000), **options).threshold)

    assert threshold(stream_length=10**7) > threshold() > threshold(stream_length=10**5)
    assert threshold(width=2**16) < threshold()
    assert threshold(capacity=4000) < threshold()
    assert threshold(max_key_bytes=2**30) >= threshold()
    made = mechanism(BUDGET, 1000, width=4096, depth=15, noise="laplace", stream_length=0)
    assert threshold(stream_length=0) == made._margin


@both_kinds
def test_parameters_are_checked(kind: Any, mechanism: Any) -> None:
    good = {"width": 64, "depth": 3}
    for bad in (
        {"budget": dc.Budget(1.0)},
        {"budget": dc.Budget.zcdp(0.1)},
        {"capacity": 0},
        {"unit": dc.Element()},
        {"noise": "cauchy"},
        {"width": 0},
        {"depth": 0},
        {"max_key_bytes": 0},
        {"stream_length": -1},
        {"stream_length": "long"},
        {"stream_length": None},
    ):
        with pytest.raises(dc.ParameterError):
            mechanism(**{"budget": BUDGET, "capacity": 4, **good, **bad})
    with pytest.raises(dc.ParameterError, match="a public number"):
        mechanism(BUDGET, 4, stream_length="public", **good)


def test_count_sketch_checks_its_own_parameters() -> None:
    with pytest.raises(dc.ParameterError, match="odd"):
        CountSketchHeavyHitters(BUDGET, 4, width=8, depth=2)
    for share in (0.0, 1.0, math.nan):
        with pytest.raises(dc.ParameterError, match="length_share"):
            CountSketchHeavyHitters(BUDGET, 4, width=8, depth=3, length_share=share)


@both_kinds
def test_sketches_that_do_not_fit_are_refused(kind: Any, mechanism: Any) -> None:
    made = mechanism(BUDGET, 4, width=64, depth=3, stream_length=2)
    for changed in ({"width": 65}, {"depth": 5}, {"tracked": 5}, {"tracked": 0}, {"max_key_bytes": 7}):
        with pytest.raises(dc.ParameterError, match="made for"):
            made(kind(**{"width": 64, "depth": 3, "tracked": 4, **changed}))
    sketch, other = kind(64, 3, tracked=4, seed=1), kind(64, 3, tracked=4, seed=1)
    sketch.update(["a"] * 3)
    with pytest.raises(dc.IncompatibleSummaryError, match="longer than stream_length"):
        made(sketch)
    other.merge(sketch)
    with pytest.raises(dc.IncompatibleSummaryError, match="merged"):
        mechanism.for_summary(other, BUDGET)(other)
    with pytest.raises(dc.IncompatibleSummaryError, match="takes Count"):
        made(dc.MisraGries(4))
    with pytest.raises(dc.IncompatibleSummaryError, match="takes Count"):
        mechanism.for_summary(dc.MisraGries(4), BUDGET)
    with pytest.raises(dc.IncompatibleSummaryError, match="tracked=k"):
        mechanism.for_summary(kind(64, 3), BUDGET)


@both_kinds
def test_bounds_cover_over_seeds_and_noise(kind: Any, mechanism: Any) -> None:
    """150 sketches and releases at confidence 0.8: all items within their bounds in at least 0.8 less 6 sigma of them.

    Strings, a narrow sketch with real collisions, and a noisy length. Seeds are fixed.
    """
    stream = [f"heavy {i % 4}" for i in range(8000)] + [f"light {i}" for i in range(500)]
    truth = Counter(stream)
    covered = published = 0
    width, depth = (256, 15) if kind is dc.CountMin else (512, 31)
    for seed in range(150):
        sketch = kind(width, depth, tracked=20, seed=seed)
        sketch.update(stream)
        release = mechanism.for_summary(sketch, dc.Budget(2.0, 0.01))
        histogram = release(sketch, seeded_source(seed))
        published += len(histogram)
        lower, upper = histogram.bounds(0.8)
        f = np.array([truth[x] for x in histogram.items])
        covered += bool(((lower <= f) & (f <= upper)).all())
    assert published >= 150
    assert covered >= 150 * 0.8 - 6 * math.sqrt(150 * 0.8 * 0.2)


@both_kinds
def test_an_item_at_the_threshold_is_published(kind: Any, mechanism: Any) -> None:
    """Without noise: one event less, and it is not."""
    for short, listed in ((0, [7]), (1, [])):
        sketch = kind(64, 15 if kind is dc.CountMin else 31, tracked=4, seed=8)
        made = mechanism.for_summary(sketch, dc.Budget(2.0, 0.01), stream_length=10**6)
        sketch.update(np.full(made.threshold - short, 7))
        assert made(sketch, ScriptedSource()).items == listed


# ---- calibration ---------------------------------------------------------------------------------------------------


def test_failures_of_rows() -> None:
    assert all_rows_fail(3, 0.5) == pytest.approx(0.125)
    assert majority_fails(3, 0.5) == pytest.approx(0.5)
    assert majority_fails(5, 0.1) == pytest.approx(10 * 0.1**3 * 0.9**2 + 5 * 0.1**4 * 0.9 + 0.1**5)


@pytest.mark.parametrize("rule", ["smallest", "median"])
def test_collision_bounds_are_the_smallest_that_hold(rule: str) -> None:
    for width, depth, length, failure in itertools.product([8, 1000], [1, 3, 15], [1, 100, 10**6], [1e-9, 0.1]):
        law = Collisions(rule, width, depth, length, length + 1, 100)
        bound = int(law.bound(failure))
        assert bound <= length
        assert law.failure(bound) <= failure
        assert bound == 0 or law.failure(bound - 1) > failure
    assert Collisions(rule, 8, 3, 0, 1, 100).bound(1e-9) == 0
    slack = Collisions(rule, 8, 3, 50, 51, 100, slack=0.1)
    assert slack.bound(0.05) == math.inf
    assert slack.bound(0.1) == 50
    assert Collisions.from_dict(slack.to_dict()) == slack
    with pytest.raises(dc.ParameterError, match="rule"):
        Collisions("mean", 8, 3, 50, 51, 100)


def test_equal_digests_are_part_of_the_failure() -> None:
    """Keys so long that their digests collide: no width helps, and the bound is the whole stream."""
    law = Collisions("smallest", 2**30, 50, 10**8, 10**8, 2**30)
    assert law.failure(10**7) > 1e-9
    assert law.bound(1e-9) == 10**8


def test_an_error_model_with_collisions_splits_its_confidence() -> None:
    law = Collisions("smallest", 1000, 5, 10**5, 10**5, 100)
    model = ErrorModel(Noise("laplace", Fraction(3), 10), collisions=law)
    below, above = model.distances(0.9)
    noise = model.noise.bound((1 - 0.9) / 2)
    assert above == noise
    assert below == noise + law.bound((1 - 0.9) / 2)
    assert ErrorModel.from_dict(model.to_dict()) == model


@pytest.mark.parametrize(
    ("law", "scale"), [("laplace", Fraction(3)), ("laplace", Fraction(1, 900)), ("gaussian", Fraction(4))]
)
def test_noise_sums_stay_above_their_bound(law: str, scale: Fraction) -> None:
    """20 000 seeded sums of 100 noises: fewer than 1 in 100 below their bound, which is not twice too wide."""
    source = seeded_source(3)
    draw = source.discrete_laplace if law == "laplace" else source.discrete_gaussian
    sums = draw(scale, 2_000_000).reshape(-1, 100).sum(axis=1)
    bound = noise_sum_bound(law, scale, 100, 0.01)
    assert (sums <= -bound).mean() <= 0.01
    if scale > 1:
        assert (sums <= -bound / 2).mean() > 0.01
    assert noise_sum_bound(law, scale, 100, 1e-9) >= bound
    with pytest.raises(dc.ParameterError):
        noise_sum_bound("cauchy", scale, 100, 0.01)


@pytest.mark.parametrize("scale", [0.5, 1.0, 6.0])
@pytest.mark.parametrize(("draws", "failure"), [(1, 0.01), (20, 1e-3), (500, 1e-9)])
def test_a_sum_of_noises_stays_above_the_bound_of_chernoff(scale, draws, failure):
    """The smallest over t of (N log E[exp(tZ)] + log(1/failure)) / t, with the mean summed by hand."""
    q = math.exp(-1 / scale)
    z = np.arange(-int(60 * scale) - 60, int(60 * scale) + 61)
    chances = (1 - q) / (1 + q) * q ** np.abs(z)
    shares = np.exp(np.linspace(-12, -0.01, 4000))
    with np.errstate(over="ignore"):
        bounds = [(draws * math.log(float(chances @ np.exp(t * z))) - math.log(failure)) / t for t in shares / scale]
    found = noise_sum_bound("laplace", Fraction(scale), draws, failure)
    assert found == pytest.approx(min(bounds), rel=1e-3, abs=1.5)
    gaussian = noise_sum_bound("gaussian", Fraction(scale), draws, failure)
    assert gaussian == math.ceil(scale * math.sqrt(2 * draws * -math.log(failure)) * (1 + 1e-9))


def test_a_law_without_a_bound_is_refused():
    with pytest.raises(dc.ParameterError, match="'laplace' or 'gaussian'"):
        noise_sum_bound("uniform", Fraction(1), 2, 0.1)
