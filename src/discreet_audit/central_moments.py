"""The rows of `discreet.central` for counts, sums, means and variances, of rows and of people, by group or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

from discreet.central import PersonMoments, RowMoments
from discreet.engines.group_sums import group_sums
from discreet.engines.person_sums import PersonSums, person_sums
from discreet.events.tables import events_of
from discreet.noise import RandomSource, fresh_source, seeded_source
from discreet.privacy import Budget, Unit, User
from discreet.summaries.moments import GroupSums, ValueMoment
from discreet.summaries.people import LENGTH, Counts, People
from discreet_audit.central import half_the_noise
from discreet_audit.central_questions import (
    COMMON,
    Answers,
    GivenNoise,
    NoisySums,
    PeopleAudit,
    Seen,
    ShiftAudit,
    farthest,
    least_whole,
    less_noise,
    noise_for_one,
    often,
    one_person_more,
    shift_finding,
)
from discreet_audit.closed_forms import NoiseLaw
from discreet_audit.core import Effort, Finding, Twin, claim, largest, register, twin, violations
from discreet_audit.exact import ScriptedSource
from discreet_audit.statistical import proved

# ---- rows: the parts of a group share one bound, behind noise of one law ---------------------------------------------

Row = tuple[float, str]


class _Beside(ValueMoment):
    """A moment that counts the row in full beside its other parts."""

    def entries(self, values: Any) -> Counts:
        found = super().entries(values)
        found[:, 0] = self.one
        return found


def _summed(mechanism: RowMoments, rows: Sequence[Row]) -> Counts:
    """The sums of rows, through the real kernels."""
    values, groups = ([row[place] for row in rows] for place in (0, 1))
    events = events_of({"value": np.array(values, float), "group": np.array(groups, str)})
    by = {} if mechanism.groups == 1 else {"by": ("group",)}
    return group_sums(events.rows(None if by else "value", **_asked(by)), mechanism.moment).sums


def _asked(by: dict[str, Any]) -> dict[str, Any]:
    return {"value": "value", "only_groups": True, **by} if by else {"numbers": True}


def _units(mechanism: RowMoments) -> Iterator[Sequence[Row]]:
    """What one unit may be: a row of any value, in any of two groups; of people, as many as count."""
    moment = mechanism.moment
    values = (moment.low - 7.0, moment.low, 0.7 * moment.low + 0.3 * moment.high, moment.high, 1e300)
    return combinations_with_replacement([*product(values, "ab")], mechanism.max_items or 1)


def _adds(mechanism: RowMoments, unit: Sequence[Row]) -> Counts:
    sums = np.zeros((2, mechanism.moment.parts), np.int64)
    values, places = np.array([value for value, _ in unit]), ["ab".index(group) for _, group in unit]
    np.add.at(sums, places, mechanism.moment.entries(values))
    return sums


class _RowsAudit(ShiftAudit):
    """The four checks of sums of rows."""

    more = "one row more"

    def neighbours(self, mechanism: RowMoments) -> tuple[Any, Any, Callable[[Any], float]]:
        """Nothing, and one unit whose value is at the end of the range: it moves one part by all that it may."""
        empty = np.zeros((mechanism.groups or 2, mechanism.moment.parts), np.int64)
        full = empty.copy()
        full[0, 0] = mechanism.height
        return full, empty, lambda drawn: float(drawn[0, 0])

    def structure(self, mechanism: RowMoments, effort: Effort) -> Iterator[Finding]:
        """All small data: one unit more moves the sums of all groups together by its height."""
        few = [*product((mechanism.moment.low, mechanism.moment.high), "ab")]

        def moved() -> Iterator[float]:
            for rows in (rows for many in range(2 + effort.length) for rows in product(few, repeat=many)):
                before = _summed(mechanism, rows)
                for unit in _units(mechanism):
                    after = _summed(mechanism, [*rows, *unit])
                    after[: len(before)] -= before
                    yield int(np.abs(after).sum())

        yield largest("structure", "one unit moves all sums together", mechanism.height, moved())

    def exact(self, mechanism: RowMoments, effort: Effort) -> Iterator[Finding]:
        """The shift behind the noise; what is published is a function of the noisy sums; a row alone is not shown."""
        full, empty, _ = self.neighbours(mechanism)
        wrong, each = 0, np.arange(full.size).reshape(full.shape) * 3 * mechanism.height - 2
        source = ScriptedSource()
        for sums in (empty, full, 5 * full + mechanism.height):
            source = ScriptedSource(each=each.ravel())
            drawn = mechanism(GroupSums(sums), source)
            again = mechanism(GroupSums(sums + 5), ScriptedSource(each=each.ravel() - 5))
            wrong += _shown(drawn) != _shown(again) or [draw.size for draw in source.draws] != [sums.size]
        yield Finding("exact", "what is published is a function of the noisy sums", "violations", 0, wrong)
        draw = source.draws[0]
        # Laplace noise hides what is moved in l1, Gaussian noise in l2.
        order = 1 if draw.law == "laplace" else 2
        moved = [float(np.linalg.norm(_adds(mechanism, unit).ravel(), order)) for unit in _units(mechanism)]
        yield shift_finding(mechanism.budget, draw, 1, math.ceil(max(moved) / (1.0 + 1e-12)), "one unit behind noise")
        if mechanism.groups is None:
            yield self._alone(mechanism, NoiseLaw(draw.law, draw.scale))

    def _alone(self, mechanism: RowMoments, noise: NoiseLaw) -> Finding:
        """The chance that a row alone in its group passes: the law of the sum of all noises, and the cut by trying."""
        parts = mechanism.moment.parts
        cut = least_whole(lambda sum: bool(mechanism.passed(np.array([[sum] + [0] * (parts - 1)]))[0]))
        law = reduce(np.convolve, [noise.mass] * parts)
        above = [int(_adds(mechanism, unit).sum()) for unit in _units(mechanism)]
        chance = float(law[max(cut - max(above) + parts * noise.reach, 0) :].sum())
        return Finding("exact", "a row alone is shown", "delta", mechanism.budget.delta, chance, len(above))

    def coupled(self, mechanism: RowMoments, effort: Effort) -> Iterator[Finding]:
        """With the same noise one unit moves the sums of its own group, and nothing else."""
        full, empty, _ = self.neighbours(mechanism)

        def broken(seed: int) -> bool:
            one, two = (mechanism.draw(sums, seeded_source(seed)) for sums in (empty, full))
            return (
                bool((two - one != full).any()) or not mechanism(GroupSums(full), seeded_source(seed)).guarantee.seeded
            )

        yield violations("coupled", "one unit moves its own sums alone", map(broken, range(20)))

    def twins(self, mechanism: RowMoments) -> Sequence[Twin]:
        """Less noise, none where there is nothing, a lower cut, and parts that do not share one bound."""
        draw, cut, moment = type(mechanism).draw, mechanism.threshold, mechanism.moment

        def bare_zeros(self: Any, sums: Any, source: Any) -> Any:
            return np.where(sums > 0, draw(self, sums, source), 0)

        twins = [half_the_noise(mechanism), twin(mechanism, "no noise on 0", draw=bare_zeros)]
        if cut is not None:
            twins.append(twin(mechanism, "a threshold that is one lower", threshold=cut - 1))
        if moment.parts > 1:
            beside = _Beside(moment.kind, moment.low, moment.high, moment.finest)
            twins.append(twin(mechanism, "parts that do not share one bound", moment=beside))
        if mechanism.max_items is not None:
            twins.append(noise_for_one(mechanism, "noise for one value of a person", mechanism.max_items))
        return twins


def _shown(drawn: Any) -> tuple[Any, ...]:
    return tuple(column.tolist() for column in (drawn.kept, drawn.values, drawn.lower, drawn.upper))


register(
    RowMoments,
    lambda: (
        RowMoments(Budget(1.0, 1e-4), ValueMoment("count"), None),
        RowMoments(Budget(1.0, 1e-4), ValueMoment("mean", 0, 1, 50), None),
        RowMoments(Budget(1.0), ValueMoment("sum", -1, 1, 2**26), 2),
        RowMoments(Budget.zcdp(0.5), ValueMoment("variance", -1, 3, 2**26), 3),
        RowMoments(Budget(0.1, 0.02), ValueMoment("signed", -2, 3)),
        RowMoments(Budget(1.0), ValueMoment("count"), 3, unit=User(), counted="values", max_items=2),
    ),
    _RowsAudit(),
)


# ---- people: one vector over all groups and parts --------------------------------------------------------------------


@dataclass(frozen=True)
class _Through:
    """Sums of people whose answers pass through a function: to be noted, or changed as a broken engine would."""

    found: PersonSums
    wrap: Callable[[People], People] = lambda people: people

    @property
    def groups(self) -> People | None:
        return None if self.found.groups is None else self.wrap(self.found.groups)

    def discovered(self, places: Counts) -> People:
        return self.wrap(self.found.discovered(places))

    def changed(self, change: Callable[[People], People]) -> _Through:
        """With a change below."""
        return _Through(self.found, lambda people: self.wrap(change(people)))


class _Apart(Answers):
    """People each of whose groups is scaled by itself."""

    parts = 1

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        groups = (places // self.parts == group for group in np.unique(places // self.parts))
        return np.concatenate([self.people.scaled_sums(places[at], weights[at], longest) for at in groups])


def _people(mechanism: PersonMoments, people: Sequence[Sequence[str]]) -> _Through:
    """People with a row for each of these groups, in turn with the largest value and the smallest."""
    ends = mechanism.moment.high, mechanism.moment.low
    rows = [(who, group, ends[at % 2]) for who, groups in enumerate(people) for at, group in enumerate(groups)]
    who, group, value = (np.array(column) for column in zip(*rows, strict=True))
    events = events_of({"who": who, "group": group, "value": value.astype(float)})
    listed = [*COMMON, *(f"own {index:03d}" for index in range(mechanism.listed or 0))][: mechanism.listed]
    asked = _asked({"by": ("group",), "groups": None if mechanism.listed is None else listed})
    return _Through(person_sums(events.rows(None, user="who", **asked), mechanism.moment))


class _MomentsAudit(PeopleAudit):
    """The checks of people, of what their rows add up to."""

    times = 50
    """Rows in each group of the person who is added: their vector is scaled."""

    def bounds(self, mechanism: PersonMoments) -> list[Unit]:
        return [mechanism.unit]

    def crowd(self, mechanism: PersonMoments) -> list[list[str]]:
        """Over a list everybody is counted: some have many rows, so that scaling loses something."""
        if mechanism.listed is None:
            return super().crowd(mechanism)
        return [COMMON[: 1 + index % 3] * (20 if index % 10 == 0 else 1) for index in range(300)]

    def steps(self, mechanism: PersonMoments, people: Sequence[Sequence[str]], again: Sequence[NoisySums] = ()) -> Seen:
        asked: list[int] = []
        source, note = GivenNoise(again), lambda _: asked.append(len(source.draws))
        found = _Through(_people(mechanism, people).found, lambda people: Answers(people, noted=note))
        places, release = mechanism.draw(found, source)
        published = (places.tolist(), release.rows(), release.error_model, release.left_out)
        return Seen.of(source, asked, published)

    def delta(self, mechanism: Any, mu: float, steps: list[NoisySums], own: list[str]) -> float:
        """Groups beside a public list are nobody's own: their rows are left out."""
        return super().delta(mechanism, mu, steps, own if mechanism.listed is None else [])

    def structure(self, mechanism: PersonMoments, effort: Effort) -> Iterator[Finding]:
        """All small data sets: one more person moves every sum by one length."""
        sets = [COMMON[:1], COMMON[1:2], COMMON[:2], COMMON, COMMON[2:] * 50 + COMMON[:1]]
        weights = np.resize([300, 700, 1024], 3 * mechanism.moment.parts)

        def answers(data: Sequence[Sequence[str]]) -> tuple[Counts, ...]:
            found, every = _people(mechanism, data), np.arange(len(weights))
            looks = () if found.groups is None else (found.groups.discovery_weights(256),)
            return (*looks, found.discovered(np.arange(3)).scaled_sums(every, weights, 900.0))

        pairs = one_person_more(COMMON, sets, effort)
        moved = (farthest(answers(before), answers(after)) for before, after in pairs)
        yield largest("structure", "one person's vector in every sum", float(LENGTH), moved)

    def statistical(self, mechanism: PersonMoments, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled release: on one person alone, and with one person more over a public list."""
        source = fresh_source()
        if mechanism.listed is None:
            own = _people(mechanism, [[f"own {index:03d}" for index in range(16)]]).groups
            found = (len(mechanism.discover(own, source)[0]) > 0 for _ in range(effort.runs))  # type: ignore[arg-type]
            yield often("a person alone is discovered", mechanism.budget.delta, found, "delta")
            return
        pair = _people(mechanism, [COMMON, COMMON[:1] * 50]), _people(mechanism, [COMMON])

        def score(drawn: Any) -> float:
            """What the first group has, in all parts."""
            return float(drawn.counts[np.array(drawn.items) < mechanism.moment.parts].sum())

        draw = lambda found: mechanism.draw(found, source)[1]  # noqa: E731
        yield proved("one person more", claim(mechanism), pair, draw, score, effort.runs)

    def coupled(self, mechanism: PersonMoments, effort: Effort) -> Iterator[Finding]:
        """With equal noise the order of people changes nothing over a list, and nothing is found that nobody has."""
        data = self.crowd(mechanism)

        def shown(people: Sequence[Sequence[str]], seed: int) -> Any:
            found = _people(mechanism, people)
            drawn = mechanism(found, seeded_source(seed))
            return _shown(drawn) if found.groups is None else {*found.groups.items(drawn.kept).to_pylist()}

        def broken(seed: int) -> bool:
            one, two = (shown(people, seed) for people in (data, data[::-1]))
            return bool(one != two or (mechanism.listed is None and one != {*COMMON}))

        yield violations("coupled", "order of people, and groups of nobody", map(broken, range(4)))

    def twins(self, mechanism: PersonMoments) -> Sequence[Twin]:
        """Less noise, and people who are more than one vector."""
        kind, parts = type(mechanism), mechanism.moment.parts

        def changed(name: str, change: Callable[[People], People]) -> Twin:
            def draw(self: Any, found: _Through, source: RandomSource) -> Any:
                return kind.draw(self, found.changed(change), source)

            return twin(mechanism, name, draw=draw)

        apart = type("_Apart", (_Apart,), {"parts": parts})
        return (
            *less_noise(mechanism, choose_length="sizes without noise", losses="losses without noise"),
            changed("groups of a person that are scaled apart", apart),
            changed("sums of twice the length", lambda people: Answers(people, sums=lambda sums: 2 * sums)),
        )


register(
    PersonMoments,
    lambda: (
        PersonMoments.of(Budget(1.0, 1e-4), ValueMoment("mean", 0, 1, 2**20), None),
        PersonMoments.of(Budget.zcdp(0.5), ValueMoment("count"), 40),
        PersonMoments.of(Budget(4.0, 1e-6), ValueMoment("variance", 0, 1, 2**26), 4),
        PersonMoments.of(Budget(4.0, 1e-6), ValueMoment("split", -2, 3, 2**20), 6),
    ),
    _MomentsAudit(),
)
