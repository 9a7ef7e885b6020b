"""What the papers print where they are wrong, as exact laws: numbers of `discreet audit --corrections`. NOT PRIVATE.

docs/privacy/corrections.md has the arguments. No code of the package is in these laws, so the command has them as
numbers, and test_corrections.py computes each anew. `corrected` is what is right in their place.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.pan.element_law import BitCell, CounterCell
from discreet.pan.heavy_fraction import ladder_weights
from discreet.privacy.calibration.gaussian import gaussian_delta
from discreet.releases.error_model import Noise
from discreet_audit import pan
from discreet_audit.central import largest_untracked
from discreet_audit.exact import neighbouring_streams, worst_pair

# ---- [SS] Algorithms 3 and 5 and appendix B as printed. NOT PRIVATE --------------------------------------------------


_ROWS = 3
Place = tuple[str, int]


def printed_cut_of_algorithm_3(epsilon: float, delta: float, *, blanks: bool = False) -> float:
    """A lower bound of delta of the cut max{|X|/k - gamma, |X|/k~ + 1 + gamma}, k = 2 and k~ = 4, on one pair.

    X has two items at the whole number below its cut, a third one with the rest, and b once; X' has no b. |X| counts
    events, or, with `blanks`, ticks: a removed event leaves a blank one. Noise is discrete and shown is what is larger
    than the cut. Where the cuts of the two are apart, the lower one lets a value pass that the other never shows.
    """
    n, gamma, q = 200, math.log(2.0 / delta) / epsilon, math.exp(-epsilon)

    def least(length: int) -> int:  # the smallest whole number above the cut
        return math.floor(max(length / 2 - gamma, length / 4 + 1 + gamma)) + 1

    cut, other = least(n), least(n if blanks else n - 1)
    at = cut - 1
    assert 2 * at < n - 1
    between = (1 - q) / (1 + q) if other == at else 0.0  # one of the two has exactly the value at
    alone = q ** (cut - 1) / (1 + q)  # b, which only X has, passes
    return max(alone, 1.0 - (1.0 - between) ** 2)


class _ChosenCells:
    """A CountSketch of three rows whose hash functions are tables: other items have cells and signs + of their own.

    It tracks `k` items with exact estimates, as Algorithm 4 does.
    """

    def __init__(self, k: int, places: dict[tuple[int, str], Place]) -> None:
        self._k, self._places = k, places
        self._cells: Counter[tuple[int, str]] = Counter()
        self._truth: Counter[str] = Counter()
        self.tracked: dict[str, float] = {}

    def _place(self, row: int, item: str) -> Place:
        return self._places.get((row, item), (item, 1))

    def estimate(self, item: str) -> float:
        places = (self._place(row, item) for row in range(_ROWS))
        return statistics.median(sign * self._cells[row, cell] for row, (cell, sign) in enumerate(places))

    def update(self, stream: Iterable[str]) -> None:
        for item in stream:
            self._truth[item] += 1
            for place in range(_ROWS):
                cell, sign = self._place(place, item)
                self._cells[place, cell] += sign
            estimate = self.estimate(item)
            if item not in self.tracked and len(self.tracked) == self._k:
                least = min(self.tracked, key=lambda kept: self.tracked[kept])
                if estimate <= self.tracked[least]:
                    continue
                del self.tracked[least]
            self.tracked[item] = estimate

    def error(self) -> int:
        """g: no estimate errs by more at any time, since two rows of every item have no more beside it at the end."""
        worst = 0
        for item in self._truth:
            beside = [
                sum(
                    count
                    for other, count in self._truth.items()
                    if other != item and self._place(row, other)[0] == self._place(row, item)[0]
                )
                for row in range(_ROWS)
            ]
            worst = max(worst, sorted(beside)[1])
        return worst


def printed_cut_of_algorithm_5(epsilon: float, delta: float, *, corrected: bool = False) -> float:
    """The chance that x is published in one stream; in the stream with one x fewer it is not tracked, and never is.

    x arrives when collisions push its estimate down, so that one x decides whether it is tracked; later ones push it
    up. All errors are within the envelope. The printed cut T/k + 2 gamma_1 + gamma_2, with gamma_2 = -gamma_1 negative,
    is below its final estimate; the right one, with -gamma_2 (here with the tighter bound of
    `largest_untracked`), is above.
    """
    few = [f"z{i}" for i in range(10)]
    light = [f"late{i}" for i in range(41)]
    places: dict[tuple[int, str], Place] = {
        (0, "x"): ("a", -1),
        (1, "x"): ("b", 1),
        (2, "x"): ("B", 1),
        (2, "early"): ("B", -1),
        **{(2, item): ("B", 1) for item in light},
        **{(row, item): ("a", 1) for row in (1, 2) for item in few},
    }
    k, runs = 12, []
    for arrivals in (401, 400):
        stream = (
            ["a"] * 200 + ["early"] * 210 + few + ["x"] * arrivals + ["b"] * 200 + [i for i in light for _ in range(10)]
        )
        sketch = _ChosenCells(k, places)
        sketch.update(stream)
        runs.append((sketch, len(stream)))
    (sketch, n), (other, _) = runs
    assert "x" in sketch.tracked
    assert "x" not in other.tracked
    g = sketch.error()
    # Appendix B: noise of scale 2 d/epsilon on every cell, psi = 2 d/epsilon ln(4 k/delta)
    scale = Fraction(2 * _ROWS) / Fraction(epsilon)
    psi = math.ceil(float(scale) * math.log(4 * k / delta))
    cut = largest_untracked(n, k, g, median=True) + psi if corrected else n // k + 2 * (g + psi) - (g + psi)
    p = Noise("laplace", scale).upper_tail(cut - int(sketch.estimate("x")))
    return 3 * p**2 - 2 * p**3  # at least two of three rows


def cut_from_the_second_moment(epsilon: float, *, corrected: bool = False) -> float:
    """The hockey-stick divergence of two streams whose cut was computed from their own second moments F2.

    One row without collisions, a public length n, the cut n/k + 3 sqrt(F2/w) with k = 4 and w = 64. The streams have f
    or f - 1 events of one item. Another has c events; where it stands at the lower of the two cuts only one of them can
    show it with that count. A cut by the length alone (`corrected`) is the same for both.
    """
    worst, noise = 0.0, Noise("laplace", 1 / Fraction(epsilon))
    for f in range(50, 100):
        for c in range(50, 100):
            share = (f + c) / 4
            moments = (0, 0) if corrected else (f * f + c * c, (f - 1) ** 2 + c * c)
            low, high = sorted(math.ceil(share + 3 * math.sqrt(moment / 64)) for moment in moments)
            worst = max(worst, noise.upper_tail(low - c) - noise.upper_tail(high - c))
    return worst


# ---- [CO] Theorem 4 and Lemma 2.2 ------------------------------------------------------------------------------------


def sparse_rho(k: int, tau: float, *, literal: bool = False) -> float:
    """What sparseGumb costs: (2k + 1/4)/(2 tau^2); Theorem 4 of [CO] takes a run of AboveThreshold to be 2/tau_1-DP."""
    return (2 * k + (4 if literal else 0.25)) / (2.0 * tau * tau)


def epsilon_of_rho(rho: float, delta: float) -> tuple[float, float]:
    """By Lemma 2.2, and what Gaussian noise of that rho really needs, by bisection."""
    printed = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    low, high = 0.0, printed
    for _ in range(60):
        middle = (low + high) / 2
        enough = gaussian_delta(middle, 1 / math.sqrt(2 * rho)) <= delta
        low, high = (low, middle) if enough else (middle, high)
    return printed, high


# ---- the pan-private estimators as [PAN] prints them. NOT PRIVATE ----------------------------------------------------
# Each is the exact law of one element's cells and of the output, for `pan.worst_loss`.


Vector = npt.NDArray[np.float64]


def _bit(epsilon: float, t: int = 1) -> pan.Bit:
    return pan.Bit(BitCell(Fraction(1, 2), Fraction(0.5 + epsilon / 4), t))


def _counter(epsilon: float, k: int) -> pan.Shifted:
    return pan.Shifted(CounterCell(tuple(map(Fraction, _printed_shift(epsilon, k)))))


def cropped_mean_noise_after_rescaling(epsilon: float, t: int, *, before: bool = False) -> pan.CellsOfElement:
    """Figure 2: 4 t (theta - 1/2)/eps + Lap(t/(eps m)), which claims 2 eps; `before` has the noise on theta. With t = 1
    it is the density of section 3. In units of 1/m: one element moves the output by 4 t/eps."""
    factor = 4 * t / epsilon
    scale = factor / epsilon if before else t / epsilon
    return pan.CellsOfElement([_bit(epsilon, t)], lambda states: (factor * states[0][1],), (scale,))


def heavy_hitters_noise_for_one_table(
    epsilon: float, rungs: Sequence[int], *, only_one: bool = True, all_tables: bool = False
) -> pan.CellsOfElement:
    """Figure 3, step 4: v' + Lap(1/(eps m)), which claims eps (1 + tables); `all_tables` has noise for every table."""
    values = [float(t) for t in rungs]
    printed = ladder_weights(values, 1, only_one)
    weights = [4 * t * w / epsilon for t, w in zip(values, printed, strict=True)]
    scale = (sum(map(abs, weights)) if all_tables else 1.0) / epsilon

    def statistic(states: Any) -> tuple[float, ...]:
        return (math.fsum(w * state[1] for w, state in zip(weights, states, strict=True)),)

    return pan.CellsOfElement([_bit(epsilon, t) for t in rungs], statistic, (scale,))


