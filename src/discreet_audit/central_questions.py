"""The rows of `discreet.central` that answer other questions: numbers, public lists, quantiles, people, pairs, moments.

What is claimed of a number, of a public list and of the nodes of a tree is one shift behind noise of one law. The shift
is found by trying all small data, the law and the scale are read from what a release asks its source for, and the
exact divergence follows from these alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from itertools import combinations, combinations_with_replacement, pairwise, product
from typing import Any, NamedTuple

import numpy as np

from discreet.central import (
    BadShare,
    ChosenDistinct,
    CreditedDistinct,
    Grid,
    NoisyCount,
    PersonMoments,
    QuantileChoice,
    QuantileTree,
    RowMoments,
    UniverseHistogram,
)
from discreet.central.person_pairs import PersonPairs
from discreet.central.person_vectors import LOOK, Calibration, PersonVectors, alone
from discreet.central.quantile_choice import Found, ShareChoice
from discreet.engines.group_sums import group_sums
from discreet.engines.person_sums import PersonSums, person_sums
from discreet.events.assembly import BadPeople
from discreet.events.tables import events_of
from discreet.noise import RandomSource, fresh_source, seeded_source
from discreet.privacy import Budget, Event, Unit, User
from discreet.questions import Count, Distinct, Histogram
from discreet.questions.answer import data_of
from discreet.questions.report import Report
from discreet.summaries import ExactCounts
from discreet.summaries.combinations import Combinations
from discreet.summaries.moments import GroupSums, ValueMoment
from discreet.summaries.people import LENGTH, Counts, Holdings, ListedPeople, People, ValueRange
from discreet_audit.central import half_the_noise, shown_by
from discreet_audit.closed_forms import NoiseLaw, gaussian_delta, gaussian_split_delta, normal_tail
from discreet_audit.core import Audit, Effort, Finding, Twin, altered, checked, claim, largest, never, register, twin
from discreet_audit.exact import Draw, ScriptedSource, least_whole
from discreet_audit.statistical import clopper_pearson, proved

# ---- numbers with noise of one law: a count, different values credited to people, every item of a list ---------------

_PURE, _SOME, _RHO = Budget(1.0), Budget(1.0, 0.02), Budget.zcdp(0.5)
_ROUNDED = 1.0 + 1e-12
Neighbours = tuple[Any, Any, Callable[[Any], float]]
"""Two data sets that one unit tells apart, and the score of what is drawn that does."""


def shift_loss(budget: Budget, draw: Draw, changes: int, height: int) -> tuple[str, float]:
    """(epsilon, rho or delta; how much): what a unit loses that moves this many numbers by a height each, behind noise.

    Delta is that at the budget's epsilon.
    """
    if budget.rho is not None:
        # Laplace noise of rate r is (r^2/2)-zCDP, the discrete Gaussian (shift^2/2 sigma^2)-zCDP.
        distance = math.sqrt(changes) * height if draw.law == "gaussian" else changes * height
        return "rho", (distance / float(draw.scale)) ** 2 / 2.0
    if draw.law == "laplace":
        return "epsilon", float(changes * height / draw.scale)
    assert budget.epsilon is not None
    if height == 1:
        return "delta", gaussian_split_delta(NoiseLaw("gaussian", draw.scale), 0, changes, 1, budget.epsilon)
    if changes == 1 and height < 2**20:
        noise = NoiseLaw("gaussian", draw.scale)
        first, second = (noise.from_cut(base, -noise.reach, 2 * noise.reach + height) for base in (height, 0))
        return "delta", float(np.maximum(first - math.exp(budget.epsilon) * second, 0.0).sum())
    # On so fine a lattice the law is that of Gaussian noise (docs/privacy/people.md, 3): mu-GDP.
    return "delta", gaussian_delta(budget.epsilon, math.sqrt(changes) * height / float(draw.scale))


def shift_finding(budget: Budget, draw: Draw, changes: int, height: int, check: str = "") -> Finding:
    """The same, against the budget."""
    quantity, lost = shift_loss(budget, draw, changes, height)
    claimed = budget.delta if quantity == "delta" else float(getattr(budget, quantity)) * _ROUNDED
    return checked(check or f"{changes} numbers moved by {height}", quantity, claimed, lost)


class ShiftAudit(Audit):
    """What is checked of all numbers behind noise of one law."""

    more = "one unit more"
    neighbours: Callable[[Any], Neighbours]

    def statistical(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        source, (first, second, score) = fresh_source(), self.neighbours(mechanism)
        draw = lambda data: mechanism.draw(data, source)  # noqa: E731
        yield proved(self.more, claim(mechanism), (first, second), draw, score, effort.runs)


def noise_for_one(mechanism: Any, name: str, numbers: int) -> Twin:
    """A twin with the noise that one of this many numbers would have."""
    factor = numbers if mechanism.noise.law == "laplace" else math.sqrt(numbers)
    return twin(mechanism, name, scale=type(mechanism.scale)(float(mechanism.scale) / factor))


class CountAudit(ShiftAudit):
    def neighbours(self, mechanism: NoisyCount) -> Neighbours:
        """A number and what a unit may make of it."""
        return 100 + mechanism.sensitivity, 100, float

    def structure(self, mechanism: NoisyCount, effort: Effort) -> Iterator[Finding]:
        """All small data: by how much one more row, or person, moves the number."""
        yield largest("one unit moves the count", mechanism.sensitivity, _moved(mechanism, 3 + effort.length))

    def exact(self, mechanism: NoisyCount, effort: Effort) -> Iterator[Finding]:
        """The shift behind the noise that the release asks for, and that it publishes the sum and nothing else."""
        wrong, source = 0, ScriptedSource()
        for count, noise in product((0, 1, 7, 1000), (-30, -1, 0, 1, 30)):
            source = ScriptedSource(noise)
            estimate = mechanism(count, source)
            again = mechanism(count + 5, ScriptedSource(noise - 5))  # another count, the same sum
            wrong += estimate.value != max(count + noise, 0) or estimate != again
            wrong += len(source.draws) != 1 or not estimate.lower <= estimate.value <= estimate.upper
        yield never("what is published is a function of the noisy count", wrong)
        yield shift_finding(mechanism.budget, source.draws[0], 1, mechanism.sensitivity)

    def coupled(self, mechanism: NoisyCount, effort: Effort) -> Iterator[Finding]:
        """With the same noise one more unit moves the number, and nothing else."""

        def broken(seed: int) -> bool:
            one, two = (mechanism(1000 + more, seeded_source(seed)) for more in (0, 1))
            return two.value - one.value != 1 or one.guarantee != two.guarantee or one.is_private

        yield never("one unit moves the number alone", map(broken, range(20)))
        if isinstance(mechanism, CreditedDistinct):
            moved = _credited_more(mechanism, _random_people(effort.large_pairs // 10))
            yield largest("one person more", mechanism.sensitivity, moved)

    def twins(self, mechanism: NoisyCount) -> Iterator[Twin]:
        yield half_the_noise(mechanism)
        exact_zero = lambda right, _, count, source: right(count, source) if count else 0  # noqa: E731
        yield altered(mechanism, "no noise on 0", draw=exact_zero)
        if isinstance(mechanism, CreditedDistinct):
            every = lambda self, people, values: len(np.unique(values))  # noqa: E731
            yield twin(mechanism, "every value is counted", "coupled", count_of=every)


class BadShareAudit(ShiftAudit):
    """The four checks of a test of bad rows: one bit, of a number with noise."""

    def neighbours(self, mechanism: BadShare) -> Neighbours:
        """Where the outcome is most open, and what a unit may make of it."""
        return mechanism.cut + mechanism.sensitivity, mechanism.cut, float

    def structure(self, mechanism: BadShare, effort: Effort) -> Iterator[Finding]:
        """All small data: by how much one more row, or person, moves the statistic."""
        yield largest("one unit moves the statistic", mechanism.sensitivity, _moved_statistic(mechanism))

    def exact(self, mechanism: BadShare, effort: Effort) -> Iterator[Finding]:
        """The outcome is a function of the noisy statistic, behind noise for the shift of one unit."""
        wrong, source = 0, ScriptedSource()
        for statistic, noise in product((-9, 0, 9, 1000), (-30, -1, 0, 1, 30)):
            for around in (0, mechanism.cut):
                source = ScriptedSource(noise)
                refused = mechanism.draw(statistic + around, source)
                wrong += refused != mechanism.draw(statistic + around + 5, ScriptedSource(noise - 5))
                wrong += refused != (statistic + around + noise > mechanism.cut) or len(source.draws) != 1
        yield never("the outcome is a function of the noisy statistic", wrong)
        if source.draws:
            yield shift_finding(mechanism.budget, source.draws[0], 1, mechanism.sensitivity)

    def coupled(self, mechanism: BadShare, effort: Effort) -> Iterator[Finding]:
        """With the same noise more bad rows are never accepted where fewer are refused, and none are refused."""

        def broken(seed: int) -> bool:
            outcomes = [mechanism.draw(s, seeded_source(seed)) for s in (-10, 0, mechanism.cut, 3 * mechanism.cut + 1)]
            return outcomes != sorted(outcomes) or outcomes[0] or not outcomes[-1]

        yield never("the outcome rises with the statistic", map(broken, range(20)))

    def twins(self, mechanism: BadShare) -> Iterator[Twin]:
        yield half_the_noise(mechanism)
        yield twin(mechanism, "compares the true share", draw=lambda self, statistic, source: statistic > 0)


def _moved_statistic(mechanism: BadShare) -> Iterator[int]:
    """By how much one more unit moves the statistic, for all small data, whichever people share a group."""
    if mechanism.unit == Event():
        for bad, good in product(range(4), repeat=2):
            before = mechanism.statistic(bad, good)
            yield from (abs(mechanism.statistic(*after) - before) for after in ((bad + 1, good), (bad, good + 1)))
        return

    def statistic(people: Sequence[Sequence[bool]], groups: Sequence[int]) -> int:
        found = BadPeople(groups=2)
        for rows, group in zip(people, groups, strict=False):  # as their hash puts people into groups
            for good in rows:
                found.mark_groups(np.array([group]), good)
        return mechanism.statistic(*found.counts())

    kinds = [(), (True,), (False,), (True, False)]  # whether rows of a person can be read
    for people, groups in product(product(kinds, repeat=3), product(range(2), repeat=3)):
        yield abs(statistic(people, groups) - statistic(people[:2], groups))


def _small_people(values: int, step: int = 1) -> Iterator[tuple[Any, Any]]:
    """All small data, and the same with one person more."""
    sets = [chosen for size in range(4) for chosen in combinations(range(values), size)]
    return ((people, [*people, person]) for *people, person in product(sets[::step], repeat=3))


def _random_people(pairs: int) -> Iterator[tuple[Any, Any]]:
    """The same for larger data."""
    random = np.random.default_rng(7)
    for _ in range(pairs):
        sizes = random.integers(0, 6, size=12)
        *people, person = (random.integers(0, 25, size=size).tolist() for size in (*sizes, 5))
        yield people, [*people, person]


def _credits(mechanism: Any, people: Sequence[Sequence[int]]) -> Any:
    """What is counted of the values of people."""
    pairs = [(person, value) for person, values in enumerate(people) for value in values]
    who, what = np.array(pairs, np.int64).reshape(-1, 2).T
    return mechanism.count_of(who, what)


def _credited_more(mechanism: CreditedDistinct, data: Iterable[tuple[Any, Any]]) -> Iterator[int]:
    """By how much one more person moves the number, which must not fall, either."""
    moved = (_credits(mechanism, after) - _credits(mechanism, before) for before, after in data)
    return (more if more >= 0 else 10**6 for more in moved)


def _moved(mechanism: NoisyCount, values: int) -> Iterator[int]:
    """By how much one more unit moves the number, for all small data."""
    if isinstance(mechanism, CreditedDistinct):
        yield from _credited_more(mechanism, _small_people(values))
        return

    def number(rows: Sequence[str]) -> int:
        summary = ExactCounts()
        summary.update(list(rows))
        return summary.total if mechanism.counted == "rows" else len(summary)

    units: list[tuple[str, ...]] = [("c",), ("c",) * 3] if isinstance(mechanism.unit, User) else [("a",), ("c",)]
    for length, unit in product(range(5), units):
        for rows in product("ab", repeat=length):
            yield abs(number((*rows, *unit)) - number(rows))


class ChoiceAudit(ShiftAudit):
    """The four checks of a number whose sensitivity is chosen first."""

    more = "one person more"

    def neighbours(self, mechanism: ChosenDistinct) -> Neighbours:
        """What is credited with and without a person."""
        first, second = ({m: 200 + more * m for m in mechanism.CANDIDATES} for more in (1, 0))
        return first, second, lambda drawn: float(drawn[1])

    def _moved(self, mechanism: ChosenDistinct, data: Iterable[tuple[Any, Any]]) -> list[tuple[int, float]]:
        """How far one more person moves a score (in steps), and f_m (in m)."""
        moved = []
        for before, after in ([_credits(mechanism, people) for people in pair] for pair in data):
            scores = np.abs(mechanism.scores(after) - mechanism.scores(before))
            moved.append((int(scores.max()), max((after[m] - before[m]) / m for m in before)))
        return moved

    def structure(self, mechanism: ChosenDistinct, effort: Effort) -> Iterator[Finding]:
        """All small data: one more person moves every score by at most 1, and f_m by at most m."""
        scores, heights = zip(*self._moved(mechanism, _small_people(3 + effort.length, 2)), strict=True)
        yield largest("one person moves a score, in steps", mechanism.STEPS, scores)
        yield largest("one person moves f_m, in m", 1, heights)

    def exact(self, mechanism: ChosenDistinct, effort: Effort) -> Iterator[Finding]:
        """What the choice and the noise cost together, by what they ask their source for, for every m."""
        lost, wrong, rho = 0.0, 0, mechanism.budget.rho
        for place, most in enumerate(mechanism.CANDIDATES):
            found = {m: 10**6 * min(m, most) for m in mechanism.CANDIDATES}
            source = ScriptedSource(3)
            estimate = mechanism(found, source)
            if [draw.law == "choice" for draw in source.draws] != [True, False]:
                wrong += 1
                continue
            choice, noise = source.draws
            wrong += int(np.argmax(source.scores[0])) != place
            wrong += estimate.value != found[most] + 3 or estimate.upper != math.inf
            wrong += noise.law == "laplace" and rho is not None
            spent = float(choice.scale) * mechanism.STEPS  # epsilon/sensitivity, of scores that move by this many steps
            budget = mechanism.credits(most).budget
            quantity, rest = shift_loss(budget, noise, 1, most)
            if quantity == "delta":  # all of the epsilon that it is for, or none
                rest = float(budget.epsilon or 0.0) if rest <= budget.delta else math.inf
            lost = max(lost, spent**2 / 2.0 + rest if rho is not None else spent + rest)
        yield never("the chosen m, its noise, and nothing else", wrong)
        claimed, kind = (mechanism.budget.epsilon, "epsilon") if rho is None else (rho, "rho")
        yield checked("choice and noise", kind, float(claimed or 0.0) * _ROUNDED, lost)

    def coupled(self, mechanism: ChosenDistinct, effort: Effort) -> Iterator[Finding]:
        """Larger data: one more person moves the scores and what is credited as claimed."""
        moved = self._moved(mechanism, _random_people(effort.large_pairs // 40))
        yield largest("one person more", 1, (max(score / mechanism.STEPS, f) for score, f in moved))

    def twins(self, mechanism: ChosenDistinct) -> Iterator[Twin]:
        part = mechanism.choice_epsilon

        def bare(self: Any, found: Any, source: Any) -> int:
            return int(self.CANDIDATES[int(np.argmax(self.scores(found)))])

        def every_value(self: Any, people: Any, values: Any) -> dict[int, int]:
            return dict.fromkeys(self.CANDIDATES, len(np.unique(values)))

        yield twin(mechanism, "the budget spent twice", parts=(part, mechanism.budget))
        yield twin(mechanism, "a choice for twice its part", choice_epsilon=2 * part)
        yield twin(mechanism, "a choice without noise", choose=bare)
        yield twin(mechanism, "every value is counted", "coupled", count_of=every_value)


class UniverseAudit(ShiftAudit):
    def moved(self, mechanism: UniverseHistogram) -> int:
        """How many counts one unit moves, by what is said of people, and not by what the mechanism makes of it."""
        return min(mechanism.max_items or 1, int(mechanism.universe.size))

    def neighbours(self, mechanism: UniverseHistogram) -> Neighbours:
        """One unit alone: the sum of the counts that it moves."""
        m = self.moved(mechanism)
        return self.filled(range(m)), self.filled([]), lambda drawn: float(drawn.noisy[:m].sum())

    def filled(self, rows: Sequence[Any]) -> ExactCounts:
        """The exact counts of rows."""
        summary = ExactCounts()
        summary.update(np.asarray(rows, np.int64))
        return summary

    def structure(self, mechanism: UniverseHistogram, effort: Effort) -> Iterator[Finding]:
        """All short streams: one more event, or a person's items, move this many counts by 1."""
        m, items = self.moved(mechanism), range(min(mechanism.universe.size, 3) + 2)  # two of them may be outside
        streams = (rows for length in range(3 + effort.length) for rows in product(items, repeat=length))

        def counts(rows: Sequence[int]) -> Any:
            return mechanism.counts(self.filled(rows))

        moved = [np.abs(counts((*rows, *more)) - counts(rows)) for rows in streams for more in combinations(items, m)]
        yield largest("counts that one unit moves", m, (int(each.sum()) for each in moved))
        yield largest("by how much", 1, (int(each.max()) for each in moved))

    def exact(self, mechanism: UniverseHistogram, effort: Effort) -> Iterator[Finding]:
        """The shift behind the noise; every item is published with noise of its own, at 0 as well."""
        size, wrong, draws = mechanism.universe.size, 0, []
        each = np.arange(size) * 3 - size
        for rows in ((), (0,), (0, 0, 1), (size + 5,)):
            source = ScriptedSource(0, each)
            release = mechanism(self.filled(rows), source)
            expected = np.bincount([r for r in rows if r < size], minlength=size) + each
            wrong += [shown_by(release).get(item) for item in range(size)] != expected.tolist()
            draws += source.draws
        wrong += any(draw != draws[0] for draw in draws) or draws[0].size != size
        yield never("every item has noise of its own", wrong)
        yield shift_finding(mechanism.budget, draws[0], self.moved(mechanism), 1)

    def coupled(self, mechanism: UniverseHistogram, effort: Effort) -> Iterator[Finding]:
        """With equal noise the order of rows and items outside change nothing; the order shown is that of counts."""
        rows = [0, 0, 1, mechanism.universe.size + 1]

        def broken(seed: int) -> bool:
            releases = [mechanism(self.filled(data), seeded_source(seed)) for data in (rows, rows[::-1], rows[:3])]
            counts = releases[0].counts.tolist()
            same = len({release.to_payload() for release in releases}) == 1
            return not same or counts != sorted(counts, reverse=True) or not releases[0].guarantee.seeded

        yield never("order of rows, items outside", map(broken, range(10)))

    def twins(self, mechanism: UniverseHistogram) -> Iterator[Twin]:
        def bare_zeros(right: Any, _: Any, *given: Any) -> Any:
            drawn = right(*given)
            return type(drawn)(drawn.raw, np.where(drawn.raw.counts > 0, drawn.noisy, 0), drawn.keep)

        yield half_the_noise(mechanism)
        yield altered(mechanism, "no noise on 0", draw=bare_zeros)
        if self.moved(mechanism) > 1:
            yield noise_for_one(mechanism, "noise for one item of a person", self.moved(mechanism))


