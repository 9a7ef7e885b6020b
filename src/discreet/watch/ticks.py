"""Which tick a row is in and when a tick ends: public rules, and what they assume.

A row's tick should depend on that row and on what is public alone. Then an event more or less moves no other event, and
all releases together are as private as the mechanism says. How far each rule gets, and what has to be assumed for
the rest, is argued in docs/privacy/continual.md; `Rule.assumption` says it in every guarantee.
"""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass, field
from discreet.errors import ParameterError
from discreet.events.live_input import LiveBatch, Spool
from discreet.events.times import YEAR_1, seconds_of
from discreet.privacy import User
from discreet.privacy.spans import Calendar
from discreet.watch.timetable import Days, Timetable

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.privacy import Unit
    from discreet.questions.live_question import LiveQuestion

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(r"([0-9]{1,9})\s*([smhdw])")
_MOST_OPEN = 1000  # ticks that wait for late rows


def duration(name: str, value: object, least: int = 1) -> int:
    """The seconds of 30s, 15m, 1h, 30d or 4w."""
    found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or int(found[1]) < least:
        raise ParameterError(f"{name} must be a whole number with s, m, h, d or w, such as 15m, not {value!r}")
    return int(found[1]) * _SECONDS[found[2]]


def ticks_in(horizon: object, seconds: float | None) -> int:
    """How many ticks a horizon has: a number of them, or a time such as 30d, if a tick has this many seconds."""
    if isinstance(horizon, str) and horizon.isascii() and horizon.isdecimal():
        horizon = int(horizon)
    if isinstance(horizon, int) and not isinstance(horizon, bool):
        return horizon
    if seconds is None:
        raise ParameterError(
            f"horizon must be a number of ticks, not {horizon!r}: these ticks are counted in rows, not in time"
        )
    whole = duration("horizon", horizon)
    if whole % seconds:
        raise ParameterError(f"horizon must be a whole number of ticks: {horizon} is not a multiple of {seconds:.0f} s")
    return int(whole // seconds)


@dataclass(frozen=True)
class Rule:
    """What a tick is: this many rows, or a time by the clock, or a time by a column of times."""

    rows: int | None = None
    seconds: float | None = None
    by_column: bool = False
    by_clock: bool = False  # whether the clock ends the ticks
    late: float = 0.0  # how long after its end a tick waits for its rows
    ahead: float = 3600.0  # how far the time of a row may be ahead of the clock
    start: float | None = None  # the time of the first tick
    days: Days | None = None  # spans of the calendar, each with its own run

    @classmethod
    def of(cls, live: LiveQuestion) -> Rule:
        """Ticks of this many rows, of a time such as 1h by the clock, or of a time by the column of times."""
        if live.rows is not None:
            return cls(rows=live.rows)
        seconds = float(duration("tick", live.tick))
        if live.time is None:
            return cls(seconds=seconds, by_clock=True)
        waits = 0.0 if live.late is None else float(duration("late", live.late, 0))
        leads = cls.ahead if live.ahead is None else float(duration("ahead", live.ahead, 0))
        if waits > _MOST_OPEN * seconds:
            raise ParameterError(f"late must be at most {_MOST_OPEN} ticks, not {live.late}")
        begins = None if live.start is None else seconds_of(live.start)
        if live.start is not None and begins is None:
            raise ParameterError(f"start must be a time in ISO 8601 or seconds since 1970, not {live.start!r}")
        days = None if live.per is None else Days(Calendar(live.per, live.zone))
        if days is not None:
            days.usual_ticks(seconds)
        return cls(None, seconds, True, live.by_clock, waits, leads, begins, days)

    def assumption(self, unit: Unit) -> str:
        """What is public beside the releases of who is hidden."""
        if self.rows is not None:
            people, event = "a person who is left out leaves blank rows", "an event that is left out leaves a blank row"
            return f"the number of rows is public: {people if isinstance(unit, User) else event}"
        if not self.by_column:
            return "which tick a row is in is decided by the clock, not by other rows"
        if self.by_clock:
            return "the clock ends the ticks: when a row is written does not depend on other rows"
        first = "" if self.start is not None else ", the first one's too"
        waits = f"more than {self.late:.0f} seconds " if self.late else ""
        return f"the ends of ticks are public{first}: no row comes {waits}after one of a later time"


@dataclass(frozen=True)
class Add:
    """Events of the open tick."""

    values: pa.RecordBatch | None  # as the reader has them
    events: int


@dataclass(frozen=True)
class End:
    """The open tick has ended; where time tells, from when to when it was."""

    start: str | None = None
    end: str | None = None


@dataclass
class _Held:
    """Rows that came before their tick was open."""

    events: int
    first: int  # the position before the first of them
    then: int  # the tick that was open when it came


@dataclass
class Ticker:
    """Puts rows into ticks, in order.

    When an `End` is handed out, `saved` is what to keep with its release: everything before `position` is in ticks
    that have ended (or left out for good); of what is between `position` and `read` the rows of later ticks are still
    to be counted, and will be, when they are read again after a restart. Reading again begins with the tick that was
    open then, so that every row is judged as it was; ticks that had ended end again in silence.
    """

    rule: Rule
    folder: Path
    now: int | None = None  # the number of the open tick, where time tells
    position: int = 0
    read: int = 0
    then: int | None = None  # the tick that was open at `position`
    kept: Sequence[Any] | None = None  # of the calendar
    left_out: Counter[str] = field(default_factory=Counter)  # NOT PRIVATE: for the operator's eyes
    # Where a new ticker goes on: as it was when the last tick ended, for the open one is read again.
    saved: dict[str, Any] = field(init=False)
    _count: int = 0  # rows of the open tick
    _undecided: LiveBatch | None = None
    _held: dict[int, _Held] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._spool = Spool(self.folder)
        # The ticks, by their times: counted from 1970 or, where every span is a run, as a state has kept them.
        rule, self.timetable = self.rule, None
        if rule.seconds is not None and rule.days is None:
            self.timetable = Timetable(rule.seconds, lambda _: math.inf, [0.0], 0)
        elif rule.seconds is not None and rule.days is not None and self.kept is not None:
            run, first, edges = self.kept
            self.timetable = Timetable(rule.seconds, rule.days.end, edges, first, run)
        if self.now is None and rule.start is not None:
            self.now = self._opened(rule.start)
        self._keep(self.position, self.then)
        self._again, self._since = self.read, self.now
        if self.then is not None:
            self.now = self.then

    def _keep(self, position: int, then: int | None) -> None:
        self.position = position
        self.saved = {"position": position, "read": self.read, "now": self.now, "then": then}
        if self.rule.days is not None and self.timetable is not None and self.now is not None:
            self.saved["timetable"] = self.timetable.since((self.now if then is None else min(then, self.now)) - 1)

    def _opened(self, time: float) -> int:
        """The tick of the time with which the first one is opened."""
        if self.timetable is None:
            assert self.rule.days is not None
            assert self.rule.seconds is not None
            self.timetable = self.rule.days.timetable(self.rule.seconds, time)
        return self.timetable.number(time)

    @property
    def open_tick(self) -> int:
        """The tick that rows are counted in now: after a restart, the one that was open then."""
        assert self.now is not None
        return self.now if self._since is None else max(self.now, self._since)

    @property
    def _ticks(self) -> Timetable:
        assert self.timetable is not None
        return self.timetable

    def begin(self, clock: float) -> bool:
        """Open the first tick where the clock decides which it is; whether that was done now."""
        if self.now is not None or not self.rule.by_clock:
            return False
        self.now = self._opened(clock)
        self._keep(self.read, self.now)
        return True

    def take(self, batch: LiveBatch, clock: float) -> Iterator[Add | End]:
        """Put rows into ticks, and end those that these rows end."""
        rows = self.rule.rows
        if rows is not None:
            first, length = 0, len(batch.ends)
            while first < length:
                last = min(length, first + rows - self._count)
                yield _added(batch.part(slice(first, last)))
                self._count += last - first
                first, self.read = last, int(batch.ends[last - 1])
                if self._count == rows:
                    yield self._ended()
            return
        if not self.rule.by_column:
            yield _added(batch)
        elif self.rule.by_clock:
            yield from self._sorted(self._in_time(batch, clock))
        else:
            yield from self._by_times(batch, clock)
        if self._undecided is None:
            self.read = max(self.read, int(batch.ends[-1]))

    def due(self, clock: float) -> Iterator[Add | End]:
        """End what the clock has ended. Rows that were there at this time have all been taken."""
        if not self.rule.by_clock or self.now is None:
            return
        reached = self._ticks.number(clock - self.rule.late)
        if self.rule.by_column:
            yield from self._end(reached)
        elif reached > self.now:
            # Ticks that nobody looked at are passed over: the one that was open has had their rows.
            before, self.now = self.now, reached
            yield self._ended((before, reached))

    def finish(self, clock: float) -> Iterator[Add | End]:
        """End what is open: no row will come. By the clock with rows or without, so that it does not tell which."""
        if self.rule.rows is not None:
            if self._count:
                yield self._ended()
        elif not self.rule.by_column:
            assert self.now is not None
            yield self._ended((self.now, self.now + 1))
        elif self.rule.by_clock:
            yield from self._end(self._ticks.number(clock) + 1)
        else:
            if self._undecided is not None:
                rest, self._undecided = self._undecided, None
                self.read = int(rest.ends[-1])
                if self.now is None:
                    assert rest.times is not None
                    self.now = self._opened(float(rest.times[0]))
                    yield from self._sorted(rest)
                else:
                    self.left_out["times far ahead of the others"] += len(rest)
            if self.now is not None:
                yield from self._end(max(self._held, default=self.now) + 1)

    # ---- by a column of times --------------------------------------------------------------------------------------

    def _by_times(self, batch: LiveBatch, clock: float) -> Iterator[Add | End]:
        """The rows tell the time, but never one of them alone.

        A row ends one tick at most. If it would end more, and the row after it would not, it is left out.
        """
        batch = self._in_time(batch, clock)
        if self._undecided is not None:
            batch, self._undecided = self._undecided.followed_by(batch), None
        if self.now is None:
            self.now = self._first(batch)
            if self.now is None:
                self._undecided = batch if len(batch.ends) else None
                return
        assert batch.times is not None
        reached, many = self._ticks.numbers(batch.times - self.rule.late), len(batch.ends)
        keep = np.ones(many, np.bool_)
        first = 0
        while first < many:
            until = many
            end = self.now
            for i in (first + np.flatnonzero(reached[first:] > self.now)).tolist():
                if reached[i] > self.now + 1:
                    if i + 1 == many:
                        until = i
                        self._undecided = batch.part(slice(i, None))
                        break
                    if reached[i + 1] <= self.now + 1:
                        keep[i] = False
                        self.left_out["times far ahead of the others"] += 1
                        continue
                until, end = i, int(min(reached[i], reached[i + 1])) if reached[i] > self.now + 1 else self.now + 1
                break
            part = slice(first, until)
            numbers = None if self.rule.late else reached[part][keep[part]]  # if nothing is late, they are the same
            yield from self._sorted(batch.part(part).part(keep[part]), numbers)
            if until < many:
                self.read = max(self._again, int(batch.starts[until]))
            if self._undecided is not None:
                return
            yield from self._end(end)
            first = until

    def _first(self, batch: LiveBatch) -> int | None:
        """The first tick: that of the first row, if the second is in it or beside it, else the middle one of three."""
        assert batch.times is not None
        assert self.rule.seconds is not None
        times = batch.times[:3].tolist()
        if len(times) < 2:
            return None
        calendar = self.timetable
        if calendar is None:
            assert self.rule.days is not None
            calendar = self.rule.days.timetable(self.rule.seconds, min(times))
        numbers = [calendar.number(time) for time in times]
        if abs(numbers[0] - numbers[1]) <= 1:
            return self._opened(times[0])
        return self._opened(sorted(times)[1]) if len(times) == 3 else None

    def _in_time(self, batch: LiveBatch, clock: float) -> LiveBatch:
        """The rows without those of times that have not come, and those before the first tick that was asked for."""
        assert batch.times is not None
        early = batch.times > clock + self.rule.ahead
        before = np.zeros(len(early), np.bool_) if self.rule.start is None else batch.times < self.rule.start
        self.left_out["times ahead of the clock"] += int(early.sum())
        self.left_out["times before the start"] += int(before.sum())
        out = early | before
        return batch.part(~out) if out.any() else batch

    def _sorted(self, batch: LiveBatch, numbers: npt.NDArray[np.int64] | None = None) -> Iterator[Add]:
        """Count rows of the open tick, and late ones, now; hold those of later ticks. `numbers` are those of the rows,
        where they are known."""
        if not len(batch.ends):
            return
        assert batch.times is not None
        assert self.now is not None
        numbers = self._ticks.numbers(batch.times) if numbers is None else numbers
        if self._since is not None and batch.starts[0] < self._again:
            # Read again after a restart: rows of ticks that were ended are in them.
            new = (batch.ends > self._again) | (numbers >= self._since)
            batch, numbers = batch.part(new), numbers[new]
        if self.rule.days is not None and len(numbers):
            # A row of a span that is over would be in the run of another: it is left out.
            assert batch.times is not None
            over = batch.times < self.rule.days.begin(self._ticks.of_tick(self.open_tick).begins)
            self.left_out[f"times before the open span of {self.rule.days.spans.text}"] += int(over.sum())
            batch, numbers = batch.part(~over), numbers[~over]
        if not len(numbers):
            return
        later = numbers > self.now
        if not later.any():
            yield _added(batch)
            return
        yield _added(batch.part(~later))
        for number in np.unique(numbers[later]).tolist():
            part = batch.part(numbers == number)
            held = self._held.setdefault(number, _Held(0, int(part.starts[0]), self.now))
            held.events += len(part)
            if part.values is not None:
                self._spool.add(number, part.values)

    def _end(self, reached: int) -> Iterator[Add | End]:
        """End the ticks before `reached`, one by one."""
        while self.now is not None and self.now < reached:
            self.now += 1
            if self._since is None or self.now > self._since:
                yield self._ended((self.now - 1, self.now))
            held = self._held.pop(self.now, None)
            if held is not None:
                taken = 0
                for values in self._spool.take(self.now):
                    taken += values.num_rows
                    yield Add(values, values.num_rows)
                if taken < held.events:
                    yield Add(None, held.events - taken)

    def _ended(self, ticks: tuple[int, int] | None = None) -> End:
        """The open tick has ended; where time tells, it was from the first of these ticks to the other."""
        self._count = 0
        first = min(self._held.values(), key=lambda held: held.first, default=None)
        self._keep(*((self.read, self.now) if first is None else (first.first, first.then)))
        if ticks is None:
            return End()
        timetable = self._ticks
        begins, ends = timetable.starts(ticks[0]), timetable.starts(ticks[1])
        return End(_date(begins), _date(ends))

    def close(self) -> None:
        """Forget the rows that are held."""
        self._spool.close()


def _added(batch: LiveBatch) -> Add:
    if batch.there is not None:
        batch = batch.part(batch.there)
    return Add(batch.values, len(batch.ends))


def _date(seconds: float) -> str:
    # No date can say what is before, and no row is there.
    moment = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return (moment + datetime.timedelta(seconds=min(max(seconds, YEAR_1), 253402300799.0))).isoformat()
