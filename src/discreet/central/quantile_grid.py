"""Public ranges divided into bins: of numbers, of whole numbers, of dates and of times."""

from __future__ import annotations

import datetime
import math
from contextlib import suppress
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet._data_class import dataclass
from discreet.errors import ParameterError
from discreet.privacy.checks import whole_number

Numbers = npt.NDArray[np.float64]
Bound = float | int | datetime.date | datetime.datetime
"""A value of a grid as it is published."""

BINS = 1 << 16
"""Into this many parts a range is divided, unless told otherwise."""
MOST_BINS = 1 << 20
"""This many of them have edges that are listed."""
MOST_STEPS = 1 << 45
_DAY = 86_400
_FIRST_DAY = datetime.date(1970, 1, 1)
_FIRST_TIME = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True)
class Grid:
    """A public range, divided into bins [e_i, e_(i+1)), the last with its upper end. Values outside are cut to it.

    Args:
        low: The lower end; for the scale "log" above 0.
        high: The upper end, above `low`.
        bins: How many there are.
        scale: "linear" for bins of one width, "log" for bins whose ends have one ratio.
    """

    kind: ClassVar[str] = "number"

    low: float
    high: float
    bins: int = BINS
    scale: str = "linear"

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            end = getattr(self, name)
            if isinstance(end, bool) or not isinstance(end, Real) or not math.isfinite(end):
                raise ParameterError(f"the range is two finite numbers, LOW and HIGH; got {end!r}")
            object.__setattr__(self, name, float(end))
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise ParameterError(f"the range must have LOW < HIGH, got {self.low:g} to {self.high:g}")
        if self.scale not in ("linear", "log"):
            raise ParameterError(f"scale must be 'linear' or 'log', not {self.scale!r}")
        if self.scale == "log" and self.low <= 0.0:
            raise ParameterError(f"a range on the scale 'log' must begin above 0, not at {self.low:g}")
        object.__setattr__(self, "bins", whole_number("bins", self.bins, 2, MOST_BINS))
        if not (np.diff(self.edges) > 0).all():
            raise ParameterError(f"the range {self.low!r} to {self.high!r} is too narrow for {self.bins:,} bins")

    @cached_property
    def edges(self) -> Numbers:
        """The ends of the bins, `bins` + 1 numbers."""
        if self.scale == "log":
            edges = np.exp(np.linspace(math.log(self.low), math.log(self.high), self.bins + 1))
        else:
            edges = np.linspace(self.low, self.high, self.bins + 1)
        edges[0], edges[-1] = self.low, self.high
        return edges

    @property
    def of_whole_numbers(self) -> bool:
        """Whether every bin holds one whole number, its lower end: then that is the value, and nothing in between."""
        return self.scale == "linear" and self.low.is_integer() and self.high - self.low == self.bins

    @property
    def ends(self) -> tuple[Bound, Bound]:
        """The range, as it is published."""
        return self.low, self.high

    @property
    def in_words(self) -> str:
        """The range, for people."""
        return f"{self.low:g} to {self.high:g}"

    def places(self, values: Numbers) -> npt.NDArray[Any]:
        """The bin of each value, cut to the range first. Which one depends on the value alone."""
        if self.scale != "linear":
            cut = np.clip(values, self.low, self.high)
            return np.searchsorted(self.edges[1:-1], cut, side="right").astype(np.int32)
        found = np.empty(len(values), np.int32)
        _native.grid_places(np.ascontiguousarray(values, np.float64), self.edges, found)
        return found

    def add_to(self, counts: npt.NDArray[np.int64], values: Numbers) -> None:
        """Count values in their bins; one that is not a number is in none."""
        if self.scale == "linear":
            _native.count_in_grid(np.ascontiguousarray(values, np.float64), self.edges, counts)
        else:
            np.add.at(counts, self.places(values[~np.isnan(values)]), 1)

    def lower(self, place: int) -> Bound:
        """The least value of a bin."""
        return float(self.edges[place])

    def upper(self, place: int) -> Bound:
        """The largest value of a bin."""
        return float(self.edges[place + 1])

    def value(self, place: int, part: float) -> Bound:
        """The value in a bin that has this part of it below, with the digits that a bin of its width tells."""
        low, width = float(self.edges[place]), float(self.edges[place + 1] - self.edges[place])
        found = low if self.of_whole_numbers else low + part * width
        return round(found, max(0, 1 - math.floor(math.log10(width)))) if width < 10.0 else float(round(found))

    def listed(self) -> Grid:
        """The same range in so few bins that they can be listed: these."""
        return self


