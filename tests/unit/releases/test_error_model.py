"""How the probability that bounds may fail is split: together the parts use all of it, and no more."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import discreet as dc
from discreet.central import ShardedOffset
from discreet.noise import seeded_source
from discreet.releases.error_model import ErrorModel, Noise

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
