"""The whole law of one message, byte for byte, from the code that makes it, for all neighbours of a tiny universe.

Losses are lower bounds where noise has no end and branches of less than 1e-7 are left out; they come close to epsilon.
"""

from __future__ import annotations

import pytest
from tests.reference.branches import sequences_with_one_replaced, worst_ratio

import discreet as dc
from discreet.multiparty import HadamardResponse, IndependentSketches, LocalHashing, LocalSketch, Separation
from discreet.noise import RandomSource
from discreet.published import MergedMisraGries, MergedSketch

SMALL = {"items_per_column": 1.0, "max_items": 4}


@pytest.mark.parametrize(
    ("protocol", "length", "reached"),
    [
        (HadamardResponse("r", dc.Budget(0.7), 3), 2, 0.7),
        (LocalHashing("r", dc.Budget(0.7), 3), 2, 0.7),
        (LocalHashing("r", dc.Budget(3.0), 3), 1, 3.0),
        (LocalSketch("r", dc.Budget(5.0), 3, columns=2), 1, 4.99),
        (IndependentSketches("r", dc.Budget(5.0), 3, **SMALL), 1, 4.99),
        (IndependentSketches("r", dc.Budget(5.0), 3, **SMALL), 2, 4.9),
        (MergedSketch("r", dc.Budget(5.0), 3, columns=3, rows=1), 1, 4.99),
        (Separation("r", dc.Budget(12.0), 2, threshold=0, items_per_entry=2, **SMALL), 1, 6.7),
        (MergedMisraGries("r", dc.Budget(3.0), 2, capacity=1), 2, 2.7),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "domain") else str(value),
)
def test_no_message_tells_more_than_epsilon(protocol, length, reached):
    losses = []
    for number in range(2):
        run = lambda given, source, number=number: protocol.party(number, source=source).encode(list(given))  # noqa: E731
        losses.append(worst_ratio(sequences_with_one_replaced(protocol.domain.size, length), run, like=RandomSource))
    assert max(losses) <= protocol.epsilon * (1 + 1e-9)
    assert max(losses) >= reached * (1 - 1e-9)
