"""The rows of `discreet.pan`, and what the papers print of it: looks at the compiled table, and joint laws of looks and
outputs."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from discreet.errors import ParameterError
from discreet.noise import RandomSource, seeded_source
from discreet.pan import CroppedMean, Density, DistinctCount, HeavyFraction, Incidence, ModularIncidence, Occurrences
from discreet.pan.element_law import BitCell, CounterCell, ElementLaw
from discreet.pan.responses import ONE, Response, response_weights
from discreet.privacy import Budget
from discreet.published import InnerProductCounter
from discreet_audit.core import SLACK, Audit, Effort, Finding, Twin, altered, checked, largest, never, register, twin
from discreet_audit.exact import ScriptedSource, WeakenedSource, law_of, ratio_loss, worst_pair
from discreet_audit.statistical import measure_outputs, proved

# ---- exact joint laws of what an adversary sees of an element: its cells at intrusions, and outputs ------------------
# A history is a tuple of tokens: "x" is an occurrence of the element, "look" an unannounced intrusion, "announce" an
# intrusion followed by re-randomisation, "output" a release. All states of the element's cells are enumerated, so the
# loss of two histories is computed and not estimated. The cells of other elements are drawn and moved apart from these,
# and so are as likely in both histories.

Law = dict[Any, float]
History = tuple[str, ...]


class Bit:
    """What a `BitCell` does. State: (counter, bit)."""

    def __init__(self, cell: BitCell) -> None:
        self.unseen, self.seen, self.modulus, self.step = float(cell.unseen), float(cell.seen), cell.modulus, cell.step

    def _anywhere(self, chance: float) -> Law:
        """A counter that may be at any place, and a bit that is 1 with this chance."""
        bits = ((1, chance), (0, 1 - chance))
        return {(counter, bit): p / self.modulus for counter in range(self.modulus) for bit, p in bits}

    def start(self) -> Law:
        return self._anywhere(self.unseen)

    def occurs(self, state: Any, rounds: int) -> Law:
        """After this many announced intrusions: a new bit is sent through the coins as often as those of others."""
        counter, bit = state[0] + self.step, state[1]
        if counter < self.modulus:
            return {(counter, bit): 1.0}
        chance = self.seen
        for _ in range(rounds):
            chance = chance * self.seen + (1 - chance) * self.unseen
        return {(counter % self.modulus, 1): chance, (counter % self.modulus, 0): 1 - chance}

    def announced(self, state: Any) -> Law:
        return self._anywhere(self.seen if state[1] else self.unseen)


class Shifted:
    """What a `CounterCell` does. State: the counter."""

    def __init__(self, cell: CounterCell) -> None:
        self.shift = [float(p) for p in cell.shift]

    def start(self) -> Law:
        return dict(enumerate(self.shift))

    def occurs(self, state: Any, rounds: int) -> Law:
        return {(state + 1) % len(self.shift): 1.0}

    def announced(self, state: Any) -> Law:
        return {(state + i) % len(self.shift): p for i, p in enumerate(self.shift)}


@dataclass(frozen=True)
class CellsOfElement:
    """The independent cells of one element, and what an output counts of their states, with Laplace noise.

    `scales` has the scale of each count's noise. Continuous and discrete Laplace noise give the same ratios on the
    values where it matters.
    """

    cells: Sequence[Bit | Shifted]
    statistic: Callable[[tuple[Any, ...]], tuple[float, ...]]
    scales: tuple[float, ...]

    @classmethod
    def of(cls, law: ElementLaw) -> CellsOfElement:
        """The same with the cells of an estimator's own law."""
        cells = [Shifted(cell) if isinstance(cell, CounterCell) else Bit(cell) for cell in law.cells]

        def statistic(states: tuple[Any, ...]) -> tuple[float, ...]:
            whole = (law.pairs or isinstance(cell, Shifted) for cell in cells)
            return law.statistic(tuple(state if so else state[1] for so, state in zip(whole, states, strict=True)))

        return cls(cells, statistic, tuple(map(float, law.scales)))


def elements_of(estimator: Any) -> list[CellsOfElement]:
    """What an estimator does with one element, with its own numbers: for each role that it may have."""
    return [CellsOfElement.of(law) for law in estimator.element_laws()]


def _together(laws: Iterable[Law]) -> Law:
    return {
        tuple(state for state, _ in parts): math.prod(p for _, p in parts)
        for parts in itertools.product(*(law.items() for law in laws))
    }


