"""Counts, sums, means and variances of rows, of all of them or by group, with one row hidden."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass, field, replace
from discreet.central._additive import A_PERSON, PUBLIC_GROUPS, additive_cost, additive_noise
from discreet.errors import ParameterError, WordError
from discreet.noise import RandomSource, system_source
from discreet.privacy import Budget, Event, Guarantee, Unit, User
from discreet.privacy.budget import as_budget
from discreet.privacy.calibration.gaussian import gaussian_sigma, ndtri, sum_of_two
from discreet.privacy.calibration.tails import log_sum_tail, log_tail, smallest_shift
from discreet.privacy.checks import probability, whole_number
from discreet.releases.error_model import Noise
from discreet.summaries.moments import GroupSums, ValueMoment

if TYPE_CHECKING:
    from discreet.privacy.accounting import Charge

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Bounded:
    """What is published of groups: values with bounds, and which of the groups they are of."""

    kept: Counts
    values: Array
    lower: Array
    upper: Array
    guarantee: Guarantee


@dataclass(frozen=True)
class RowMoments:
    """Noise on the sums that counts, sums, means and variances follow from (`ValueMoment`), for every group.

    Unit: one row, added or removed (`Event()`).
    Guarantee: epsilon, rho, or (epsilon, delta), as the budget says; (epsilon, delta) where groups are discovered.
    Noise: a row moves the parts of one group by L in l1 and at most L in l2: discrete Laplace noise of scale L/epsilon
        on every part, or discrete Gaussian noise of sigma = L/mu, whichever has the smaller variance.
    Threshold: none over a public list of groups. Discovered groups are published iff their parts add up to L (1 + t) or
        more with noise: a row that is alone in its group passes with probability delta at most.
    Error: that of the parts; intervals of means and variances hold exactly, without linearisation.
    Argument: docs/privacy/sums.md.

    Args:
        moment: What is asked.
        groups: How many groups a public list has; 1 without groups. None: they are discovered.
        max_items: Of counts of different values, for `User()`: at most this many values of a person, in all groups,
            were counted. The upper bound is then infinite: nothing private tells what others they have.
        confidence: All intervals hold together with this probability.
    """

    reference: ClassVar[str] = "docs/privacy/sums.md"

    budget: Budget
    moment: ValueMoment
    groups: int | None = 1
    confidence: float = 0.95
    unit: Unit = field(default_factory=Event)
    counted: str = "rows"
    max_items: int | None = None

    def __post_init__(self) -> None:
        as_budget(self.budget)
        if isinstance(self.unit, Event) is not (self.max_items is None) or self.unit not in (Event(), User()):
            raise ParameterError(f"{self.name} protects dc.Event(), or dc.User() with max_items; got {self.unit!r}")
        if self.max_items is not None:
            whole_number("max_items", self.max_items)
            if self.moment.kind != "count" or self.groups is None:
                raise ParameterError("max_items needs counts of different values over a public list of groups")
        probability("confidence", self.confidence)
        if self.groups is not None:
            whole_number("groups", self.groups, 1, 2**24)
        elif self.budget.rho is not None or self.budget.delta == 0.0:
            raise WordError(
                "finding unknown groups needs {epsilon} and {delta} > 0; give a delta, such as 1e-6, or list the "
                "groups with {groups}"
            )
        elif self.moment.kind == "signed":
            raise ParameterError('"signed" does not tell how many rows a group has; use "sum"')
        if self.moment.kind == "split":
            raise ParameterError('"split" works with people only')
        _ = self.noise, self.threshold

    @property
    def name(self) -> str:
        """The mechanism in words."""
        what = {"count": "number", "signed": "sum"}.get(self.moment.kind, self.moment.kind)
        return f"noisy {what} of {self.counted}" + ("" if self.groups == 1 else " by group")

    @cached_property
    def noise(self) -> Noise:
        """The noise on every part."""
        return lattice_noise(self.budget, self.height)

    @property
    def height(self) -> int:
        """By how much one unit moves all parts together, in steps."""
        return self.moment.one * (self.max_items or 1)

    @property
    def scale(self) -> Fraction:
        """The scale of the Laplace noise, or sigma of the Gaussian."""
        return self.noise.scale

    @property
    def cost(self) -> Charge | None:
        """The rho of Gaussian noise, for accounts that add up rhos; not where groups are discovered."""
        return additive_cost(self.noise.law, self.scale, height=self.height) if self.groups is not None else None

    @cached_property
    def threshold(self) -> int | None:
        """What the parts of a discovered group must add up to; None where the list of groups is public."""
        if self.groups is not None:
            return None
        return self.moment.one + _least_unlikely(self.noise, self.moment.parts, self.budget.delta)

    @property
    def guarantee(self) -> Guarantee:
        """What the answer promises."""
        assumed = (PUBLIC_GROUPS,) if self.groups is not None and self.groups > 1 else ()
        if self.max_items is not None:
            assumed = (*assumed, A_PERSON, f"of a person at most {self.max_items} values count, the first")
        return Guarantee.of(self.budget, self.unit, self.name, self.reference, assumptions=assumed)

    def error_bound(self, beta: float) -> float:
        """With probability 1 - beta the noise moves no sum or count by more than this; of others, none of their parts.

        Parts are in rows: a mean of n rows is off by about this over n, in widths of the range.
        """
        worth = self.moment.largest if self.moment.kind in ("sum", "signed") else 1.0
        each = -math.expm1(math.log1p(-beta) / ((self.groups or 1) * self.moment.parts))
        return worth * float(_reach(self.noise, np.ones(1), np.zeros(1), each)[0]) / self.moment.one

    def draw(self, sums: Counts, source: RandomSource) -> Counts:
        """The sums with their noise: all that is random, and the seam of the audit."""
        drawn = source.discrete_gaussian if self.noise.law == "gaussian" else source.discrete_laplace
        return sums + np.asarray(drawn(self.scale, sums.size), np.int64).reshape(sums.shape)

    def passed(self, noisy: Counts) -> npt.NDArray[np.bool_]:
        """Which groups are published: a function of their own noisy sums."""
        if self.threshold is None:
            return np.ones(len(noisy), bool)
        return np.asarray(noisy.sum(axis=1) >= self.threshold)

    def __call__(self, found: GroupSums, source: RandomSource | None = None) -> Bounded:
        """Draw the noise. `source` is for tests and audits: a seeded one makes the answer not private."""
        source = system_source() if source is None else source
        noisy = self.draw(found.sums, source)
        kept = np.flatnonzero(self.passed(noisy))
        values, lower, upper = self.intervals(noisy[kept])
        return Bounded(kept, values, lower, upper, replace(self.guarantee, seeded=source.seeded))

    # ---- intervals ---------------------------------------------------------------------------------------------------

    def intervals(self, noisy: Counts) -> tuple[Array, Array, Array]:
        """(value, lower, upper) of every group, from what is published of it: with `confidence` all of them hold.

        Of discovered groups, given which of them passed: the noises N of their numbers are independent, each given
        N >= s, where s is what the group lacked. A group that lacked nothing fails a bound of chance p with 2 p at
        most, as N >= 0 is half of the law. One that lacked something reaches b beyond the cut with P[N > b | N >= 0] at
        most. So what is not beyond it by b says nothing, and each bound takes a quarter of what may fail.
        """
        moment, groups = self.moment, max(len(noisy), 1)
        beta = -math.expm1(math.log1p(self.confidence - 1.0) / groups)
        if self.threshold is not None:
            beta /= 4.0
        parts = noisy / moment.one
        number = parts.sum(axis=1)
        values = moment.ends(moment.answer(parts))
        if moment.kind == "mean":
            lower, upper = self._of_means(parts, beta)
        elif moment.kind == "variance":
            around = self._reach([1.0, 0.0], -math.expm1(math.log1p(-beta) / moment.parts))
            lower, upper = moment.within(parts - around, parts + around)
        else:
            weights = [abs(moment.high), abs(moment.low)] if moment.kind == "sum" else [1.0, 0.0]
            around = self._reach(weights, beta) * (moment.largest if moment.kind == "signed" else 1.0)
            value = moment.answer(parts)
            lower, upper = value - around, value + around
        most = number + self._reach_of_number(beta)
        lower, upper = moment.ends(lower - moment.rounding), moment.ends(upper + moment.rounding)
        if moment.kind == "count":
            values, lower, upper = (np.maximum(each, 0.0) for each in (values, np.ceil(lower), np.floor(upper)))
        if self.max_items is not None:
            upper = np.full(len(upper), np.inf)
        if self.threshold is not None:
            lower, upper = self._surely(lower, upper, number, most, beta)
        return np.clip(values, lower, upper), lower, upper

    def _surely(self, lower: Array, upper: Array, number: Array, most: Array, beta: float) -> tuple[Array, Array]:
        """Bounds of discovered groups: of those that may have passed for their noise alone, all that one row allows."""
        moment = self.moment
        assert self.threshold is not None
        lucky = number < self.threshold / moment.one + self._reach_of_number(beta)
        rows = np.maximum(most, 1.0)
        if moment.kind == "count":
            return np.where(lucky, 1.0, np.maximum(lower, 1.0)), np.maximum(upper, 1.0)
        if moment.kind == "sum":
            least, largest = np.minimum(moment.low * rows, moment.low), np.maximum(moment.high * rows, moment.high)
        else:
            least, largest = (moment.ends(np.full(len(rows), end)) for end in (-np.inf, np.inf))
        return np.where(lucky, least, lower), np.where(lucky, largest, upper)

    def _of_means(self, parts: Array, beta: float) -> tuple[Array, Array]:
        """All t with |U - t N| <= q(t), N = U + V: at the true mean it is the noise (1 - t) Z_U - t Z_V alone.

        Of any set of t that holds the interval, the largest q is at an end, so (U -+ q)/N bounds it again, closer.
        """
        at = np.linspace(0.0, 1.0, 257)
        reach = self._reach_each(1.0 - at, at, beta)
        upper, number = parts[:, 0], parts.sum(axis=1)
        safe = np.where(number > 0.0, number, 1.0)
        low, high = np.zeros(len(parts)), np.ones(len(parts))
        for _ in range(4):
            q = np.maximum(_above(at, reach, low), _above(at, reach, high))
            low, high = np.clip((upper - q) / safe, 0.0, 1.0), np.clip((upper + q) / safe, 0.0, 1.0)
            low, high = np.where(number > 0.0, low, 0.0), np.where(number > 0.0, high, 1.0)
        return self.moment.low + self.moment.wide * low, self.moment.low + self.moment.wide * high

    def _reach(self, weights: list[float], beta: float) -> float:
        first, second = (np.array([weight]) for weight in weights)
        return float(self._reach_each(first, second, beta)[0])

    def _reach_each(self, first: Array, second: Array, beta: float) -> Array:
        """How far weighted sums of two parts' noises reach, in units of 1, except for a probability of beta."""
        return _reach(self.noise, first, second, beta) / self.moment.one

    def _reach_of_number(self, beta: float) -> float:
        """The same for the sum of the noises of all parts."""
        if self.moment.parts == 3:
            return float(_least_unlikely(self.noise, 3, beta / 2.0)) / self.moment.one
        return self._reach([1.0, float(self.moment.parts == 2)], beta)


