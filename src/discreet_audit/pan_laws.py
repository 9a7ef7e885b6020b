"""Exact joint laws of what an adversary sees of a pan-private table: its state at intrusions, and its outputs.

A history is a tuple of tokens: a number is an occurrence of the element of that entry, "look" an unannounced
intrusion, "announce" an intrusion followed by re-randomisation, "output" a release. All states of a small table are
enumerated, so the loss of two histories is computed and not estimated.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from discreet.errors import ParameterError
from discreet.pan.element_law import CounterCell, ElementLaw

__all__ = [
    "Cell",
    "Model",
    "bit_cell",
    "counter_cell",
    "histories",
    "joint_law",
    "loss_between",
    "models_of",
    "product_cell",
    "worst_loss",
]

State = Any  # hashable
Law = dict[State, float]
Token = int | str
History = tuple[Token, ...]


class Lawful(Protocol):
    """Whatever says what it does with one element: every pan-private estimator."""

    def element_laws(self) -> list[ElementLaw]: ...


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

    def occur(state: State) -> Law:
        return product(cell.occur(part) for cell, part in zip(cells, state, strict=True))

    def announce(state: State) -> Law:
        return product(cell.announce(part) for cell, part in zip(cells, state, strict=True))

    return Cell(product(cell.start for cell in cells), occur, announce)


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


def _by_looks(model: Model, history: History) -> Seen:
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


def _loss(first: Seen, second: Seen, scales: tuple[float, ...]) -> float:
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


def loss_between(model: Model, first: History, second: History) -> float:
    """The largest |log ratio| of the probabilities (densities) of anything seen, in one history and in the other.

    With the looks fixed, both are mixtures of products of exp(-|o - v|/s). Along one coordinate, between two of the
    centres v, such a mixture is a u + b/u in u = exp(o/s), so the ratio is monotone there and constant beyond the
    outermost: the extremes are at the centres.
    """
    kinds = [[token for token in history if isinstance(token, str)] for history in (first, second)]
    if kinds[0] != kinds[1]:
        raise ParameterError("the two histories must be looked at in the same way")
    return _loss(_by_looks(model, first), _by_looks(model, second), model.scales)


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
            seen = _by_looks(model, history)
            same = frozenset(
                (shown, values, round(p, 14)) for shown, mixture in seen.items() for values, p in mixture.items()
            )
            laws.setdefault(same, (history, seen))
        for (first, one), (second, other) in itertools.combinations(laws.values(), 2):
            worst = max(worst, (_loss(one, other, model.scales), (first, second)), key=lambda pair: pair[0])
    return worst


# ---- the models of the estimators ------------------------------------------------------------------------------------


def models_of(estimator: Lawful, entries: int = 2) -> list[Model]:
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
        parts = [state] if alone else state
        if law.pairs:  # without the number of announced intrusions, which is public
            return law.statistic(tuple(part[:2] if isinstance(part, tuple) else part for part in parts))
        return law.statistic(tuple(part[1] if isinstance(part, tuple) else part for part in parts))

    return Model(cells[0] if alone else product_cell(*cells), statistic, tuple(map(float, law.scales)), entries)