Seen = dict[tuple[Any, ...], dict[tuple[float, ...], float]]
"""By what the looks showed: the mixture of all outputs' values, without their noise."""


def what_is_seen(element: CellsOfElement, history: History) -> Seen:
    """The law of what is seen of a history; `loss_between` adds the noise of outputs."""
    running = {((), (), state): p for state, p in _together(cell.start() for cell in element.cells).items()}
    rounds = 0
    for token in history:
        following: dict[Any, float] = defaultdict(float)
        for (looks, values, state), p in running.items():
            cells = zip(element.cells, state, strict=True)
            if token == "x":
                for after, q in _together(cell.occurs(part, rounds) for cell, part in cells).items():
                    following[looks, values, after] += p * q
            elif token == "look":
                following[(*looks, state), values, state] += p
            elif token == "announce":
                for after, q in _together(cell.announced(part) for cell, part in cells).items():
                    following[(*looks, state), values, after] += p * q
            elif token == "output":
                following[looks, (*values, *element.statistic(state)), state] += p
            else:
                raise ParameterError(f"a token is 'x', 'look', 'announce' or 'output', not {token!r}")
        running, rounds = following, rounds + (token == "announce")
    grouped: Seen = {}
    for (looks, values, _), p in running.items():
        if p > 0:
            mixture = grouped.setdefault(looks, {})
            mixture[values] = mixture.get(values, 0.0) + p
    return grouped


def loss_between(first: Seen, second: Seen, scales: tuple[float, ...]) -> float:
    """The largest |log ratio| of the probabilities (densities) of anything seen, in one history and in the other.

    With the looks fixed, both are mixtures of products of exp(-|o - v|/s). Along one coordinate, between two of the
    centres v, such a mixture is a u + b/u in u = exp(o/s), so the ratio is monotone there and constant beyond the
    outermost: the extremes are at the centres.
    """
    worst = 0.0
    for shown in first.keys() | second.keys():
        if shown not in first or shown not in second:
            return math.inf
        mixtures = first[shown], second[shown]
        centres = [
            sorted({values[axis] for mixture in mixtures for values in mixture})
            for axis in range(len(next(iter(mixtures[0]))))
        ]
        for point in itertools.product(*centres):
            densities = [
                math.fsum(
                    p * math.exp(-sum(abs(o - v) / s for o, v, s in zip(point, values, itertools.cycle(scales))))
                    for values, p in mixture.items()
                )
                for mixture in mixtures
            ]
            worst = max(worst, abs(math.log(densities[0] / densities[1])))
    return worst


def worst_loss(
    element: CellsOfElement, frames: Iterable[History], most: int = 2
) -> tuple[float, tuple[History, History]]:
    """The largest loss over all neighbouring pairs, and a pair that has it.

    Neighbours agree in the frame, which has what the adversary does; the element occurs up to `most` times before each
    token of it.
    """
    worst: tuple[float, tuple[History, History]] = (0.0, ((), ()))
    for frame in frames:
        laws: dict[object, tuple[History, Seen]] = {}
        for counts in itertools.product(range(most + 1), repeat=len(frame)):
            parts = (("x",) * count + (token,) for count, token in zip(counts, frame, strict=True))
            history = tuple(itertools.chain.from_iterable(parts))
            seen = what_is_seen(element, history)
            same = frozenset(
                (shown, values, round(p, 14)) for shown, mixture in seen.items() for values, p in mixture.items()
            )
            laws.setdefault(same, (history, seen))
        for (first, one), (second, other) in itertools.combinations(laws.values(), 2):
            worst = max(worst, (loss_between(one, other, element.scales), (first, second)), key=lambda pair: pair[0])
    return worst


