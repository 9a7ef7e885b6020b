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
from discreet.pan.element_law import CounterCell, ElementLaw
from discreet.pan.responses import ONE, Response, response_weights
from discreet.privacy import Budget
from discreet.published import InnerProductCounter
from discreet_audit.core import SLACK, Audit, Effort, Finding, Twin, altered, checked, largest, never, register, twin
from discreet_audit.exact import ScriptedSource, WeakenedSource, law_of, ratio_loss, worst_pair
from discreet_audit.statistical import measure_outputs, proved

# ---- exact joint laws of what an adversary sees of a table: its state at intrusions, and its outputs -----------------
# A history is a tuple of tokens: a number is an occurrence of the element of that entry, "look" an unannounced
# intrusion, "announce" an intrusion followed by re-randomisation, "output" a release. All states of a small table are
# enumerated, so the loss of two histories is computed and not estimated.

State = Any  # hashable
Law = dict[State, float]
Token = int | str
History = tuple[Token, ...]


@dataclass(frozen=True)
class Cell:
    """What the cells of one entry do: at the start, at an occurrence, after an announced intrusion."""

    start: Law
    occur: Callable[[State], Law]
    announce: Callable[[State], Law]


@dataclass(frozen=True)
class Model:
    """A table of equal cells and its output: the sum over the entries of `statistic`, plus Laplace noise.

    `scales` has the scale of each coordinate's noise. Continuous and discrete Laplace noise give the same ratios
    on the values where it matters.
    """

    cell: Cell
    statistic: Callable[[State], tuple[float, ...]]
    scales: tuple[float, ...]
    entries: int = 2


def bit_cell(unseen: float, seen: float, modulus: int = 1, step: int = 1) -> Cell:
    """A bit with a counter modulo `modulus` that starts anywhere; the bit is drawn as seen when the counter wraps.

    State: (counter, bit, rounds); the number of announced intrusions so far is public.
    """

    def toss(p: float, counter: int, rounds: int) -> Law:
        return {(counter, 1, rounds): p, (counter, 0, rounds): 1 - p}

    def chance(rounds: int) -> float:
        p = seen
        for _ in range(rounds):
            p = p * seen + (1 - p) * unseen
        return p

    def occur(state: State) -> Law:
        counter, bit, rounds = state
        moved = counter + step
        if moved < modulus:
            return {(moved, bit, rounds): 1.0}
        return toss(chance(rounds), moved % modulus, rounds)

    def announce(state: State) -> Law:
        _, bit, rounds = state
        law: Law = {}
        for counter in range(modulus):
            for after, p in toss(seen if bit else unseen, counter, rounds + 1).items():
                law[after] = p / modulus
        return law

    start = {state: p / modulus for counter in range(modulus) for state, p in toss(unseen, counter, 0).items()}
    return Cell(start, occur, announce)


def counter_cell(shift: Sequence[float]) -> Cell:
    """A counter modulo len(shift) that starts at a shift of the given law and gets another at an announcement."""
    k = len(shift)

    def announce(state: State) -> Law:
        return {(state + i) % k: float(p) for i, p in enumerate(shift)}

    def occur(state: State) -> Law:
        return {(state + 1) % k: 1.0}

    return Cell({i: float(p) for i, p in enumerate(shift)}, occur, announce)


def product_cell(*cells: Cell) -> Cell:
    """Several independent cells of one entry."""

    def product(laws: Iterable[Law]) -> Law:
        return {
            tuple(state for state, _ in parts): math.prod(p for _, p in parts)
            for parts in itertools.product(*(law.items() for law in laws))
        }

    def each(what: str) -> Callable[[State], Law]:
        return lambda state: product(getattr(cell, what)(part) for cell, part in zip(cells, state, strict=True))

    return Cell(product(cell.start for cell in cells), each("occur"), each("announce"))


