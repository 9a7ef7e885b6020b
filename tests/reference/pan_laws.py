"""What an intruder and a release see of one element, from the paper ([PAN] sections 3 to 5): exact sums over histories.

Nothing of the package and nothing of its audit is imported here. An element's cells are

    ("bit", unseen, seen, modulus, step)   a counter that starts anywhere and moves by `step`; whenever it passes the
                                           modulus, its bit is drawn with probability `seen`. At first: `unseen`
    ("counter", shift)                     a counter modulo len(shift) that starts at a shift with these probabilities

A history says what happens: "x" the element occurs, "look" somebody reads all cells, "announce" the same and all cells
are drawn anew from what they hold, "output" a release of `statistic(cells)` with Laplace noise. Where only the first
`own` cells are the element's, "y" is an occurrence of the one that has the others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

Cell = tuple[Any, ...]
State = tuple[Any, ...]  # of all cells: (counter, bit, announcements), or a counter
Law = dict[Any, Fraction]
History = tuple[str, ...]


def _at_first(cell: Cell) -> Law:
    if cell[0] == "counter":
        return dict(enumerate(cell[1]))
    _, unseen, _, modulus, _ = cell
    bits = ((1, unseen), (0, 1 - unseen))
    return {(u, bit, 0): chance / modulus for u in range(modulus) for bit, chance in bits}


def _occurs(cell: Cell, state: Any) -> Law:
    if cell[0] == "counter":
        return {(state + 1) % len(cell[1]): Fraction(1)}
    _, unseen, seen, modulus, step = cell
    counter, bit, announced = state
    if counter + step < modulus:
        return {(counter + step, bit, announced): Fraction(1)}
    chance = seen  # sent through the coins as often as the bits of others were
    for _ in range(announced):
        chance = chance * seen + (1 - chance) * unseen
    after = (counter + step) % modulus
    return {(after, 1, announced): chance, (after, 0, announced): 1 - chance}


def _announced(cell: Cell, state: Any) -> Law:
    if cell[0] == "counter":
        return {(state + i) % len(cell[1]): chance for i, chance in enumerate(cell[1])}
    _, unseen, seen, modulus, _ = cell
    _, bit, announced = state
    one = seen if bit else unseen
    return {(u, b, announced + 1): chance / modulus for u in range(modulus) for b, chance in ((1, one), (0, 1 - one))}


def _all(laws: Iterable[Law]) -> Law:
    return {
        tuple(state for state, _ in parts): math.prod((chance for _, chance in parts), start=Fraction(1))
        for parts in itertools.product(*(law.items() for law in laws))
    }


def transcript(
    cells: Sequence[Cell], statistic: Callable[[State], Sequence[Any]], history: History, own: int | None = None
) -> Law:
    """{(what looks showed, numbers of all outputs): probability}, without the noise of outputs."""
    whose = ["x" if own is None or at < own else "y" for at in range(len(cells))]
    running = {((), (), state): chance for state, chance in _all(map(_at_first, cells)).items()}
    for token in history:
        after: Law = {}
        for (looks, outputs, state), chance in running.items():
            if token in ("x", "y", "announce"):
                moves = _all(
                    (_announced if token == "announce" else _occurs)(cell, part)
                    if token in ("announce", of)
                    else {part: Fraction(1)}
                    for cell, part, of in zip(cells, state, whose, strict=True)
                )
                seen = (*looks, state) if token == "announce" else looks
                reached = {(seen, outputs, new): move for new, move in moves.items()}
            elif token == "look":
                reached = {((*looks, state), outputs, state): Fraction(1)}
            else:
                reached = {(looks, (*outputs, *statistic(state)), state): Fraction(1)}
            for place, move in reached.items():
                after[place] = after.get(place, Fraction(0)) + chance * move
        running = after
    found: Law = {}
    for (looks, outputs, _), chance in running.items():
        found[looks, outputs] = found.get((looks, outputs), Fraction(0)) + chance
    return {seen: chance for seen, chance in found.items() if chance}


def loss(first: Law, second: Law, scales: Sequence[Any]) -> float:
    """The largest |log ratio| of two transcripts behind their noise.

    For given looks each is a mixture of e^(-|o - v|/s) over numbers v. Between two neighbouring v the ratio of two
    mixtures is monotone in o, and beyond all of them it is constant: the largest is at some v, or pair of them.
    """
    worst = 0.0
    for looks in {seen for seen, _ in (*first, *second)}:
        parts = [{v: float(c) for (seen, v), c in law.items() if seen == looks} for law in (first, second)]
        if not all(parts):
            return math.inf
        length = len(next(iter(parts[0])))
        places = [sorted({v[axis] for part in parts for v in part}) for axis in range(length)]
        widths = [float(scales[axis % len(scales)]) for axis in range(length)]
        for o in itertools.product(*places):
            one, two = (
                sum(
                    c * math.exp(-sum(abs(a - b) / s for a, b, s in zip(o, v, widths, strict=True)))
                    for v, c in p.items()
                )
                for p in parts
            )
            worst = max(worst, abs(math.log(one / two)))
    return worst


def worst_loss(
    cells: Sequence[Cell],
    statistic: Callable[[State], Sequence[Any]],
    scales: Sequence[Any],
    frames: Iterable[History],
    most: int = 2,
    own: int | None = None,
) -> float:
    """Over all pairs of histories that differ in how often the element occurs, up to `most` times in every gap."""
    worst = 0.0
    for frame in frames:
        laws: list[Law] = []
        for times in itertools.product(range(most + 1), repeat=len(frame)):
            history = tuple(itertools.chain(*((*["x"] * n, token) for n, token in zip(times, frame, strict=True))))
            law = transcript(cells, statistic, history, own)
            if law not in laws:
                laws.append(law)
        worst = max([worst, *(loss(one, two, scales) for one, two in itertools.combinations(laws, 2))])
    return worst


# ---- the cells of each estimator, and what a release counts of them: docs/privacy/pan.md ----------------------------


def bit(epsilon: float, modulus: int = 1, step: int = 1) -> Cell:
    """1 with 1/(1 + e^eps) at the start, with e^eps/(1 + e^eps) once its element came (the modulus-th time)."""
    seen = Fraction(1 / (1 + math.exp(-epsilon)))
    return ("bit", 1 - seen, seen, modulus, step)


def shifted(kind: str, modulus: int, epsilon: float) -> Cell:
    """A counter that starts at 0 more often than elsewhere, at a square, or ever less often ([PAN] Figure 5)."""
    squares = {i * i % modulus for i in range(1, modulus)}
    weights = {
        "response": [math.exp(epsilon * (i == 0)) for i in range(modulus)],
        "squares": [math.exp(epsilon * (i in squares)) for i in range(modulus)],
        "paper": [math.exp(-epsilon * i / (modulus - 1)) for i in range(modulus)],
    }[kind]
    chances = [Fraction(weight / math.fsum(weights)) for weight in weights[1:]]
    return ("counter", (1 - sum(chances), *chances))


def ones(state: State) -> tuple[int, ...]:
    """Of a bit, or of the only bit of an entry."""
    ((_, b, _),) = state
    return (b,)


def sign_below(high: int, low: int = 0) -> Callable[[State], tuple[int, ...]]:
    """1 for a one, -1 for a zero, where the counter is in the window; else 0."""
    return lambda state: ((2 * state[0][1] - 1) * (low <= state[0][0] < high),)


def signs_by_counter(modulus: int) -> Callable[[State], tuple[int, ...]]:
    return lambda state: tuple((2 * state[0][1] - 1) * (state[0][0] == u) for u in range(modulus))


def residues(modulus: int) -> Callable[[State], tuple[int, ...]]:
    return lambda state: tuple(int(state[0] == i) for i in range(modulus))


def square_and_zero(prime: int, t: int) -> Callable[[State], tuple[int, ...]]:
    squares = {i * i % prime for i in range(1, prime)}
    return lambda state: (int((state[0] - t) % prime in squares), int(state[0] == t % prime))


def moved_at_most(cells: Sequence[Cell], statistic: Callable[[State], Sequence[Any]]) -> Any:
    """The l1-distance of what is counted of any two states: what the noise of a release must hide."""

    def states(cell: Cell) -> list[Any]:
        if cell[0] == "counter":
            return list(range(len(cell[1])))
        return [(u, b, 0) for u in range(cell[3]) for b in (0, 1)]

    told = {tuple(statistic(state)) for state in itertools.product(*map(states, cells))}
    return max(sum(abs(a - b) for a, b in zip(one, two, strict=True)) for one in told for two in told)


def split(epsilon: float, looks: int, outputs: int, share: Fraction) -> tuple[Fraction, Fraction]:
    """(epsilon_state, epsilon_output) with looks epsilon_state + outputs epsilon_output = epsilon."""
    return Fraction(epsilon) * (1 - share) / looks, Fraction(epsilon) * share / outputs