class ReportAudit(ShiftAudit):
    """Several answers about one table: what all their noise together loses."""

    more = "one row or person more"

    def neighbours(self, mechanism: Report) -> Neighbours:
        """A table, and the same without the one person who has everything, or without one row."""
        rows = [(f"p{number}", "a") for number in range(20)] + [("one", item) for item in _LISTED]
        fewer = rows[:-1] if mechanism.user is None else rows[:20]
        tables = [{"who": [who for who, _ in some], "item": [item for _, item in some]} for some in (rows, fewer)]
        return tables[0], tables[1], lambda drawn: float(sum(map(_number_of, drawn)))

    def structure(self, mechanism: Report, effort: Effort) -> Iterator[Finding]:
        """Shares, in parts of the budget, as exact fractions."""
        yield largest("shares add up", 1, [float(sum(mechanism.shares))], "share")

    def exact(self, mechanism: Report, effort: Effort) -> Iterator[Finding]:
        """The noise that all questions ask for, of one law each, composed: epsilons and rhos add up."""
        source = ScriptedSource()
        _drawn(mechanism, self.neighbours(mechanism)[0], source)
        changes = [getattr(each, "max_items", None) or 1 for each in mechanism.questions.values()]
        budget, draws = mechanism.budget, list(zip(source.draws, changes, strict=True))
        rho = sum(many / (2.0 * float(draw.scale) ** 2) for draw, many in draws if draw.law == "gaussian")
        epsilon = sum(many / float(draw.scale) for draw, many in draws if draw.law == "laplace")
        quantity, claimed, lost = "epsilon", float(budget.epsilon or 0.0) * _ROUNDED, epsilon
        if budget.rho is not None:
            quantity, claimed, lost = "rho", budget.rho * _ROUNDED, rho + epsilon**2 / 2.0
        elif rho > 0.0:  # of Gaussian noise its exact delta
            left = gaussian_delta(float(budget.epsilon or 0.0) - epsilon, math.sqrt(2.0 * rho))
            quantity, claimed, lost = "delta", budget.delta, left
        yield checked("all questions together", quantity, claimed, lost)

    def statistical(self, mechanism: Report, effort: Effort) -> Iterator[Finding]:
        source, (first, second, score) = fresh_source(), self.neighbours(mechanism)
        made = [(way, way.count()) for way in (_way(mechanism, table) for table in (first, second))]
        draw = lambda counted: counted[0].draw(counted[1], source)  # noqa: E731
        yield proved(self.more, claim(mechanism), (made[0], made[1]), draw, score, effort.runs)

    def coupled(self, mechanism: Report, effort: Effort) -> Iterator[Finding]:
        """With the same noise one person moves each answer by no more than its question says."""
        tables = self.neighbours(mechanism)[:2]
        allowed = [getattr(each, "max_items", None) or 1 for each in mechanism.questions.values()]

        def broken(seed: int) -> bool:
            one, two = (map(_number_of, _drawn(mechanism, table, seeded_source(seed))) for table in tables)
            return any(abs(a - b) > most for a, b, most in zip(one, two, allowed, strict=True))

        yield never("one unit moves the answers", map(broken, range(5)))

    def twins(self, mechanism: Report) -> Iterator[Twin]:
        budget = mechanism.budget
        whole = tuple(Fraction(1) for _ in mechanism.questions)
        twice = Budget(2 * (budget.epsilon or 0.0), budget.delta) if budget.rho is None else Budget.zcdp(2 * budget.rho)
        yield twin(mechanism, "every question has the whole budget", shares=whole)
        yield altered(mechanism, "twice the budget", ways=lambda right, _, data, budget: right(data, twice))


