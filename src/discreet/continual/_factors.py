"""Factorisations of the running sum: which independent integers are added up to make the noise of every tick.

A running sum A x is published as A x + N with N = A C^-1 z for independent z: equivalently as A C^-1 (C x + z), so that
privacy rests on the l2-norm of a column of C and the error on the norms of the rows of A C^-1.

Everything is integers. Counts are multiplied by `lattice`, a power of two, the z are discrete Gaussians, and

    w_t = z_t - round(sum_{j >= 1} c_j w_{t-j}),        N_t = N_{t-1} + w_t

with fixed-point coefficients c. Given what was published before t, tick t publishes a discrete Gaussian around an
integer, and one event at tick s moves that integer by lattice * c_{t-s} + r_t, |r_t| <= kappa from rounding.
So the l2-sensitivity is at most

    lattice * sqrt(sum_{j < T} c_j^2) + kappa sqrt(T)

for the numbers that are stored, however they were found. The full argument is in docs/privacy/correlated-noise.md.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import cast

import numpy as np
import numpy.typing as npt

from discreet import _native
from discreet._data_class import dataclass
from discreet.continual._buffered_table import COEFFICIENT_BITS, OMEGA, THETA
from discreet.continual._late import state_law
from discreet.errors import CorruptStateError, ParameterError
from discreet.noise import RandomSource
from discreet.noise.source import Integers
from discreet.privacy.calibration.gaussian import ndtri
from discreet.privacy.calibration.tick_noise import LEAST_WIDTH, TickNoise, geometric_squares

Floats = npt.NDArray[np.float64]

MAX_HORIZON = 2**24
MAX_SQUARE_ROOT = 2**20
# What rounding adds to the sensitivity, relative to what there would be without it, is at most 2^-11.
_RELATIVE_ROUNDING = 2.0**-11
# Floating-point sums of a few million positive terms are right to far better than this.
_UP = 1.0 + 1e-9
_FRACTION_BITS = 8
_LAWS_EVERY = 64
# At this sigma a buffer forty standard deviations out is below 2^58; farther out has probability below exp(-790).
_MAX_SIGMA = 2.0**40


class Factor(abc.ABC):
    """One factorisation for a known horizon."""

    name: str
    lattice: int

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon
        self._law = cache(self.tick_noise)  # the same at every tick

    @property
    @abc.abstractmethod
    def sensitivity(self) -> float:
        """How far, in l2 and lattice steps, one event moves what is hidden behind the independent noises."""

    @abc.abstractmethod
    def row_squares(self, t: int) -> float:
        """The variance of the noise at tick t, in units of the variance of one independent noise."""

    @abc.abstractmethod
    def start(self, size: int, tick: int = 0) -> dict[str, Integers]:
        """The state of `size` noises before the first tick, in the shapes of one after `tick` ticks."""

    @abc.abstractmethod
    def advance(self, state: dict[str, Integers], tick: int, sigma: Fraction, source: RandomSource) -> Integers:
        """The noises of a tick, in lattice steps; the state moves on from the tick before."""

    def sensitivity_to(self, changes: int) -> float:
        """The same for a count that goes up and down by 1 in turn, `changes` times in all, at any ticks.

        The coefficients of a factor fall and are not negative. So at any tick what all changes move is at most what the
        latest of them alone would: changes add up in squares. Argument: docs/privacy/people-over-time.md, "Windows".
        """
        return math.sqrt(changes) * self.sensitivity

    def sigma(self, rho: float, items: int = 1, changes: int = 1) -> Fraction:
        """Sigma of the independent noises for rho-zCDP when an event counts for up to `items` counters.

        rho = (sqrt(items) * sensitivity)^2 / (2 sigma^2), rounded up.
        """
        sigma = math.sqrt(items) * self.sensitivity_to(changes) / math.sqrt(2.0 * rho) * (1.0 + 1e-12)
        if sigma > _MAX_SIGMA:
            raise ParameterError(f"the budget is too small for {self.horizon} ticks: its noise overflows")
        return Fraction(math.ceil(sigma)) if sigma > 2**20 else Fraction(math.nextafter(sigma, math.inf))

    def error(self, t: int, sigma: Fraction) -> float:
        """The standard deviation of the published noise at tick t.

        Rounding from the lattice to whole counts adds a variance of 1/12.
        """
        return math.sqrt(self.row_squares(t) * float(sigma) ** 2 / self.lattice**2 + (self.lattice > 1) / 12.0)

    def worst_row_squares(self) -> float:
        """The largest variance over all ticks; the rows of a Toeplitz factor grow with t."""
        return self.row_squares(self.horizon)

    def worst_error(self, rho: float, items: int = 1, changes: int = 1) -> float:
        """The largest standard deviation over all ticks."""
        variance = self.worst_row_squares() * float(self.sigma(rho, items, changes)) ** 2 / self.lattice**2
        return math.sqrt(variance + (self.lattice > 1) / 12.0)

    @abc.abstractmethod
    def join(self, size: int, tick: int, sigma: Fraction, source: RandomSource) -> dict[str, Integers]:
        """The state of `size` noises after `tick` ticks; later ticks have the law of noises that ran from the start."""

    def loaded(self, arrays: dict[str, Integers], size: int, tick: int) -> dict[str, Integers]:
        """The state of `size` noises after `tick` ticks, from saved arrays; those of other shapes are refused."""
        state = {}
        for name, empty in self.start(size, tick).items():
            saved = state[name] = arrays[name]
            grows = name.endswith("past") and saved.ndim == 2 and len(saved) == size and saved.shape[1] <= self.horizon
            if saved.shape != empty.shape and not grows:
                raise CorruptStateError("the state has arrays of another size")
        return state

    def tick_share(self, t: int) -> float:
        """The part that tick t may have of what all ticks together spend on hidden items."""
        return 1.0 / self.horizon

    def latest(self, state: dict[str, Integers]) -> Integers:
        """The noises of the latest tick, on the lattice."""
        return np.asarray(state["levels"].sum(axis=0) if "levels" in state else state["noise"])

    @abc.abstractmethod
    def hiding_shift(self, t: int, sigma: Fraction, probability: float) -> int:
        """An M with P[published noise at t >= M] <= probability, never understated."""

    def to_counts(self, noise: Integers) -> Integers:
        """The noises rounded to whole counts, halves up."""
        return (noise + self.lattice // 2) // self.lattice

    def tick_noises(self, t: int, sigma: Fraction) -> tuple[tuple[str, TickNoise, int], ...]:
        """What the noise at tick t is the sum of: names of independent noises, their laws, and their ticks."""
        return (("", self._law(sigma), t),)

    def tick_noise(self, sigma: Fraction) -> TickNoise:
        """The law of the noises of all ticks."""
        raise NotImplementedError


@dataclass(frozen=True)
class CorrelatedNoise:
    """A factor at work: what hides an event that comes at one of the ticks `enters` of it (none given: at any).

    Or that goes up and down in turn, `changes` times in all.
    """

    factor: Factor
    sigma: Fraction
    enters: tuple[int, ...] = ()
    changes: int = 1


def levels(horizon: int, base: int) -> int:
    """L_r = floor(log_r T) + 1, in exact arithmetic."""
    count, power = 1, base
    while power <= horizon:
        count, power = count + 1, power * base
    return count


def highest_ended(t: int, base: int, levels: int) -> int:
    """The highest level of a tree with a node that ends after tick t."""
    level = 0
    while level + 1 < levels and t % base ** (level + 1) == 0:
        level += 1
    return level


def optimal_base(horizon: int) -> int:
    """argmin_r (r - 1) L_r^2, equation (3) of [CO]; the smallest such r."""
    return min(range(2, max(3, min(horizon, 200) + 1)), key=lambda r: ((r - 1) * levels(horizon, r) ** 2, r))


class Tree(Factor):
    """Algorithm 1 of [CO]: a tick's sum is that of the nodes of its digits in base r, each with a noise of its own.

    An event is in one node of each of the L_r levels: l2-sensitivity sqrt(L_r). (The paper's proof says L_r; its
    noise is right.) The variance at t is the sum of the digits of t.
    """

    name = "tree"
    lattice = 1

    def __init__(self, horizon: int, base: int | None = None) -> None:
        super().__init__(horizon)
        self.base = optimal_base(horizon) if base is None else base
        self.levels = levels(horizon, self.base)

    @property
    def sensitivity(self) -> float:
        return math.sqrt(self.levels)

    def sensitivity_to(self, changes: int) -> float:
        # Of what is in a node all but one change cancels, and no level has more nodes than it has.
        return math.sqrt(sum(min(changes, -(-self.horizon // self.base**level)) for level in range(self.levels)))

    def digits(self, t: int) -> list[int]:
        """The digits of t, lowest first, one for each level."""
        digits = []
        for _ in range(self.levels):
            t, digit = divmod(t, self.base)
            digits.append(digit)
        return digits

    def row_squares(self, t: int) -> float:
        return float(sum(self.digits(t)))

    def worst_row_squares(self) -> float:
        # The worst t <= T keeps some of T's leading digits, lowers the next one by 1 and has r - 1 in all others.
        digits = self.digits(self.horizon)
        candidates = [sum(digits)]
        for level, digit in enumerate(digits):
            if digit > 0:
                candidates.append(sum(digits[level + 1 :]) + digit - 1 + level * (self.base - 1))
        return float(max(candidates))

    def start(self, size: int, tick: int = 0) -> dict[str, Integers]:
        return {"levels": np.zeros((self.levels, size), np.int64)}

    def advance(self, state: dict[str, Integers], tick: int, sigma: Fraction, source: RandomSource) -> Integers:
        # Only one node that the new tick uses was not used before: at the level of the lowest digit that is not 0.
        noises, level = state["levels"], highest_ended(tick, self.base, self.levels)
        fresh = source.discrete_gaussian(sigma, noises.shape[1])
        noises[:level] = 0
        noises[level] += fresh
        return np.asarray(noises.sum(axis=0))

    def join(self, size: int, tick: int, sigma: Fraction, source: RandomSource) -> dict[str, Integers]:
        state = self.start(size)
        for level, digit in enumerate(self.digits(tick)):
            state["levels"][level] = source.discrete_gaussian(sigma, digit * size).reshape(digit, size).sum(axis=0)
        return state

    def hiding_shift(self, t: int, sigma: Fraction, probability: float) -> int:
        """Equation (11) of [CO]: for the (r-1) L_r noises of the worst tick, whatever t is."""
        return sum_shift((self.base - 1) * self.levels, sigma, probability)

    def tick_noise(self, sigma: Fraction) -> TickNoise:
        return TickNoise("tree", self.horizon, math.nextafter(sigma, math.inf), base=self.base)


class EachTick(Factor):
    """A noise of its own for every tick: C = A, for counts that go up and down as a window moves.

    A person who is in the window at all T ticks moves each count by 1: sqrt(T), however often they come and go.
    """

    name = "each-tick"
    lattice = 1

    @property
    def sensitivity(self) -> float:
        return math.sqrt(self.horizon)

    def sensitivity_to(self, changes: int) -> float:
        return self.sensitivity

    def row_squares(self, t: int) -> float:
        return 1.0

    def start(self, size: int, tick: int = 0) -> dict[str, Integers]:
        return {"noise": np.zeros(size, np.int64)}

    def advance(self, state: dict[str, Integers], tick: int, sigma: Fraction, source: RandomSource) -> Integers:
        state["noise"][:] = source.discrete_gaussian(sigma, len(state["noise"]))
        return np.array(state["noise"])

    def join(self, size: int, tick: int, sigma: Fraction, source: RandomSource) -> dict[str, Integers]:
        return self.start(size)  # no tick needs the noise of one before it

    def hiding_shift(self, t: int, sigma: Fraction, probability: float) -> int:
        return sum_shift(1, sigma, probability)

    def tick_noise(self, sigma: Fraction) -> TickNoise:
        return TickNoise("ticks", self.horizon, math.nextafter(sigma, math.inf))


def changes_of_a_window(window: int | None, visits: int | None, horizon: int | None) -> int:
    """How often one person enters or leaves a window of this many ticks, at most; once where there is none.

    A visit is `window` ticks or more, and one tick at least lies between two: the i-th begins at tick 1 + (i-1)(w+1) or
    later, and ends at i(w+1) or later. The first `visits` count.
    """
    if window is None:
        return 1
    most = [2 * visits] if visits is not None else []
    if horizon is not None:
        most.append(-(-horizon // (window + 1)) + horizon // (window + 1))
    return min(most)


def window_factor(factor: Factor, rho: float, items: int, changes: int) -> Factor:
    """This factor, or noise anew at every tick where that is the smaller noise for this many changes."""
    anew = EachTick(factor.horizon)
    better = changes > 1 and anew.worst_error(rho, items) < factor.worst_error(rho, items, changes)
    return anew if better else factor


@lru_cache(maxsize=64)
def sum_shift(n: int, sigma: Fraction, probability: float) -> int:
    """The smallest M with P[Z_1 + ... + Z_n >= M] <= probability, never understated. Every tick of a tree asks.

    The sum of n discrete Gaussians is within a factor kappa_n of one of parameter sqrt(n) sigma
    (`calibration.gaussian`); for sigma >= 1 each but one adds at most a factor (1+e)/(1-e), e = 2.1 exp(-pi^2 sigma^2).
    """
    from discreet.privacy.calibration.gaussian import discrete_gaussian_tail
    from discreet.privacy.calibration.tails import smallest_shift

    e = 2.1 * math.exp(-((math.pi * float(sigma)) ** 2))
    log_kappa = (n - 1) * (math.log1p(e) - math.log1p(-e))
    wide = math.sqrt(n) * float(sigma)
    return smallest_shift(lambda m: math.log(max(discrete_gaussian_tail(wide, m), 1e-320)) + log_kappa, probability)


class _Toeplitz(Factor):
    """What the factors with a lattice share: c_0 = 1, and a lattice fine enough that rounding costs nothing."""

    def __init__(self, horizon: int, kappa: float) -> None:
        super().__init__(horizon)
        self.kappa = kappa
        column_norm = math.sqrt(self.column_squares(horizon)) * _UP
        needed = kappa * math.sqrt(horizon) / (_RELATIVE_ROUNDING * column_norm)
        self.lattice = 1 << max(8, math.ceil(math.log2(needed)))

    @abc.abstractmethod
    def column_squares(self, terms: int) -> float:
        """sum_{j < terms} c_j^2 of the stored coefficients."""

    @property
    def sensitivity(self) -> float:
        return self.sensitivity_to(1)

    def sensitivity_to(self, changes: int) -> float:
        # A change moves the ticks up to the next one. Sums of squares that fall grow most where all are as long.
        norm = math.sqrt(changes * self.column_squares(-(-self.horizon // changes))) * _UP
        return (self.lattice * norm + self.kappa * math.sqrt(self.horizon)) * _UP

    def hiding_shift(self, t: int, sigma: Fraction, probability: float) -> int:
        """For the variance of tick t; with little noise N_t is X + R, X sub-Gaussian and |R| <= row_sum kappa/2.

        row_sum, of the absolute values of the row of tick t, is at most sqrt(t row_squares): Cauchy-Schwarz.
        """
        if sigma >= LEAST_WIDTH:
            return lattice_shift([(CorrelatedNoise(self, sigma), t)], probability)
        squares = self.row_squares(t)
        variance = squares * float(sigma) ** 2
        reach = math.sqrt(-2.0 * variance * math.log(probability)) * (1.0 + 1e-11)
        steps = reach + math.sqrt(t * squares) * self.kappa / 2.0 + self.lattice / 2.0
        return math.ceil(steps / self.lattice * (1.0 + 1e-12))


def lattice_shift(noises: Sequence[tuple[CorrelatedNoise, int]], probability: float) -> int:
    """An M with P[sum of the published noises >= M] <= probability, each at its tick; never understated.

    Without roundings N_t is a discrete Gaussian of variance s^2 = row_squares(t) sigma^2, at most a Gaussian plus 1 in
    the order of their tails. Roundings of kappa/2 a tick are worth shifts of d = kappa sqrt(T)/(2 sigma) standard
    deviations in all: they make exp(-a^2) at most exp(-(a - d/sqrt(2))^2). Argued in docs/privacy/continual.md.
    """
    if any(not isinstance(noise.factor, _Toeplitz) or noise.sigma < LEAST_WIDTH for noise, _ in noises):
        # Each less than its own: then their sum is less than the sum, by one for each but the first.
        shifts = [noise.factor.hiding_shift(t, noise.sigma, probability / len(noises)) for noise, t in noises]
        return sum(shifts) - len(noises) + 1
    variance = moved = rounded = 0.0
    for noise, t in noises:
        factor, sigma = cast(_Toeplitz, noise.factor), float(noise.sigma)
        variance += factor.row_squares(t) * (sigma / factor.lattice) ** 2
        moved += factor.kappa**2 * factor.horizon / (8.0 * sigma * sigma)
        rounded += 0.5 + 1.0 / factor.lattice
    log = (math.sqrt(-math.log(probability)) + math.sqrt(moved)) ** 2 * (1.0 + 1e-12)
    # The Gaussian tail where it is computed to far better than 1e-9; beyond, Chernoff's bound.
    deviations = -ndtri(math.exp(-log) * (1.0 - 1e-9)) if log < 345.0 else math.sqrt(2.0 * log)
    return math.ceil((math.sqrt(variance) * max(deviations, 0.0) * (1.0 + 1e-11) + rounded) * (1.0 + 1e-12))


class SquareRoot(_Toeplitz):
    """C = A^(1/2): f_0 = 1, f_j = f_{j-1} (2j-1)/(2j), stored as multiples of 2^-40. Memory grows with the ticks.

    A C^-1 = C up to the rounding of f, which moves no coefficient by more than T 2^-39.
    """

    name = "square-root"

    def __init__(self, horizon: int) -> None:
        if horizon > MAX_SQUARE_ROOT:
            raise ParameterError(f"the square-root factorisation takes at most 2**20 ticks, not {horizon}; use 'blt'")
        j = np.arange(1, horizon, dtype=np.float64)
        exact = np.cumprod((2.0 * j - 1.0) / (2.0 * j))
        self.coefficients: Integers = np.rint(exact * 2.0**COEFFICIENT_BITS).astype(np.int64)
        super().__init__(horizon, kappa=1.0)

    @cached_property
    def _squares(self) -> Floats:
        """sum_{j < t} f_j^2 for t = 1, 2, ..."""
        stored = self.coefficients / 2.0**COEFFICIENT_BITS
        return np.cumsum(np.concatenate([[1.0], stored * stored]))

    def column_squares(self, terms: int) -> float:
        return float(self._squares[terms - 1])

    def row_squares(self, t: int) -> float:
        return float(self._squares[t - 1])

    def tick_noise(self, sigma: Fraction) -> TickNoise:
        return TickNoise("square-root", self.horizon, math.nextafter(sigma, math.inf), self.lattice, self.kappa)

    def join(self, size: int, tick: int, sigma: Fraction, source: RandomSource) -> dict[str, Integers]:
        state = self.start(size)
        for t in range(1, tick + 1):
            self.advance(state, t, sigma, source)
        return state

    def start(self, size: int, tick: int = 0) -> dict[str, Integers]:
        return {"past": np.zeros((size, 0), np.int64), "noise": np.zeros(size, np.int64)}

    def advance(self, state: dict[str, Integers], tick: int, sigma: Fraction, source: RandomSource) -> Integers:
        past, noise = state["past"], state["noise"]
        z = source.discrete_gaussian(sigma, len(noise))
        if past.shape[1] < tick:  # make room in powers of two
            wider = np.zeros((len(noise), min(self.horizon, max(16, 2 * past.shape[1]))), np.int64)
            wider[:, : past.shape[1]] = past
            state["past"] = past = wider
        subtracted = np.zeros(len(noise), np.int64)
        _native.toeplitz_sums(past, tick - 1, self.coefficients, COEFFICIENT_BITS, subtracted)
        past[:, tick - 1] = z - subtracted
        noise += past[:, tick - 1]
        return np.array(noise)


class Buffered(_Toeplitz):
    """C as a buffered linear Toeplitz matrix: c_j = sum_i omega_i theta_i^(j-1), four buffers. Constant memory.

    theta and omega were fitted for horizons that are powers of two and are stored as multiples of 2^-40; sensitivity
    and error are computed from the stored numbers, so neither rests on how they were found.
    """

    name = "blt"

    def __init__(self, horizon: int) -> None:
        row = min(len(THETA) - 1, max(0, math.ceil(math.log2(horizon)) - 2))
        self.theta: Integers = np.array(THETA[row], np.int64)
        self.omega: Integers = np.array(OMEGA[row], np.int64)
        # 1 - theta without cancellation: both are exact multiples of 2^-40.
        self._gaps: Floats = (2**COEFFICIENT_BITS - self.theta) / 2.0**COEFFICIENT_BITS
        self._omega: Floats = self.omega / 2.0**COEFFICIENT_BITS
        # The sum is rounded once (at most 1/2 on each side), the buffers at every step, and they forget at rate theta.
        kappa = (1.0 + float((self._omega / self._gaps).sum()) * 2.0**-_FRACTION_BITS) * _UP
        super().__init__(horizon, kappa)

    def column_squares(self, terms: int) -> float:
        return 1.0 + geometric_squares(self._omega, self._gaps, terms - 1)

    @cached_property
    def _rows(self) -> tuple[Floats, Floats]:
        """(a, e) with b_j = sum_k a_k (1 - e_k)^j, the coefficients of A C^-1.

        The poles of 1/c solve 1 + sum_i omega_i/(u - theta_i) = 0: 1 - u are the eigenvalues of
        diag(1 - theta) + s s^T, s = sqrt(omega). Summing C^-1 adds a pole at 1.
        """
        s = np.sqrt(self._omega)
        gaps, vectors = np.linalg.eigh(np.diag(self._gaps) + np.outer(s, s))
        weights = (vectors.T @ s) ** 2 / gaps
        return np.append(weights, 1.0 - weights.sum()), np.append(gaps, 0.0)

    def row_squares(self, t: int) -> float:
        return geometric_squares(*self._rows, t)

    def tick_noise(self, sigma: Fraction) -> TickNoise:
        weights, gaps = (tuple(map(float, numbers)) for numbers in self._rows)
        return TickNoise(
            "powers", self.horizon, math.nextafter(sigma, math.inf), self.lattice, self.kappa, weights, gaps
        )

    def join(self, size: int, tick: int, sigma: Fraction, source: RandomSource) -> dict[str, Integers]:
        # From the law at the last of every 64 ticks (an expensive table each), and the few ticks after it run. Which
        # of the two ways a counter begins must depend on its tick alone.
        state, passed = self.start(size), tick - tick % _LAWS_EVERY
        law = None
        if passed and size:
            numbers = tuple(map(int, self.theta)), tuple(map(int, self.omega))
            law = state_law(*numbers, COEFFICIENT_BITS, _FRACTION_BITS, passed, sigma, self.kappa)
        if law is None:
            passed = 0
        else:
            state["buffers"], state["noise"] = law.draw(size, source)
        self.advance(state, tick, sigma, source, tick - passed)
        return state

    def start(self, size: int, tick: int = 0) -> dict[str, Integers]:
        return {"buffers": np.zeros((len(self.theta), size), np.int64), "noise": np.zeros(size, np.int64)}

    def advance(
        self, state: dict[str, Integers], tick: int, sigma: Fraction, source: RandomSource, steps: int = 1
    ) -> Integers:
        # Several steps at once for a counter that begins late: nobody needs their noises but the last.
        size = len(state["noise"])
        most = max(1, 2**21 // max(1, size))
        while steps > 0:
            some = min(steps, most)
            z = source.discrete_gaussian(sigma, some * size).reshape(some, size)
            _native.buffered_noise(
                state["buffers"], state["noise"], z, self.theta, self.omega, COEFFICIENT_BITS, _FRACTION_BITS
            )
            steps -= some
        return np.array(state["noise"])


_METHODS = {"tree": Tree, "square-root": SquareRoot, "blt": Buffered}
METHODS = ("auto", *_METHODS)


def best_factor(horizon: int, rho: float, items: int = 1) -> Factor:
    """The factor with the smallest worst error; the constant memory of "blt" is worth 1 percent."""
    buffered = Buffered(horizon)
    others: list[Factor] = [Tree(horizon)]
    if horizon <= 2**16:
        others.append(SquareRoot(horizon))
    best = min(others, key=lambda factor: factor.worst_error(rho, items))
    return buffered if buffered.worst_error(rho, items) <= 1.01 * best.worst_error(rho, items) else best


def make_factor(method: str, horizon: int, rho: float, items: int = 1, base: int | None = None) -> Factor:
    """The factor of that name, or the best one."""
    if method not in METHODS:
        raise ParameterError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    if base is not None:
        if method != "tree":
            raise ParameterError(f"only method 'tree' has a base, not {method!r}")
        return Tree(horizon, base)
    return best_factor(horizon, rho, items) if method == "auto" else _METHODS[method](horizon)