def joint_law(model: Model, history: History) -> dict[tuple[State, ...], float]:
    """The law of everything seen, in order; outputs are without their noise, which `loss_between` adds."""
    running: dict[tuple[tuple[State, ...], tuple[State, ...]], float] = {}
    for parts in itertools.product(model.cell.start.items(), repeat=model.entries):
        running[(), tuple(state for state, _ in parts)] = math.prod(p for _, p in parts)
    for token in history:
        following: dict[tuple[tuple[State, ...], tuple[State, ...]], float] = defaultdict(float)
        for (seen, table), p in running.items():
            if isinstance(token, int):
                for after, q in model.cell.occur(table[token]).items():
                    following[seen, (*table[:token], after, *table[token + 1 :])] += p * q
            elif token == "look":
                following[(*seen, table), table] += p
            elif token == "announce":
                for parts in itertools.product(*(model.cell.announce(state).items() for state in table)):
                    after_all = tuple(state for state, _ in parts)
                    following[(*seen, table), after_all] += p * math.prod(q for _, q in parts)
            elif token == "output":
                each = zip(*(model.statistic(state) for state in table), strict=True)
                following[(*seen, tuple(math.fsum(values) for values in each)), table] += p
            else:
                raise ParameterError(f"a token is a number, 'look', 'announce' or 'output', not {token!r}")
        running = following
    law: dict[tuple[State, ...], float] = defaultdict(float)
    for (seen, _), p in running.items():
        law[seen] += p
    return dict(law)


Seen = dict[tuple[State, ...], dict[tuple[float, ...], float]]
"""By what the looks showed: the mixture of all outputs' values, without their noise."""


def by_looks(model: Model, history: History) -> Seen:
    """What is seen of a history, by what the looks show."""
    kinds = [token for token in history if isinstance(token, str)]
    outputs = [i for i, kind in enumerate(kinds) if kind == "output"]
    looks = [i for i, kind in enumerate(kinds) if kind != "output"]
    grouped: Seen = {}
    for seen, p in joint_law(model, history).items():
        if p > 0:
            values = tuple(itertools.chain.from_iterable(seen[i] for i in outputs))
            mixture = grouped.setdefault(tuple(seen[i] for i in looks), {})
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


def histories(frame: History, most: int) -> Iterator[History]:
    """All histories with up to `most` occurrences of element 0 put before each token of the frame."""
    for counts in itertools.product(range(most + 1), repeat=len(frame)):
        parts = ((*[0] * count, token) for count, token in zip(counts, frame, strict=True))
        yield tuple(itertools.chain.from_iterable(parts))


def worst_loss(model: Model, frames: Iterable[History], most: int = 2) -> tuple[float, tuple[History, History]]:
    """The largest loss over all neighbouring pairs, and a pair that has it.

    Neighbours agree in the frame, which has the other elements and what the adversary does; element 0 occurs up to
    `most` times before each token of it.
    """
    worst: tuple[float, tuple[History, History]] = (0.0, ((), ()))
    for frame in frames:
        laws: dict[object, tuple[History, Seen]] = {}
        for history in histories(frame, most):
            seen = by_looks(model, history)
            same = frozenset(
                (shown, values, round(p, 14)) for shown, mixture in seen.items() for values, p in mixture.items()
            )
            laws.setdefault(same, (history, seen))
        for (first, one), (second, other) in itertools.combinations(laws.values(), 2):
            worst = max(worst, (loss_between(one, other, model.scales), (first, second)), key=lambda pair: pair[0])
    return worst


# ---- the models of the estimators ------------------------------------------------------------------------------------


def models_of(estimator: Any, entries: int = 2) -> list[Model]:
    """The models of what an estimator does with one element, with its own numbers: one for each role it may have."""
    return [_model(law, entries) for law in estimator.element_laws()]


