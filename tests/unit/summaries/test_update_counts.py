"""Many events of an item at once leave the state that as many single events leave."""

import numpy as np
import pyarrow as pa
import pytest
from tests.reference.states import content

import discreet as dc


@pytest.mark.parametrize("strings", [False, True])
@pytest.mark.parametrize("capacity", [1, 2, 5, 40])
def test_same_state_as_single_events(capacity, strings):
    rng = np.random.default_rng(capacity)
    for _ in range(60):
        many, single = (dc.MisraGries(capacity, seed=3) for _ in range(2))
        for _ in range(4):
            keys = rng.integers(0, 12, rng.integers(0, 30))
            counts = rng.integers(0, 1 + 10 ** rng.integers(0, 3), len(keys))
            items = [f"item {key}" for key in keys] if strings else keys.tolist()
            column = pa.array(items, pa.string() if strings else pa.int64())
            many.update_counts(column, counts)
            single.update(column.take(pa.array(np.repeat(np.arange(len(keys)), counts))))
            assert many.total == single.total
            assert many.not_private_counts().to_dict() == single.not_private_counts().to_dict()
            assert many.not_private_offset == single.not_private_offset
        if many.total:
            assert content(many) == content(single)


def test_wrong_counts_change_nothing():
    sketch = dc.MisraGries(4)
    for items, counts in (
        *((["a", "b"], [1]), (["a"], [1, 2]), ([], [1]), (["a"], [-1])),
        *(
            (["a"], [1.0]),
            (["a"], [True]),
            (["a"], ["1"]),
            (["a"], [[1]]),
            (["a"], 1),
            (["a"], np.array([1], np.uint64)),
        ),
    ):
        for column in (pa.array(items, pa.string()), items):
            with pytest.raises(dc.DataError):
                sketch.update_counts(column, counts)
    with pytest.raises(dc.DataError):
        sketch.update_counts(pa.array(["a"]).dictionary_encode(), np.array([1]))
    assert sketch.total == 0


def test_events_in_the_order_of_their_hashes():
    """They fill the table from one end to the other; a search for an absent key must still end."""
    rng = np.random.default_rng(5)
    weights = 1 / np.arange(1, 3001) ** 1.2
    sketch, other = dc.MisraGries(64, seed=7), dc.MisraGries(64, seed=7)
    for _ in range(20):
        batch = dc.ExactCounts(seed=7)
        batch.update(rng.choice(3000, 2000, p=weights / weights.sum()))
        raw = batch.not_private_counts()
        sketch.update_counts(raw.items, raw.counts)
        other.update(np.repeat(np.asarray(raw.items), raw.counts))
    assert sketch.total == 40000
    assert content(sketch) == content(other)


def test_counts_that_do_not_fit_change_nothing():
    """Their sum wrapped around 2**64 before."""
    sketch = dc.MisraGries(4, seed=1)
    sketch.update_counts(["a", "b"], np.array([2**62, 5]))
    before = sketch.to_bytes()
    for items, numbers in ((["a", "b", "c"], [2**62] * 3), (["a"], [2**63 - 1]), (["c"], [2**62])):
        with pytest.raises(dc.DataError, match=r"2\*\*63"):
            sketch.update_counts(items, np.array(numbers, np.int64))
        assert sketch.to_bytes() == before
    sketch.update_counts(["a"], [2**62 - 6])
    assert sketch.total == 2**63 - 1