# ---- tables of elements ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PanAudit(Audit):
    """The checks of one estimator.

    Args:
        few: The estimator's own arguments over three elements, with counters small enough to enumerate.
        asked: What a release of such an estimator is asked, by a number: other questions for other numbers.
    """

    few: Callable[[Any], dict[str, Any]]
    asked: Callable[[Any, int], dict[str, Any]] = lambda made, number: {}

    def small(self, estimator: Any, **source: Any) -> Any:
        """The same estimator, or twin, with the same epsilons over a few elements."""
        return type(estimator)(**self.few(estimator), **estimator.options, **source)

    def structure(self, estimator: Any, effort: Effort) -> Iterator[Finding]:
        """In the compiled table an element changes its own cells and no other."""

        def wrong(seed: int) -> bool:
            made = self.small(estimator, source=seeded_source(seed))
            before = made.seen_by_intruder()
            made.update([seed % 3] * (1 + seed % 4))
            return _differences(before, made.seen_by_intruder()) > 1

        yield never("cells changed by one element, other than its own", map(wrong, range(40)))

    def exact(self, estimator: Any, effort: Effort) -> Iterator[Finding]:
        """The joint law of looks and outputs, for all neighbouring histories of a few occurrences."""
        made = self.small(estimator)
        state, output = made.settings.epsilon_state, made.settings.epsilon_output
        both = [("look", "output"), ("output", "look")]
        announced = "an announced intrusion, one look and one output"
        for name, claimed, frames, most in (
            ("one look", state, [("look",)], 3),
            ("one output", output, [("output",)], 3),
            ("one look and one output", state + output, both, max(2 + effort.length, 1)),
            (announced, 2 * state + output, [("announce", "look", "output")], 1),
        ):
            losses = [worst_loss(element, frames, most) for element in elements_of(made)]
            loss, (first, second) = max(losses, key=lambda pair: pair[0])
            detail = f"worst: {first} against {second}" if first else ""
            quantity = "epsilon with two looks" if name == announced else "epsilon"
            yield checked(name, quantity, float(claimed) * SLACK, loss, len(frames), detail)

    def statistical(self, estimator: Any, effort: Effort) -> Iterator[Finding]:
        """The state of fresh compiled tables, with and without an element."""
        few = len(self.small(estimator).seen_by_intruder()) <= 3
        runs = min(3 * effort.runs, 20_000) if few else effort.runs

        def looks(occurrences: int) -> list[list[float]]:
            rows = []
            for _ in range(runs):
                made = self.small(estimator)
                made.update([0] * occurrences)
                # Which cells are the element's, and what they tell, is learned from some of the runs.
                entries = made.seen_by_intruder()
                rows.append([float(v) for cells, bits in entries for v in (*bits, *(c == 0 for c in cells))])
            return rows

        bound = max(measure_outputs(looks(2), looks(0), 0.0), 0.0)
        claimed, detail = estimator.epsilon_state, f"{runs} runs of each"
        yield checked("an element that occurs", "epsilon", claimed, bound, 1, detail)

    def coupled(self, estimator: Any, effort: Effort) -> Iterator[Finding]:
        """Equal randomness, and the element comes last: what it changes in the table, and in what is released of it."""
        most, spent, pairs = 0, 0.0, effort.released_pairs
        for seed in range(pairs):
            tables, outputs = [], []
            for extra in (0, 1 + seed % 4):  # up to once around the counters
                made = self.small(estimator, source=seeded_source(seed))
                made.update([1, 2, 1])
                if seed % 2:
                    made.announce_intrusion()
                made.update([0] * extra)
                tables.append(made.seen_by_intruder())
                outputs.append(_counts_over_scale(made, **self.asked(made, seed)))
            most = max(most, _differences(*tables))
            spent = max(spent, float(np.abs(outputs[0] - outputs[1]).sum()))
        yield checked("entries that one element moves", "sensitivity", 1, most, pairs)
        claimed = float(estimator.settings.epsilon_output) * SLACK
        yield checked("counts it moves, over the scale of their noise", "epsilon", claimed, spent, pairs)

    def twins(self, estimator: Any) -> Iterator[Twin]:
        def quieter_where_drawn(right: Any, _: Any, source: RandomSource, *given: Any) -> Any:
            """The right scale everywhere but where the noise is drawn."""
            return right(WeakenedSource(source, 2), *given)

        def rescaled(right: Any, made: Any) -> Any:
            p0, p1 = made.response.after(made.intrusions)
            return right * Fraction(p1 - p0)

        shifts = hasattr(estimator, "shift_law")
        primes = estimator.parameters.get("method") == "primes"
        if not (primes or shifts):
            yield altered(estimator, "noise added after rescaling, as printed", noise_scale=rescaled)
        yield altered(estimator, "half the output noise", noise_scale=lambda right, _: right / 2)
        yield altered(estimator, "half the noise where it is drawn", "coupled", counted=quieter_where_drawn)
        if primes:
            whole = lambda self, modulus, epsilon: response_weights(modulus, epsilon)  # noqa: E731
            yield twin(estimator, "counters that do not share epsilon (PAN Thm 5.1)", prime_weights=whole)
        elif shifts:
            doubled = lambda self: self.shift_law_at(2 * self.settings.epsilon_state)  # noqa: E731
            yield twin(estimator, "a shift for twice epsilon", shift_law=doubled)
        else:
            coins = property(lambda self: Response.of("tight", 2 * self.settings.epsilon_state))
            yield twin(estimator, "coins for twice epsilon", response=coins)


