"""Intervals of sums over many parts of a level: no wider than they need be, and no narrower. Noise is seeded."""

import numpy as np
import pytest

import discreet as dc
from discreet.multiparty import GridHierarchy, Hierarchy
from discreet.noise import seeded_source


def heard(protocol, tables, seed):
    aggregator, source = protocol.aggregator(max_reports=None), seeded_source(seed)
    for number, table in enumerate(tables):
        aggregator.receive(protocol.party(number * 10_000, source=source).encode(table))
    return aggregator


def test_numbers_in_a_row_collide_together_and_the_interval_knows():
    """There is no noise here; 30 rounds have hash functions of their own. Variances of single items do not add up."""
    tables = np.random.default_rng(1).integers(0, 256, (40, 64))
    low, high = 128, 230
    true = np.sum((tables >= low) & (tables <= high))
    held = naive = 0
    for run in range(30):
        aggregator = heard(Hierarchy(f"row {run}", dc.Budget(100_000.0), 256, branching=256), tables, run)
        found, counts = aggregator.range_count(low, high), aggregator.interval_counts(0, range(low, high + 1))
        held += found.lower <= true <= found.upper
        naive += abs(found.value - true) <= 2.2 * np.sqrt(counts.variances.sum())
        assert (found.upper - found.lower) / 2 < np.sqrt(counts.variances).sum()  # as if all erred together
    assert held >= 27
    assert naive <= 22


RECTANGLES = [((1, 1), (14, 13)), ((5, 2), (9, 10)), ((0, 1), (15, 6)), ((2, 2), (15, 15))]


@pytest.mark.parametrize(("protocol", "options", "epsilon", "parties", "items"), [
    ("IndependentSketches", {"items_per_column": 1.0}, 2.0, 25, 40),
    ("IndependentSketches", {"items_per_column": 4.0, "rows": 3}, 20.0, 25, 40),
    ("Separation", {"items_per_column": 2.0}, 20.0, 25, 40),
    ("LocalHashing", {}, 4.0, 2, 2000), ("HadamardResponse", {}, 1.0, 2, 2000), ("LocalSketch", {}, 2.0, 2, 1000),
])  # fmt: skip
def test_rectangles_are_covered(protocol, options, epsilon, parties, items):
    """Eight rounds, four rectangles at 95 %: of 32 intervals 1.6 miss on average."""
    tables = np.random.default_rng(3).binomial(15, 0.4, (parties, items, 2))
    every, misses, widths = tables.reshape(-1, 2), 0, []
    for run in range(8):
        grid = GridHierarchy(f"run {run}", dc.Budget(epsilon), (16, 16), protocol, 4, options)
        aggregator = heard(grid, tables, run)
        for low, high in RECTANGLES:
            found = aggregator.range_count(low, high)
            true = np.sum(((every >= low) & (every <= high)).all(axis=1))
            misses += not found.lower <= true <= found.upper
            boxes, _ = grid.levels.cover(low, [end + 1 for end in high])
            counts = [aggregator.interval_counts(level, part) for level, part in enumerate(boxes) if len(part)]
            together = np.sqrt(sum(np.sqrt(count.variances).sum() ** 2 for count in counts))
            widths.append((found.upper - found.lower) / 2 / (2.12 * together))
    assert misses <= 6
    assert np.mean(widths) < 0.6


def test_the_variance_is_between_that_of_independent_and_of_common_errors():
    tables = np.random.default_rng(4).integers(0, 9, (30, 20, 2))
    grid = GridHierarchy("r", dc.Budget(3.0), (9, 9), branching=3, options={"items_per_column": 2.0})
    aggregator, few = heard(grid, tables, 1), heard(grid, tables[:19], 1)
    boxes = np.arange(20, 50)
    counts = aggregator.interval_counts(3, boxes)
    sums = np.array([values.sum() for values, _ in grid.by_level[3]._each(aggregator._heard_at(3), boxes.astype("u8"))])
    assert sums.sum() == pytest.approx(counts.values.sum())
    expected = max(30 * sums.var(ddof=1), counts.variances.sum())
    assert aggregator.sum_variance(3, boxes, counts) == pytest.approx(expected)
    assert aggregator.sum_variance(3, boxes[:1], aggregator.interval_counts(3, boxes[:1])) == counts.variances[0]
    counts = few.interval_counts(3, boxes)  # too few to tell
    assert few.sum_variance(3, boxes, counts) == pytest.approx(np.sqrt(counts.variances).sum() ** 2)
    merged = GridHierarchy("r", dc.Budget(3.0), (9, 9), "MergedSketch", 3, {"columns": 32})
    aggregator = heard(merged, tables, 1)  # one hash function for all
    counts = aggregator.interval_counts(3, boxes)
    assert aggregator.sum_variance(3, boxes, counts) == pytest.approx(np.sqrt(counts.variances).sum() ** 2)