@lru_cache(maxsize=256)
def lattice_noise(budget: Budget, one: int) -> Noise:
    """The noise on numbers of which a unit moves some, by `one` in l1: the smaller of both laws.

    Gaussian noise of this many steps is within a relative 2^-40 of rounded continuous noise in all it is asked for
    (docs/privacy/people.md): sigma is that of the analytic Gaussian mechanism, for an epsilon and a delta that are less
    by more than that.
    """
    if budget.rho is not None or budget.delta == 0.0:
        return additive_noise(budget, height=one)
    assert budget.epsilon is not None
    if one < 2**20 * budget.epsilon:  # too few steps for that
        return additive_noise(budget, height=one)
    pure = additive_noise(Budget(budget.epsilon), height=one)
    sigma = gaussian_sigma(budget.epsilon * (1.0 - 1e-9), budget.delta * (1.0 - 1e-9), float(one)) * (1.0 + 1e-9)
    gaussian = Noise("gaussian", Fraction(math.ceil(sigma)))
    return pure if pure.variance <= gaussian.variance else gaussian


@lru_cache(maxsize=256)
def _least_unlikely(noise: Noise, parts: int, most: float) -> int:
    """The smallest T with P[Z_1 + ... + Z_parts >= T] <= most, never understated."""
    if noise.law == "gaussian":
        sigma, kappa = float(noise.scale), 1.0
        for _ in range(parts - 1):
            sigma, more = sum_of_two(sigma, float(noise.scale))
            kappa *= more
        return int(Noise("gaussian", Fraction(sigma)).bound(most, kappa)) + 1
    rate = float(1 / noise.scale)
    if parts == 3:
        return smallest_shift(lambda T: _log_tail_of_three(rate, T), most)
    tail = log_tail if parts == 1 else log_sum_tail
    return smallest_shift(lambda T: tail(rate, T) + 1e-12, most)