_LISTED = [f"i{number}" for number in range(60)]


def _way(report: Report, table: Any) -> Any:
    return report.way(data_of(table), report.budget)


def _drawn(report: Report, table: Any, source: Any) -> Any:
    """A report's answers, as its way draws them."""
    way = _way(report, table)
    return way.draw(way.count(), source)


def _number_of(answer: Any) -> float:
    return float(answer.value if hasattr(answer, "value") else answer.counts.sum())


def _reports() -> tuple[Report, ...]:
    """Laplace noise; rhos; a pool of Gaussian noise beside a count."""
    lists = {name: Histogram(column="item", universe=_LISTED, max_items=60) for name in ("one", "two")}
    return (
        Report({"rows": Count(), "values": Distinct(column="item")}, _PURE, shares=[0.25, 0.75]),
        Report([Count(), Distinct(column="who")], _RHO, user="who"),
        Report({**lists, "people": Count()}, Budget(1.0, 0.02), user="who", shares=[0.4, 0.4, 0.2]),
    )


register(Report, _reports, ReportAudit())
register(NoisyCount, lambda: (
    NoisyCount(_PURE),
    NoisyCount(_RHO, User(), "people"),
    NoisyCount(_SOME, Event(), "values"),
    NoisyCount(Budget(0.1, 0.02), User(), "people"),
), CountAudit())  # fmt: skip
register(BadShare, lambda: (
    BadShare(_PURE, Fraction(1, 10)), BadShare(_RHO, Fraction(1, 10), User()), BadShare(_PURE, Fraction(3, 4), User()),
), BadShareAudit())  # fmt: skip
register(CreditedDistinct, lambda: (
    CreditedDistinct(_PURE), CreditedDistinct(_RHO, max_items=2), CreditedDistinct(Budget(0.5, 0.02), max_items=2),
), CountAudit())  # fmt: skip
register(ChosenDistinct, lambda: (
    ChosenDistinct(_PURE), ChosenDistinct(_RHO), ChosenDistinct(Budget(0.5, 1e-6)),
), ChoiceAudit())  # fmt: skip
register(UniverseHistogram, lambda: (
    UniverseHistogram(_PURE, range(4)),
    UniverseHistogram(_RHO, range(5), User(), 2),
    UniverseHistogram(Budget(1.0, 1e-6), range(6), User(), 3),
    UniverseHistogram(_PURE, range(6), User(), 2),
), UniverseAudit())  # fmt: skip


# ---- quantiles: a tree of noisy counts over a public range, and recursive choices with a tree around them ------------

Values = Sequence[tuple[int, float]]
"""Whose row it is, and its value."""


