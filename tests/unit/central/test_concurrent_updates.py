"""A release reads one state of a summary, though somebody adds to it meanwhile."""

import pytest

import discreet as dc
from discreet.central import OffsetRelease, ShardedOffsetRelease

BUDGET = dc.Budget(400.0, 1e-2)


class UpdatedOnce(dc.ShardedMisraGries):
    """Gets events of other items right between two reads."""

    late = True

    @property
    def not_private_offsets(self):
        if self.late:
            self.late = False
            self.update([f"secret {i}" for i in range(100)])
        return super().not_private_offsets


class Busy(dc.MisraGries):
    """Gets an event at every look."""

    @property
    def not_private_offset(self):
        self.update(["a"])
        return super().not_private_offset


def test_items_and_counters_are_of_one_state():
    summary = UpdatedOnce(8, 2, seed=1)
    summary.update([item for item in "abcdefgh" for _ in range(1000)])
    found = ShardedOffsetRelease(BUDGET, 8, 2)(summary)
    assert not any(item.startswith("secret") for item in found.items)
    assert not summary.late


def test_a_summary_that_never_rests_is_refused():
    summary = Busy(8)
    with pytest.raises(dc.DataError, match="being updated"):
        OffsetRelease(BUDGET, 8)(summary)
