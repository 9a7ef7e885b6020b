"""Sets of any size over an unknown domain: with the same list published, one event moves at most k counts, by 1, once.

docs/privacy/continual.md, "Any number of items". The proof needs that what counts of an event depends on the event and
on what is public. All tiny streams of two ticks, with every list that the first may have published.
"""

from itertools import chain, combinations
from types import SimpleNamespace

import numpy as np
import pytest

from discreet.continual import Histogram
from discreet.privacy import Budget

ITEMS = range(4)
SETS = [list(chosen) for size in (1, 2, 3) for chosen in combinations(ITEMS, size)]
LISTS = list(chain.from_iterable(combinations(ITEMS, size) for size in range(3)))
K = 2


class ByTrueCounts(Histogram):
    """What is frequent comes first, published or not. NOT PRIVATE."""

    def _public_items(self):
        counts = self.not_private_counts()
        return frozenset(sorted(counts, key=counts.get, reverse=True)[:K])


class AllThatIsPublic(Histogram):
    """What was published counts beyond the k items. NOT PRIVATE."""

    def _counted(self, events, users, nulls, weights):
        self._most = K + len(self._public_items())
        return super()._counted(events, users, nulls, weights)


def counts(kind, ticks, public):
    """What each tick adds, when the first of two published this list."""
    made, out = kind(2, Budget(1.0, 0.1), None, None, K, mechanism="factorised"), []
    for events in ticks:
        if events:
            made.add(events)
        added = np.zeros(len(ITEMS), np.int64)
        for item, at in made._index.items():
            added[item] = made._added[at] if at < len(made._added) else 0
        out.append(added)
        made._total = np.concatenate([made._total, np.zeros(len(made._items) - len(made._total), np.int64)])
        made._total[: len(made._added)] += made._added
        made._added = np.zeros(0, np.int64)
        made._last = SimpleNamespace(items=list(public))
    return np.array(out)


def worst(kind):
    """The largest sum of changes that one event makes; infinite where a count falls, or moves by more than one."""
    most = 0.0
    for public in LISTS:
        for event in SETS:
            for others in ([[0, 1, 2], [3]], [[3, 2, 1]], [[1, 3, 0]]):
                for more in ([[event], others], [[[3, 1]], [event, *others]], [[[3, 1]], [*others, event]]):
                    fewer = [[one for one in tick if one is not event] for tick in more]
                    change = counts(kind, more, public) - counts(kind, fewer, public)
                    wrong = (change < 0).any() or (change > 1).any() or (change.any(axis=1).sum() > 1)
                    most = max(most, np.inf if wrong else float(change.sum()))
    return most


def test_one_event_moves_at_most_k_counts_whatever_was_published():
    assert worst(Histogram) == K


@pytest.mark.parametrize("kind", [ByTrueCounts, AllThatIsPublic])
def test_rules_that_are_not_private_are_caught(kind):
    assert worst(kind) > K


def test_what_is_listed_counts_in_full():
    for public in LISTS:
        for event in SETS:
            added = counts(Histogram, [[], [event]], public)[1]
            assert all(added[item] == 1 for item in public if item in event)
            assert added.sum() == min(K, len(event))
