"""How many different elements a stream had, with a relative error, over any universe."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import ParameterError
from discreet.noise import RandomSource
from discreet.pan._base import PanEstimate
from discreet.pan._cells import STEADY, Hashed, Vector
from discreet.pan.settings import Options, Settings
from discreet.privacy import Budget
from discreet.privacy.checks import positive_number

if TYPE_CHECKING:
    from typing_extensions import Unpack


class DistinctCount(Hashed):
    """The number of distinct items of a stream: integers, strings and bytes, all of them or any mixture.

    Unit: all occurrences of one element. Guarantee: pure epsilon, for one unannounced intrusion and the output, for
        every choice of the hash function, which is drawn before any data and is not secret.
    State: levels of buckets with one bit each. An element belongs to one bucket of one level, level j with probability
        2^-(j+1); the bit is drawn from D0 at the start and from D1 whenever an element of the bucket occurs. ([PAN]
        puts every element into every level and shares the budget; here nothing is shared.)
    Noise: discrete Laplace of scale 1/epsilon_output on the number of ones of each level; an element moves one by 1.
    Estimate: a bucket of level j is hit by one of D elements with probability 1 - (1 - 2^-(j+1)/buckets)^D, which
        corrects for collisions; D is fitted to all levels, each weighted by what it tells.
    Error: relative, about 1.1/(gap sqrt(buckets)); below some sqrt(buckets)/gap elements it is that many, absolute.
    for_accuracy: a relative error of alpha, for streams of at least `accurate_from(alpha)` distinct items.
    Interval: all D that the counts do not contradict at the stated confidence, by Chernoff's bound (the bits of the
        buckets are negatively associated), taking the hash as random; it is 4-wise independent.
    Follows [PAN] section 3, "Obtaining a multiplicative error".
    Argument: docs/privacy/pan.md.
    """

    family = 121
    name = "pan-private distinct count"
    own = ("buckets", "levels")

    def __init__(self, *, budget: Budget, buckets: int = 2**14, levels: int = 24, **options: Unpack[Options]) -> None:
        self._choose(buckets, levels)
        self._start(budget, options)

    def _draft(self, options: Options, levels: int = 24) -> tuple[int, int]:
        self._choose(16, levels)
        return 16, 2**25

    def _choose(self, buckets: object, levels: object) -> None:
        self._size(buckets, 16, levels)

    def accurate_from(self, alpha: float) -> int:
        """The number of distinct items from which on the relative error is at most alpha at this confidence."""
        alpha = positive_number("alpha", alpha)
        p0, gap = self._chances()
        counts = np.geomspace(1, self._buckets * STEADY, 400)
        errors = self._relative_error(counts, p0, gap, self.epsilon_output, self._settings.beta)
        above = np.flatnonzero(errors > alpha)
        if above.size and above[-1] == len(counts) - 1:
            raise ParameterError(
                f"a relative error of {alpha!r} cannot be reached with {self._buckets} buckets; use more"
            )
        return math.ceil(counts[above[-1] + 1]) if above.size else 1

    # ---- the model -----------------------------------------------------------------------------------------------

    def _occupied(self, counts: Vector) -> tuple[Vector, Vector]:
        """The chance that a bucket of each level is hit, and D times its derivative; one row for each count D."""
        exponent = counts[:, None] * np.log1p(-self._chance_of_level / self._buckets)
        return -np.expm1(exponent), -exponent * np.exp(exponent)

    def _moments(self, counts: Vector, p0: float, gap: float, epsilon_output: float) -> tuple[Vector, Vector, Vector]:
        """P[1] of a bit of each level, the mean's slope in log D, and the best weights of the levels."""
        occupied, slope = self._occupied(counts)
        p = p0 + gap * occupied
        q = math.exp(-epsilon_output)
        variance = self._buckets * p * (1 - p) + 2 * q / (1 - q) ** 2
        slope = self._buckets * gap * slope
        return p, slope, slope / variance

    def _tails(self, p: Vector, weights: Vector, epsilon_output: float, beta: float) -> tuple[Vector, Vector]:
        """How far sum_j a_j (K_j + Z_j - E) may lie above and below 0, each except with probability beta/2.

        Chernoff: for every s the bound (log E[exp(s sum)] + log(2/beta)) / s holds, with the bits as if independent.
        """
        variance = (weights**2 * (self._buckets * p * (1 - p) + 2 / epsilon_output**2)).sum(axis=1)
        best = np.sqrt(2 * math.log(2 / beta) / np.maximum(variance, 1e-300))
        most = 0.999 * epsilon_output / np.maximum(weights.max(axis=1), 1e-300)
        tails = []
        for sign in (1.0, -1.0):
            bounds = []
            for factor in (0.5, 0.7, 0.85, 1.0, 1.15):
                s = np.minimum(factor * best, most)
                x = s[:, None] * weights
                bits = self._buckets * (np.log1p(p * np.expm1(sign * x)) - sign * x * p)
                rate = epsilon_output
                noise = 2 * math.log(-math.expm1(-rate)) - np.log(-np.expm1(x - rate)) - np.log(-np.expm1(-x - rate))
                bounds.append(((bits + noise).sum(axis=1) + math.log(2 / beta)) / s)
            tails.append(np.min(bounds, axis=0))
        return tails[0], tails[1]

    def _relative_error(self, counts: Vector, p0: float, gap: float, epsilon_output: float, beta: float) -> Vector:
        p, slope, weights = self._moments(counts, p0, gap, epsilon_output)
        above, below = self._tails(p, weights, epsilon_output, beta)
        information: Vector = (slope * weights).sum(axis=1)
        # In log D; e^x - 1 is the relative error.
        return np.asarray(np.expm1(np.minimum(np.maximum(above, below) / np.maximum(information, 1e-300), 50.0)))

    def _width(self, settings: Settings, epsilon_state: float, epsilon_output: float) -> float:
        gap = settings.gap(epsilon_state)
        p0 = (1 - gap) / 2 if settings.response == "tight" or settings.announced_intrusions else 0.5
        counts = self._buckets * STEADY * 2.0 ** np.arange(0, 1, 0.25)
        return float(self._relative_error(counts, p0, gap, epsilon_output, settings.beta).max())

    # ---- the table -----------------------------------------------------------------------------------------------

    def _read(self, source: RandomSource) -> PanEstimate:
        read = self.counted(source, self._levels, lambda noise: self._table.noisy_ones(0, 0, self._buckets, noise))
        ones = read.astype(float)
        p0, gap = self._chances()
        eo, beta = self.epsilon_output, self._settings.beta

        def score(counts: Vector) -> tuple[Vector, Vector]:
            """The weighted surplus of ones at each count D, and whether D is not contradicted."""
            p, _, weights = self._moments(counts, p0, gap, eo)
            surplus = (weights * (ones - self._buckets * p)).sum(axis=1)
            above, below = self._tails(p, weights, eo, beta)
            return surplus, (surplus <= above) & (surplus >= -below)

        def misfit(counts: Vector) -> Vector:
            p, _, _ = self._moments(counts, p0, gap, eo)
            variance = self._buckets * p * (1 - p) + 2 / eo**2
            out: Vector = ((ones - self._buckets * p) ** 2 / variance + np.log(variance)).sum(axis=1)
            return out

        grid = np.geomspace(0.5, self._buckets * 2.0 ** (self._levels + 2), 3000)
        for _ in range(4):  # the best fit, ten times finer each time
            fit = misfit(grid)
            i = int(fit.argmin())
            best = float(grid[i])
            grid = np.geomspace(grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)], 31)
        value = 0.0 if best <= 0.5 else best

        # All numbers on a grid, with a finer one around the best fit: with many buckets the interval is narrow.
        width = min(float(self._relative_error(np.array([best]), p0, gap, eo, beta)[0]), 1.0)
        grid = np.geomspace(0.5, self._buckets * 2.0 ** (self._levels + 2), 3000)
        grid = np.unique(np.append(grid, np.clip(best * np.exp(np.linspace(-4, 4, 400) * width), grid[0], grid[-1])))
        accepted = np.flatnonzero(score(grid)[1])
        if not accepted.size:  # the counts contradict every number, which happens in a part of the runs that miss
            return self._estimate(value, value / (1 + width), value * (1 + width), math.inf)
        lower, upper = 0.0, math.inf
        if accepted[0] > 0:
            fine = np.geomspace(grid[accepted[0] - 1], grid[accepted[0]], 200)
            lower = float(fine[max(int(np.flatnonzero(score(fine)[1])[0]) - 1, 0)])
        if accepted[-1] < len(grid) - 1:
            fine = np.geomspace(grid[accepted[-1]], grid[accepted[-1] + 1], 200)
            upper = float(fine[min(int(np.flatnonzero(score(fine)[1])[-1]) + 1, 199)])
        return self._estimate(value, lower, upper, math.inf)

    # ---- states --------------------------------------------------------------------------------------------------

    def _pack(self, estimate: PanEstimate) -> dict[str, Any]:
        packed = super()._pack(estimate)
        return {name: None if math.isinf(number) else number for name, number in packed.items()}

    def _unpack(self, packed: dict[str, Any]) -> PanEstimate:
        numbers_of: PanEstimate = super()._unpack(
            {name: math.inf if number is None else number for name, number in packed.items()}
        )
        return numbers_of
