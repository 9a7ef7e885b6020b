"""The pan-private estimators as [PAN] prints them. NOT PRIVATE: only the audit uses them, to be caught by it.

Each is the exact law of one element's cells and of the output, for `pan_laws.worst_loss`. docs/privacy/corrections.md
has the arguments and what each of them loses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.pan.ladder import ladder_weights
from discreet_audit.pan_laws import Cell, Law, Model, State, bit_cell, counter_cell, product_cell

__all__ = [
    "bits_alone_rerandomised",
    "counters_that_do_not_share",
    "cropped_mean_noise_after_rescaling",
    "density_noise_after_rescaling",
    "entries_made_on_arrival",
    "fraction_of_one_interval",
    "heavy_hitters_noise_for_one_table",
    "modular_matrix_as_printed",
    "modular_noise_for_one_residue",
]

Vector = npt.NDArray[np.float64]


def density_noise_after_rescaling(epsilon: float, *, before: bool = False) -> Model:
    """Section 3: 4 (theta - 1/2)/eps + Lap(1/(eps m)), which claims 2 eps; `before` has the noise on theta.

    In units of 1/m: one element moves the output by 4/eps, and the noise has scale 1/eps.
    """
    return cropped_mean_noise_after_rescaling(epsilon, 1, before=before)


def cropped_mean_noise_after_rescaling(epsilon: float, t: int, *, before: bool = False) -> Model:
    """Figure 2: 4 t (theta - 1/2)/eps + Lap(t/(eps m)), which claims 2 eps."""
    factor = 4 * t / epsilon
    scale = factor / epsilon if before else t / epsilon
    return Model(bit_cell(0.5, 0.5 + epsilon / 4, t), lambda state: (factor * state[1],), (scale,), 1)


def heavy_hitters_noise_for_one_table(
    epsilon: float, rungs: Sequence[int], *, only_one: bool = True, all_tables: bool = False
) -> Model:
    """Figure 3, step 4: v' + Lap(1/(eps m)), which claims eps (1 + tables); `all_tables` has noise for every table."""
    values = [float(t) for t in rungs]
    printed = ladder_weights(values, 1, only_one)
    weights = [4 * t * w / epsilon for t, w in zip(values, printed, strict=True)]
    scale = (sum(map(abs, weights)) if all_tables else 1.0) / epsilon
    cell = product_cell(*(bit_cell(0.5, 0.5 + epsilon / 4, t) for t in rungs))

    def statistic(state: State) -> tuple[float, ...]:
        return (math.fsum(w * part[1] for w, part in zip(weights, state, strict=True)),)

    return Model(cell, statistic, (scale,), 1)


def fraction_of_one_interval(rungs: Sequence[float], k: int, count: float, *, corrected: bool = False) -> float:
    """What step 4 of Figure 3 publishes for elements that all occurred `count` times, without any noise."""
    weights = ladder_weights(list(rungs), k, only_one=not corrected)
    return math.fsum(w * min(count, t) for w, t in zip(weights, rungs, strict=True))


def _printed_shift(epsilon: float, k: int) -> list[float]:
    terms = [math.exp(-epsilon * i / (k - 1)) for i in range(k)]
    return [term / math.fsum(terms) for term in terms]


def modular_noise_for_one_residue(epsilon: float, k: int, *, both: bool = False) -> Model:
    """Figure 5: Lap(1/(eps m)) on every fraction, which claims 2 eps; `both` has noise for the two that move."""
    scales = ((2.0 if both else 1.0) / epsilon,) * k
    cell = counter_cell(_printed_shift(epsilon, k))
    return Model(cell, lambda state: tuple(float(state == i) for i in range(k)), scales, 1)


def modular_matrix_as_printed(epsilon: float, fractions: Sequence[float], *, corrected: bool = False) -> Vector:
    """The fractions that Figure 5 finds when there is no noise at all: the matrix has shift(i + j) for shift(i - j)."""
    k, sign = len(fractions), -1 if corrected else 1
    shift = [Fraction(chance) for chance in _printed_shift(epsilon, k)]
    given = [Fraction(f) for f in fractions]
    entries = [sum((shift[(i - j) % k] * given[j] for j in range(k)), Fraction(0)) for i in range(k)]
    # Solved in exact fractions: in floating point the right matrix would leave a residue, too.
    rows = [[*(shift[(i + sign * j) % k] for j in range(k)), entries[i]] for i in range(k)]
    for column in range(k):
        pivot = next(i for i in range(column, k) if rows[i][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [x / rows[column][column] for x in rows[column]]
        for i in set(range(k)) - {column}:
            rows[i] = [x - rows[i][column] * y for x, y in zip(rows[i], rows[column], strict=True)]
    return np.array([float(row[-1]) for row in rows])


def counters_that_do_not_share(epsilon: float, moduli: Sequence[int], *, shared: bool = False) -> Model:
    """Theorem 5.1: a counter modulo each of several primes, each with all of eps (`shared`: with its part of it)."""
    each = epsilon / len(moduli) if shared else epsilon
    cell = product_cell(*(counter_cell(_printed_shift(each, k)) for k in moduli))
    return Model(cell, lambda state: (0.0,), (1.0,), 1)


def bits_alone_rerandomised(epsilon: float, t: int, *, corrected: bool = False) -> Model:
    """Section 3, "similar ideas can be used": after an announced intrusion the cropped mean's counters stay."""
    good = bit_cell(0.5, 0.5 + epsilon / 4, t)

    def announce(state: State) -> Law:
        law: Law = {}
        for (_, bit, rounds), p in good.announce(state).items():
            after = (state[0], bit, rounds)
            law[after] = law.get(after, 0.0) + p
        return law

    cell = good if corrected else Cell(good.start, good.occur, announce)
    return Model(cell, lambda state: (float(state[1]),), (1 / epsilon,), 1)


def entries_made_on_arrival(epsilon: float, *, corrected: bool = False) -> Model:
    """A table whose entries are drawn when their element first comes, as a dictionary would do."""
    drawn = bit_cell(0.5, 0.5 + epsilon / 4)

    def occur(state: State) -> Law:
        return drawn.occur((0, 0, 0))

    cell = drawn if corrected else Cell({None: 1.0}, occur, drawn.announce)
    return Model(cell, lambda state: (0.0,), (1.0,), 1)
