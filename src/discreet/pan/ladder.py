"""The ladder of [PAN] Figure 3: cropped means at t_i = (1 + rho)^i, and the heavy fraction as a function of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

_WEIGHT = 2**24  # weights of tables are counted in this part of the largest


@dataclass(frozen=True)
class Ladder:
    """A table for each of t_i = (1 + rho)^i up to `max_count`, every element in all of them."""

    k: int
    rho: float
    max_count: int

    @cached_property
    def rungs(self) -> list[float]:
        """The t_i."""
        top = math.ceil(math.log(self.max_count, 1 + self.rho) - 1e-9)
        return [(1 + self.rho) ** i for i in range(max(top, 1) + 1)]

    @cached_property
    def parts(self) -> tuple[list[int], float]:
        """Whole weights W_j and the unit u with value = u sum_j W_j (K_j/m - p0)/gap."""
        weights = [w * t for w, t in zip(ladder_weights(self.rungs, self.k), self.rungs, strict=True)]
        unit = max(map(abs, weights)) / _WEIGHT
        return [round(w / unit) for w in weights], unit

    def bound(self, m: int, gap: float, epsilon_output: float, beta: float) -> float:
        """Hoeffding's bound for the bits, the multiplicities and the sample of m, and the tail of the noise.

        Given r_x the bits of an element are independent with weights W_j; what they mean is a function of n_x r_x that
        is linear between the rungs and so bounded by its values there.
        """
        weights, unit = self.parts
        rungs = self.rungs
        means = [unit * sum(w * min(s, t) / t for w, t in zip(weights, rungs, strict=True)) for s in [0.0, *rungs]]
        proxy = (unit / gap) ** 2 * sum(w * w for w in weights) + (max(means) - min(means)) ** 2
        noise = unit / gap * sum(map(abs, weights)) * math.log(4 / beta) / epsilon_output
        return math.sqrt(proxy * math.log(4 / beta) / (2 * m)) + noise / m


def ladder_weights(rungs: list[float], k: int, only_one: bool = False) -> list[float]:
    """The output of [PAN] Figure 3 as a linear function of the cropped means e'_0, ..., e'_l.

    `only_one` gives step 4 as printed, the fraction of the single interval from ceil(log k); as corrected it is the
    sum of the intervals from there up.
    """
    last = len(rungs) - 1
    t = [*rungs, rungs[-1]]
    e = np.vstack([np.eye(last + 1), np.eye(last + 1)[-1:]])  # t_(l+1) = t_l
    start = min(math.ceil(math.log(k, 1 + (rungs[1] / rungs[0] - 1)) - 1e-9), last - 1) if k > 1 else 0
    v = np.zeros(last + 1)
    total = np.zeros(last + 1)
    for i in range(last - 1, -1, -1):
        width, above = t[i + 1] - t[i], t[i + 2] - t[i + 1]
        heavier = np.zeros(last + 1)
        if above > 0:
            u = (e[i + 2] - e[i + 1]) - v * above / 2
            heavier = v * width + width / above * u
        v = ((e[i + 1] - e[i]) - heavier) / (width / 2)
        if i == start or (i > start and not only_one):
            total = total + v
    return [float(w) for w in total]
