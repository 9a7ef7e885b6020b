"""What is said of a mechanism before it runs: what a summary may lose, and from which count on items are published."""

from collections import Counter

import numpy as np
import pytest

import discreet as dc
from discreet.central import Offset
from discreet.central.preparation import frequency_published, summary_errors
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
    offset, down = model.offset_noise.bound_in_counts(beta), model.noise_bound(beta)
    others = np.tile(np.arange(1, capacity + 1), (n - needed) // capacity)
    sketch = dc.MisraGries(capacity)
    sketch.update(np.concatenate([np.zeros(needed, np.int64), others]))
    listed = mechanism(sketch, ScriptedSource(int(offset), -int(down)))
    assert 0 in listed.items
