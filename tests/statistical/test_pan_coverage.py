"""Intervals cover, estimates are unbiased, sizes suffice. Every run has its own seed, so the outcomes do not change."""

import functools

import numpy as np
import pytest

import discreet as dc
from discreet.noise import seeded_source

PAN = dc.pan
BUDGET = dc.Budget(1.0)
SIZE = 600
RNG = np.random.default_rng(12)
COUNTS = np.minimum(RNG.geometric(0.3, SIZE), 40) * (RNG.random(SIZE) < 0.7)
EVENTS = RNG.permutation(np.repeat(np.arange(SIZE), COUNTS))
RAMP = float(np.clip((COUNTS - 2) / 2, 0, 1).mean())

CASES = {
    "density": (functools.partial(PAN.Density, SIZE), (COUNTS > 0).mean()),
    "density, half of the universe": (functools.partial(PAN.Density, SIZE, sample_size=300), (COUNTS > 0).mean()),
    "density, paper's coins": (functools.partial(PAN.Density, SIZE, response="paper"), (COUNTS > 0).mean()),
    "cropped mean": (functools.partial(PAN.CroppedMean, SIZE, 5), np.minimum(COUNTS, 5).mean()),
    "heavy fraction": (functools.partial(PAN.HeavyFraction, SIZE, 4), RAMP),
    "heavy fraction, two tables": (functools.partial(PAN.HeavyFraction, SIZE, 4, method="two_tables"), RAMP),
    "incidence": (functools.partial(PAN.Incidence, SIZE, 1, max_count=40), (COUNTS == 1).mean()),
}


def run(make, seed, events=EVENTS, **options):
    estimator = make(budget=BUDGET, source=seeded_source(seed), **options)
    estimator.update(events)
    return estimator.release()


@pytest.mark.parametrize("name", CASES)
def test_intervals_cover_and_estimates_are_unbiased(name):
    """1,000 runs at 95%: at least 950 intervals hold the truth; the mean is within 5 standard errors of it."""
    make, truth = CASES[name]
    estimates = [run(make, seed, output_share=0.2) for seed in range(1000)]
    assert sum(e.lower <= truth <= e.upper for e in estimates) >= 950
    values = np.array([e.unbiased for e in estimates])
    assert abs(values.mean() - truth) < 5 * values.std() / np.sqrt(len(values))
    assert values.std() > 0


def test_modular_intervals_hold_together():
    truth = np.bincount(COUNTS % 3, minlength=3) / SIZE
    covered, values = 0, []
    for seed in range(1000):
        estimate = run(functools.partial(PAN.ModularIncidence, SIZE, 3, output_share=0.2), seed)
        covered += bool((np.array(estimate.lower) <= truth).all() and (truth <= np.array(estimate.upper)).all())
        values.append(estimate.unbiased)
        assert sum(estimate.values) == pytest.approx(1)
        assert min(estimate.values) >= 0
    assert covered >= 950
    values = np.array(values)
    assert (np.abs(values.mean(axis=0) - truth) < 5 * values.std(axis=0) / np.sqrt(1000)).all()


@pytest.mark.parametrize(
    ("make", "asked", "truth"),
    [
        (functools.partial(PAN.CroppedMean, SIZE, 8), {"t": 3}, np.minimum(COUNTS, 3).mean()),
        (functools.partial(PAN.HeavyFraction, SIZE, max_count=40), {"k": 4}, RAMP),
        (functools.partial(PAN.HeavyFraction, SIZE, 4), {"rho": 1e-9}, (COUNTS >= 4).mean()),
    ],
    ids=["a smaller t", "any k", "any rho"],
)
def test_what_is_asked_at_the_release_is_covered_and_unbiased(make, asked, truth):
    """250 runs at 95%, as above."""
    estimates = []
    for seed in range(250):
        made = make(budget=BUDGET, source=seeded_source(seed), output_share=0.2)
        made.update(EVENTS)
        estimates.append(made.release(**asked))
    assert sum(e.lower <= truth <= e.upper for e in estimates) >= 238
    values = np.array([e.unbiased for e in estimates])
    assert abs(values.mean() - truth) < 5 * values.std() / np.sqrt(len(values))


@pytest.mark.parametrize("count", [0, 40, 3000])
def test_distinct_counts_are_covered(count):
    make = functools.partial(PAN.DistinctCount, buckets=128, levels=8, output_share=0.1)
    estimates = [run(make, seed, events=np.arange(count) * 7919) for seed in range(150)]
    assert sum(e.lower <= count <= e.upper for e in estimates) >= 143


def occurrences(count, shape):
    """How often each of `count` elements occurs."""
    rng = np.random.default_rng(5)
    return {
        "once": lambda: np.ones(count, np.int64),
        "geometric": lambda: np.minimum(rng.geometric(0.5, count), 20),
        "heavy tail": lambda: np.minimum(rng.zipf(1.7, count), 50),
        "all often": lambda: np.full(count, 6),
    }[shape]()


