"""How many elements occurred once, twice, ..., or at least N times, over any universe."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass, field
from discreet.errors import CorruptStateError
from discreet.noise import RandomSource
from discreet.pan._base import PanEstimate
from discreet.pan._cells import STEADY, Hashed, Vector
from discreet.pan.cropped_mean import largest_ratio
from discreet.pan.element_law import ElementLaw
from discreet.pan.intervals import linear_bound, signs_bound
from discreet.pan.settings import Options, Settings
from discreet.privacy import Budget, Guarantee
from discreet.privacy.checks import whole_number

if TYPE_CHECKING:
    from typing_extensions import Unpack

MOST_COUNT = 64
_A_COUNTER = 64  # buckets for each value of a counter, at least: sums of this many signs are what intervals assume
_STEPS = 100


class SumLimits(NamedTuple):
    """What is known after an announced intrusion: of the distinct elements, and of the sum of min(occurrences, N)."""

    distinct: float  # at least
    least: float
    most: float

    def of(self, worth: Vector) -> tuple[float, float]:
        """The least and the most that elements may be worth together: one that occurred m times worth[m - 1]."""
        from scipy.optimize import linprog

        times = np.arange(1.0, len(worth) + 1)
        rows, bounds = [-np.ones(len(worth)), -times], [-self.distinct, -self.least]
        lower = float(linprog(worth, A_ub=rows, b_ub=bounds).fun)
        if math.isinf(self.most):
            return lower, math.inf
        return lower, -float(linprog(-worth, A_ub=[*rows, times], b_ub=[*bounds, self.most]).fun)


_NOTHING = SumLimits(0.0, 0.0, math.inf)


@dataclass(frozen=True)
class OccurrencesEstimate:
    """Numbers of elements by how often they occurred; one release answers all of these, and each has an interval.

    Every interval holds with the confidence of the estimator, one at a time.
    """

    values: tuple[float, ...]
    """Elements that occurred at least once, twice, ..., `max_count` times; none is negative, and they do not rise."""
    unbiased: tuple[float, ...]
    guarantee: Guarantee
    _covariance: Vector = field(repr=False, compare=False)
    _reach: float = field(repr=False, compare=False)  # standard deviations
    _limits: SumLimits | None = field(default=None, repr=False, compare=False)  # what intervals follow from instead

    @classmethod
    def of(
        cls, unbiased: Vector, guarantee: Guarantee, covariance: Vector, reach: float, limits: SumLimits | None = None
    ) -> OccurrencesEstimate:
        """From numbers of elements that occurred at least k times, before they are cut to what is possible."""
        falling = np.maximum(np.minimum.accumulate(unbiased), 0.0)
        told, raw = (tuple(float(x) for x in each) for each in (falling, unbiased))
        return cls(told, raw, guarantee, covariance, reach, limits)

    @property
    def max_count(self) -> int:
        """Where counts are cropped."""
        return len(self.values)

    @property
    def places(self) -> tuple[str, ...]:
        """What the values are of."""
        return tuple(f"{k} or more times" for k in range(1, self.max_count + 1))

    @property
    def lower(self) -> tuple[float, ...]:
        """The lower ends of the intervals of `values`."""
        return tuple(self.at_least(k).lower for k in range(1, self.max_count + 1))

    @property
    def upper(self) -> tuple[float, ...]:
        """The upper ends of the intervals of `values`."""
        return tuple(self.at_least(k).upper for k in range(1, self.max_count + 1))

    @property
    def is_private(self) -> bool:
        """Whether the numbers may be published."""
        return not self.guarantee.seeded

    @property
    def distinct(self) -> PanEstimate:
        """The number of elements that occurred."""
        return self.at_least(1)

    def at_least(self, k: int) -> PanEstimate:
        """The number of elements that occurred at least k times."""
        return self._of({whole_number("k", k, 1, self.max_count): 1.0})

    def exactly(self, t: int) -> PanEstimate:
        """The number of elements that occurred exactly t times."""
        t = whole_number("t", t, 1, self.max_count - 1)
        return self._of({t: 1.0, t + 1: -1.0})

    def cropped_sum(self, t: int | None = None) -> PanEstimate:
        """The sum over all elements of min(occurrences, t); by default t is `max_count`."""
        t = self.max_count if t is None else whole_number("t", t, 1, self.max_count)
        return self._of(dict.fromkeys(range(1, t + 1), 1.0))

    def _of(self, weights: dict[int, float]) -> PanEstimate:
        w = np.zeros(self.max_count)
        w[[k - 1 for k in weights]] = list(weights.values())
        unbiased, value = float(w @ np.array(self.unbiased)), max(float(w @ np.array(self.values)), 0.0)
        if self._limits is None:
            spread = self._reach * math.sqrt(max(float(w @ self._covariance @ w), 0.0))
            lower, upper = max(unbiased - spread, 0.0), max(unbiased + spread, 0.0)
        else:
            lower, upper = self._limits.of(np.cumsum(w))
        return PanEstimate(value, min(lower, value), max(upper, value), self.guarantee, unbiased)


class Occurrences(Hashed):
    """Elements of a stream by how often they occurred, up to `max_count` = N: integers, strings and bytes, any of them.

    Without a universe, one release has the number of distinct elements, of those that occurred at least k or exactly t
    times, and the sum of min(occurrences, t), for all k and t up to N.

    Unit: all occurrences of one element. Guarantee: pure epsilon, for one unannounced intrusion and the output, for
        every choice of the hash function, which is drawn before any data and is not secret.
    State: levels of buckets, as in `DistinctCount`; a bucket is a cell of the cropped mean: a bit, and a counter modulo
        N that starts anywhere. Its law is that of one element with all occurrences of the bucket.
    Noise: discrete Laplace of scale 2/epsilon_output on the number of ones less zeros of each level and counter, which
        an element moves by 2 in l1.
    Estimate: the numbers of elements that occurred n times, fitted by least squares to the bits at each counter of all
        levels, with a bucket's occurrences as a compound Poisson sum.
    Error: of every number of elements about sqrt(N/buckets)/gap times as large as the number of distinct elements; with
        few elements, about sqrt(N buckets)/gap elements.
    for_accuracy: a relative error of alpha of the number of distinct elements, for streams of at least about buckets/4.
    Interval: sqrt(2 ln(2/beta)) standard deviations of the fit, the hash taken as random. After an announced intrusion
        that of all streams that the counts allow, as one element of N occurrences before it cannot be told from N of
        one.
    Argument: docs/privacy/pan.md. After [PAN] section 3, "Obtaining a multiplicative error", for sections 3.1, 4 and 5.
    """

    family = 126
    name = "pan-private numbers of occurrences"
    own = ("max_count", "buckets", "levels")

    def __init__(
        self,
        max_count: int,
        *,
        budget: Budget,
        buckets: int = 2**16,
        levels: int = 24,
        **options: Unpack[Options],
    ) -> None:
        self._choose(max_count, buckets, levels)
        self._start(budget, options)

    def _draft(self, options: Options, max_count: int, levels: int = 24) -> tuple[int, int]:
        self._choose(max_count, _A_COUNTER * whole_number("max_count", max_count, 2, MOST_COUNT), levels)
        return self._buckets, 2**24

    def _choose(self, max_count: object, buckets: object, levels: object) -> None:
        self._max_count = self._modulus = whole_number("max_count", max_count, 2, MOST_COUNT)
        self._size(buckets, _A_COUNTER * self._max_count, levels)

    @property
    def max_count(self) -> int:
        """N: occurrences are told apart up to it."""
        return self._max_count

    def element_laws(self) -> list[ElementLaw]:
        """A bit and its counter, counted with a sign where the counter is."""
        n = self._max_count

        def signs(cells: tuple[tuple[int, int], ...]) -> tuple[float, ...]:
            ((counter, bit),) = cells
            return tuple(float((2 * bit - 1) * (counter == u)) for u in range(n))

        return [ElementLaw((self._bit(n),), signs, (self.noise_scale,) * n, pairs=True)]

    def _sensitivity(self, intrusions: int) -> int:
        return 2  # a sign leaves one counter and enters another, or changes

    # ---- the model -----------------------------------------------------------------------------------------------

    def _more_than(self, loads: Vector) -> tuple[Vector, Vector]:
        """P[a bucket has more than u occurrences], and its derivatives by the loads, for each level and u.

        `loads` has the elements a bucket with 1, 2, ..., and at least N occurrences, if all were in one level. Panjer's
        recursion: m G_m = sum over i of i load_i G_(m-i); the derivative of G by load_n is (z^n - 1) G.
        """
        q, n = self._chance_of_level, self._max_count
        each = q[:, None] * loads
        law = np.zeros((self._levels, n))
        law[:, 0] = np.exp(-np.clip(each.sum(axis=1), -50.0, 700.0))
        for m in range(1, n):
            law[:, m] = (each[:, :m] * np.arange(1, m + 1) * law[:, m - 1 :: -1][:, :m]).sum(axis=1) / m
        at_most = np.cumsum(law, axis=1)
        by_load = np.repeat(at_most[:, :, None], n, axis=2)
        for i in range(1, n):
            by_load[:, i:, i - 1] -= at_most[:, : n - i]
        return 1 - at_most, q[:, None, None] * by_load

    def _variance(self, gap: float, epsilon_output: float) -> float:
        """Of an estimate of P[more than u occurrences] from one level: signs of `expected` entries, and the noise."""
        expected = self._buckets / self._max_count
        q = math.exp(-epsilon_output / 2)
        return (expected + 2 * q / (1 - q) ** 2) / (4 * (expected * gap) ** 2)

    def _fitted(self, seen: Vector) -> tuple[Vector, Vector]:
        """Loads that fit best to the estimates of P[more than u], by Levenberg and Marquardt, and J'J at the end."""
        grid = np.concatenate([[0.0], np.geomspace(2.0**-14, 2.0 ** (self._levels + 2), 2000)])
        misfit = ((seen[:, 0] + np.expm1(-np.outer(grid, self._chance_of_level))) ** 2).sum(axis=1)
        loads = np.full(self._max_count, grid[int(misfit.argmin())] / self._max_count)
        told, slopes = self._more_than(loads)
        left, damping = float(((seen - told) ** 2).sum()), 1e-3
        for _ in range(_STEPS):
            curvature = np.einsum("lun,lum->nm", slopes, slopes)
            downhill = np.einsum("lun,lu->n", slopes, seen - told)
            damped = curvature + damping * np.diag(np.diag(curvature) + 1e-12)
            trial = loads + np.linalg.solve(damped, downhill)
            told_there, slopes_there = self._more_than(trial)
            left_there = float(((seen - told_there) ** 2).sum())
            if math.isfinite(left_there) and left_there <= left:
                settled = left - left_there <= 1e-12 * left
                loads, told, slopes, left, damping = trial, told_there, slopes_there, left_there, damping / 10
                if settled:
                    break
            elif damping > 1e12:
                break
            else:
                damping *= 10
        return loads, np.einsum("lun,lum->nm", slopes, slopes)

    def _width(self, settings: Settings, epsilon_state: float, epsilon_output: float) -> float:
        gap = settings.gap(epsilon_state)
        widths: list[float] = []
        for octave in (0.0, 0.25, 0.5, 0.75):
            load = STEADY * math.pow(2.0, octave)
            _, slopes = self._more_than(np.append(load, np.zeros(self._max_count - 1)))
            covariance = np.linalg.pinv(np.einsum("lun,lum->nm", slopes, slopes))
            widths.append(math.sqrt(float(covariance.sum()) * self._variance(gap, epsilon_output)) / load)
        return math.sqrt(2 * math.log(2 / settings.beta)) * max(widths)

    # ---- the table -----------------------------------------------------------------------------------------------

    def _read(self, source: RandomSource) -> OccurrencesEstimate:
        size = self._levels * self._max_count
        signs = self.counted(source, size, lambda n: self._table.noisy_signs_by_counter(0, self._buckets, n))
        return self._told(signs.reshape(self._levels, self._max_count))

    def _told(self, signs: npt.NDArray[np.int64]) -> OccurrencesEstimate:
        """All that follows from the noisy signs."""
        p0, gap = self._chances()
        expected = self._buckets / self._max_count
        loads, curvature = self._fitted(((signs / expected + 1) / 2 - p0) / gap)
        or_more = self._buckets * np.triu(np.ones((self._max_count, self._max_count)))  # of "exactly" and of the last
        covariance = self._variance(gap, self.epsilon_output) * np.linalg.pinv(curvature)
        reach = math.sqrt(2 * math.log(2 / self._settings.beta))
        limits = self._limits(signs) if self.intrusions else None
        return OccurrencesEstimate.of(or_more @ loads, self.guarantee, or_more @ covariance @ or_more.T, reach, limits)

    def _limits(self, signs: npt.NDArray[np.int64]) -> SumLimits:
        """What announced intrusions leave, except with probability beta over all levels: docs/privacy/pan.md."""
        (p0, gap), b, n = self._chances(), self._buckets, self._max_count
        beta, q = self._settings.beta / (2 * self._levels), self._chance_of_level
        seen = (signs.sum(axis=1) / b + 1) / 2
        noise = linear_bound([1.0] * n, self.noise_scale, beta / 2)
        reach = (math.sqrt(2 * b * math.log(4 / beta)) + noise) / (2 * b * gap)
        at_zero = (signs[:, 0] * n / b + 1) / 2
        reach_at_zero = signs_bound(b / n, self.noise_scale, beta) * n / (2 * b * gap)
        low, high = (np.clip((seen - p0) / gap + off, 0.0, 1.0) for off in (-reach, reach))
        low_at_zero = np.clip((at_zero - p0) / gap - reach_at_zero, 0.0, 1.0)
        with np.errstate(divide="ignore"):  # a level that is full bounds nothing
            distinct = np.log1p(-low_at_zero) / np.log1p(-q / b)
            most = -largest_ratio(self.intrusions) * n * b / q * np.log1p(-high)
        fewest_elements = float(distinct[np.isfinite(distinct)].max(initial=0.0))
        least = max(float((n * b / q * low).max()), fewest_elements)
        return SumLimits(fewest_elements, least, max(float(most.min()), least))

    # ---- states --------------------------------------------------------------------------------------------------

    def _pack(self, estimate: OccurrencesEstimate) -> dict[str, Any]:
        told = {"unbiased": list(estimate.unbiased), "covariance": estimate._covariance.tolist()}
        limits = estimate._limits
        if limits is None:
            return {**told, "reach": estimate._reach}
        kept = {} if limits == _NOTHING else {"limits": [None if math.isinf(x) else x for x in limits]}
        return {**told, "reach": None, **kept}

    def _unpack(self, packed: dict[str, Any]) -> OccurrencesEstimate:
        unbiased = np.array(packed["unbiased"], float)
        covariance = np.array(packed["covariance"], float)
        if unbiased.shape != (self._max_count,) or covariance.shape != (self._max_count, self._max_count):
            raise CorruptStateError("state has a release for another max_count")
        if not (np.isfinite(unbiased).all() and np.isfinite(covariance).all()):
            raise CorruptStateError("state has a release that cannot be")
        if packed["reach"] is not None:
            return OccurrencesEstimate.of(unbiased, self.guarantee, covariance, float(packed["reach"]))
        kept = packed.get("limits", (0.0, 0.0, None))
        limits = SumLimits(*(math.inf if number is None else float(number) for number in kept))
        if not 0 <= limits.distinct <= limits.least <= limits.most:
            raise CorruptStateError("state has a release that cannot be")
        return OccurrencesEstimate.of(unbiased, self.guarantee, covariance, math.nan, limits)

    def _describe(self) -> str:
        return f"max_count={self._max_count}, {super()._describe()}"
