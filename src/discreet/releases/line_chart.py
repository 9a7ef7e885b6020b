"""Numbers over time as lines with bands for their intervals: SVG that stands alone. Everything shown was published."""

from __future__ import annotations

import datetime
import html
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from discreet._bars import amount
from discreet.releases.labels import cut, readable

MOST_LINES = 5
_WIDTH, _HEIGHT = 720.0, 280.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 72.0, 14.0, 18.0, 30.0
_TICKS = 4
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2")  # so that lines are told apart without colours, too


class Point(NamedTuple):
    """A number at a time, and its interval."""

    time: Any
    value: float
    lower: float
    upper: float


def line_chart(title: str, series: Mapping[str, Sequence[Point]]) -> str:
    """At most `MOST_LINES` lines, those with the most in all; where a number is not published, a line has a gap."""
    foremost = sorted(series, key=lambda name: -sum(point.value for point in series[name]))[:MOST_LINES]
    chosen = {name: series[name] for name in series if name in foremost}
    times = sorted({point.time for points in chosen.values() for point in points})
    if len(times) < 2:
        return ""
    bottom, top, ticks = _axis([point for points in chosen.values() for point in points])

    def x(time: Any) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * _along(time, times)

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * min(max((value - bottom) / (top - bottom), 0.0), 1.0)

    parts, many = list[str](), " many" if len(chosen) > 1 else ""
    for tick in range(ticks + 1):
        number = bottom + (top - bottom) * tick / ticks
        height = y(number)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{height + 4:.1f}" text-anchor="end">{amount(number)}</text>')
    for place in sorted({round(part * (len(times) - 1) / 4) for part in range(5)}):
        anchor = "start" if place == 0 else "end" if place == len(times) - 1 else "middle"
        parts.append(
            f'<text x="{x(times[place]):.1f}" y="{_HEIGHT - 6}" text-anchor="{anchor}">{_day(times[place])}</text>'
        )
    for number, points in enumerate(chosen.values()):
        for run in _runs(points, times):
            above = [f"{x(point.time):.1f},{y(_ends(point)[1]):.1f}" for point in run]
            below = [f"{x(point.time):.1f},{y(_ends(point)[0]):.1f}" for point in reversed(run)]
            line = " ".join(f"{x(point.time):.1f},{y(point.value):.1f}" for point in run)
            parts.append(f'<polygon class="band{many} c{number}" points="{" ".join([*above, *below])}"/>')
            parts.append(f'<polyline class="line c{number}" stroke-dasharray="{_DASHES[number]}" points="{line}"/>')
            parts += [
                f'<circle class="dot c{number}" cx="{x(point.time):.1f}" cy="{y(point.value):.1f}" r="2"/>'
                for point in run
            ]
    labels = cut([readable(name) for name in chosen], 40)
    spans = [
        f"{label} from {amount(min(p.value for p in points))} to {amount(max(p.value for p in points))}"
        for label, points in zip(labels, chosen.values(), strict=True)
    ]
    said = html.escape(f"{title}, {_day(times[0])} to {_day(times[-1])}: {'; '.join(spans)}", quote=True)
    legend = "".join(
        f'<li><svg width="26" height="8" aria-hidden="true"><line class="line c{number}" x1="0" x2="26" y1="4" y2="4" '
        f'stroke-dasharray="{_DASHES[number]}"/></svg> <bdi>{html.escape(label)}</bdi></li>'
        for number, label in enumerate(labels)
    )
    left = len(series) - len(chosen)
    more = f"<li>and {left:,} more in the table</li>" if left else ""
    return (
        f'<svg class="chart" role="img" aria-label="{said}" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}">{"".join(parts)}</svg>'
        + (f'<ul class="legend">{legend}{more}</ul>' if len(series) > 1 else "")
    )


def _ends(point: Point) -> tuple[float, float]:
    """The interval as far as it is known."""
    lower = point.lower if math.isfinite(point.lower) else min(point.value, 0.0)
    return lower, point.upper if math.isfinite(point.upper) else point.value


def _axis(points: Sequence[Point]) -> tuple[float, float, int]:
    """Where it begins and ends, and into how many parts it is divided: from 0, unless there are numbers below."""
    highest = max(_ends(point)[1] for point in points)
    if all(point.value >= 0.0 for point in points):
        return 0.0, _rounded(highest), _TICKS
    lowest = min(_ends(point)[0] for point in points)
    step = _rounded(max(highest, -lowest)) / _TICKS
    below, above = math.ceil(-lowest / step), max(math.ceil(highest / step), 0)
    return -below * step, above * step, below + above


def _rounded(number: float) -> float:
    """The next round number whose quarters are round, too."""
    if number <= 0.0:
        return 4.0
    size = 10.0 ** math.floor(math.log10(number))
    return max(4.0, next(size * step for step in (1, 1.2, 1.6, 2, 3, 4, 6, 8, 10) if size * step >= number))


def _along(time: Any, times: Sequence[Any]) -> float:
    """Where a time lies between the first and the last; of what is no time, by its place."""
    if all(isinstance(each, datetime.date) for each in times):
        return float((time - times[0]) / (times[-1] - times[0]))
    return times.index(time) / (len(times) - 1)


def _runs(points: Sequence[Point], times: Sequence[Any]) -> list[list[Point]]:
    """Points next to each other in time."""
    place, runs = {time: number for number, time in enumerate(times)}, list[list[Point]]()
    for point in sorted(points, key=lambda each: place[each.time]):
        if runs and place[runs[-1][-1].time] == place[point.time] - 1:
            runs[-1].append(point)
        else:
            runs.append([point])
    return runs


def _day(time: Any) -> str:
    """A time for people, without what all days of a month share."""
    if isinstance(time, datetime.datetime):
        clock = f" {time:%H:%M}" if (time.hour, time.minute) != (0, 0) else ""
        return f"{time.day} {time:%b}{clock}"
    return f"{time.day} {time:%b}" if isinstance(time, datetime.date) else html.escape(readable(time))