def answers_of(release, n):
    """All kinds of answers, with the truth."""
    answers = {"distinct": (release.distinct, len(n)), "sum": (release.cropped_sum(), np.minimum(n, 5).sum())}
    answers |= {f"at least {k}": (release.at_least(k), (n >= k).sum()) for k in (2, 3, 5)}
    return answers | {f"exactly {t}": (release.exactly(t), (n == t).sum()) for t in (1, 4)}


@pytest.mark.parametrize(
    ("count", "shape"),
    [(0, "once"), (300, "geometric"), (5000, "heavy tail"), (5000, "all often"), (200_000, "geometric")],
)
def test_numbers_of_occurrences_are_covered(count, shape):
    """Every answer of a release, 60 runs at 95%; and those in the middle of the range are right on average."""
    n = occurrences(count, shape)
    events = np.repeat(np.arange(count) * 7919, n)
    told, truth = [], {}
    for seed in range(60):
        made = PAN.Occurrences(5, budget=BUDGET, buckets=2048, levels=12, source=seeded_source(seed))
        made.update(events)
        release = made.release()
        answers = answers_of(release, n)
        truth = {name: float(true) for name, (_, true) in answers.items()}
        told.append({name: estimate for name, (estimate, _) in answers.items()})
    for name, true in truth.items():
        assert sum(row[name].lower <= true <= row[name].upper for row in told) >= 54, name
        values = np.array([row[name].unbiased for row in told])
        assert abs(values.mean() - true) < 5 * values.std() / np.sqrt(60) + 0.02 * count, name


@pytest.mark.parametrize("announced", [1, 2])
@pytest.mark.parametrize("when", ["early", "late", "spread"])
@pytest.mark.parametrize(
    ("count", "shape"), [(0, "once"), (300, "geometric"), (5000, "heavy tail"), (5000, "all often"), (50_000, "once")]
)
def test_numbers_of_occurrences_are_covered_after_intrusions(count, shape, when, announced):
    """Every answer at once, for elements that come before, after and on both sides: 20 runs at 95%, one may miss."""
    n, rng, right = occurrences(count, shape), np.random.default_rng(8), 0
    events = np.repeat(np.arange(count) * 7919, n)
    for seed in range(20):
        epoch = {"early": 0, "late": announced, "spread": rng.integers(0, announced + 1, len(events))}[when]
        options = {"buckets": 4096, "levels": 12, "announced_intrusions": announced, "source": seeded_source(seed)}
        made = PAN.Occurrences(5, budget=dc.Budget(6.0), **options)
        for number in range(announced + 1):
            made.update(events[np.broadcast_to(epoch == number, events.shape)])
            if number < announced:
                made.announce_intrusion()
        told = answers_of(made.release(), n).values()
        right += all(estimate.lower <= float(true) <= estimate.upper for estimate, true in told)
    assert right >= 19


def test_narrow_intervals_of_distinct_counts_are_found():
    """Half a percent wide, narrower than the steps of a grid over all numbers; six seeded runs at 99.9%."""
    make = functools.partial(PAN.DistinctCount, buckets=2**20, levels=8, confidence=0.999, output_share=0.3)
    events = np.arange(500_000) * 7919
    for seed in range(6):
        estimator = make(budget=dc.Budget(8.0), source=seeded_source(seed))
        estimator.update(events)
        estimate = estimator.release()
        assert estimate.lower < estimate.value < estimate.upper < 1.02 * estimate.lower
        assert estimate.lower <= 500_000 <= estimate.upper


def test_distinct_counts_are_right_in_the_middle():
    """The relative error has a standard deviation of 0.05, the median of 100 runs one of 0.006."""
    make = functools.partial(PAN.DistinctCount, buckets=2048, levels=10, output_share=0.1)
    values = [run(make, seed, events=np.arange(50_000) * 7919).value for seed in range(100)]
    assert abs(np.median(values) / 50_000 - 1) < 0.03
    assert np.std(values) / 50_000 < 0.08


ANNOUNCED = {
    "density": (functools.partial(PAN.Density, SIZE), (COUNTS > 0).mean()),
    "incidence": (functools.partial(PAN.Incidence, SIZE, 1, max_count=40), (COUNTS == 1).mean()),
}


@pytest.mark.parametrize("announced", [1, 2])
@pytest.mark.parametrize("name", ANNOUNCED)
def test_announced_intrusions_leave_the_estimate_unbiased(name, announced):
    make, truth = ANNOUNCED[name]
    values, covered = [], 0
    for seed in range(400):
        estimator = make(
            budget=dc.Budget(6.0), announced_intrusions=announced, source=seeded_source(seed), output_share=0.1
        )
        for part in np.array_split(EVENTS, announced + 1)[:-1]:
            estimator.update(part)
            estimator.announce_intrusion()
        estimator.update(np.array_split(EVENTS, announced + 1)[-1])
        estimate = estimator.release()
        values.append(estimate.unbiased)
        covered += estimate.lower <= truth <= estimate.upper
    assert abs(np.mean(values) - truth) < 5 * np.std(values) / np.sqrt(len(values))
    assert covered >= 380


