"""When ticks are: spans of time, one after the other, each with ticks of one length and a run of its own.

A span is a horizon, a day of the calendar in a zone, or all of time. Its last tick ends with it: a day of 23 or 25
hours has 23 or 25 ticks of an hour, two of twelve (the last has 11 or 13), or one of a day. The ticks of all spans are
numbered one after the other. A span that has begun stays as it is: anyone who goes on from a state gives its edges,
and a zone whose rules change meanwhile changes later ones alone.
"""

from __future__ import annotations

import datetime
import math
import zoneinfo
from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass
from discreet.errors import ParameterError
from discreet.privacy.spans import Calendar

_FOR_EVER = 2**62


def moment(seconds: float) -> str:
    """A time as people and programs read it."""
    when = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return when.isoformat(timespec="milliseconds" if seconds % 1 else "seconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class RunSpan:
    """The ticks of one run."""

    number: int  # of the run, from 1
    first: int  # its first tick
    begins: float
    ends: float
    seconds: float  # of a tick; the last one may be shorter or longer, by half
    ticks: int  # how many there are: the horizon of the run

    @property
    def last(self) -> int:
        """Its last tick."""
        return self.first + self.ticks - 1

    def starts(self, tick: int) -> float:
        """When a tick of it begins, which is when the one before it ends."""
        return self.begins + (tick - self.first) * self.seconds


def _ticks(begins: float, ends: float, seconds: float) -> int:
    return _FOR_EVER if math.isinf(ends) else max(1, math.floor((ends - begins) / seconds + 0.5))


class Timetable:
    """Which tick a time is in, and which span a tick is in.

    Args:
        seconds: How long a tick is.
        end: When a span ends that begins at a time.
        edges: Where the first span begins, and the ends of those that are known.
        first: The number of the first tick.
        run: The number of the first span.
    """

    def __init__(
        self, seconds: float, end: Callable[[float], float], edges: Sequence[float], first: int = 1, run: int = 1
    ) -> None:
        self.seconds = seconds
        self._end = end
        self._edges = list(edges)
        self._firsts = [first]
        self._run = run
        for begins, ends in zip(self._edges[:-1], self._edges[1:], strict=True):
            self._firsts.append(self._firsts[-1] + _ticks(begins, ends, seconds))

    def _grow(self) -> None:
        ends = self._end(self._edges[-1])
        self._firsts.append(self._firsts[-1] + _ticks(self._edges[-1], ends, self.seconds))
        self._edges.append(ends)

    def _span_at(self, index: int) -> RunSpan:
        while len(self._edges) < index + 2:
            self._grow()
        begins, ends = self._edges[index : index + 2]
        first, following = self._firsts[index : index + 2]
        return RunSpan(self._run + index, first, begins, ends, self.seconds, following - first)

    def run(self, number: int) -> RunSpan:
        """A span by the number of its run."""
        return self._span_at(number - self._run)

    def of_tick(self, tick: int) -> RunSpan:
        """The span of a tick."""
        while self._firsts[-1] <= tick:
            self._grow()
        return self._span_at(max(bisect_right(self._firsts, tick) - 1, 0))

    def of_time(self, time: float) -> RunSpan:
        """The span that a time is in; the first one also for times before it."""
        while self._edges[-1] <= time:
            self._grow()
        return self._span_at(max(bisect_right(self._edges, time) - 1, 0))

    def starts(self, tick: int) -> float:
        """When a tick begins."""
        return self.of_tick(tick).starts(tick)

    def number(self, time: float) -> int:
        """The tick that a time is in; before the first span they go on backwards."""
        span = self.of_time(time)
        return min(span.first + math.floor((time - span.begins) / self.seconds), span.last)

    def numbers(self, times: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """The same of many."""
        if len(times):
            self.of_time(float(times.max()))
        edges, firsts = np.array(self._edges), np.array(self._firsts, np.int64)
        at = np.maximum(np.searchsorted(edges, times, side="right") - 1, 0)
        passed = np.floor_divide(times - edges[at], self.seconds).astype(np.int64)
        found: npt.NDArray[np.int64] = np.minimum(firsts[at] + passed, firsts[at + 1] - 1)
        return found

    def since(self, tick: int) -> tuple[int, int, list[float]]:
        """(run, first tick, edges) from the span of a tick on: what has to be kept of it."""
        at = self.of_tick(tick).number - self._run
        return self._run + at, self._firsts[at], self._edges[at:]


@dataclass(frozen=True)
class Days:
    """Spans of the calendar as times: days, weeks, months or hours, in a zone."""

    spans: Calendar

    def name(self, time: float) -> str:
        """The span that a time is in, by its first date or moment."""
        return self.spans.name(datetime.datetime.fromtimestamp(time, datetime.timezone.utc))

    def begin(self, time: float) -> float:
        """When the span of a time begins."""
        return self._moment(self.name(time))

    def end(self, time: float) -> float:
        """When it ends."""
        return self._moment(self.spans.after(self.name(time)))

    def _moment(self, name: str) -> float:
        found = datetime.datetime.fromisoformat(name.replace("Z", "+00:00"))
        zone = found.tzinfo or zoneinfo.ZoneInfo(self.spans.zone or "UTC")
        return found.replace(tzinfo=zone).timestamp()

    def timetable(self, seconds: float, time: float) -> Timetable:
        """Days from the tick of a time on: the first of them has the ticks that are left of it."""
        begin = self.begin(time)
        return Timetable(seconds, self.end, [begin + (time - begin) // seconds * seconds])

    def usual_ticks(self, seconds: float) -> int:
        """How many ticks a span has, where no clock is changed."""
        plain, monday = Days(Calendar(self.spans.text)), 4 * 86400.0
        length = plain.end(monday) - plain.begin(monday)
        if seconds > length:
            raise ParameterError(f"a tick of {seconds:.0f} s must not be longer than {self.spans.text}")
        return _ticks(0.0, length, seconds)