def fraction_of_one_interval(rungs: Sequence[float], k: int, count: float, *, corrected: bool = False) -> float:
    """What step 4 of Figure 3 publishes for elements that all occurred `count` times, without any noise."""
    weights = ladder_weights(list(rungs), k, only_one=not corrected)
    return math.fsum(w * min(count, t) for w, t in zip(weights, rungs, strict=True))


def _printed_shift(epsilon: float, k: int) -> list[float]:
    terms = [math.exp(-epsilon * i / (k - 1)) for i in range(k)]
    return [term / math.fsum(terms) for term in terms]


def modular_noise_for_one_residue(epsilon: float, k: int, *, both: bool = False) -> pan.CellsOfElement:
    """Figure 5: Lap(1/(eps m)) on every fraction, which claims 2 eps; `both` has noise for the two that move."""
    scales = ((2.0 if both else 1.0) / epsilon,) * k
    return pan.CellsOfElement([_counter(epsilon, k)], lambda at: tuple(float(at[0] == i) for i in range(k)), scales)


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


def counters_that_do_not_share(epsilon: float, moduli: Sequence[int], *, shared: bool = False) -> pan.CellsOfElement:
    """Theorem 5.1: a counter modulo each of several primes, each with all of eps (`shared`: with its part of it)."""
    each = epsilon / len(moduli) if shared else epsilon
    return pan.CellsOfElement([_counter(each, k) for k in moduli], lambda states: (0.0,), (1.0,))