@dataclass(frozen=True)
class StepGrid:
    """A public range of whole numbers, of days or of seconds, both ends included. Values outside are cut to it.

    A value between two steps belongs to the one below.

    Args:
        low: The first number; of dates in days, of times in seconds from 1970.
        high: The last.
        kind: "whole", "date" or "time".
        width: How many steps a bin has.
        aware: Whether times are published with their zone, which is UTC.
    """

    scale: ClassVar[str] = "linear"

    low: int
    high: int
    kind: str = "whole"
    width: int = 1
    aware: bool = False

    def __post_init__(self) -> None:
        if self.kind not in ("whole", "date", "time"):
            raise ParameterError(f"kind must be 'whole', 'date' or 'time', not {self.kind!r}")
        for name in ("low", "high"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), -(2**52), 2**52))
        object.__setattr__(self, "width", whole_number("width", self.width))
        if not self.low < self.high:
            raise ParameterError(f"the range must have LOW < HIGH, got {self.in_words}")
        if self.high - self.low >= MOST_STEPS:
            raise ParameterError(f"the range {self.in_words} has more than 2**45 steps")

    @property
    def bins(self) -> int:
        """How many bins there are."""
        return (self.high - self.low) // self.width + 1

    @property
    def ends(self) -> tuple[Bound, Bound]:
        """The range, as it is published."""
        return self._of(self.low), self._of(self.high)

    @property
    def in_words(self) -> str:
        """The range, for people."""
        return " to ".join(f"{end}" for end in self.ends)

    def places(self, values: Numbers) -> npt.NDArray[Any]:
        """The bin of each value, cut to the range first; of dates and times the values are seconds from 1970."""
        steps = np.floor(values / _DAY) if self.kind == "date" else np.floor(values)
        return (np.clip(steps, self.low, self.high).astype(np.int64) - self.low) // self.width

    def add_to(self, counts: npt.NDArray[np.int64], values: Numbers) -> None:
        """Count values in their bins; one that is not a number is in none."""
        np.add.at(counts, self.places(values[~np.isnan(values)]), 1)

    def lower(self, place: int) -> Bound:
        """The first value of a bin."""
        return self._of(self.low + place * self.width)

    def upper(self, place: int) -> Bound:
        """The last value of a bin."""
        return self._of(min(self.low + (place + 1) * self.width - 1, self.high))

    def value(self, place: int, part: float) -> Bound:
        """The value in a bin that has this part of it below."""
        step = self.low + place * self.width + min(int(part * self.width), self.width - 1)
        return self._of(min(step, self.high))

    def listed(self) -> StepGrid:
        """The same range in so few bins that they can be listed: one each, or about 65,536."""
        return self if self.bins <= MOST_BINS else _divided(self, BINS)

    def _of(self, number: int) -> Bound:
        if self.kind == "date":
            return _FIRST_DAY + datetime.timedelta(number)
        if self.kind == "time":
            zone = datetime.timezone.utc if self.aware else None
            return (_FIRST_TIME + datetime.timedelta(seconds=number)).replace(tzinfo=zone)
        return number


def grid_of(ends: tuple[Any, Any], bins: int | None = None, scale: str = "linear") -> Grid | StepGrid:
    """The grid of a range as a question says it: two numbers, or two dates or times in ISO 8601.

    With the scale "whole" every whole number has a bin of its own, as days and seconds have.
    """
    if all(isinstance(end, str) for end in ends):
        return _of_times(ends, bins, scale)
    if scale != "whole":
        return Grid(ends[0], ends[1], BINS if bins is None else bins, scale)
    numbers = [float(end) for end in ends if isinstance(end, Real) and not isinstance(end, bool)]
    whole = [end for end in numbers if end.is_integer()]
    if len(whole) < 2:
        raise ParameterError(f"a range on the scale 'whole' needs two whole numbers, not {ends[0]!r} and {ends[1]!r}")
    return _divided(StepGrid(int(whole[0]), int(whole[1])), bins)


def finer(grid: Grid | StepGrid) -> Grid | StepGrid:
    """The same range in as many bins as can be listed: a choice costs no more for them. Steps are what they are."""
    if isinstance(grid, StepGrid):
        return grid
    with suppress(ParameterError):  # a range that is too narrow for this many stays as it is
        return Grid(grid.low, grid.high, MOST_BINS, grid.scale)
    return grid


def _of_times(ends: tuple[str, str], bins: int | None, scale: str) -> StepGrid:
    if scale == "log":
        raise ParameterError("the scale of dates and times must be 'linear', not 'log'")
    if all(len(end) == 10 for end in ends):
        days = [(datetime.date.fromisoformat(end) - _FIRST_DAY).days for end in ends]
        return _divided(StepGrid(days[0], days[1], "date"), bins)
    moments = [datetime.datetime.fromisoformat(end) for end in ends]
    aware = any(moment.tzinfo is not None for moment in moments)
    plain = [moment.replace(tzinfo=moment.tzinfo or datetime.timezone.utc) for moment in moments]
    seconds = [(moment - _FIRST_TIME.replace(tzinfo=datetime.timezone.utc)) for moment in plain]
    low, high = (int(each // datetime.timedelta(seconds=1)) for each in seconds)
    return _divided(StepGrid(low, high, "time", aware=aware), bins)


def _divided(steps: StepGrid, bins: int | None) -> StepGrid:
    if bins is None or bins >= steps.bins:
        return steps
    bins = whole_number("bins", bins, 2, MOST_BINS)
    return StepGrid(steps.low, steps.high, steps.kind, -(-(steps.high - steps.low + 1) // bins), steps.aware)
