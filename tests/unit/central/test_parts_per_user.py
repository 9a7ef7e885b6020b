"""Users that are in several parts of a merged release: what it costs, and what the guarantee says of it."""

from __future__ import annotations

import pytest

import discreet as dc
from discreet.central import (
    Merged,
    Offset,
    ReducedMisraGries,
    ShardedOffset,
    Stability,
    Summed,
    UserSketch,
    merge_releases,
)
from discreet.noise import seeded_source
from discreet.published import ChanMisraGries, PrivateSpaceSaving

BUDGET = dc.Budget(1.0, 1e-6)


def users(*lists):
    sketch = dc.UserMisraGries(2, 2)
    sketch.update([[1, 2]] * 1000 + list(lists))
    return sketch


def merged():
    sketch = users([3])
    sketch.merge(users([3]))
    return sketch


def test_a_release_of_merged_parts_states_how_many_a_user_is_in():
    sketch = merged()
    restored = dc.UserMisraGries.from_bytes(sketch.to_bytes())
    assert restored.was_merged
    assert len(restored.lineage) == 2
    for made in (sketch, restored):
        one = dc.release(made, BUDGET, unit=dc.User(2))
        two = dc.release(made, BUDGET, unit=dc.User(2), parts_per_user=2)
        assert "every user is one list, in one of the sketches if several were merged" in one.guarantee.assumptions
        assert "no user has more than 2 lists in all the sketches that were merged" in two.guarantee.assumptions
        assert two.threshold > 1.9 * one.threshold
        assert "lists" in dc.Release.from_payload(two.to_payload()).guarantee.assumptions[-1]


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_noise_and_cut_grow_with_the_parts(parts):
    one, many = (UserSketch(BUDGET, 64, dc.User(4), parts_per_user=p) for p in (1, parts))
    assert float(many.scale) == pytest.approx(parts * float(one.scale), rel=1e-3)
    assert abs(many.threshold - parts * one.threshold) <= parts
    assert many.error_model.noise.scale == many.scale


def test_the_total_moves_with_every_list():
    """Two lists of two items: the length moves by four."""
    one, two = (
        dc.release(merged(), BUDGET, unit=dc.User(2), total_share=0.5, parts_per_user=parts, source=seeded_source(1))
        for parts in (None, 2)
    )
    made = UserSketch(BUDGET, 2, dc.User(2), parts_per_user=2)
    given = dc.release(merged(), BUDGET, made, total_share=0.5, source=seeded_source(1))
    assert one.total_noise.scale == 4
    assert two.total_noise.scale == given.total_noise.scale == 8


def test_bad_numbers_of_parts():
    for bad in (0, -1, 1.5, "2"):
        with pytest.raises(dc.ParameterError, match="parts_per_user"):
            UserSketch(BUDGET, 2, dc.User(2), parts_per_user=bad)
        with pytest.raises(dc.ParameterError, match="parts_per_user"):
            dc.release(merged(), BUDGET, unit=dc.User(2), parts_per_user=bad)
        with pytest.raises(dc.ParameterError, match="parts_per_user"):
            dc.release(merged(), BUDGET, unit=dc.User(2), parts_per_user=bad, total_share=0.5)
    rows = dc.MisraGries(4)
    rows.update([1, 2])
    with pytest.raises(dc.ParameterError, match="UserMisraGries"):
        dc.release(rows, BUDGET, unit=dc.User(2), parts_per_user=2)
    with pytest.raises(dc.ParameterError, match="ready-made"):
        dc.release(merged(), BUDGET, UserSketch(BUDGET, 2, dc.User(2)), parts_per_user=2)


FLAT = [
    Offset(BUDGET, 4, dc.User(3)),
    ShardedOffset(BUDGET, 4, 2, dc.User(3)),
    Merged(BUDGET, 4, dc.User(3)),
    Summed(BUDGET, 4, dc.User(3), sketches=2),
    ReducedMisraGries(BUDGET, 4, dc.User(3)),
    ChanMisraGries(BUDGET, 4, dc.User(3)),
    Stability(BUDGET, dc.User(3)),
    PrivateSpaceSaving(BUDGET, 4, dc.User(3), stream_length="noisy"),
    dc.published.PrivateMisraGries(BUDGET, 4, dc.User(3)),
    dc.published.TextbookMisraGries(BUDGET, 4, dc.User(3)),
    dc.central.CountMinHeavyHitters(BUDGET, 4, dc.User(3), width=64, depth=9),
    dc.central.CountSketchHeavyHitters(BUDGET, 4, dc.User(3), width=64, depth=9),
]


@pytest.mark.parametrize("mechanism", FLAT, ids=lambda mechanism: type(mechanism).__name__)
def test_rows_of_users_are_an_assumption(mechanism):
    assert "no user has more than 3 of the rows that are counted" in mechanism.guarantee.assumptions


def test_an_event_is_in_one_part():
    for mechanism in (Offset(BUDGET, 4), Merged(BUDGET, 4), Summed(BUDGET, 4, sketches=2)):
        assert mechanism.guarantee.assumptions == ()


def of(epsilon, delta):
    sketch = dc.MisraGries(4)
    sketch.update([1] * 5000)
    return Offset(dc.Budget(epsilon, delta), 4, dc.User(2))(sketch)


def test_released_parts_promise_what_the_weakest_does():
    """Also where one release has the larger epsilon and another the larger delta."""
    for order in ([of(1.0, 1e-9), of(0.5, 1e-3)], [of(0.5, 1e-3), of(1.0, 1e-9)]):
        promised = merge_releases(order).guarantee
        assert (promised.epsilon, promised.delta) == (1.0, 1e-3)
        assert "all events of a unit are in one stream" in promised.assumptions


def test_users_in_several_released_parts_compose():
    parts = [of(1.0, 1e-9), of(0.5, 1e-3), of(0.25, 1e-6)]
    promised = merge_releases(parts, parts_per_user=2).guarantee
    assert promised.epsilon == 1.5
    assert 1e-3 + 1e-6 <= promised.delta <= (1e-3 + 1e-6) * (1 + 1e-15)
    assert "the events of a unit are in at most 2 of the streams" in promised.assumptions
    assert merge_releases(parts, parts_per_user=9).guarantee.epsilon == 1.75
    with pytest.raises(dc.ParameterError, match="parts_per_user"):
        merge_releases(parts, parts_per_user=0)


@pytest.mark.parametrize("kind", [ChanMisraGries, ReducedMisraGries])
def test_gaussian_noise_on_counters_grows_with_the_items_of_a_user_and_not_their_root(kind):
    """m items of a user move the same counters m times as far: the deviation is m times that of one."""
    one, many = (kind(dc.Budget.zcdp(0.5), 8, unit, universe=range(20)) for unit in (dc.Event(), dc.User(3)))
    assert float(many.scale) == pytest.approx(3 * float(one.scale), rel=1e-6)
