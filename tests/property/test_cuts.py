"""An item is listed from the stated cut on, and not one below: without noise, count by count, for every mechanism."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.reference.oracles import ListedCounts

import discreet as dc
from discreet import published
from discreet.central import Merged, Offset, ReducedMisraGries, Stability
from discreet_audit.exact import ScriptedSource

BUDGET = dc.Budget(2.0, 1e-4)


def exact():
    return dc.ExactCounts()


def counters():
    return dc.MisraGries(8, seed=1)


MECHANISMS = {
    "stability": (lambda: Stability(BUDGET), exact),
    "stability, Gaussian": (lambda: Stability(BUDGET, noise="gaussian"), exact),
    "offset": (lambda: Offset(BUDGET, 8), counters),
    "reduced": (lambda: ReducedMisraGries(BUDGET, 8), counters),
    "merged": (lambda: Merged(BUDGET, 8), counters),
    "private": (lambda: published.PrivateMisraGries(BUDGET, 8), counters),
    "textbook": (lambda: published.TextbookMisraGries(BUDGET, 8), counters),
    "chan": (lambda: published.ChanMisraGries(BUDGET, 8), counters),
    "sparse": (lambda: published.GaussianSparseHistogram(BUDGET, 8), counters),
    "space saving": (
        lambda: published.PrivateSpaceSaving(BUDGET, 8, stream_length="noisy"), lambda: dc.SpaceSaving(8, seed=1),
    ),
    "oracle": (lambda: published.OracleHeavyHitters(BUDGET, 4, lambda: ListedCounts()), None),
}  # fmt: skip


@pytest.mark.parametrize("name", MECHANISMS)
def test_an_item_is_listed_from_its_cut_on(name):
    make, summary = MECHANISMS[name]
    mechanism = make()

    def drawn(count):
        made = mechanism.track() if summary is None else summary()
        made.update([1] * count)
        found = mechanism.draw(made, ScriptedSource())
        return SimpleNamespace(
            noisy=np.asarray(found.noisy), offset=found.offset, kept=np.asarray(found.keep).astype(bool).tolist()
        )

    low, high = 0, 4096
    assert drawn(high).kept == [True]
    while high - low > 1:  # the fewest that are listed
        middle = (low + high) // 2
        low, high = (low, middle) if any(drawn(middle).kept) else (middle, high)
    above = []
    for count in range(max(high - 6, 1), high + 6):
        found = drawn(count)
        above.append(float(found.noisy[0]) - (found.offset or 0) - mechanism.threshold)
        assert found.kept == [above[-1] >= 0.0]
        assert mechanism(found_summary(mechanism, summary, count), ScriptedSource()).items == [1] * (above[-1] >= 0.0)
    if float(mechanism.threshold).is_integer():
        assert 0.0 in above  # the cut itself is listed


def found_summary(mechanism, summary, count):
    made = mechanism.track() if summary is None else summary()
    made.update([1] * count)
    return made
