"""Auditing people over time: what all rows of one person move, in all ticks together.

A person with m items costs what an event of m items costs, so the checks of histograms of events are made of histograms
of people, too, with a new person for every event. What is added here is what people do that events cannot: come again,
with the same items and with others, at other ticks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.continual import Histogram
from discreet.continual.anatomy import Hidden
from discreet.noise import seeded_source
from discreet.privacy import User
from discreet_audit import continual_base as shared
from discreet_audit.continual_counter import CounterOverTimeAudit, in_counts
from discreet_audit.continual_histogram import HistogramOverTimeAudit, changed_scheme
from discreet_audit.findings import Finding
from discreet_audit.registry import Effort, Twin
from discreet_audit.sources import ScriptedSource

__all__ = ["DistinctOverTimeAudit", "EventsOrPeopleAudit"]

Rows = Sequence[tuple[int, int]]  # people and items, of one tick
_ITEMS = 12


class _NewPeople:
    """Where nobody says whose the rows are, every event is a new person's; the rest is the class that comes next."""

    tick: int

    def step(self, events: Any = (), tick: int | None = None, *, users: Any = None, **more: Any) -> Any:
        if users is None:
            owners = np.arange(len(events))
            if not isinstance(events, np.ndarray | pa.Array):
                sets = [list(event) if isinstance(event, Iterable) else [event] for event in events]
                owners = np.repeat(owners, [len(event) for event in sets]).astype(np.int64)
                events = [item for event in sets for item in event]
            users = owners + (self.tick << 32)
        return super().step(events, tick, users=users, **more)  # type: ignore[misc]