class QuantilesAudit(ShiftAudit):
    """What is checked of quantiles, however they are found."""

    def held(self, mechanism: Any, rows: Values) -> Any:
        """What each bin holds of some rows, as the mechanism takes it."""
        values = np.array([value for _, value in rows], np.float64)
        people = None if mechanism.max_rows is None else np.array([person for person, _ in rows], np.int64)
        return mechanism.counts(mechanism.grid.places(values), people)

    def small(self, mechanism: Any, longest: int) -> Iterator[tuple[Values, Values]]:
        """All small data, and the same with one unit more: a row, or a person with several."""
        grid = mechanism.grid
        step = (grid.high - grid.low) / 3
        values = [grid.low - 100.0, grid.low, grid.low + step, grid.low + 2.2 * step, grid.high, grid.high * 7]
        units: list[list[tuple[int, float]]] = [[(9, value)] for value in values]
        if mechanism.max_rows is not None:
            units += [[(9, one), (9, two), (9, one), (9, 2.0)] for one, two in product(values, repeat=2)]
        for length in range(longest):
            for listed in product(values, repeat=length):
                before = [(place % 2, value) for place, value in enumerate(listed)]
                yield from ((before, [*before, *unit]) for unit in units)

    def large(self, mechanism: Any, pairs: int) -> Iterator[tuple[Values, Values]]:
        """The same for larger data."""
        random, grid = np.random.default_rng(8), mechanism.grid
        most = 1 if mechanism.max_rows is None else 9
        for _ in range(pairs):
            values = random.normal(grid.low, 2 * grid.high, size=20)
            people = random.integers(0, 5, 20).tolist()
            before = list(zip(people, values.tolist(), strict=True))
            yield before, [*before, *((9, value) for value in (values[: random.integers(1, most + 1)] * 1.5).tolist())]

    def outside(self, mechanism: Any) -> Finding:
        """With equal noise: the order of rows changes nothing, and a value outside is worth the end of the range."""
        grid = mechanism.grid
        rows = [(0, grid.low), (1, grid.high), (1, grid.low + 0.4 * (grid.high - grid.low)), (2, grid.high)]
        beyond = [(0, grid.low - 50.0), (1, grid.high * 9), *rows[2:3], (2, math.inf)]

        def broken(seed: int) -> bool:
            given = (self.held(mechanism, data) for data in (rows, rows[::-1], beyond))
            answers = [mechanism(each, seeded_source(seed)) for each in given]
            return len(set(answers)) != 1 or not answers[0].guarantee.seeded

        return never("order of rows, values outside", map(broken, range(10)))

    def not_cut(self, mechanism: Any, every_row: Callable[..., Any]) -> Iterator[Twin]:
        """Data that are not cut to the range, or to the rows of a person."""
        grid = mechanism.grid
        yield twin(mechanism, "values are not cut", "coupled", grid=_GrowingGrid(grid.low, grid.high, grid.bins))
        if mechanism.max_rows is not None:
            yield twin(mechanism, "every row of a person has a vote", "coupled", counts=every_row)


class _GrowingGrid(Grid):
    """NOT PRIVATE: the range is that of the data, which nobody cut."""

    def places(self, values: Any) -> Any:
        if not len(values):
            return super().places(values)
        edges = np.linspace(min(self.low, values.min()), max(self.high, min(values.max(), 1e9)), self.bins + 1)
        return np.searchsorted(edges[1:-1], values, side="right").astype(np.int32)