def test_the_cropped_mean_after_an_announced_intrusion():
    """Elements of one epoch count exactly; those of two may count for less, and the interval still covers."""
    values, covered, together, t = [], 0, 0, 4
    for seed in range(400):
        first = PAN.CroppedMean(SIZE, t, budget=dc.Budget(4.0), announced_intrusions=1, source=seeded_source(seed))
        first.update(np.repeat(np.arange(300), 3))
        first.announce_intrusion()
        first.update(np.repeat(np.arange(300, 600), 2))
        estimate = first.release()
        values.append(estimate.unbiased)
        covered += estimate.lower <= 2.5 <= estimate.upper
        both = PAN.CroppedMean(SIZE, t, budget=dc.Budget(4.0), announced_intrusions=1, source=seeded_source(seed))
        both.update(np.repeat(np.arange(600), 2))
        both.announce_intrusion()
        both.update(np.repeat(np.arange(600), 2))
        estimate = both.release()
        together += estimate.lower <= 4 <= estimate.upper
    assert abs(np.mean(values) - 2.5) < 5 * np.std(values) / np.sqrt(len(values))
    assert covered >= 380
    assert together >= 380


@pytest.mark.parametrize(
    ("estimator_class", "own", "truth", "alpha"),
    [
        (PAN.Density, {}, 0.5, 0.05),
        (PAN.CroppedMean, {"t": 4}, 0.5, 0.05),
        (PAN.HeavyFraction, {"k": 2}, 0.0, 0.2),
        (PAN.Incidence, {"t": 1}, 0.5, 0.1),
    ],
)
def test_for_accuracy_chooses_enough(estimator_class, own, truth, alpha):
    """Half of the universe occurs once; 200 runs, of which a tenth may miss."""
    events, missed = np.arange(10_000), 0
    sized = estimator_class.for_accuracy(alpha, 0.1, 1.0, universe=20_000, **own)
    share = float(sized._settings.share)
    assert sized._settings.confidence == 0.9
    for seed in range(200):
        estimate = run(
            functools.partial(estimator_class, 20_000, *own.values(), sample_size=sized.sample_size),
            seed,
            events,
            confidence=0.9,
            output_share=share,
        )
        scale = own.get("t", 1) if estimator_class is PAN.CroppedMean else 1
        missed += abs(estimate.unbiased - truth) > alpha * scale
        assert (estimate.upper - estimate.lower) / 2 <= 1.05 * alpha * scale
    assert missed <= 20


def test_for_accuracy_of_modular_incidence():
    """Every fraction at once; 100 runs, of which a tenth may miss."""
    events, truth, missed = np.arange(10_000), np.array([0.5, 0.5, 0.0]), 0
    sized = PAN.ModularIncidence.for_accuracy(0.2, 0.1, 1.0, universe=20_000, k=3)
    assert sized.sample_size < 20_000
    share = float(sized._settings.share)
    make = functools.partial(PAN.ModularIncidence, 20_000, 3, sample_size=sized.sample_size, confidence=0.9)
    for seed in range(100):
        estimate = run(make, seed, events, output_share=share)
        missed += bool((np.abs(np.array(estimate.unbiased) - truth) > 0.2).any())
        if np.abs(np.array(estimate.unbiased) - truth).max() <= 0.2:
            assert np.abs(np.array(estimate.values) - truth).max() <= 0.4
    assert missed <= 10


def test_for_accuracy_of_distinct_counts():
    sized = PAN.DistinctCount.for_accuracy(0.25, 0.1, 1.0, levels=12)
    count, missed = 4 * sized.accurate_from(0.25), 0
    make = functools.partial(PAN.DistinctCount, buckets=sized.buckets, levels=12, confidence=0.9, output_share=0.1)
    for seed in range(60):
        missed += abs(run(make, seed, np.arange(count) * 104729).value / count - 1) > 0.25
    assert missed <= 6


def test_for_accuracy_says_when_a_universe_is_too_small():
    with pytest.raises(dc.ParameterError, match="cannot be reached"):
        PAN.Density.for_accuracy(0.001, 0.05, 0.1, universe=1000)


def test_the_ramp_lies_between_the_two_fractions():
    """For every stream the ramp is between the fraction of n >= k and that of n > k/(1+rho)."""
    for k, rho in ((1, 1.0), (4, 1.0), (7, 0.5), (10, 0.1)):
        a = PAN.HeavyFraction(SIZE, k, budget=BUDGET, rho=rho)._a
        ramp = np.clip((COUNTS - a) / (k - a), 0, 1).mean()
        assert (k <= COUNTS).mean() <= ramp <= (k / (1 + rho) < COUNTS).mean()
