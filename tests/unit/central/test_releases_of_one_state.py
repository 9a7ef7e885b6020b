"""What one release reads is one state, and no event is in it twice."""

from __future__ import annotations

import pytest

import discreet as dc
from discreet.central import (
    CountMinHeavyHitters,
    CountSketchHeavyHitters,
    Mechanism,
    Merged,
    Offset,
    ReducedMisraGries,
    ShardedOffset,
    Stability,
    Summed,
    UserSketch,
)
from discreet.noise import seeded_source
from discreet.published import PrivateMisraGries, PrivateSpaceSaving
from discreet_audit.exact import ScriptedSource

BUDGET = dc.Budget(1.0, 1e-6)
LITTLE_NOISE = dc.Budget(400.0, 1e-2)
SHAPE = {"width": 64, "depth": 9}


def fed(items):
    sketch = dc.MisraGries(4)
    sketch.update(items)
    return sketch


def test_the_same_sketch_is_not_summed_twice():
    one, two, empty = fed([1, 1, 2]), fed([1, 1, 2]), dc.MisraGries(4)
    ahead = one.copy()
    ahead.update([5])
    for sketches in ([one, one], [one, one.copy()], [two, one, dc.MisraGries.from_bytes(one.to_bytes())], [one, ahead]):
        with pytest.raises(dc.IncompatibleSummaryError, match="same events"):
            dc.release(sketches, BUDGET)
        with pytest.raises(dc.IncompatibleSummaryError, match="same events"):
            dc.central.Summed(BUDGET, 4, sketches=len(sketches))(sketches)
    assert dc.release([one, two, empty, empty.copy()], BUDGET).guarantee.epsilon == 1.0


def test_what_was_checked_is_what_is_published(monkeypatch):
    """An update after the check took the stream beyond the public length, and every counter beyond the cut."""
    sketch = dc.SpaceSaving(4)
    sketch.update(["a", "b", "c", "d"] * 5)
    mechanism = PrivateSpaceSaving(LITTLE_NOISE, 4, stream_length=20)
    check = Mechanism.check

    def update_behind(self, summary):
        check(self, summary)
        if sketch.total == 20:
            sketch.update(["a", "b", "c", "d"] * 50)

    monkeypatch.setattr(Mechanism, "check", update_behind)
    assert len(mechanism(sketch, seeded_source(1))) == 0
    assert sketch.total == 220
    # The same update, seen by the check.
    with pytest.raises(dc.IncompatibleSummaryError, match="longer"):
        mechanism(sketch, seeded_source(1))


KINDS = {
    "offset": (Offset(LITTLE_NOISE, 8), lambda: dc.MisraGries(8, seed=1)),
    "pmg": (PrivateMisraGries(LITTLE_NOISE, 8), lambda: dc.MisraGries(8, seed=1)),
    "reduced": (ReducedMisraGries(LITTLE_NOISE, 8), lambda: dc.MisraGries(8, seed=1)),
    "merged": (Merged(LITTLE_NOISE, 8), lambda: dc.MisraGries(8, seed=1)),
    "summed": (Summed(LITTLE_NOISE, 8, sketches=1), lambda: dc.MisraGries(8, seed=1)),
    "sharded": (ShardedOffset(LITTLE_NOISE, 8, 2), lambda: dc.ShardedMisraGries(8, 2, seed=1)),
    "user": (UserSketch(LITTLE_NOISE, 8, dc.User(1)), lambda: dc.UserMisraGries(8, 1, seed=1)),
    "space saving": (
        PrivateSpaceSaving(LITTLE_NOISE, 8, stream_length="noisy"),
        lambda: dc.SpaceSaving(8, seed=1),
    ),
    "stability": (Stability(LITTLE_NOISE), lambda: dc.ExactCounts(seed=1)),
    "count min": (CountMinHeavyHitters(LITTLE_NOISE, 8, **SHAPE), lambda: dc.CountMin(**SHAPE, tracked=8, seed=1)),
    "count sketch": (
        CountSketchHeavyHitters(LITTLE_NOISE, 8, **SHAPE),
        lambda: dc.CountSketch(**SHAPE, tracked=8, seed=1),
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_read_is_of_one_state(name, monkeypatch):
    """Events arrive after everything that a release reads of a summary; the release is that of the first state."""
    mechanism, make = KINDS[name]
    items = [item for item in "abc" for _ in range(1000)]
    early, later = ([[item] for item in some] if name == "user" else some for some in (items, ["x", "y", "z"] * 2000))

    def released(live):
        return mechanism([live] if name == "summed" else live, seeded_source(1)).to_payload()

    resting, live = make(), make()
    for sketch in (resting, live):
        sketch.update(early)
    expected = released(resting)
    reads = []

    def arrive():
        reads.append(1)
        live.update(later)

    for cls in type(live).__mro__[:-1]:
        for read in ("not_private_counts", "not_private_shards", "not_private_cells", "places"):
            if read in vars(cls):
                monkeypatch.setattr(cls, read, _followed(vars(cls)[read], arrive))
        for read in ("not_private_offset", "not_private_offsets", "not_private_sizes", "total"):
            if read in vars(cls):
                found = _followed(vars(cls)[read].fget, arrive)
                monkeypatch.setattr(cls, read, property(found))
    assert released(live) == expected
    assert reads


def _followed(read, event):
    def wrapper(self, *args):
        found = read(self, *args)
        event()
        return found

    return wrapper


def test_a_counter_of_zero_is_not_shown_whatever_its_noise():
    """A key whose counter is 0 may be any key of the past: one event decides which it is."""
    sketch = fed([1, 2, 3, 4, 5])  # one more than there are counters
    assert set(sketch.not_private_counts().counts.tolist()) == {0}
    for mechanism in (Merged(BUDGET, 4), Stability(BUDGET)):
        summary = sketch
        if isinstance(mechanism, Stability):
            summary = dc.ExactCounts()
        assert len(mechanism(summary, ScriptedSource(10**6, 10**6))) == 0
    sketch.update([5, 5])
    assert Merged(BUDGET, 4)(sketch, ScriptedSource(10**6, 10**6)).items == [5]