def _log_tail_of_three(rate: float, s: int) -> float:
    """log P[Z + Z' + Z'' >= s], by cells of one of them, in each of which it is taken to be as large as it can be."""
    wide = max(1, round(1.0 / (32.0 * rate)))
    edges = [wide * place for place in range(-math.ceil(60.0 / (rate * wide)), math.ceil(60.0 / (rate * wide)) + 1)]
    logs = [log_tail(rate, edges[-1])]  # beyond the last, whatever the others are
    logs.append(log_sum_tail(rate, s - edges[0]))  # and before the first
    for low, high in pairwise(edges):
        inside = math.exp(log_tail(rate, low)) - math.exp(log_tail(rate, high))
        if inside > 0.0:
            logs.append(math.log(inside) + log_sum_tail(rate, s - high))
    return float(np.logaddexp.reduce(logs)) + 1e-9


def _reach(noise: Noise, first: Array, second: Array, beta: float) -> Array:
    """The least s with P[|a Z + c Z'| > s] <= beta, in steps, for arrays of weights a and c of either order.

    Of one discrete Laplace noise the law is at most 2/(1 + q) times that of continuous noise rounded towards 0, so that
    of two at most the square of it; and of large ones a |X| + c |Y| exceeds s with probability
    (a^2 e^(-s/a) - c^2 e^(-s/c))/(a^2 - c^2), which grows with c. Of Gaussian noise the sum is Gaussian; rounding moves
    each by half a step.
    """
    a, c = np.maximum(first, second), np.minimum(first, second)
    scale = float(noise.scale)
    if scale < 64.0:  # counts with little noise: bounds of each by itself
        one = Noise(noise.law, noise.scale)
        return np.asarray(a * one.bound(beta) if not c.any() else (a + c) * one.bound(beta / 2.0))
    if noise.law == "gaussian":
        return np.asarray(-float(ndtri(beta / 2.0 * (1.0 - 1e-6))) * scale * np.hypot(a, c) * (1.0 + 1e-9) + a + c)
    most = beta * ((1.0 + math.exp(-1.0 / scale)) / 2.0) ** 2
    a = np.maximum(a, 1e-300)
    alike = c > 0.999 * a

    def beyond(s: Array) -> Array:
        second = np.where(c > 0.0, c, 1.0)
        apart = np.where(alike, 1.0, a**2 - c**2)
        different = (a**2 * np.exp(-s / a) - c**2 * np.exp(-s / second)) / apart
        return np.where(alike, np.exp(-s / a) * (1.0 + s / (2.0 * a)), different)

    low, high = np.zeros(len(a)), a * (4.0 - 2.0 * math.log(most))
    for _ in range(60):
        middle = (low + high) / 2.0
        over = beyond(middle) > most
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return np.asarray(high * scale * (1.0 + 1e-9) + a + c)


def _above(at: Array, values: Array, where: Array) -> Array:
    """The larger of the values on both sides of each place."""
    left = np.clip(np.searchsorted(at, where, side="right") - 1, 0, len(at) - 2)
    return np.maximum(values[left], values[left + 1])