class _KeptCounter(pan.Bit):
    """After an announced intrusion the bit alone is drawn anew."""

    def announced(self, state: Any) -> pan.Law:
        return {(state[0], bit): self.modulus * p for (at, bit), p in super().announced(state).items() if at == 0}


def bits_alone_rerandomised(epsilon: float, t: int, *, corrected: bool = False) -> pan.CellsOfElement:
    """Section 3, "similar ideas can be used": after an announced intrusion the cropped mean's counters stay."""
    kind = pan.Bit if corrected else _KeptCounter
    cell = kind(BitCell(Fraction(1, 2), Fraction(0.5 + epsilon / 4), t))
    return pan.CellsOfElement([cell], lambda states: (float(states[0][1]),), (1 / epsilon,))


class _MadeLate(pan.Bit):
    """Nothing is there at the start."""

    def start(self) -> pan.Law:
        return {None: 1.0}

    def occurs(self, state: Any, rounds: int) -> pan.Law:
        return super().occurs((0, 0), rounds)


def entries_made_on_arrival(epsilon: float, *, corrected: bool = False) -> pan.CellsOfElement:
    """A table whose entries are drawn when their element first comes, as a dictionary would do."""
    kind = pan.Bit if corrected else _MadeLate
    return pan.CellsOfElement(
        [kind(BitCell(Fraction(1, 2), Fraction(0.5 + epsilon / 4)))], lambda states: (0.0,), (1.0,)
    )


