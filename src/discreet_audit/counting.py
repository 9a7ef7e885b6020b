"""The rows of counting: a count, different values credited to people, and every item of a public list.

What is claimed is one shift behind noise of one law. The shift is found by trying all small data, the law and the scale
are read from what a release asks its source for, and the exact divergence follows from these alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np

from discreet.central import ChosenDistinct, CreditedDistinct, NoisyCount, UniverseHistogram
from discreet.noise import fresh_source, seeded_source
from discreet.privacy import Budget, Event, User
from discreet.summaries import ExactCounts
from discreet_audit.findings import Finding
from discreet_audit.laws import NoiseLaw, gaussian_split_delta
from discreet_audit.registry import Effort, Twin, row
from discreet_audit.sabotage import half_the_noise, twin
from discreet_audit.sources import Draw, ScriptedSource
from discreet_audit.statistical import ScoredPair, measure

__all__ = ["promised", "shift_finding"]

_PURE, _SOME, _RHO = Budget(1.0), Budget(1.0, 0.02), Budget.zcdp(0.5)
_CONFIDENCE = 1e-12


def shift_finding(budget: Budget, draw: Draw, changes: int, height: int) -> Finding:
    """What a unit loses that moves so many numbers by a height each, behind the noise that was asked for."""
    told = f"{changes} numbers moved by {height}"
    if budget.rho is not None:
        # Laplace noise of rate r is (r^2/2)-zCDP, the discrete Gaussian (shift^2/2 sigma^2)-zCDP.
        distance = math.sqrt(changes) * height if draw.law == "gaussian" else changes * height
        lost = (distance / float(draw.scale)) ** 2 / 2.0
        return Finding("exact", told, "rho", budget.rho * (1.0 + _CONFIDENCE), lost)
    assert budget.epsilon is not None
    if draw.law == "laplace":
        lost = float(changes * height / draw.scale)
        return Finding("exact", told, "epsilon", budget.epsilon * (1.0 + _CONFIDENCE), lost)
    noise = NoiseLaw("gaussian", draw.scale)
    if height == 1:
        lost = gaussian_split_delta(noise, 0, changes, 1, budget.epsilon)
    else:
        length = 2 * noise.reach + height * changes
        first, second = (noise.from_cut(base, -noise.reach, length) for base in (height, 0))
        lost = float(np.maximum(first - math.exp(budget.epsilon) * second, 0.0).sum())
    return Finding("exact", told, "delta", budget.delta, lost)


def promised(mechanism: Any) -> tuple[float, float]:
    """(epsilon, delta) that runs are held against; of rho, by the tight conversion at a delta that shows in runs."""
    budget: Budget = mechanism.budget
    if budget.rho is None:
        return budget.epsilon or 0.0, budget.delta
    from discreet.privacy.calibration.zcdp import zcdp_epsilon

    return zcdp_epsilon(budget.rho, 1e-2), 1e-2


class CountAudit:
    """The four checks of one number with noise."""

    def structure(self, mechanism: NoisyCount, effort: Effort) -> Iterator[Finding]:
        """All small data: by how much one more row, or person, moves the number."""
        moved = [*_moved(mechanism, 3 + effort.length)]
        found = "one unit moves the count"
        yield Finding("structure", found, "sensitivity", mechanism.sensitivity, max(moved), len(moved))

    def exact(self, mechanism: NoisyCount, effort: Effort) -> Iterator[Finding]:
        """The shift behind the noise that the release asks for, and that it publishes the sum and nothing else."""
        wrong, source = 0, ScriptedSource()
        for count, noise in product((0, 1, 7, 1000), (-30, -1, 0, 1, 30)):
            source = ScriptedSource(noise)
            estimate = mechanism(count, source)
            again = mechanism(count + 5, ScriptedSource(noise - 5))  # another count, the same sum
            wrong += estimate.value != max(count + noise, 0) or estimate != again
            wrong += len(source.draws) != 1 or not estimate.lower <= estimate.value <= estimate.upper
        yield Finding("exact", "what is published is a function of the noisy count", "violations", 0, wrong)
        yield shift_finding(mechanism.budget, source.draws[0], 1, mechanism.sensitivity)

    def statistical(self, mechanism: NoisyCount, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled release, and how often its interval misses."""
        epsilon, delta = promised(mechanism)
        source = fresh_source()
        pair = ScoredPair("one unit more", 100 + mechanism.sensitivity, 100, float)
        bound = measure(lambda count: mechanism.draw(count, source), pair, delta, effort.runs)
        yield Finding("statistical", pair.name, "epsilon", epsilon, bound, 1, f"{effort.runs} runs of each")

    def coupled(self, mechanism: NoisyCount, effort: Effort) -> Iterator[Finding]:
        """With the same noise one more unit moves the number, and nothing else."""
        broken = 0
        for seed in range(20):
            one, two = (mechanism(1000 + more, seeded_source(seed)) for more in (0, 1))
            broken += two.value - one.value != 1 or one.guarantee != two.guarantee or one.is_private
        yield Finding("coupled", "one unit moves the number alone", "violations", 0, broken, 20)
        if isinstance(mechanism, CreditedDistinct):
            moved = [*_moved_at_random(mechanism, effort.large_pairs // 10)]
            yield Finding("coupled", "one person more", "sensitivity", mechanism.sensitivity, max(moved), len(moved))


def _moved(mechanism: NoisyCount, values: int) -> Iterator[int]:
    """By how much one more unit moves the number, for all small data; a credited number must not fall, either."""
    if isinstance(mechanism, CreditedDistinct):
        sets = [chosen for size in range(4) for chosen in combinations(range(values), size)]
        for *people, person in product(sets, repeat=3):
            more = _credited(mechanism, [*people, person]) - _credited(mechanism, people)
            yield more if more >= 0 else 10**6
        return
    different = mechanism.counted != "rows"
    units: list[tuple[str, ...]] = [("c",), ("c",) * 3] if isinstance(mechanism.unit, User) else [("a",), ("c",)]
    for length, unit in product(range(5), units):
        for rows in product("ab", repeat=length):
            yield abs(_number((*rows, *unit), different) - _number(rows, different))


def _moved_at_random(mechanism: CreditedDistinct, pairs: int) -> Iterator[int]:
    """The same for larger data."""
    random = np.random.default_rng(7)
    for _ in range(pairs):
        sizes = random.integers(0, 6, size=12)
        *people, person = ([int(value) for value in random.integers(0, 25, size=size)] for size in (*sizes, 5))
        more = _credited(mechanism, [*people, person]) - _credited(mechanism, people)
        yield more if more >= 0 else 10**6


def _number(rows: Sequence[str], different: bool) -> int:
    summary = ExactCounts()
    summary.update(list(rows))
    return len(summary) if different else summary.total


def _credited(mechanism: CreditedDistinct, people: Sequence[Sequence[int]]) -> int:
    pairs = [(person, value) for person, values in enumerate(people) for value in values]
    who, what = np.array(pairs, np.int64).reshape(-1, 2).T
    return mechanism.count_of(who, what)


def _count_twins(mechanism: NoisyCount) -> Sequence[Twin]:
    def exact_zero(self: Any, count: int, source: Any) -> int:
        return type(mechanism).draw(self, count, source) if count else 0

    twins = [half_the_noise(mechanism), twin(mechanism, "no noise on 0", draw=exact_zero)]
    if isinstance(mechanism, CreditedDistinct):
        twins.append(twin(mechanism, "every value is counted", "coupled", count_of=_every_value))
    return twins


class ChoiceAudit:
    """The four checks of a number whose sensitivity is chosen first."""

    def structure(self, mechanism: ChosenDistinct, effort: Effort) -> Iterator[Finding]:
        """All small data: one more person moves every score by at most 1, and f_m by at most m."""
        scores, heights, pairs = 0, 0.0, 0
        for before, after in _one_person_more(mechanism, 3 + effort.length):
            scores = max(scores, int(np.abs(mechanism.scores(after) - mechanism.scores(before)).max()))
            heights = max(heights, *((after[m] - before[m]) / m for m in before))
            pairs += 1
        yield Finding("structure", "one person moves a score, in steps", "sensitivity", mechanism.STEPS, scores, pairs)
        yield Finding("structure", "one person moves f_m, in m", "sensitivity", 1, heights, pairs)

    def exact(self, mechanism: ChosenDistinct, effort: Effort) -> Iterator[Finding]:
        """What the choice and the noise cost together, by what they ask their source for, for every m."""
        lost, wrong = 0.0, 0
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
            spent = float(choice.scale) * mechanism.STEPS  # epsilon/sensitivity, of scores that move by so many steps
            wrong += noise.law == "laplace" and mechanism.budget.rho is not None
            rest = _loss(mechanism.credits(most).budget, noise, most)
            lost = max(lost, spent**2 / 2.0 + rest if mechanism.budget.rho is not None else spent + rest)
        yield Finding("exact", "the chosen m, its noise, and nothing else", "violations", 0, wrong)
        given = mechanism.budget
        claimed, kind = (given.epsilon, "epsilon") if given.rho is None else (given.rho, "rho")
        yield Finding("exact", "choice and noise", kind, float(claimed or 0.0) * (1.0 + _CONFIDENCE), lost)

    def statistical(self, mechanism: ChosenDistinct, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled release."""
        epsilon, delta = promised(mechanism)
        source = fresh_source()
        first, second = ({m: 200 + more * m for m in mechanism.CANDIDATES} for more in (1, 0))
        pair = ScoredPair("one person more", first, second, lambda drawn: float(drawn[1]))
        bound = measure(lambda found: mechanism.draw(found, source), pair, delta, effort.runs)
        yield Finding("statistical", pair.name, "epsilon", epsilon, bound, 1, f"{effort.runs} runs of each")

    def coupled(self, mechanism: ChosenDistinct, effort: Effort) -> Iterator[Finding]:
        """Larger data: one more person moves the scores and what is credited as claimed."""
        random, worst, pairs = np.random.default_rng(7), 0.0, effort.large_pairs // 40
        for _ in range(pairs):
            sizes = random.integers(0, 6, size=12)
            *people, person = (random.integers(0, 25, size=size).tolist() for size in (*sizes, 5))
            before, after = (_credits(mechanism, rows) for rows in (people, [*people, person]))
            moved = np.abs(mechanism.scores(after) - mechanism.scores(before)).max() / mechanism.STEPS
            worst = max(worst, float(moved), *((after[m] - before[m]) / m for m in before))
        yield Finding("coupled", "one person more", "sensitivity", 1, worst, pairs)


def _loss(budget: Budget, noise: Draw, height: int) -> float:
    """Epsilon or rho of noise on a number that moves by a height; of Gaussian noise with a delta, the budget's."""
    if noise.law == "laplace":
        return float(height / noise.scale)
    if budget.rho is not None:
        return (height / float(noise.scale)) ** 2 / 2.0
    assert budget.epsilon is not None
    return budget.epsilon if shift_finding(budget, noise, 1, height).passed else math.inf


def _credits(mechanism: ChosenDistinct, people: Sequence[Sequence[int]]) -> dict[int, int]:
    pairs = [(person, value) for person, values in enumerate(people) for value in values]
    who, what = np.array(pairs, np.int64).reshape(-1, 2).T
    return dict(mechanism.count_of(who, what))


def _one_person_more(mechanism: ChosenDistinct, values: int) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
    sets = [chosen for size in range(4) for chosen in combinations(range(values), size)]
    for *people, person in product(sets[::2], repeat=3):
        yield _credits(mechanism, people), _credits(mechanism, [*people, person])


def _choice_twins(mechanism: ChosenDistinct) -> Sequence[Twin]:
    part = mechanism.choice_epsilon

    def bare(self: Any, found: Any, source: Any) -> int:
        return int(self.CANDIDATES[int(np.argmax(self.scores(found)))])

    def every_value(self: Any, people: Any, values: Any) -> dict[int, int]:
        return dict.fromkeys(self.CANDIDATES, len(np.unique(values)))

    return [
        twin(mechanism, "the budget spent twice", parts=(part, mechanism.budget)),
        twin(mechanism, "a choice for twice its part", choice_epsilon=2 * part),
        twin(mechanism, "a choice without noise", choose=bare),
        twin(mechanism, "every value is counted", "coupled", count_of=every_value),
    ]


def _every_value(self: CreditedDistinct, people: Any, values: Any) -> int:
    return len(np.unique(values))


class UniverseAudit:
    """The four checks of a histogram over a public list."""

    def filled(self, mechanism: UniverseHistogram, rows: Sequence[Any]) -> ExactCounts:
        """The exact counts of rows."""
        summary = ExactCounts()
        summary.update(np.asarray(rows, np.int64))
        return summary

    def structure(self, mechanism: UniverseHistogram, effort: Effort) -> Iterator[Finding]:
        """All short streams: one more event, or a person's items, move so many counts by 1."""
        inside, m = mechanism.universe.size, mechanism.changes
        items = range(min(inside, 3) + 2)  # two of them may be outside
        worst, height, pairs = 0, 0, 0
        for length in range(3 + effort.length):
            for rows in product(items, repeat=length):
                for person in combinations(items, m):
                    counts = (mechanism.counts(self.filled(mechanism, data)) for data in (rows, (*rows, *person)))
                    moved = np.subtract(*reversed([*counts]))
                    worst, height = max(worst, int(np.abs(moved).sum())), max(height, int(np.abs(moved).max()))
                    pairs += 1
        yield Finding("structure", "counts that one unit moves", "sensitivity", m, worst, pairs)
        yield Finding("structure", "by how much", "sensitivity", 1, height, pairs)

    def exact(self, mechanism: UniverseHistogram, effort: Effort) -> Iterator[Finding]:
        """The shift behind the noise; every item is published with noise of its own, at 0 as well."""
        size, wrong, draws = mechanism.universe.size, 0, []
        each = np.arange(size) * 3 - size
        for rows in ((), (0,), (0, 0, 1), (size + 5,)):
            source = ScriptedSource(0, each)
            release = mechanism(self.filled(mechanism, rows), source)
            expected = np.bincount([r for r in rows if r < size], minlength=size) + each
            shown = dict(zip(release.items, release.counts.tolist(), strict=True))
            wrong += [shown.get(item) for item in range(size)] != expected.tolist()
            draws += source.draws
        wrong += any(draw != draws[0] for draw in draws) or draws[0].size != size
        yield Finding("exact", "every item has noise of its own", "violations", 0, wrong)
        yield shift_finding(mechanism.budget, draws[0], mechanism.changes, 1)

    def statistical(self, mechanism: UniverseHistogram, effort: Effort) -> Iterator[Finding]:
        """Runs of the compiled release: the sum of the counts that a unit moves."""
        epsilon, delta = promised(mechanism)
        m, source = mechanism.changes, fresh_source()
        own = list(range(m))

        def score(drawn: Any) -> float:
            return float(drawn.noisy[:m].sum())

        pair = ScoredPair("one unit more", self.filled(mechanism, own), self.filled(mechanism, []), score)
        bound = measure(partial(mechanism.draw, source=source), pair, delta, effort.runs)
        yield Finding("statistical", pair.name, "epsilon", epsilon, bound, 1, f"{effort.runs} runs of each")

    def coupled(self, mechanism: UniverseHistogram, effort: Effort) -> Iterator[Finding]:
        """With equal noise the order of rows and items outside change nothing; the order shown is that of counts."""
        broken, rows = 0, [0, 0, 1, mechanism.universe.size + 1]
        for seed in range(10):
            releases = [
                mechanism(self.filled(mechanism, data), seeded_source(seed)) for data in (rows, rows[::-1], rows[:3])
            ]
            payloads = {release.to_payload() for release in releases}
            counts = releases[0].counts.tolist()
            broken += len(payloads) != 1 or counts != sorted(counts, reverse=True) or not releases[0].guarantee.seeded
        yield Finding("coupled", "order of rows, items outside", "violations", 0, broken, 10)


def _histogram_twins(mechanism: UniverseHistogram) -> Sequence[Twin]:
    draw = type(mechanism).draw

    def bare_zeros(self: Any, summary: Any, source: Any) -> Any:
        drawn = draw(self, summary, source)
        return type(drawn)(drawn.raw, np.where(drawn.raw.counts > 0, drawn.noisy, 0), drawn.keep)

    twins = [half_the_noise(mechanism), twin(mechanism, "no noise on 0", draw=bare_zeros)]
    if mechanism.changes > 1:
        factor = mechanism.changes if mechanism.noise.law == "laplace" else math.sqrt(mechanism.changes)
        twins.append(
            twin(
                mechanism,
                "noise for one item of a person",
                scale=type(mechanism.scale)(float(mechanism.scale) / factor),
            )
        )
    return twins


row(
    NoisyCount,
    lambda: (
        NoisyCount(_PURE),
        NoisyCount(_RHO, User(), "people"),
        NoisyCount(_SOME, Event(), "values"),
        NoisyCount(Budget(0.1, 0.02), User(), "people"),
    ),
    CountAudit(),
    _count_twins,
)
row(
    CreditedDistinct,
    lambda: (
        CreditedDistinct(_PURE),
        CreditedDistinct(_RHO, max_items=2),
        CreditedDistinct(Budget(0.5, 0.02), max_items=2),
    ),
    CountAudit(),
    _count_twins,
)
row(
    ChosenDistinct,
    lambda: (
        ChosenDistinct(_PURE),
        ChosenDistinct(_RHO),
        ChosenDistinct(Budget(0.5, 1e-6)),
    ),
    ChoiceAudit(),
    _choice_twins,
)
row(
    UniverseHistogram,
    lambda: (
        UniverseHistogram(_PURE, range(4)),
        UniverseHistogram(_RHO, range(5), User(), 2),
        UniverseHistogram(Budget(1.0, 1e-6), range(6), User(), 3),
        UniverseHistogram(_PURE, range(6), User(), 2),
    ),
    UniverseAudit(),
    _histogram_twins,
)