def _differences(first: list[Any], second: list[Any]) -> int:
    return sum(a != b for a, b in zip(first, second, strict=True))


def _counts_over_scale(estimator: Any, **asked: Any) -> Any:
    """Every count that the compiled table hands to a release, in units of the noise that the release asked for."""
    counts: list[int] = []
    silent, kind = ScriptedSource(), type(estimator)
    counted = kind.counted

    def watched(asking: Any, source: Any, size: int, read: Any) -> Any:
        taken = counted(asking, silent, size, read)
        counts.extend(np.atleast_1d(taken).tolist())
        return taken

    # In the class: a release is made by a copy of the estimator that knows what is asked, and so its own scale.
    with patch.object(kind, "counted", watched):
        estimator.release(**asked)
    return np.array(counts) / silent.scales


def _few_heavy(made: HeavyFraction) -> dict[str, Any]:
    k, method = min(made.k or 4, 4), made.parameters["method"]
    most = None if made.parameters["max_count"] is None else max(2, k)
    return {"universe": 3, "k": k, "rho": made.rho, "method": method, "max_count": most}


def _heavy_asked(made: HeavyFraction, number: int) -> dict[str, Any]:
    """Another k where it may be asked; another window of the counters where there is one table of them."""
    if made.parameters["method"] == "two_tables":
        return {}
    if made.parameters["max_count"] is None:
        return {"rho": (0.25, 1.0, 3.0, 8.0)[number % 4]}
    return {"k": 1 + number % made.parameters["k"]}


def _few_residues(made: ModularIncidence) -> dict[str, Any]:
    """The law of a smaller k stands for that of the same name."""
    return {
        "universe": 3,
        "k": min(made.k, 7),
        "shift": "response" if made.shift == "squares" and made.k < 7 else made.shift,
    }


def _few_counts(made: Incidence) -> dict[str, Any]:
    if made.parameters["method"] == "squares":
        return {"universe": 3, "t": min(made.t or 0, 6), "max_count": 6}
    # Two of the primes 2, 3, 5, 7, 11.
    return {"universe": 3, "t": min(made.t or 0, 2), "method": "primes", "max_count": 2, "primes": 2, "collision": 0.9}


class _IncidenceAudit(PanAudit):
    def small(self, estimator: Any, **source: Any) -> Any:
        """Primes are drawn: until they are few enough to enumerate."""
        while True:
            made = super().small(estimator, **source)
            if math.prod(made.moduli) <= 21:
                return made


_ONE, _THREE = Budget(1.0), Budget(3.0)

register(Density, lambda: (
    Density(1000, budget=_ONE), Density(3, budget=_THREE, releases=2), Density(9, budget=_ONE, response="paper"),
), PanAudit(lambda made: {"universe": 3}))  # fmt: skip
register(DistinctCount, lambda: (DistinctCount(budget=_ONE),), PanAudit(lambda made: {"buckets": 16, "levels": 8}))
register(Occurrences, lambda: (
    Occurrences(4, budget=_ONE), Occurrences(2, budget=_THREE, releases=2),
), PanAudit(lambda made: {"max_count": min(made.max_count, 3), "buckets": 192, "levels": 8}))  # fmt: skip
register(CroppedMean, lambda: (
    CroppedMean(1000, 3, budget=_ONE), CroppedMean(1000, 100, budget=_THREE),
), PanAudit(
    lambda made: {"universe": 3, "t": min(made.t, 4)},
    lambda made, number: {} if made.intrusions else {"t": 1 + number % made.t},
))  # fmt: skip
register(HeavyFraction, lambda: (
    HeavyFraction(1000, 4, budget=_ONE),
    HeavyFraction(1000, 4, budget=_ONE, method="two_tables"),
    HeavyFraction(1000, 2, budget=_THREE, method="ladder", max_count=2),
    HeavyFraction(1000, 4, budget=_ONE, max_count=100),
), PanAudit(_few_heavy, _heavy_asked))  # fmt: skip
register(ModularIncidence, lambda: (
    ModularIncidence(1000, 4, budget=_ONE),
    ModularIncidence(1000, 7, budget=_ONE, shift="squares"),
    ModularIncidence(1000, 3, budget=_THREE, shift="paper"),
), PanAudit(_few_residues))  # fmt: skip
register(Incidence, lambda: (
    Incidence(1000, 2, budget=_ONE), Incidence(1000, 2, budget=_ONE, method="primes", max_count=64),
), _IncidenceAudit(_few_counts, lambda made, number: {"t": number % (1 + made.parameters["max_count"])}))  # fmt: skip


