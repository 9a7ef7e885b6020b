"""What one release reads is one state, and no event is in it twice."""

from __future__ import annotations

import pytest

import discreet as dc

BUDGET = dc.Budget(1.0, 1e-6)


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
            dc.central.SummedRelease(BUDGET, 4, sketches=len(sketches))(sketches)
    assert dc.release([one, two, empty, empty.copy()], BUDGET).guarantee.epsilon == 1.0
