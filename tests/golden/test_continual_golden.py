"""States of continual releases that were written once are read, and draw the next tick as they would have."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.continual import Counter, DistinctCount, HeavyHitters, Histogram
from discreet.noise import seeded_source

HERE = Path(__file__).parent / "continual"
# Class, the release of tick 5, and what tick 6 publishes with the noise of a seeded source.
WRITTEN = {
    "counter-blt-v1": (Counter, 52, 64),
    "counter-tree-v1": (Counter, 51, 63),
    "counter-square-root-v1": (Counter, 49, 62),
    "heavy-hitters-v1": (HeavyHitters, {"a": 45, "b": 15, "c": 5}, {"a": 54, "b": 15, "c": 5}),
    "histogram-sparse-v1": (Histogram, {"b": 51, "a": 47}, {"a": 64, "b": 42}),
    "histogram-people-v1": (Histogram, {"a": 31, "c": 31, "b": 30}, {"a": 47, "c": 31, "b": 30}),
    "distinct-count-v1": (DistinctCount, 53, 64),
    "histogram-any-horizon-v1": (Histogram, {"a": 45, "b": 35, "c": 7}, {"a": 55, "b": 34}),
    "heavy-hitters-any-horizon-v1": (HeavyHitters, {"a": 45, "b": 36}, {"a": 54, "b": 36}),
    "histogram-v1": (Histogram, {"b": 46, "a": 44, "c": 5}, {"a": 54, "b": 46}),
}


def plain(release):
    return release if isinstance(release, int) else dict(zip(release.items, release.counts.tolist(), strict=True))


@pytest.mark.parametrize("name", WRITTEN)
def test_reads_and_goes_on(name):
    cls, last, following = WRITTEN[name]
    state = (HERE / f"{name}.state").read_bytes()
    restored = cls.from_bytes(state, source=seeded_source(2))
    assert (restored.tick, restored.charge_id) == (5, "golden")
    assert plain(restored.last) == last
    assert restored.guarantee.seeded
    assert cls.from_bytes(state).to_bytes() == state
    if "people" in name:
        assert plain(restored.step(["a"] * 60, users=range(60))) == following
    elif cls is DistinctCount:
        assert restored.step(range(60)) == following
    else:
        assert plain(restored.step(10 if cls is Counter else ["a"] * 9)) == following


def test_every_file_is_checked():
    assert {path.stem for path in HERE.glob("*.state")} == set(WRITTEN)
