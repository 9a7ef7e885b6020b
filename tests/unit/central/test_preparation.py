"""What is said of a mechanism before it runs: what a summary may lose, and from which count on items are published."""

import math
from collections import Counter

import numpy as np
import pytest

import discreet as dc
from discreet.central import Offset
from discreet.central._base import frequency_published, summary_errors
from discreet.central.merged_counters import Merged
from discreet.central.reduced_misra_gries import ReducedMisraGries
from discreet.central.summed_entries import Summed
from discreet.published import ChanMisraGries, GaussianSparseHistogram
from discreet.questions.choose import prepare_rows
from discreet_audit.exact import ScriptedSource


@pytest.mark.parametrize("capacity", [1, 9])
def test_a_sketch_loses_as_much_as_is_said_and_may(capacity):
    """k + 1 items in turns: each loses n/(k+1), which is what is said."""
    stream = np.tile(np.arange(capacity + 1), 100)
    sketch = dc.MisraGries(capacity)
    sketch.update(stream)
    kept = sketch.not_private_counts().to_dict()
    lost = max(count - kept.get(item, 0) for item, count in Counter(stream.tolist()).items())
    assert (
        summary_errors(Offset(dc.Budget(1.0, 1e-6), capacity), len(stream), capacity, 0.05)
        == (lost, lost)
        == (100, 100)
    )


def test_an_item_that_should_be_published_is():
    """The noises at the ends that are allowed for, and the sketch at its worst: it passes, and just so."""
    mechanism, capacity, n = Offset(dc.Budget(1.0, 1e-6), 9), 9, 10_000
    needed = frequency_published(mechanism, n, capacity, 0.95)
    model = mechanism.error_model
    beta = 0.05 / model.random_parts
    offset, down = model.offset_noise.bound(beta), model.noise_bound(beta)
    others = np.tile(np.arange(1, capacity + 1), (n - needed) // capacity)
    sketch = dc.MisraGries(capacity)
    sketch.update(np.concatenate([np.zeros(needed, np.int64), others]))
    listed = mechanism(sketch, ScriptedSource(int(offset), -int(down)))
    assert 0 in listed.items


def test_counters_of_a_memory_are_shared_by_workers():
    def capacity(workers):
        words = {"memory": "1GB", "workers": workers}
        return prepare_rows(False, 10, dc.Budget(1.0, 1e-6), dc.Event(), "auto", **words).mechanism.capacity

    alone = capacity(None)
    assert capacity(1) == alone
    for workers in (2, 8):
        assert capacity(workers) == alone // workers


def test_a_sum_is_of_one_sketch_unless_more_are_named():
    budget = dc.Budget(1.0, 1e-6)
    one, alone = Summed(budget, capacity=16), ReducedMisraGries(budget, capacity=16)
    assert (one.sketches, one.most_entries, one.scale, one.threshold) == (1, 16, alone.scale, alone.threshold)
    sketch = dc.MisraGries(16)
    sketch.update(["a"] * 2000)
    assert one([sketch]).items == ["a"]
    with pytest.raises(dc.ParameterError, match="made for 1 sketches, but got 2"):
        one([sketch, sketch.copy()])


@pytest.mark.parametrize("kind", [ChanMisraGries, GaussianSparseHistogram, Merged, Offset])
def test_noise_grows_with_the_number_of_counters_as_is_said(kind):
    """By this power of it: what a balanced capacity rests on."""
    few, many = (kind(dc.Budget(1.0, 1e-6), capacity=capacity) for capacity in (64, 1024))
    spread = [float(each.error_model.noise.scale * each.error_model.noise.step) for each in (few, many)]
    assert math.log(spread[1] / spread[0]) / math.log(1024 / 64) == pytest.approx(kind.noise_growth, abs=0.05)