class _PeopleOverTimeAudit(HistogramOverTimeAudit):
    """The four checks of a `Histogram` of people."""

    def prepare(self, histogram: Any) -> Any:
        """Before its first tick, and able to take events."""
        kind: Any = type(histogram)
        if not issubclass(kind, _NewPeople):
            kind = type(f"Events{kind.__name__}", (_NewPeople, kind), {})
        return kind(histogram.horizon, histogram.budget, **histogram.parameters)

    def structure(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """All rows of a person raise at most m counts by one, each from one tick on; and the shift of a counter."""
        wrong, pairs = _people_move(type(histogram), min(histogram.most_items or 1, 3), histogram.domain_is_known)
        yield Finding("structure", "a person raises at most m counts, by one", "violations", 0, wrong, pairs)
        yield from list(super().structure(histogram, effort))[1:]

    def coupled(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """Random rows of people over the ticks, and the same with all rows of one person more."""
        rng, most = np.random.default_rng(4), histogram.most_items or 1
        ticks, pairs, worst = min(histogram.horizon or 6, 6), effort.released_pairs // 5, 0.0
        for _ in range(pairs):
            stream = [_rows(rng, 0, 9, 30) for _ in range(ticks)]
            more = [_mixed(rng, rows, _rows(rng, 9, 10, int(rng.integers(0, 6)))) for rows in stream]
            worst = max(worst, _moved(histogram, stream, more))
        declared = math.sqrt(most) * shared.SLACK
        yield Finding("coupled", "l2-change of all counts by a person", "sensitivity", declared, worst, pairs)

    def twins(self, histogram: Histogram) -> Sequence[Twin]:
        """Those of events, and people who count more often than they may."""
        right, most = type(histogram), histogram.most_items or 1

        def told(name: str, user: Callable[[Any, int, int], str]) -> Twin:
            def step(self: Any, events: Any = (), tick: int | None = None, *, users: Any = None, **more: Any) -> Any:
                if users is not None:
                    users = [user(person, self.tick, row) for row, person in enumerate(users)]
                return right.step(self, events, tick, users=users, **more)

            return shared.broken(histogram, name, "coupled", step=step)

        found = [
            *super().twins(histogram),
            told("a person counts at every row", lambda person, tick, row: f"{person} {tick} {row}"),
            told("m items a tick", lambda person, tick, row: f"{person} {tick}"),
        ]
        if isinstance(histogram.scheme, Hidden) and most > 1:
            half = histogram.guarantee.delta / 2.0

            def for_one(scheme: Any) -> None:
                factor = scheme.factor
                scheme.cut = lambda tick: 1 + factor.hiding_shift(tick, scheme.sigma, half * factor.tick_share(tick))

            found.append(changed_scheme(histogram, "delta not divided by m", for_one))
        return found


class EventsOrPeopleAudit(shared.OverTimeAudit):
    """The checks of a `Histogram`, by its unit."""

    def __init__(self) -> None:
        self._events, self._people = HistogramOverTimeAudit(), _PeopleOverTimeAudit()

    def _of(self, histogram: Histogram) -> HistogramOverTimeAudit:
        return self._people if isinstance(histogram.unit, User) else self._events

    def prepare(self, histogram: Any) -> Any:
        """Before its first tick; one of people so that it takes events, too."""
        return self._of(histogram).prepare(histogram)

    def structure(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """What an event or a person moves."""
        return self._of(histogram).structure(histogram, effort)

    def exact(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """What it costs in all ticks together."""
        return self._of(histogram).exact(histogram, effort)

    def statistical(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled code."""
        return self._of(histogram).statistical(histogram, effort)

    def coupled(self, histogram: Histogram, effort: Effort) -> Iterator[Finding]:
        """The same noise for neighbours."""
        return self._of(histogram).coupled(histogram, effort)

    def twins(self, histogram: Histogram) -> Sequence[Twin]:
        """What must be rejected."""
        return self._of(histogram).twins(histogram)


def _rows(rng: np.random.Generator, first: int, last: int, number: int) -> Rows:
    """So many rows of these people; some items are of many."""
    return [(int(rng.integers(first, last)), int(rng.integers(0, _ITEMS) ** 2 // _ITEMS)) for _ in range(number)]


def _mixed(rng: np.random.Generator, rows: Rows, more: Rows) -> Rows:
    """The rows with more of them somewhere in between, each in its order."""
    places = np.sort(rng.integers(0, len(rows) + 1, len(more)))
    out = list(rows)
    for place, row in reversed(list(zip(places.tolist(), more, strict=True))):
        out.insert(place, row)
    return out


def _counts(made: Any, stream: Sequence[Rows]) -> list[dict[Any, int]]:
    """The counts after every tick, before noise."""
    out = []
    for rows in stream:
        made.step([item for _, item in rows], users=[person for person, _ in rows])
        out.append(made.not_private_counts())
    return out


def _moved(histogram: Histogram, stream: Sequence[Rows], more: Sequence[Rows]) -> float:
    """How far the second stream's increments are from the first's, in l2; infinite where a count falls or jumps."""
    changes = {"domain": range(_ITEMS)} if histogram.domain_is_known else {}
    one, two = (_counts(histogram.anew(seeded_source(1), **changes), rows) for rows in (stream, more))
    before: dict[Any, int] = {}
    for plain, raised in zip(one, two, strict=True):
        now = {item: raised.get(item, 0) - plain.get(item, 0) for item in {*plain, *raised}}
        if not all(before.get(item, 0) <= now[item] <= 1 for item in now):
            return math.inf
        before = now
    return math.sqrt(sum(before.values()))


@lru_cache(maxsize=16)
def _people_move(kind: type[Histogram], most: int, known: bool) -> tuple[int, int]:
    """(wrong, pairs) over tiny streams of two ticks: three rows of one person, and one of another among them."""
    from discreet.privacy import Budget

    histogram = kind(2, Budget(1.0, 0.1), range(_ITEMS) if known else None, mechanism="tree", unit=User(most))
    wrong = tried = 0
    for items, other, place in product(product(range(3), repeat=3), range(2), range(4)):
        rows = [(1, item) for item in items]
        rows.insert(place, (2, other))
        stream = rows[:2], rows[2:]
        alone = [[row for row in part if row[0] == 2] for part in stream]
        wrong += _moved(histogram, alone, stream) > math.sqrt(most) * shared.SLACK
        tried += 1
    return wrong, tried


class DistinctOverTimeAudit(CounterOverTimeAudit):
    """The four checks of a `DistinctCount`: structure and exact cost are those of one event of a running total."""

    def conforms(self, counter: Any) -> Finding:
        """With written noise: a tick publishes the number of different people and what the recurrence makes of it."""
        source, ticks, seen, wrong = ScriptedSource(), shared.first_ticks(counter, 12), set(), 0
        made, z = counter.anew(source), []
        noise = counter.noises_of_an_event()[0][1][0]
        rng = np.random.default_rng(5)
        for _ in range(ticks if counter.horizon else 1):
            given = int(rng.integers(-(10**7), 10**7))
            people = rng.integers(0, 30, 9).tolist()
            source.each = np.array([given])
            seen.update(people)
            z.append(given)
            wrong += made.step(people) != len(seen) + in_counts(noise, z)
        wrong += any((draw.law, draw.scale) != ("gaussian", noise.sigma) for draw in source.draws)
        return Finding("exact", "the code draws and adds what the law says", "violations", 0, int(wrong))

    def statistical(self, counter: Any, effort: Effort) -> Iterator[Finding]:
        """Runs with a person more, who comes at every tick."""
        texts = []
        for number in (0, 10**4):
            other = counter.anew()
            other.step(range(number))
            texts.append((repr(other), other.error(1), other.guarantee))
        wide = counter.noises_of_an_event()[0][1][0]
        streams = range(50), range(99), range(20, 70)
        yield self.plumbing(
            counter.anew, streams, (texts[0], texts[1]), wide.sigma >= 8 * wide.factor.lattice, fresh=40
        )
        runs, ticks = effort.runs, shared.first_ticks(counter, 6)

        def run(person: int) -> Any:
            made = [counter.anew() for _ in range(runs)]
            return np.array([[one.step([7] * person) for _ in range(ticks)] for one in made])

        detail = f"{runs} runs of each, {ticks} ticks, delta={shared.claimed_loss(counter)[1]:g}"
        yield shared.told_apart("a person who comes at every tick", counter, run, detail)

    def coupled(self, counter: Any, effort: Effort) -> Iterator[Finding]:
        """The same noise for random rows of people, and with all rows of one person more."""
        rng, worst, pairs = np.random.default_rng(2), 0, effort.released_pairs // 5
        for _ in range(pairs):
            stream = [[person for person, _ in _rows(rng, 0, 9, 5)] for _ in range(shared.first_ticks(counter, 6))]
            more = [[*people, *[9] * int(rng.integers(0, 3))] for people in stream]
            one, two = ([made.step(rows) for rows in given] for made, given in zip(
                (counter.anew(seeded_source(9)), counter.anew(seeded_source(9))), (stream, more), strict=True
            ))  # fmt: skip
            worst = max(worst, *(abs(b - a) for a, b in zip(one, two, strict=True)))
        yield Finding("coupled", "change of the number by a person", "sensitivity", 1, worst, pairs)

    def twins(self, counter: Any) -> Sequence[Twin]:
        """Those of running totals, and people who count at every tick."""
        right = type(counter)

        def step(self: Any, users: Any = (), tick: int | None = None, **more: Any) -> Any:
            return right.step(self, [f"{person} {self.tick}" for person in users], tick, **more)

        return (*super().twins(counter), shared.broken(counter, "a person counts at every tick", "coupled", step=step))
