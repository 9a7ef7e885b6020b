"""[SS] Algorithms 3 and 5 and appendix B as printed. NOT PRIVATE: only the audit uses them, to be caught by it.

docs/privacy/corrections.md has the arguments and what each of them loses.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from discreet.releases.error_model import Noise
from discreet_audit.linear import largest_untracked

__all__ = [
    "GAMMA_OF_SECTION_4_3",
    "cut_from_the_second_moment",
    "printed_cut_of_algorithm_3",
    "printed_cut_of_algorithm_5",
]

GAMMA_OF_SECTION_4_3 = 89.87
"""For epsilon 0.1 and delta 0.001, as printed."""

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
            for row in range(_ROWS):
                cell, sign = self._place(row, item)
                self._cells[row, cell] += sign
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