# ---- bounds that do not hold, or say nothing -------------------------------------------------------------------------


def sketch_failure(eta: float, beta: float, *, corrected: bool = False) -> float:
    """[SS] Lemma 13: P[the median of ln(1/beta) rows of 3/eta^2 columns errs by more than eta sqrt(F2/w)].

    3,000 items of 60 each. What collides in a row is 60 times a sum of signs, whose law is exact. `corrected`: what
    Chebyshev's inequality gives, eta sqrt(F2).
    """
    items, width, depth = 3000, round(3 / eta**2), math.ceil(math.log(1 / beta))
    angles = 2 * np.pi * np.arange(256) / 256
    law = np.fft.fft((1 - 1 / width + np.cos(angles) / width) ** (items - 1)).real / 256  # P[sum = j], |j| < 128
    most = eta * math.sqrt(items / (1 if corrected else width))  # in units of 60
    above = float(law[math.floor(most) + 1 : 128].sum())
    rows = range(depth // 2 + 1, depth + 1)  # this many on one side
    return 2 * sum(math.comb(depth, j) * above**j * (1 - above) ** (depth - j) for j in rows)


def depth_failure(length: int, tracked: int, delta: float, *, corrected: bool = False) -> float:
    """[SS] appendix B: the union bound over both streams' queries of a CountMin of ln(2 (T + k~)/delta) rows.

    A row of 2/eta columns errs by more than eta F1 with probability 1/2 by Markov's inequality: log2 is needed.
    """
    queries = 2 * (length + tracked)
    return queries * 2.0 ** -math.ceil((math.log2 if corrected else math.log)(queries / delta))


def isolated_keys(k: int) -> float:
    """[SS] Algorithm 1 drops zero counters: how many keys of one sketch the other lacks, over all short streams."""

    @cache
    def keys(stream: Sequence[int]) -> frozenset[int]:
        counters: dict[int, int] = {}
        for x in stream:
            if x in counters or len(counters) < k:
                counters[x] = counters.get(x, 0) + 1
            else:
                counters = {y: c - 1 for y, c in counters.items() if c > 1}
        return frozenset(counters)

    pairs = neighbouring_streams(range(k + 1), k + 1)
    return worst_pair(pairs, keys, lambda one, other: max(len(one - other), len(other - one)))[0]


def recursion_bound(most: int) -> float:
    """[PAN] Theorem 4.1: the least (l + 2) (2 rho + 14 alpha/rho) over rho, l = log N/log(1 + rho), alpha = 0."""
    rhos: list[float] = np.geomspace(1e-6, 1.0, 400).tolist()
    return min((math.log(most) / math.log1p(rho) + 2) * 2 * rho for rho in rhos)


def search_failure(beta: float, total: int, *, corrected: bool = False) -> float:
    """[MDP] Theorem 4: the union bound over what a search for heavy hitters asks, at N beta/log_d u each.

    u = 49^6 in parts of 49, and a share of 0.001, as in its section 5.2. Errors are at most share N/2, so at most
    2/share intervals of a level pass, and their d parts are asked. `corrected` has beta/(N log_d u), which the authors
    may have meant.
    """
    levels, branching, share = 6, 49, 0.001
    asked = levels * branching * 2 / share
    return min(1.0, asked * (beta / (total * levels) if corrected else total * beta / levels))
