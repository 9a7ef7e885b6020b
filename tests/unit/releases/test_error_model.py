"""How the probability that bounds may fail is split: together the parts use all of it, and no more."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.central import ShardedOffset
from discreet.noise import seeded_source
from discreet.privacy.calibration.gaussian import discrete_gaussian_tail
from discreet.releases.error_model import ErrorModel, Noise, Scaling, Stretch, Stretches

TINY = Noise("laplace", Fraction(1, 1000))  # 0 but for e^-1000
WIDE = Noise("laplace", Fraction(5000))


def over(bound, draws=1, scale=5000.0):
    """P[one of the draws is above the bound in absolute value], exactly."""
    q = math.exp(-1 / scale)
    one = 2 * q ** (math.floor(bound) + 1) / (1 + q)
    return -math.expm1(draws * math.log1p(-one))


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("draws", [1, 50])
def test_the_parts_share_what_may_fail(confidence, draws):
    """The bound of each part is isolated: the other noises are so narrow that they reach 0."""
    model = ErrorModel(TINY, shared=TINY, offset_noise=TINY)
    wide = replace(WIDE, draws=draws)
    used = [
        over(replace(model, noise=wide).distances(confidence, 0)[1], draws),
        over(replace(model, shared=WIDE).distances(confidence, 0)[1]),
        over(replace(model, offset_noise=WIDE).distances(confidence, 0)[0]),
    ]
    assert math.fsum(used) <= (1 - confidence) * (1 + 1e-9)
    assert math.fsum(used) >= (1 - confidence) * 0.99


def test_a_single_noise_may_use_all_of_it():
    assert over(ErrorModel(WIDE).distances(0.9)[0]) == pytest.approx(0.1, rel=1e-3)


def test_the_total_and_the_items_share_what_may_fail():
    """`rest`: half of it for the noise of the total, half for the bounds of the items."""
    import pyarrow as pa

    from discreet.releases.release import Release

    guarantee = dc.central.Offset(dc.Budget(1.0, 1e-6), capacity=2).guarantee

    def widths(noise, total_noise):
        histogram = Release(
            pa.array([1]), np.array([10**7]), guarantee, ErrorModel(noise), threshold=1,
            total=10**8, total_noise=total_noise,
        )  # fmt: skip
        rest = histogram.rest(0.9)
        return rest.upper - rest.value, rest.value - rest.lower

    for around in (widths(TINY, WIDE), widths(WIDE, TINY)):
        assert [over(width) for width in around] == pytest.approx([0.05, 0.05], rel=1e-3)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_counts_of_people_and_what_they_lost_share_what_may_fail(confidence):
    """The noise of counts, that of what scaling loses (an upper end alone), that of how many people there are."""

    def above(model, kept):
        lower, upper = model.distances(confidence)
        assert lower == upper
        return upper, float(model.scaling.above(np.array([kept]), np.ones(1), 1.0 - confidence)[0]) - kept

    # At the second length nothing is lost, and what is left is worth so much more that the first one decides.
    scaling = Scaling((1.0, 1e9), (0.0, 0.0), TINY, 0.0, TINY)
    used = [
        over(above(ErrorModel(WIDE, scaling=scaling), 1e6)[0]),
        over(above(ErrorModel(TINY, scaling=replace(scaling, noise=WIDE)), 1e6)[1]) / 2.0,
        # What is left is rounded down by less than two steps for everybody: of so many, how many are seen in it.
        over(above(ErrorModel(TINY, scaling=replace(scaling, sizes=WIDE)), 1e6)[1] / 2.0),
    ]
    assert used == pytest.approx([(1 - confidence) * share for share in (0.79, 0.2, 0.01)], rel=1e-2)
    nothing_lost = ErrorModel(WIDE, scaling=Scaling((1.0,), (0.0,), None, 0.0, TINY))
    assert over(nothing_lost.distances(confidence)[0]) == pytest.approx((1 - confidence) * 0.99, rel=1e-2)


@pytest.mark.parametrize("released", [1, 3, 7])
@pytest.mark.parametrize("listed", [1, 40])
def test_stretches_and_counters_share_what_may_fail(released, listed):
    """A third for each end of what was found and counted since, a third for what all stretches may have held back."""
    confidence, tiny, wide = 0.9, Noise("gaussian", Fraction(1, 1000)), Noise("gaussian", Fraction(5000), listed)

    def tail(bound, sigma=5000.0):
        return discrete_gaussian_tail(sigma, math.floor(bound) + 1)

    stretches = tuple(Stretch(0, 1, wide) for _ in range(released))
    places = ((0, tuple(range(released))), (0, ()))
    model = ErrorModel(tiny, stretches=Stretches(stretches, places, counters=2))
    (_, lacking), (_, nothing) = model.of_places(confidence)
    # With q the chance of each of one more than was released, an item that was not fails with q/(1-q) at most, twice.
    q = (listed + 1) * tail((lacking - nothing) / released)
    assert released * 2.0 * q / (1.0 - q) == pytest.approx((1.0 - confidence) / 3.0, rel=1e-2)
    # Both ends of what was found: of those that are listed, and of all counters. Noises of one size add up to one law.
    counted = ErrorModel(wide, shared=replace(wide, draws=1), stretches=Stretches((), (), counters=3 * listed))
    below, above = counted.distances(confidence, 0)
    for bound, noises, draws in ((below, 3, 3 * listed), (above, 2, listed)):
        fails = -math.expm1(draws * math.log1p(-tail(bound, 5000.0 * math.sqrt(noises))))
        assert fails == pytest.approx((1.0 - confidence) / 3.0, rel=1e-2)


def test_every_shard_has_the_lower_distance_of_its_own_offset():
    """An item that comes late in a shard of many decrements has a count of about its own plus the shard's offset: only
    the offset takes it back. 60 seeded releases at 99.99 %: none may miss, and the bounds are not idle."""
    summary = dc.ShardedMisraGries(8, shards=4, seed=3)
    summary.update(np.arange(30_000) % 3000)  # all counters are worn down, shard by shard
    summary.update(np.repeat(np.arange(5000, 5004), 400))
    offsets = summary.not_private_offsets
    assert min(offsets) > 300
    mechanism = ShardedOffset(dc.Budget(1.0, 1e-3), capacity=8, shards=4)
    late = 0
    for seed in range(60):
        release = mechanism(summary, seeded_source(seed))
        lower, upper = release.bounds(0.9999)
        for item, count, low, high in zip(release.items, release.counts.tolist(), lower, upper, strict=True):
            if item >= 5000:
                late += 1
                assert low <= 400 <= high
                assert count > 600  # far above 400 without the offset
                assert low > 300
    assert late > 100
