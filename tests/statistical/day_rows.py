"""Person-days: what one day of one person moves, through the reader of all questions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.central import NoisyCount
from discreet.events.tables import events_of
from discreet.events.times import Pairing
from discreet.noise import RandomSource
from discreet.privacy import Budget, Guarantee, User
from discreet.privacy.spans import Calendar
from discreet_audit.central_questions import ShiftAudit, shift_finding
from discreet_audit.core import AuditCase, Effort, Finding, Twin, largest, never, twin
from discreet_audit.exact import ScriptedSource

_ROUNDED = 1.0 + 1e-12
Visit = tuple[str, str, str]
_EVENING, _MORNING = "2026-11-14T23:59:59Z", "2026-11-15T00:00:00Z"
_VISITS: tuple[Visit, ...] = tuple(product("uv", (_EVENING, _MORNING), "ab"))
_NINE = [("u", _MORNING, "i"), *(("u", _EVENING, item) for item in "abcdefgh")]


@dataclass(frozen=True)
class PersonDays:
    """Pairs of person and day as all questions read them: counted, and one vector each; for audits only."""

    budget: Budget
    per: str = "1d"

    @cached_property
    def mechanism(self) -> NoisyCount:
        """What draws the noise on the number of pairs."""
        return NoisyCount(self.budget, User(), "people")

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, about a day of a person."""
        return replace(self.mechanism.guarantee, unit=User(per=self.per))

    def counted(self, rows: Sequence[Visit]) -> Sequence[Visit]:
        """The rows that are counted: each once."""
        return rows

    def keyed(self, rows: Sequence[Visit], period: Any = None) -> list[tuple[Any, str]]:
        """(pair, item) of every row of the period."""
        calendar = Calendar(self.per)
        pairing = Pairing("ts", calendar, None if period is None else calendar.period(period))
        columns = (pa.array([row[place] for row in self.counted(rows)], pa.string()) for place in range(3))
        found = events_of(dict(zip(("who", "ts", "item"), columns, strict=True)))
        read = found.rows("item", user="who", pairing=pairing).owned()
        return [pair for who, item, _ in read for pair in zip(who.to_pylist(), item.to_pylist(), strict=True)]  # type: ignore[union-attr]

    def sums(self, rows: Sequence[Visit]) -> Any:
        """The sum of the vectors of all pairs, each of length 1."""
        pairs, total = [*dict.fromkeys(self.keyed(rows))], np.zeros(9)
        many = Counter(key for key, _ in pairs)
        for key, item in pairs:
            total[ord(item) - ord("a")] += 1.0 / math.sqrt(many[key])
        return total

    def draw(self, rows: Sequence[Visit], source: RandomSource) -> int:
        """How many pairs there are, with noise."""
        return self.mechanism.draw(len({key for key, _ in self.keyed(rows)}), source)


def _without_a_day(effort: Effort) -> Iterator[tuple[Sequence[Visit], Sequence[Visit]]]:
    """All small data, and the same without one day of one person; and somebody with 9 pages, 8 of them on one day."""
    yield _NINE, _NINE[:1]
    for size in range(1, 4 + effort.length):
        for rows in combinations(_VISITS, size):
            for gone in {visit[:2] for visit in rows}:
                yield rows, [visit for visit in rows if visit[:2] != gone]


class _DaysAudit(ShiftAudit):
    more = "one day of one person more"

    def neighbours(self, mechanism: PersonDays) -> tuple[Any, Any, Callable[[Any], float]]:
        return _VISITS, [row for row in _VISITS if row[:2] != ("u", _EVENING)], float

    def structure(self, mechanism: PersonDays, effort: Effort) -> Iterator[Finding]:
        """How far the sum of the vectors moves, and the number of pairs."""
        pairs = [*_without_a_day(effort)]
        far = (float(np.linalg.norm(mechanism.sums(one) - mechanism.sums(two))) / _ROUNDED for one, two in pairs)
        yield largest("a day moves the sum of vectors", 1, far)
        keys = ([len({key for key, _ in mechanism.keyed(rows)}) for rows in pair] for pair in pairs)
        yield largest("a day moves the number of pairs", 1, (one - two for one, two in keys))

    def exact(self, mechanism: PersonDays, effort: Effort) -> Iterator[Finding]:
        """The count behind its noise; vectors behind Gaussian noise lose rho times the square of what they move."""
        source = ScriptedSource(0)
        mechanism.draw(_VISITS, source)
        yield shift_finding(mechanism.budget, source.draws[0], 1, 1)
        moved = (mechanism.sums(one) - mechanism.sums(two) for one, two in _without_a_day(effort))
        yield largest("vectors behind Gaussian noise", 1, (float(each @ each) / _ROUNDED for each in moved), "rho")

    def coupled(self, mechanism: PersonDays, effort: Effort) -> Iterator[Finding]:
        """A release about the second day is the same with and without the first."""
        pairs = [[[row for row in rows if row[1] == _MORNING], rows] for rows, _ in _without_a_day(effort)]
        wrong = (mechanism.keyed(one, "2026-11-15") != mechanism.keyed(two, "2026-11-15") for one, two in pairs)
        yield never("rows of other days change nothing", wrong)

    def twins(self, mechanism: PersonDays) -> Sequence[Twin]:
        def shared(self: PersonDays, rows: Sequence[Visit], period: Any = None) -> list[tuple[Any, str]]:
            return [(who, item) for who, _, item in rows]

        def twice(self: PersonDays, rows: Sequence[Visit]) -> Sequence[Visit]:
            return [(who, day, item) for who, _, item in rows for day in (_EVENING, _MORNING)]

        return (
            twin(mechanism, "all days of a person share one vector", "structure", keyed=shared),
            twin(mechanism, "a row counts in two days", "structure", counted=twice),
        )


PERSON_DAYS = AuditCase(PersonDays, lambda: (PersonDays(Budget(1.0)), PersonDays(Budget.zcdp(0.5))), _DaysAudit())
