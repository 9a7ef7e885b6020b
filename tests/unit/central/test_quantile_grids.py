"""Public ranges in bins: every value has one bin, whose ends hold it, on either side of zero and of 1970."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

import discreet as dc
from discreet.central.quantile_grid import MOST_BINS, Grid, StepGrid, finer, grid_of

UTC = datetime.timezone.utc
DAY = 86_400
GRIDS = {
    "linear": Grid(-2.0, 3.0, 7),
    "log": Grid(0.5, 300.0, 9, "log"),
    "whole numbers in floats": Grid(-3.0, 5.0, 8),
    "steps": StepGrid(-7, 12),
    "wide steps": StepGrid(-7, 12, width=6),  # the last bin has two
    "days": grid_of(("1969-12-20", "1970-01-10")),
    "weeks": StepGrid(-12, 9, "date", width=7),
    "seconds": grid_of(("1969-12-31T23:59:50", "1970-01-01T00:00:20")),
    "wide seconds": StepGrid(-10, 20, "time", width=4, aware=True),
}
each = pytest.mark.parametrize("name", GRIDS)


def number(grid, value):
    """A published value as what is counted: dates and times are seconds from 1970."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=UTC).timestamp()
    if isinstance(value, datetime.date):
        return float((value - datetime.date(1970, 1, 1)).days * DAY)
    return float(value)


@each
def test_the_ends_of_a_bin_are_in_it_and_the_bins_follow_one_another(name):
    grid = GRIDS[name]
    for place in range(grid.bins):
        low, high = grid.lower(place), grid.upper(place)
        assert low < high or (isinstance(grid, StepGrid) and low <= high)
        assert grid.places(np.array([number(grid, low)])).tolist() == [place]
        if isinstance(grid, StepGrid):
            assert grid.places(np.array([number(grid, high)])).tolist() == [place]
    assert (grid.lower(0), grid.upper(grid.bins - 1)) == grid.ends


@each
@pytest.mark.parametrize("part", [0.0, 0.3, 0.5, 0.999, 1.0])
def test_a_published_value_lies_in_its_bin(name, part):
    """Also in the last one, which may be narrower than the others."""
    grid = GRIDS[name]
    for place in range(grid.bins):
        low, high = grid.lower(place), grid.upper(place)
        slack = 0.06 * (number(grid, high) - number(grid, low)) if isinstance(grid, Grid) else 0.0  # of digits
        assert number(grid, low) - slack <= number(grid, grid.value(place, part)) <= number(grid, high) + slack


@pytest.mark.parametrize(
    ("grid", "values", "places"),
    [
        (StepGrid(-5, 5), [-5.0, -0.5, -0.0, 0.5, 4.999, 5.0], [0, 4, 5, 5, 9, 10]),
        (StepGrid(-5, 5, width=3), [-5.0, -2.5, -2.0, -0.5, 5.0], [0, 0, 1, 1, 3]),
        (StepGrid(-2, 2, "date"), [-DAY - 1.0, -1.0, 0.0, DAY - 0.5, DAY * 2.0], [0, 1, 2, 2, 4]),
        (StepGrid(-3, 3, "time"), [-1.5, -1.0, -0.25, 0.0, 2.75], [1, 2, 2, 3, 5]),
    ],
)
def test_a_value_between_two_steps_belongs_to_the_one_below(grid, values, places):
    assert grid.places(np.array(values)).tolist() == places


@each
def test_values_outside_are_cut_and_what_is_no_number_is_in_no_bin(name):
    grid = GRIDS[name]
    low, high = (number(grid, end) for end in grid.ends)
    outside = np.array([low - 1e7, -np.inf, high + 1e7, np.inf])
    assert grid.places(outside).tolist() == [0, 0, grid.bins - 1, grid.bins - 1]
    counts = np.zeros(grid.bins, np.int64)
    grid.add_to(counts, np.array([np.nan, low, np.nan, high, np.nan]))
    assert counts.sum() == 2
    assert counts[0] == counts[-1] == 1
    grid.add_to(counts, np.array([low]))  # beside what was counted
    assert counts[0] == 2


@pytest.mark.parametrize("ends", [
    ("2026-01-01T00:00:00+01:00", "2026-01-02T00:00:00+01:00"),
    ("2026-01-01T00:00:00+01:00", "2026-01-01T23:00:00"),
    ("2025-12-31T23:00:00", "2026-01-02T00:00:00+01:00"),
])  # fmt: skip
def test_times_with_a_zone_at_either_end_are_published_in_utc(ends):
    grid = grid_of(ends)
    assert grid.ends == (datetime.datetime(2025, 12, 31, 23, tzinfo=UTC), datetime.datetime(2026, 1, 1, 23, tzinfo=UTC))
    assert grid.aware
    assert not grid_of(("2026-01-01T00:00:00", "2026-01-02T00:00:00")).aware


@pytest.mark.parametrize(("ends", "bins", "scale", "wanted"), [
    ((0, 100), None, "whole", (101, 1)), ((0, 100), 10, "whole", (10, 11)), ((0, 9), 3, "whole", (3, 4)),
    (("2026-01-01", "2026-01-10"), 4, "linear", (4, 3)), (("2026-01-01", "2026-01-10"), 99, "linear", (10, 1)),
])  # fmt: skip
def test_steps_are_divided_into_no_more_bins_than_were_asked_for(ends, bins, scale, wanted):
    grid = grid_of(ends, bins, scale)
    assert (grid.bins, grid.width) == wanted


def test_a_finer_grid_is_of_the_same_range():
    for grid in (Grid(0.0, 1.0), Grid(1.0, 50.0, 16, "log")):
        fine = finer(grid)
        assert (fine.low, fine.high, fine.scale, fine.bins) == (grid.low, grid.high, grid.scale, MOST_BINS)
    narrow = Grid(1.0, 1.0 + 2.0**-48, 4)
    assert finer(narrow) == narrow
    steps = StepGrid(0, 2**30)
    assert finer(steps) == steps
    listed = steps.listed()
    assert listed.bins <= MOST_BINS
    assert (listed.low, listed.high) == (0, 2**30)
    assert StepGrid(0, 99).listed() == StepGrid(0, 99)


@pytest.mark.parametrize(("ends", "scale", "said"), [
    ((1.5, 3), "whole", "two whole numbers"), ((True, 3), "whole", "two whole numbers"),
    (("2026-01-01", "2026-01-02"), "log", "must be 'linear'"), (("2026-01-02", "2026-01-01"), "linear", "LOW < HIGH"),
    ((0.0, 1.0), "log", "must begin above 0"), ((0.0, float("inf")), "linear", "two finite numbers"),
    ((0.0, 1.0), "cubic", "'linear' or 'log'"), ((1.0, 1.0 + 2.0**-52), "linear", "too narrow"),
])  # fmt: skip
def test_ranges_that_cannot_be_are_refused(ends, scale, said):
    with pytest.raises(dc.ParameterError, match=said):
        grid_of(ends, None, scale)