class QuantileTreeAudit(QuantilesAudit):
    def _change(self, mechanism: QuantileTree, before: Values, after: Values) -> Any:
        """By how much one more unit moves each node."""
        return np.abs(np.subtract(*(mechanism.nodes(self.held(mechanism, rows)) for rows in (after, before))))

    def structure(self, mechanism: QuantileTree, effort: Effort) -> Iterator[Finding]:
        """All small data: one more row, or person with several, moves each level by at most the height, in sum."""
        levels, height = mechanism.tree.levels, mechanism.height
        moved = [self._change(mechanism, *pair) for pair in self.small(mechanism, 2 + effort.length)]
        yield largest("nodes, in sum", levels * height, (int(each.sum()) for each in moved))
        squares = (sum(int(one) ** 2 for one in each) for each in moved)
        yield largest("squared length", levels * height**2, squares)

    def exact(self, mechanism: QuantileTree, effort: Effort) -> Iterator[Finding]:
        """The shift behind the noise; what is published is a function of the noisy nodes alone."""
        tree, wrong, asked = mechanism.tree, 0, []
        bins = mechanism.grid.bins
        for seed in range(12):
            random = np.random.default_rng(seed)
            one, two = (random.integers(0, 30, bins) * mechanism.height for _ in range(2))
            noise = random.integers(-20, 20, tree.nodes) * mechanism.height
            first, second = (
                ScriptedSource(0, each.tolist()) for each in (noise, noise + tree.counts(one) - tree.counts(two))
            )
            answers = mechanism(one, first), mechanism(two, second)
            wrong += answers[0] != answers[1]
            wrong += not all(row.lower <= row.value <= row.upper for row in answers[0])
            asked += first.draws
        wrong += len(asked) != 12 or any(draw != asked[0] for draw in asked) or asked[0].size != tree.nodes
        yield never("a function of noisy nodes, each with noise of its own", wrong)
        yield shift_finding(mechanism.budget, asked[0], tree.levels, mechanism.height)

    def neighbours(self, mechanism: QuantileTree) -> Neighbours:
        """One unit alone: the nodes that it moves."""
        with_unit = self.held(mechanism, [(5, mechanism.grid.low)] * (mechanism.max_rows or 1))
        moved = mechanism.nodes(with_unit) > 0
        return with_unit, self.held(mechanism, []), lambda noisy: float(noisy[moved].sum())

    def coupled(self, mechanism: QuantileTree, effort: Effort) -> Iterator[Finding]:
        """Order of rows and values outside; on larger data, by how much one unit moves the nodes."""
        yield self.outside(mechanism)
        pairs = self.large(mechanism, effort.large_pairs // 10)
        moved = (int(self._change(mechanism, *pair).sum()) for pair in pairs)
        yield largest("one unit more", mechanism.tree.levels * mechanism.height, moved)

    def twins(self, mechanism: QuantileTree) -> Iterator[Twin]:
        def every_row(self: QuantileTree, places: Any, people: Any = None) -> Any:
            return np.bincount(places, minlength=self.grid.bins).astype(np.int64) * self.vote

        yield half_the_noise(mechanism)
        yield noise_for_one(mechanism, "noise for one level", mechanism.tree.levels)
        yield from self.not_cut(mechanism, every_row)


register(QuantileTree, lambda: (
    QuantileTree(Budget(1.0), Grid(0, 256, 256), (0.25, 0.5)),
    QuantileTree(Budget.zcdp(0.5), Grid(0, 8, 8), (0.5,)),
    QuantileTree(Budget(0.5, 0.02), Grid(1, 64, 16, "log"), (0.5, 0.9)),
    QuantileTree(Budget(1.0), Grid(0, 256, 256), (0.5,), User(), 2),
    QuantileTree(Budget(0.5, 0.02), Grid(0, 40, 200), (0.5,), User()),
), QuantileTreeAudit())  # fmt: skip


def choice_law(mechanism: QuantileChoice, found: Found) -> dict[tuple[int, ...], float]:
    """The probability of all that may be chosen, by the exact exponents of every choice."""
    law: dict[tuple[int, ...], float] = {}
    known: dict[ShareChoice, list[float]] = {}

    def chances(node: ShareChoice) -> list[float]:
        if node not in known:
            exponents = mechanism.exponents(found, node)
            weights = [math.exp(-float(each - min(exponents))) for each in exponents]
            known[node] = [weight / sum(weights) for weight in weights]
        return known[node]

    def go(waiting: list[ShareChoice], parts: dict[int, int], chance: float) -> None:
        if not waiting:
            law[tuple(parts[at] for at in sorted(parts))] = chance
            return
        node, rest = waiting[0], waiting[1:]
        if node.start == node.end:
            return go([*rest, *mechanism.below(node, node.start)], {**parts, node.middle: node.start}, chance)
        for part, of_it in zip(range(node.start, node.end), chances(node), strict=True):
            go([*rest, *mechanism.below(node, part)], {**parts, node.middle: part}, chance * of_it)

    go([mechanism.root()], {}, 1.0)
    return law


def choice_loss(mechanism: QuantileChoice, first: Found, second: Found) -> float:
    """Epsilon of what is chosen from two data sets; of a budget of rho, the largest D_a/a over some orders a."""
    one, two = choice_law(mechanism, first), choice_law(mechanism, second)
    ratios = np.log([one[parts] / two[parts] for parts in one])
    if mechanism.budget.rho is None:
        return float(np.abs(ratios).max())
    lost = 0.0
    for law, signed in ((one, ratios), (two, -ratios)):
        chances = np.array([law[parts] for parts in one])
        for order in (1.01, 1.5, 2.0, 4.0, 16.0):
            renyi = math.log(float((chances * np.exp((order - 1.0) * signed)).sum())) / (order - 1.0)
            lost = max(lost, renyi / order)
    return lost


def choice_neighbours(mechanism: QuantileChoice, masses: Sequence[int]) -> Iterator[tuple[Found, Found]]:
    """All data with these masses in the bins, and the same with one unit more: a row, or a person's votes."""
    bins, height = mechanism.grid.bins, mechanism.height
    units = [tuple(height if at == place else 0 for at in range(bins)) for place in range(bins)]
    if height > 1:
        units.append((height // 2, *[0] * (bins - 2), height - height // 2))
    for listed in product(masses, repeat=bins):
        for unit in units:
            before = np.array(listed, np.int64) * height
            yield _found(before), _found(before + np.array(unit, np.int64))


def _found(held: Any) -> Found:
    return Found(np.flatnonzero(held), held[held > 0])


class QuantileChoiceAudit(QuantilesAudit):
    def _both(self, mechanism: QuantileChoice, pair: tuple[Values, Values]) -> tuple[Found, Found, int]:
        """What is found without and with a unit, and the mass that it adds."""
        before, after = (self.held(mechanism, rows) for rows in pair)
        dense = np.zeros((2, mechanism.grid.bins), np.int64)
        for held, found in zip(dense, (before, after), strict=True):
            held[found.bins] = found.masses
        return before, after, int(np.abs(dense[1] - dense[0]).sum())

    def structure(self, mechanism: QuantileChoice, effort: Effort) -> Iterator[Finding]:
        """All small data: one more unit adds its mass, and no more; so do the nodes over cells, at every level."""
        many, middle = len(mechanism.quantiles), mechanism.grid.bins * mechanism.parts // 2
        ends = [mechanism.boundaries(tuple(sorted(parts))) for parts in product((0, middle), repeat=many)]
        found = [self._both(mechanism, pair) for pair in self.small(mechanism, 2 + effort.length)]
        yield largest("what a unit adds", mechanism.height, (added for _, _, added in found))

        def nodes(found: Found, end: Any) -> Any:
            return mechanism.tree.counts(mechanism.in_cells(found, end))

        moved = (max(int(np.abs(nodes(b, e) - nodes(a, e)).sum()) for e in ends) for a, b, _ in found)
        yield largest("nodes, in sum", mechanism.tree.levels * mechanism.height, moved)

    def exact(self, mechanism: QuantileChoice, effort: Effort) -> Iterator[Finding]:
        """The law of what is chosen over all neighbours, and the shift behind the noise of the tree."""
        asked, wrong, budget = [], 0, mechanism.budget
        for seed in range(6):
            source = ScriptedSource(0, np.random.default_rng(seed).integers(-3, 3, 50).tolist())
            held = np.random.default_rng(seed).integers(0, 30, mechanism.grid.bins) * mechanism.height
            answer = mechanism(_found(held), source)
            wrong += not all(row.lower <= row.value <= row.upper for row in answer)
            asked += source.draws
        wrong += len(asked) != 6 or any(draw != asked[0] for draw in asked) or asked[0].size != mechanism.tree.nodes
        yield never("one noise for every node of the tree", wrong)
        pairs = choice_neighbours(mechanism, (0, 1, 3, 40) if mechanism.grid.bins < 4 else (0, 2, 40))
        lost = (choice_loss(mechanism, *pair) for pair in pairs)
        kind = "epsilon" if budget.rho is None else "rho"
        of_choices = float(sum(each if budget.rho is None else each**2 / 8 for each in mechanism.epsilons))
        yield largest("what is chosen", of_choices * (1.0 + 1e-9), lost, kind)
        # The tree has what the choices leave.
        left = float(budget.rho or budget.epsilon or 0.0) - of_choices
        rest = Budget(max(left, 1e-9), budget.delta) if budget.rho is None else budget
        quantity, of_tree = shift_loss(rest, asked[0], mechanism.tree.levels, mechanism.height)
        if quantity == kind:
            yield checked("the tree", kind, left * (1.0 + 1e-9), of_tree)
        else:
            yield shift_finding(rest, asked[0], mechanism.tree.levels, mechanism.height)

    def neighbours(self, mechanism: QuantileChoice) -> Neighbours:
        """One unit alone, in the last bin: which parts are chosen."""
        last = mechanism.grid.bins - 1
        first, second = (Found(np.array([0, last]), mechanism.height * np.array([2, 2 + more])) for more in (1, 0))
        return first, second, lambda drawn: float(sum(drawn.parts))

    def coupled(self, mechanism: QuantileChoice, effort: Effort) -> Iterator[Finding]:
        """The order of rows, values outside; on larger data, by how much one unit moves the exponents of a choice."""
        yield self.outside(mechanism)
        found = [self._both(mechanism, pair) for pair in self.large(mechanism, effort.large_pairs // 20)]
        yield largest("one unit more", mechanism.height, (added for _, _, added in found))

        def moved(before: Found, after: Found) -> float:
            both = (mechanism.exponents(held, mechanism.root()) for held in (before, after))
            change = [float(b - a) for a, b in zip(*both, strict=True)]
            return (max(change) - min(change)) / float(mechanism.epsilons[0])

        check = "range of the exponents, in epsilon of a level"
        yield largest(check, 1.0 + 1e-9, (moved(before, after) for before, after, _ in found))

    def twins(self, mechanism: QuantileChoice) -> Iterator[Twin]:
        def overlapping(right: Any, _: Any, node: ShareChoice, part: int) -> Iterator[ShareChoice]:
            return (ShareChoice(side.first, side.last, node.start, node.end, side.level) for side in right(node, part))

        def too_small(self: QuantileChoice, node: ShareChoice) -> Any:
            return self.epsilons[node.level] / self.height

        def smaller_side(self: QuantileChoice, node: ShareChoice) -> Any:
            share = self.share_of(node)
            return self.epsilons[node.level] / (2 * min(share, 1 - share) * self.height)

        def every_row(self: QuantileChoice, places: Any, people: Any = None) -> Any:
            bins, rows = np.unique(places, return_counts=True)
            return Found(bins.astype(np.int64), rows.astype(np.int64) * self.vote)

        yield half_the_noise(mechanism)
        yield altered(mechanism, "choices with half the noise", rate=lambda right, _, node: 2 * right(node))
        yield from self.not_cut(mechanism, every_row)
        if mechanism.levels > 1:
            whole = tuple(mechanism.levels * each for each in mechanism.epsilons)
            yield twin(mechanism, "the epsilon of all levels for each", epsilons=whole)
        if len(mechanism.quantiles) > 2:
            yield altered(mechanism, "both sides look at everything", below=overlapping)
        if len(mechanism.quantiles) == 1 and mechanism.share_of(mechanism.root()) != Fraction(1, 2):
            yield twin(mechanism, "the score of a median for every share", rate=too_small)
            yield twin(mechanism, "min(q, 1-q) in place of max", rate=smaller_side)


register(QuantileChoice, lambda: (
    QuantileChoice(Budget(1.0), Grid(0, 3, 3), (0.5,), parts=2),
    QuantileChoice(Budget(1.0), Grid(0, 3, 3), (0.9,), parts=2),
    QuantileChoice(Budget(2.0), Grid(0, 4, 4), (0.25, 0.5, 0.9), parts=2, cells=2),
    QuantileChoice(Budget.zcdp(0.5), Grid(0, 3, 3), (0.1, 0.5), parts=3),
    QuantileChoice(Budget(1.0), Grid(0, 3, 3), (0.25, 0.5, 0.75), User(), 2, parts=2, cells=2),
), QuantileChoiceAudit())  # fmt: skip


# ---- people: what was added to noise of which size, read from runs of the release itself -----------------------------
# The release asks its source for noise and adds it to sums over people. A source that notes what its noise is added to
# gives, for two neighbouring data sets, the shift and the noise of every step; a source of given noise finds the cuts.
# The exact delta follows from these alone: nothing of the mechanism's own calibration is believed.

_NEVER = -(10**15)
_SIZES = (1, 2, 3, 16, 256, 300)
COMMON = [f"common {index:03d}" for index in range(3)]


class NoisySums(NamedTuple):
    """Noise of one size, and the sums that it was added to."""

    sigma: float
    sums: Counts


class _Noted(np.ndarray[Any, np.dtype[np.int64]]):
    """Noise that notes what it is added to.

    Where earlier steps are given, it is the noise with which their answers come out again: later questions depend on
    earlier answers, and what a step costs is its shift given those.
    """

    step: list[NoisySums]
    sigma: float
    again: list[NoisySums]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [np.asarray(part) for part in inputs]
        if ufunc is np.add and method == "__call__":
            (sums,) = (part for part, given in zip(plain, inputs, strict=True) if given is not self)
            self.step.append(NoisySums(self.sigma, np.array(sums, np.int64)))
            if len(self.again) >= len(self.step):
                earlier = self.again[len(self.step) - 1].sums
                answer = np.array(sums, np.int64)
                answer[: len(earlier)] = earlier[: len(answer)]
                return answer
        return getattr(ufunc, method)(*plain, **options)


class GivenNoise(ScriptedSource):
    """A source whose noise is given for each time it is asked; afterwards 0. It notes what its noise is added to."""

    def __init__(self, again: Iterable[NoisySums] = (), turns: Iterable[Any] = ()) -> None:
        super().__init__(turns=turns)
        self.again, self.steps = [*again], list[NoisySums]()

    def discrete_gaussian(self, sigma: Any, size: Any = None) -> Any:
        noise = super().discrete_gaussian(sigma, size).view(_Noted)
        noise.step, noise.sigma, noise.again = self.steps, float(sigma), self.again
        return noise


class Answers(People):
    """People whose answers are noted, or changed as a broken engine would.

    Args:
        people: Who answers.
        noted: Called at every answer.
        changes: By the name of a question, what answers it instead: from the people, and what is asked.
    """

    def __init__(
        self, people: People, noted: Callable[[], object] = lambda: None, **changes: Callable[..., Any]
    ) -> None:
        self.people, self.noted, self.changes = people, noted, changes
        self.counted: tuple[Counts, Counts] = (np.zeros(0, np.int64), np.zeros(0, np.int64))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.people, name)

    def _told(self, question: str, *asked: Any) -> Any:
        change = self.changes.get(question)
        return getattr(self.people, question)(*asked) if change is None else change(self.people, *asked)

    def _noted(self, question: str, *asked: Any) -> Any:
        answer = self._told(question, *asked)
        self.noted()
        return answer

    def discovery_weights(self, most_items: int) -> Counts:
        return np.asarray(self._noted("discovery_weights", most_items))

    def aimed_weights(self, most_items: int, aims: Counts) -> Counts:
        return np.asarray(self._noted("aimed_weights", most_items, aims))

    def items(self, places: Counts) -> Any:
        return self.people.items(places)

    def holdings(self, places: Counts) -> Iterator[Holdings]:
        return self.people.holdings(places)

    def combinations(self, places: Counts, size: int) -> Any:
        return Answers(self._told("combinations", places, size), self.noted)

    def lengths(self, places: Counts, weights: Counts) -> Any:
        return self._noted("lengths", places, weights)

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        self.counted = places, weights
        return np.asarray(self._noted("scaled_sums", places, weights, longest))


def _listed(mechanism: Any, people: Sequence[Sequence[str]]) -> ListedPeople:
    """The people in memory; where values are summed, every row has one far above the range."""
    if mechanism.values is None:
        return ListedPeople(people, rows=mechanism.rows)
    values = [[1e6 * mechanism.values.high] * len(items) for items in people]
    return ListedPeople(people, values=values, value_range=mechanism.values)


class Seen(NamedTuple):
    """The steps of a release, how many answers have no noise, and what was published."""

    steps: list[NoisySums]
    bare: int
    published: tuple[Any, ...]

    @classmethod
    def of(cls, source: GivenNoise, asked: Sequence[int], published: tuple[Any, ...]) -> Seen:
        """`asked` is how often noise had been asked for at each question: none may follow without any in between."""
        bare = sum(later <= earlier for earlier, later in pairwise([*asked, len(source.draws)]))
        return cls(source.steps, bare, published)


def _shift(first: NoisySums, second: NoisySums) -> float:
    """(euclidean distance of the sums)/sigma, without a person's own items, which come last."""
    length = min(len(first.sums), len(second.sums))
    difference = first.sums[:length].astype(float) - second.sums[:length].astype(float)
    return float(np.linalg.norm(difference)) / min(first.sigma, second.sigma)


def _passes(mechanism: PersonVectors, own: list[str], sigma: float) -> float:
    """The chance that one of a person's own items passes, found by trying: with other noise in the first look it weighs
    more or less in the second, so what the second must add is found for many. The others have no noise."""
    people = ListedPeople([own])
    at = int(np.argmax(people.discovery_weights(256) > 0))
    quiet = np.arange(len(own)) != at
    seconds: list[NoisySums] = []

    def passes(first: int, second: int) -> bool:
        source = GivenNoise(turns=[np.where(quiet, 0, first), np.where(quiet, _NEVER, second)])
        found = len(mechanism.discover(people, source)[0]) > 0
        seconds[:] = source.steps[1:]
        return found

    cut = least_whole(lambda level: passes(level, _NEVER))
    levels = np.linspace(-2.0 * sigma, cut - 1.0, 41).astype(np.int64).tolist()
    weights = []
    for level in levels:
        passes(level, _NEVER)
        weights.append(float(seconds[0].sums[at]))
    second = seconds[0].sigma
    # Both looks are added up: what is needed in all is linear in the first, which is tried for every level.
    ends = [weights[end] + least_whole(partial(passes, levels[end])) for end in (0, -1)]
    needed = np.interp(levels, (levels[0], levels[-1]), ends) - weights
    tried = zip(levels, needed.tolist(), strict=True)
    if not all(passes(level, math.ceil(n) + 20) and not passes(level, math.floor(n) - 20) for level, n in tried):
        return 1.0
    fine = np.linspace(levels[0], levels[-1], 4001)
    beyond = np.array([normal_tail(x) for x in fine / sigma])
    tails = np.array([normal_tail((n - 1.0) / second) for n in np.interp(fine, levels, needed)])
    inside = float(np.sum((beyond[:-1] - beyond[1:]) * (tails[:-1] + tails[1:]) / 2.0))
    return normal_tail((cut - 1) / sigma) + inside + (1.0 - float(beyond[0])) * float(tails[0])


def held(mechanism: PersonVectors, people: People, seed: int, confidence: float) -> bool:
    """Whether the intervals of a seeded release contain what they are said to, all of them at once.

    That is the true number; of rows and sums with nobody longer than what the release says that it covers. It is found
    by asking for sums that are scaled to that length.
    """
    watched = Answers(people)
    release = mechanism.of_snapshot(watched, seeded_source(seed))
    if not len(release):
        return True
    places, weights = watched.counted
    worth = 1.0 if mechanism.values is None else mechanism.values.high / ValueRange.STEPS
    scaling = release.error_model.scaling
    covered = None if scaling is None else scaling.covered
    longest = float(np.linalg.norm(weights) if covered is None else covered / worth * weights.max())
    true = people.scaled_sums(places, weights, longest) * (longest * worth / LENGTH / weights)
    truth = dict(zip(people.items(places).to_pylist(), true.tolist(), strict=True))
    exact = np.array([truth[item] for item in release.items])
    lower, upper = release.bounds(confidence)
    rounded_down = 1e-4 * exact
    return bool((lower <= exact + rounded_down).all() and (exact <= upper).all())


class PeopleAudit(Audit):
    found, intervals = "listed", "intervals of {}"
    """What happens to the items of a person alone with probability delta at most; and what they are called."""

    times = 1
    """Rows with each item of the person who is added."""

    few: tuple[list[str], Sequence[list[str]]] = [*"abc"], (["a"], ["b"], ["a", "b"], [*"abc"], [*"c" * 50, "a"])
    """Of small data: what the first person has, and what any other may have."""

    def crowd(self, mechanism: Any) -> list[list[str]]:
        """People enough for every item to be found without noise, each item with its own number of them."""
        few = len(COMMON)
        return [COMMON[: 1 + index % few] for index in range(math.ceil(16 * mechanism.threshold) * few)]

    def steps(self, mechanism: Any, people: Sequence[Sequence[str]], again: Sequence[NoisySums] = ()) -> Seen:
        """What is seen of a release without noise, or with the answers of an earlier one.

        Places follow the first appearance of items, so that a person who comes last has their own items at the end.
        """
        source, asked = GivenNoise(again), list[int]()
        watched = Answers(_listed(mechanism, people), noted=lambda: asked.append(len(source.draws)))
        release = mechanism.of_snapshot(watched, source)
        published = (release.rows(), release.error_model, release.left_out, release.threshold)
        return Seen.of(source, asked, published)

    def listed(self, mechanism: Any, own: People, source: RandomSource) -> int:
        """How many of the items of a person alone are."""
        return len(mechanism(own, source))

    def nobody(self, mechanism: Any) -> tuple[str, set[Any]]:
        """What could be listed though nobody has it, and all that somebody has."""
        return "items of nobody", {*COMMON}

    def bounds(self, mechanism: Any) -> list[Unit]:
        """The mechanism's own, and one item: much of what people have is scaled away then, and losses are asked for."""
        return list(dict.fromkeys((mechanism.unit, User(1))))

    def structure(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """All small data sets: one more person moves every sum by one length."""
        pairs = ([self.sums(mechanism, data) for data in pair] for pair in one_person_more(*self.few, effort))
        yield largest("one person's vector in every sum", float(LENGTH), (farthest(*pair) for pair in pairs))

    def sums(self, mechanism: Any, data: Sequence[Sequence[str]]) -> Sequence[Counts]:
        """All that gets noise."""
        people, weights = _listed(mechanism, data), np.array([300, 700, 1024])
        aimed, counted = people.aimed_weights(256, weights), people.scaled_sums(np.arange(3), weights, 900.0)
        return people.discovery_weights(256), aimed, counted

    def exact(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """delta from the shifts, the noise and the cuts of the release itself."""
        for bound in self.bounds(mechanism):
            yield from self._exact(replace(mechanism, unit=bound))

    def _exact(self, mechanism: PersonVectors) -> Iterator[Finding]:
        base, of = self.crowd(mechanism), f" ({mechanism.unit})"
        before = self.steps(mechanism, base)
        yield never(f"answers that are published without noise{of}", before.bare)
        worst, pairs, changed = 0.0, 0, 0
        for d in _SIZES:
            for common in {0, min(d, len(COMMON)), min(d, 1)}:
                own = [f"own {index:03d}" for index in range(d - common)]
                after = self.steps(mechanism, [*base, [*COMMON[:common], *own] * self.times], before.steps)
                # Beside the looks at items, questions are about what is public: they have equally many answers.
                sizes = [[len(step.sums) for step in seen.steps[2:]] for seen in (before, after)]
                if len(after.steps) != len(before.steps) or sizes[0] != sizes[1]:
                    worst = math.inf
                    continue
                mu = math.sqrt(sum(_shift(a, b) ** 2 for a, b in zip(before.steps, after.steps, strict=True)))
                worst = max(worst, self.delta(mechanism, mu, after.steps, own))
                pairs += 1
                changed += after.published != before.published
        yield checked(f"all steps together{of}", "delta", claim(mechanism)[1], worst, pairs)
        # With equal noisy answers nothing that is published may differ.
        yield never(f"what is published beside noisy answers{of}", changed, pairs)

    def delta(self, mechanism: PersonVectors, mu: float, steps: list[NoisySums], own: list[str]) -> float:
        """The larger of both directions; own items are what only the data with the person can show."""
        none, (epsilon, _) = 1.0, claim(mechanism)
        if own:
            # How many of the own items take part: their sums in the first look are not 0.
            part = int(np.count_nonzero(steps[0].sums[len(COMMON) :]))
            none = math.exp(part * math.log1p(-min(_passes(mechanism, own, steps[0].sigma), 0.5)))
        lost = math.log(max(none, 1e-300))
        with_person = 1.0 - none + none * gaussian_delta(epsilon - lost, mu)
        return max(with_person, gaussian_delta(epsilon + lost, mu))

    def statistical(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled release on one person alone, and whether intervals miss no more often than stated."""
        source, own = fresh_source(), _listed(mechanism, [[f"own {index:03d}" for index in range(16)]])
        found = (self.listed(mechanism, own, source) > 0 for _ in range(effort.runs))
        yield often(f"a person alone is {self.found}", mechanism.budget.delta, found, "delta")
        data, stated, runs = self.crowd(mechanism), 0.5, range(max(60, effort.runs // 100))
        for bound in self.bounds(mechanism):
            # Also where a bound of one item takes much of what people have.
            missed = self.missed(replace(mechanism, unit=bound), data, stated)
            check = f"{self.intervals.format(bound)} that miss the truth"
            yield often(check, 1.0 - stated, map(missed, runs), "share of releases")

    def missed(self, mechanism: Any, data: Sequence[Sequence[str]], confidence: float) -> Callable[[int], bool]:
        """Whether the intervals of a seeded release miss."""
        crowd = _listed(mechanism, data)
        return lambda seed: not held(mechanism, crowd, seed, confidence)

    def coupled(self, mechanism: Any, effort: Effort) -> Iterator[Finding]:
        """With equal noise the order of people and rows changes nothing, and nothing is listed that nobody has."""
        random, data, (what, known) = np.random.default_rng(1), self.crowd(mechanism), self.nobody(mechanism)
        shuffled = [list(random.permutation(data[index])) for index in random.permutation(len(data))]

        def broken(seed: int) -> int:
            first, second = ({*mechanism(_listed(mechanism, x), seeded_source(seed)).items} for x in (data, shuffled))
            return (not first <= known) + (first != second) + (not first)

        yield never(f"order of people, and {what}", map(broken, range(4)))

    def twins(self, mechanism: Any) -> Iterator[Twin]:
        def no_losses(right: Any, _: Any, *given: Any) -> Any:
            return replace(right(*given), ratios=(1.0,), lost=(0.0,), noise=None)

        yield from less_noise(mechanism, choose_length="sizes without noise", losses="losses without noise")
        changed = partial(_with_people, mechanism)
        longer = lambda people, most: 2 * people.discovery_weights(256)  # noqa: E731
        yield changed("weights of twice the length", discovery_weights=longer)
        any_number = lambda people, most: people.discovery_weights(2**30)  # noqa: E731
        yield changed("any number of items", discovery_weights=any_number)
        aimed = lambda people, most, aims: 2 * people.aimed_weights(most, aims)  # noqa: E731
        yield changed("a second look of twice the length", aimed_weights=aimed)
        without_aim = _without_aim(mechanism.calibration)
        yield twin(mechanism, "a cut that forgets what the second look aims at", calibration=without_aim)
        yield changed("counts scaled to half of the length they have", scaled_sums=twice_the_sums)
        yield altered(mechanism, "intervals that forget what scaling loses", losses=no_losses)


def twice_the_sums(people: People, *asked: Any) -> Counts:
    return 2 * people.scaled_sums(*asked)


def often(check: str, claimed: float, happened: Iterable[bool], quantity: str) -> Finding:
    """How often something happens in runs of the compiled release, at least: it is more seldom with 1e-7."""
    seen = [*happened]
    low, _ = clopper_pearson(sum(seen), len(seen), 1e-7)
    return checked(check, quantity, claimed, low, len(seen))


def one_person_more(first: list[str], sets: Sequence[list[str]], effort: Effort) -> Iterator[tuple[Any, Any]]:
    """All small data of these sets, and the same with one person more."""
    for *others, person in product(sets, repeat=3):
        base = [first, *others][: 1 + effort.length + 1]
        yield base, [*base, person]


def farthest(before: Sequence[Counts], after: Sequence[Counts]) -> float:
    return max(float(np.linalg.norm(two - one)) for one, two in zip(before, after, strict=True))


def less_noise(mechanism: Any, **steps: str) -> Iterator[Twin]:
    """Half the noise, lower cuts, and steps (by the member that has them) whose answers have no noise."""
    right = mechanism.calibration
    yield twin(mechanism, "half the noise", calibration=replace(right, mu=2.0 * right.mu))
    if any(right.cuts):
        first, second = (int(0.995 * cut) for cut in right.cuts)
        yield twin(mechanism, "cuts half a percent lower", calibration=replace(right, cuts=(first, second)))
    for member, name in steps.items():
        bare = lambda right, _, *given: right(*given[:-1], ScriptedSource())  # noqa: E731
        yield altered(mechanism, name, **{member: bare})


def _without_aim(right: Calibration) -> Calibration:
    """The cut for a second look in which each of a person's d items has 1/sqrt(d), as in the first: what the right one
    would be if the first noise decided nothing."""
    d = 256.0
    allowed, shift = float(alone(right.mu, right.z, np.array([d]))[0]), 1.0 / math.sqrt(d) / float(right.sigma_of(LOOK))
    low, high = 0.0, right.z
    for _ in range(50):
        z = (low + high) / 2.0
        low, high = (low, z) if 2.0 * normal_tail(z - shift * LENGTH) <= allowed else (z, high)
    return replace(right, cuts=(right.cuts[0], int(high / right.z * right.cuts[1])))


def _with_people(mechanism: PersonVectors, name: str, **changes: Callable[..., Any]) -> Twin:
    """A twin that is told something else by people."""

    def told(right: Any, _: Any, people: People, *given: Any) -> Any:
        return right(people if getattr(people, "changes", None) else Answers(people, **changes), *given)

    return altered(mechanism, name, of_snapshot=told, discover=told)


register(PersonVectors, lambda: (
    PersonVectors(Budget(1.0, 1e-4), 2),
    PersonVectors(Budget(1.0, 1e-6), 2, rows=True),
    PersonVectors(Budget(4.0, 1e-9), 100, User(2)),
    PersonVectors(Budget(1.0, 1e-4), 2, groups=3),
), PeopleAudit())  # fmt: skip


# ---- pairs: the same steps, and a look at pairs of what was discovered between them ----------------------------------


class _TwoVectors(Combinations):
    """A twin: the pairs of a person are two vectors, each as long as one may be."""

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        sums = np.zeros(len(places), np.int64)
        for part in (slice(0, None, 2), slice(1, None, 2)):
            sums[part] = super().scaled_sums(places[part], weights[part], longest)
        return sums


class _BothOrders(Combinations):
    """A twin: (a, b) and (b, a) count for the same pair."""

    def scaled_sums(self, places: Counts, weights: Counts, longest: float) -> Counts:
        return 2 * super().scaled_sums(places, weights, longest)


class _AnyItems(Combinations):
    """A twin: pairs of all items that anybody has, whether or not they were discovered."""

    def __init__(self, people: People, places: Counts, size: int) -> None:
        others = np.setdiff1d(np.arange(len(people.discovery_weights(256))), places)
        super().__init__(people, np.concatenate([places, others]), size)

    def products(self, numbers: Any) -> Any:
        return np.ones(self.total)


class _PairsAudit(PeopleAudit):
    """The checks of people, of what they have together."""

    found, intervals = "discovered", "intervals"
    few = [*"abcde"], (["a", "b"], ["b"], [*"abc"], [*"acd"], [*"abcd"], ["d", "e"])

    def listed(self, mechanism: PersonPairs, own: People, source: RandomSource) -> int:
        """Their items may be discovered: all pairs of these are public then."""
        return len(mechanism.discover(own, source)[0])

    def nobody(self, mechanism: PersonPairs) -> tuple[str, set[Any]]:
        return "pairs of other items", {*combinations(COMMON, mechanism.size)}

    def bounds(self, mechanism: PersonPairs) -> list[Unit]:
        return [mechanism.unit]

    def structure(self, mechanism: PersonPairs, effort: Effort) -> Iterator[Finding]:
        """Sums of pairs move as sums of people do; and one more person moves one bin by one."""
        yield from super().structure(mechanism, effort)

        def bins(data: Sequence[Sequence[str]]) -> int:
            made = ListedPeople(data).combinations(np.arange(4), mechanism.size)
            every = np.arange(made.total)
            return int(sum(made.lengths(every, np.ones_like(every))[1]))

        moved = (bins(after) - bins(before) for before, after in one_person_more(*self.few, effort))
        yield largest("one person's bins in the sizes", 1, moved)

    def sums(self, mechanism: PersonPairs, data: Sequence[Sequence[str]]) -> Sequence[Counts]:
        made = ListedPeople(data).combinations(np.arange(4), mechanism.size)
        weights = np.array([300, 700, 1024, 800])[: math.comb(4, mechanism.size)]
        return made.discovery_weights(256), made.scaled_sums(np.arange(len(weights)), weights, 900.0)

    def missed(self, mechanism: PersonPairs, data: Sequence[Sequence[str]], confidence: float) -> Callable[[int], bool]:
        """Whether they miss, where everybody counts in full and where not."""
        crowd = ListedPeople(data)
        together = (pair for items in data for pair in combinations(sorted({*items}), mechanism.size))
        truth = Counter(together)

        def missed(seed: int) -> bool:
            release = mechanism(crowd, seeded_source(seed))
            exact, (lower, upper) = np.array([truth[item] for item in release.items]), release.bounds(confidence)
            return not ((lower <= exact) & (exact <= upper)).all()

        return missed

    def twins(self, mechanism: PersonPairs) -> Iterator[Twin]:
        yield from less_noise(mechanism, look="a look at pairs without noise", choose_length="sizes without noise")
        if mechanism.size == 2:  # of three items there is one triple
            yield _with_people(mechanism, "two vectors of a person", combinations=_TwoVectors)
        yield _with_people(mechanism, "pairs counted in both orders", combinations=_BothOrders)
        yield _with_people(mechanism, "pairs of items that were not discovered", combinations=_AnyItems)


register(
    PersonPairs, lambda: (PersonPairs(Budget(1.0, 1e-4), 2), PersonPairs(Budget(4.0, 1e-9), 100, size=3)), _PairsAudit()
)


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
    more = "one row more"

    def neighbours(self, mechanism: RowMoments) -> Neighbours:
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

        yield largest("one unit moves all sums together", mechanism.height, moved())

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
        yield never("what is published is a function of the noisy sums", wrong)
        draw = source.draws[0]
        # Laplace noise hides what is moved in l1, Gaussian noise in l2.
        order = 1 if draw.law == "laplace" else 2
        moved = [float(np.linalg.norm(_adds(mechanism, unit).ravel(), order)) for unit in _units(mechanism)]
        yield shift_finding(mechanism.budget, draw, 1, math.ceil(max(moved) / (1.0 + 1e-12)), "one unit behind noise")
        if mechanism.groups is None:
            # The chance that a row alone in its group passes: the law of the sum of all noises, and the cut by trying.
            parts, noise = mechanism.moment.parts, NoiseLaw(draw.law, draw.scale)
            cut = least_whole(lambda sum: bool(mechanism.passed(np.array([[sum] + [0] * (parts - 1)]))[0]))
            law = reduce(np.convolve, [noise.mass] * parts)
            above = [int(_adds(mechanism, unit).sum()) for unit in _units(mechanism)]
            chance = float(law[max(cut - max(above) + parts * noise.reach, 0) :].sum())
            yield checked("a row alone is shown", "delta", mechanism.budget.delta, chance, len(above))

    def coupled(self, mechanism: RowMoments, effort: Effort) -> Iterator[Finding]:
        """With the same noise one unit moves the sums of its own group, and nothing else."""
        full, empty, _ = self.neighbours(mechanism)

        def broken(seed: int) -> bool:
            one, two = (mechanism.draw(sums, seeded_source(seed)) for sums in (empty, full))
            drawn = mechanism(GroupSums(full), seeded_source(seed))
            return bool((two - one != full).any()) or not drawn.guarantee.seeded

        yield never("one unit moves its own sums alone", map(broken, range(20)))

    def twins(self, mechanism: RowMoments) -> Iterator[Twin]:
        cut, moment = mechanism.threshold, mechanism.moment
        bare_zeros = lambda right, _, sums, source: np.where(sums > 0, right(sums, source), 0)  # noqa: E731
        yield half_the_noise(mechanism)
        yield altered(mechanism, "no noise on 0", draw=bare_zeros)
        if cut is not None:
            yield twin(mechanism, "a threshold that is one lower", threshold=cut - 1)
        if moment.parts > 1:
            beside = _Beside(moment.kind, moment.low, moment.high, moment.finest)
            yield twin(mechanism, "parts that do not share one bound", moment=beside)
        if mechanism.max_items is not None:
            yield noise_for_one(mechanism, "noise for one value of a person", mechanism.max_items)


def _shown(drawn: Any) -> tuple[Any, ...]:
    return tuple(column.tolist() for column in (drawn.kept, drawn.values, drawn.lower, drawn.upper))


register(RowMoments, lambda: (
    RowMoments(Budget(1.0, 1e-4), ValueMoment("count"), None),
    RowMoments(Budget(1.0, 1e-4), ValueMoment("mean", 0, 1, 50), None),
    RowMoments(Budget(1.0), ValueMoment("sum", -1, 1, 2**26), 2),
    RowMoments(Budget.zcdp(0.5), ValueMoment("variance", -1, 3, 2**26), 3),
    RowMoments(Budget(0.1, 0.02), ValueMoment("signed", -2, 3)),
    RowMoments(Budget(1.0), ValueMoment("count"), 3, unit=User(), counted="values", max_items=2),
), _RowsAudit())  # fmt: skip


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

    def changed(self, changes: dict[str, Callable[..., Any]]) -> _Through:
        """With changed answers below."""
        return _Through(self.found, lambda people: self.wrap(Answers(people, **changes)))


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

    few = COMMON, (COMMON[:1], COMMON[1:2], COMMON[:2], COMMON, COMMON[2:] * 50 + COMMON[:1])

    def bounds(self, mechanism: PersonMoments) -> list[Unit]:
        return [mechanism.unit]

    def crowd(self, mechanism: PersonMoments) -> list[list[str]]:
        """Over a list everybody is counted: some have many rows, so that scaling loses something."""
        if mechanism.listed is None:
            return super().crowd(mechanism)
        return [COMMON[: 1 + index % 3] * (20 if index % 10 == 0 else 1) for index in range(300)]

    def steps(self, mechanism: PersonMoments, people: Sequence[Sequence[str]], again: Sequence[NoisySums] = ()) -> Seen:
        asked: list[int] = []
        source, note = GivenNoise(again), lambda: asked.append(len(source.draws))
        found = _Through(_people(mechanism, people).found, lambda people: Answers(people, noted=note))
        places, release = mechanism.draw(found, source)
        published = (places.tolist(), release.rows(), release.error_model, release.left_out)
        return Seen.of(source, asked, published)

    def delta(self, mechanism: Any, mu: float, steps: list[NoisySums], own: list[str]) -> float:
        """Groups beside a public list are nobody's own: their rows are left out."""
        return super().delta(mechanism, mu, steps, own if mechanism.listed is None else [])

    def sums(self, mechanism: PersonMoments, data: Sequence[Sequence[str]]) -> Sequence[Counts]:
        found, weights = _people(mechanism, data), np.resize([300, 700, 1024], 3 * mechanism.moment.parts)
        looks = () if found.groups is None else (found.groups.discovery_weights(256),)
        return (*looks, found.discovered(np.arange(3)).scaled_sums(np.arange(len(weights)), weights, 900.0))

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

        yield never("order of people, and groups of nobody", map(broken, range(4)))

    def twins(self, mechanism: PersonMoments) -> Iterator[Twin]:
        parts = mechanism.moment.parts

        def changed(name: str, **changes: Callable[..., Any]) -> Twin:
            draw = lambda right, _, found, source: right(found.changed(changes), source)  # noqa: E731
            return altered(mechanism, name, draw=draw)

        def apart(people: People, places: Counts, weights: Counts, longest: float) -> Counts:
            groups = (places // parts == group for group in np.unique(places // parts))
            return np.concatenate([people.scaled_sums(places[at], weights[at], longest) for at in groups])

        yield from less_noise(mechanism, choose_length="sizes without noise", losses="losses without noise")
        yield changed("groups of a person that are scaled apart", scaled_sums=apart)
        yield changed("sums of twice the length", scaled_sums=twice_the_sums)


register(PersonMoments, lambda: (
    PersonMoments.of(Budget(1.0, 1e-4), ValueMoment("mean", 0, 1, 2**20), None),
    PersonMoments.of(Budget.zcdp(0.5), ValueMoment("count"), 40),
    PersonMoments.of(Budget(4.0, 1e-6), ValueMoment("variance", 0, 1, 2**26), 4),
    PersonMoments.of(Budget(4.0, 1e-6), ValueMoment("split", -2, 3, 2**20), 6),
), _MomentsAudit())  # fmt: skip
