"""Lines over time, as SVG."""

from __future__ import annotations

import datetime
import math
import re

import numpy as np
import pytest

from discreet.releases.line_chart import MOST_LINES, Point, line_chart

DAYS = [datetime.date(2026, 1, 1 + n) for n in range(6)]


def heights(svg: str, what: str) -> list[float]:
    """Where the points of the lines, or the ends of the bands, lie: from the top."""
    return [float(each) for line in re.findall(rf'class="{what}[^"]*"[^>]* points="([^"]*)"', svg)
            for each in re.findall(r",([-\d.]+)", line)]  # fmt: skip


def axis(svg: str) -> dict[float, float]:
    """The numbers beside the grid, and where they stand."""
    found = re.findall(r'y="([\d.]+)" text-anchor="end">([-\d,.]+)<', svg)
    return {float(number.replace(",", "")): float(y) - 4.0 for y, number in found}


@pytest.mark.parametrize("values", [
    [0, 10, 20, 30], [-900, -800, -700, -10], [-50, 0, 50, 100], [-3, -2, 900, 40], [0.25, 0.5, 1.0, 0.75],
])  # fmt: skip
def test_a_number_is_drawn_where_the_axis_has_it(values):
    """Also below 0: a sum that is negative is no line along 0."""
    points = [Point(day, value, value - 7.0, value + 7.0) for day, value in zip(DAYS, values, strict=False)]
    svg = line_chart("t", {"a": points})
    marks = axis(svg)
    (low, bottom), (high, top) = min(marks.items()), max(marks.items())
    assert (bottom - top) > 200
    for value, y in zip(values, heights(svg, "line"), strict=True):
        assert y == pytest.approx(bottom - (value - low) / (high - low) * (bottom - top), abs=0.11)
    assert low <= min(0, *values)
    assert high >= max(point.upper for point in points)
    assert 0.0 in marks
    steps = sorted(marks)
    assert np.diff(steps) == pytest.approx(steps[1] - steps[0])


def test_an_unknown_end_is_where_the_number_is():
    points = [Point(day, 50.0, -math.inf, math.inf) for day in DAYS]
    svg = line_chart("t", {"a": points})
    marks = axis(svg)
    assert max(marks) == 60.0
    assert {*heights(svg, "band")} == {marks[0.0], heights(svg, "line")[0]}


def test_a_line_has_a_gap_where_nothing_is_published():
    every = [Point(day, 5.0, 4.0, 6.0) for day in DAYS]
    some = [every[0], every[1], every[4], every[5]]
    svg = line_chart("t", {"all": every, "some": some})
    assert [line.count(",") for line in re.findall(r'<polyline [^>]*points="([^"]*)"', svg)] == [6, 2, 2]


def test_the_lines_with_the_most_are_drawn_and_the_others_counted():
    series = {f"line {n}": [Point(day, float(n), 0.0, 9.0) for day in DAYS] for n in (3, 9, 1, 7, 5, 8, 2)}
    svg = line_chart("t", series)
    assert re.findall(r"<bdi>(.*?)</bdi>", svg) == [f"line {n}" for n in (3, 9, 7, 5, 8)]
    assert f"and {len(series) - MOST_LINES} more in the table" in svg


def test_names_and_titles_are_text():
    series = {"<i>&": [Point(day, 1.0, 0.0, 2.0) for day in DAYS], "b": [Point(day, 1.0, 0.0, 2.0) for day in DAYS]}
    svg = line_chart('"><script>', series)
    assert "<i>" not in svg
    assert "<script>" not in svg
    assert "&lt;i&gt;&amp;" in svg


def test_one_time_is_no_line():
    assert line_chart("t", {"a": [Point(DAYS[0], 1.0, 0.0, 2.0)]}) == ""