def _model(law: ElementLaw, entries: int) -> Model:
    cells = [
        counter_cell([float(p) for p in cell.shift])
        if isinstance(cell, CounterCell)
        else bit_cell(float(cell.unseen), float(cell.seen), cell.modulus, cell.step)
        for cell in law.cells
    ]
    alone = len(cells) == 1

    def statistic(state: State) -> tuple[float, ...]:
        shown = slice(0, 2) if law.pairs else 1  # without the number of announced intrusions, which is public
        parts = [state] if alone else state
        return law.statistic(tuple(part[shown] if isinstance(part, tuple) else part for part in parts))

    return Model(cells[0] if alone else product_cell(*cells), statistic, tuple(map(float, law.scales)), entries)


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
            losses = [worst_loss(model, frames, most) for model in models_of(made, 1)]
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

    def twins(self, estimator: Any) -> Sequence[Twin]:
        def quieter_where_drawn(right: Any, _: Any, source: RandomSource, *given: Any) -> Any:
            """The right scale everywhere but where the noise is drawn."""
            return right(WeakenedSource(source, 2), *given)

        half = altered(estimator, "half the output noise", noise_scale=lambda right, _: right / 2)
        quieter = altered(estimator, "half the noise where it is drawn", "coupled", counted=quieter_where_drawn)
        if estimator.parameters.get("method") == "primes":
            whole = {"prime_weights": lambda self, modulus, epsilon: response_weights(modulus, epsilon)}
            return half, quieter, twin(estimator, "counters that do not share epsilon (PAN Thm 5.1)", **whole)
        if hasattr(estimator, "shift_law"):
            doubled = {"shift_law": lambda self: self.shift_law_at(2 * self.settings.epsilon_state)}
            return half, quieter, twin(estimator, "a shift for twice epsilon", **doubled)

        def rescaled(right: Any, made: Any) -> Any:
            p0, p1 = made.response.after(made.intrusions)
            return right * Fraction(p1 - p0)

        printed = altered(estimator, "noise added after rescaling, as printed", noise_scale=rescaled)
        doubled_response = property(lambda self: Response.of("tight", 2 * self.settings.epsilon_state))
        return printed, half, quieter, twin(estimator, "coins for twice epsilon", response=doubled_response)


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

register(
    Density,
    lambda: (
        Density(1000, budget=_ONE),
        Density(3, budget=_THREE, releases=2),
        Density(9, budget=_ONE, response="paper"),
    ),
    PanAudit(lambda made: {"universe": 3}),
)
register(DistinctCount, lambda: (DistinctCount(budget=_ONE),), PanAudit(lambda made: {"buckets": 16, "levels": 8}))
register(
    Occurrences,
    lambda: (Occurrences(4, budget=_ONE), Occurrences(2, budget=_THREE, releases=2)),
    PanAudit(lambda made: {"max_count": min(made.max_count, 3), "buckets": 192, "levels": 8}),
)
register(
    CroppedMean,
    lambda: (CroppedMean(1000, 3, budget=_ONE), CroppedMean(1000, 100, budget=_THREE)),
    PanAudit(
        lambda made: {"universe": 3, "t": min(made.t, 4)},
        lambda made, number: {} if made.intrusions else {"t": 1 + number % made.t},
    ),
)
register(
    HeavyFraction,
    lambda: (
        HeavyFraction(1000, 4, budget=_ONE),
        HeavyFraction(1000, 4, budget=_ONE, method="two_tables"),
        HeavyFraction(1000, 2, budget=_THREE, method="ladder", max_count=2),
        HeavyFraction(1000, 4, budget=_ONE, max_count=100),
    ),
    PanAudit(_few_heavy, _heavy_asked),
)
register(
    ModularIncidence,
    lambda: (
        ModularIncidence(1000, 4, budget=_ONE),
        ModularIncidence(1000, 7, budget=_ONE, shift="squares"),
        ModularIncidence(1000, 3, budget=_THREE, shift="paper"),
    ),
    PanAudit(_few_residues),
)
register(
    Incidence,
    lambda: (Incidence(1000, 2, budget=_ONE), Incidence(1000, 2, budget=_ONE, method="primes", max_count=64)),
    _IncidenceAudit(_few_counts, lambda made, number: {"t": number % (1 + made.parameters["max_count"])}),
)


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

    def twins(self, counter: InnerProductCounter) -> Sequence[Twin]:
        return (
            twin(counter, "coins for twice epsilon", response=Response.of("tight", 2 * Fraction(counter.epsilon))),
            twin(counter, "votes counted as they are", answer=lambda self, bits: None),
            twin(counter, "coins that never flip", response=Response(1, ONE - 1)),
        )


register(InnerProductCounter, lambda: (InnerProductCounter(4, budget=Budget(1.0)),), _InnerProductAudit())