# ---- the inner-product counter: the law of its state at every moment, over all outcomes of its coins -----------------

_LENGTH = 2
# Three participants vote (the positions are public), then one brings a vector.
_POSITIONS = (0, 1, 1)
Inputs = tuple[Any, ...]
_INPUTS: list[Inputs] = list(itertools.product(*[(0, 1)] * len(_POSITIONS), itertools.product((0, 1), repeat=_LENGTH)))


def _small(counter: InnerProductCounter, source: RandomSource | None = None) -> InnerProductCounter:
    made = type(counter)(_LENGTH, budget=Budget(counter.epsilon), source=source)
    made.response = counter.response
    return made


def _seen(counter: InnerProductCounter, inputs: Inputs, source: RandomSource) -> tuple[Any, ...]:
    """What an adversary sees who looks at every moment, and the release."""
    made, seen = _small(counter, source), []
    for position, vote in zip(_POSITIONS, inputs, strict=False):
        made.vote([position], [vote])
        seen.append(made.to_bytes())
    made.update([inputs[-1]])
    return (*seen, made.to_bytes(), made.release().value)


class _InnerProductAudit(Audit):
    def structure(self, counter: InnerProductCounter, effort: Effort) -> Iterator[Finding]:
        """One participant has one answer, in one count."""
        wrong = 0
        for vote, coin in itertools.product((0, 1), (0, 1)):
            made = _small(counter, ScriptedSource(each=coin))
            made.vote([1], [vote])
            ones, votes, _ = made.answers
            wrong += votes != [0, 1] or ones[0] != 0
        yield never("counts moved by one vote, other than its own", wrong, 4)

    def exact(self, counter: InnerProductCounter, effort: Effort) -> Iterator[Finding]:
        """Everything seen of three votes and a vector, for all inputs that differ in one participant."""
        pairs = [
            pair for pair in itertools.combinations(_INPUTS, 2) if sum(a != b for a, b in zip(*pair, strict=True)) == 1
        ]
        worst, _ = worst_pair(pairs, lambda given: law_of(partial(_seen, counter, given), 0.0), ratio_loss)
        claimed = counter.epsilon * SLACK
        yield checked("the state at every moment and the release", "epsilon", claimed, worst, len(pairs))

    def statistical(self, counter: InnerProductCounter, effort: Effort) -> Iterator[Finding]:
        """One vote and its answer."""

        def ones(bit: int) -> int:
            made = _small(counter)
            made.vote([0], [bit])
            return made.answers[0][0]

        yield proved("a vote of 1 or of 0", (counter.epsilon, 0.0), (1, 0), ones, float, effort.runs)

    def coupled(self, counter: InnerProductCounter, effort: Effort) -> Iterator[Finding]:
        """Equal coins: a vector replaced by another moves the count by one at most."""
        rng = np.random.default_rng(3)

        def moved(_: int) -> int:
            coins, vectors, counts = rng.integers(0, 2, 20), rng.integers(0, 2, (20, _LENGTH)), []
            for last in ([1, 1], [0, 0]):
                made = _small(counter, ScriptedSource(each=coins.tolist()))
                made.update(np.vstack([vectors[:-1], [last]]))
                counts.append(made.answers[2])
            return abs(counts[0] - counts[1])

        yield largest("the count that one vector moves", 1, map(moved, range(effort.released_pairs)))

    def twins(self, counter: InnerProductCounter) -> Iterator[Twin]:
        yield twin(counter, "coins for twice epsilon", response=Response.of("tight", 2 * Fraction(counter.epsilon)))
        yield twin(counter, "votes counted as they are", answer=lambda self, bits: None)
        yield twin(counter, "coins that never flip", response=Response(1, ONE - 1))


register(InnerProductCounter, lambda: (InnerProductCounter(4, budget=Budget(1.0)),), _InnerProductAudit())
