"""The noise of a running total at two ticks: how far their difference reaches.

A counter publishes, at tick t, the true total plus N_t, where N = B z for independent discrete Gaussians z of parameter
sigma and the rows B_t of a public matrix (docs/privacy/correlated-noise.md). So the noises of two ticks s < t share
most of what they are made of, and

    N_t - N_s has the variance sigma^2 |B_t - B_s|^2,

far less than the two variances together. It is computed here from what is public, and no large numbers are subtracted.

Where B is Toeplitz, of coefficients b: |B_t - B_s|^2 = sum_{j < t-s} b_j^2 + sum_{j < s} (b_{j+t-s} - b_j)^2. Of a
tree, it is the number of nodes that one of the two ticks adds up and the other does not. Argument:
docs/privacy/continual.md, "Increases".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet._data_class import dataclass
from discreet.errors import ParameterError
from discreet.privacy.calibration.gaussian import gaussian_reach, ndtri, sum_of_several
from discreet.privacy.checks import probability as checked_probability
from discreet.privacy.plain_form import PlainForm

Floats = npt.NDArray[np.float64]

LEAST_WIDTH = 32
"""Sums over integers of Gaussians at least so wide (in all directions: half of it) are integrals: from this sigma on
the noise of a tick on a lattice is one discrete Gaussian, up to exp(-5000)."""
# Closed forms and sums of a few million terms are right to far better than this.
_UP = 1.0 + 1e-9
_NODES = ("tree", "ticks")  # sums of independent noises in whole counts
_KINDS = ("powers", "square-root", *_NODES)


@dataclass(frozen=True)
class TickNoise(PlainForm):
    """What the noises of all ticks of one counter are made of. All of it is public.

    Attributes:
        kind: How the rows are known: "powers" (b_j = sum_k weights_k (1 - gaps_k)^j), "square-root" (of the matrix of
            ones below the diagonal), "tree" (nodes of the digits of a tick in `base`), or "ticks" (a noise of its own
            for every tick).
        horizon: The number of ticks.
        sigma: Of the independent noises, in steps of the lattice, or more.
        lattice: How many steps one count has; 1 for a tree, whose noises are counts.
        kappa: Roundings move the noise of a tick by kappa/2 steps at most, given what was before.
    """

    kind: str
    horizon: int
    sigma: float
    lattice: int = 1
    kappa: float = 0.0
    weights: tuple[float, ...] = ()
    gaps: tuple[float, ...] = ()
    base: int = 0

    def __post_init__(self) -> None:
        if self.kind not in _KINDS or not self.sigma > 0.0 or self.lattice < 1 or len(self.weights) != len(self.gaps):
            raise ParameterError("not the noise of a running total")
        if self.kind == "tree" and self.base < 2:
            raise ParameterError("the base of a tree must be 2 or more")

    def difference(self, s: int, t: int) -> float:
        """|B_t - B_s|^2, never understated; tick 0 is before the first, without noise."""
        s, t = min(s, t), max(s, t)
        if not 0 <= s <= t <= self.horizon:
            raise ParameterError(f"ticks must be 1 to {self.horizon}, not {s} and {t}")
        if s == t:
            return 0.0
        if self.kind == "ticks":
            return 2.0 if s else 1.0
        if self.kind == "tree":
            return float(_nodes_apart(s, t, self.base))
        if self.kind == "square-root":
            return _square_root_apart(s, t) * _UP
        weights, gaps = np.array(self.weights), np.array(self.gaps)
        # b_{j+d} - b_j = sum_k a_k ((1 - e_k)^d - 1) (1 - e_k)^j
        with np.errstate(divide="ignore", invalid="ignore"):
            near = np.expm1((t - s) * np.log1p(-np.minimum(gaps, 1.0 - 1e-15)))
            moved = np.where(gaps < 0.5, near, (1.0 - gaps) ** (t - s) - 1.0)
        fresh = geometric_squares(weights, gaps, t - s)
        return (fresh + (geometric_squares(weights * moved, gaps, s) if s else 0.0)) * _UP

    def covariance(self, s: int, t: int) -> float:
        """sigma^2 <B_s, B_t>, in steps of the lattice."""
        rows = self.difference(0, s) + self.difference(0, t) - self.difference(s, t)
        return 0.5 * rows * self.sigma**2


Change = tuple[TickNoise, int, int]
"""A noise, from one of its ticks to another: N_t - N_s."""


def difference_reach(changes: Sequence[Change], probability: float) -> int:
    """A b >= 0 with P[D > b] <= probability, D the sum of the published changes; never understated.

    The changes are of independent noises, and each is published rounded to counts at both of its ticks. D and -D have
    one law, up to roundings, which are counted on both sides.

    Without roundings a change on a lattice is a discrete Gaussian of its variance, at most a Gaussian plus a step in
    the order of their tails; the sum of n nodes of a tree is, up to a factor kappa_n (`calibration.gaussian`). The
    roundings of the recurrence make a chance of exp(-l) at most exp(-(sqrt(l) - sqrt(m))^2), as for the cuts of
    histograms. Rounded to counts r times, D >= b + 1 needs b + 1 - r/2 without. Noises too small for that have the
    tail of Chernoff, exp(-x^2 / (2 variance)), which holds for all.
    """
    checked_probability("probability", probability)
    moving = tuple((noise, min(s, t), max(s, t)) for noise, s, t in changes if s != t)
    return _reach(moving, probability) if moving else 0


@lru_cache(maxsize=4096)
def _reach(changes: tuple[Change, ...], probability: float) -> int:
    variances = [noise.difference(s, t) * noise.sigma**2 for noise, s, t in changes]  # in steps
    trees = [noise.kind in _NODES for noise, _, _ in changes]
    widths = [
        noise.sigma
        for (noise, s, t), is_tree in zip(changes, trees, strict=True)
        if is_tree
        for _ in range(int(noise.difference(s, t)))
    ]
    wide, kappa = sum_of_several(widths) if widths else (0.0, 1.0)
    if all(trees) and kappa < math.inf:
        return gaussian_reach(wide, probability / kappa)
    roundings = 0.0
    for (_, s, _), is_tree in zip(changes, trees, strict=True):
        roundings += 0.0 if is_tree else 0.5 if s == 0 else 1.0
    variance = sum(of / noise.lattice**2 for of, (noise, _, _) in zip(variances, changes, strict=True))
    fine = all(is_tree or noise.sigma >= LEAST_WIDTH for (noise, _, _), is_tree in zip(changes, trees, strict=True))
    if fine and kappa < math.inf and min([2.0, *widths]) >= 1.0:
        steps = sum(1.0 / noise.lattice for noise, _, _ in changes)
        moved = sum(noise.kappa**2 * noise.horizon / (8.0 * noise.sigma**2) for noise, _, _ in changes)
        log = (math.sqrt(-math.log(probability / kappa)) + math.sqrt(moved)) ** 2 * (1.0 + 1e-12)
        deviations = -ndtri(math.exp(-log) * (1.0 - 1e-8)) if log < 345.0 else math.sqrt(2.0 * log)
    else:
        steps = sum(_rounded_rows(*change) for change in changes)
        deviations = math.sqrt(-2.0 * math.log(probability))
    # Except with `probability`, D is at most this.
    least = math.sqrt(variance) * max(deviations, 0.0) * (1.0 + 1e-11) + steps
    return max(0, math.ceil((least + roundings - 1.0) * (1.0 + 1e-12)))


def _rounded_rows(noise: TickNoise, s: int, t: int) -> float:
    """What the roundings of the recurrence may add to a change, in counts: kappa/2 times the sums of its rows."""
    rows = sum(math.sqrt(tick * noise.difference(0, tick)) for tick in (s, t))  # Cauchy-Schwarz
    return rows * noise.kappa / 2.0 / noise.lattice


def _nodes_apart(s: int, t: int, base: int) -> int:
    """The nodes that one of the ticks s < t adds up and the other does not."""
    apart = below = 0
    while t:
        (t, of_t), (s, of_s) = divmod(t, base), divmod(s, base)
        if of_t != of_s:
            apart = below + abs(of_t - of_s)  # the lower digits are of other nodes: they began anew
        below += of_t + of_s
    return apart


def _square_root_apart(s: int, t: int) -> float:
    """Of f_j = (2j choose j)/4^j. What is stored of f is rounded, which moves no coefficient by more than T 2^-39."""
    j = np.arange(1, t, dtype=np.float64)
    f = np.concatenate([[1.0], np.cumprod((2.0 * j - 1.0) / (2.0 * j))])
    fresh, moved = f[: t - s], f[t - s : t] - f[:s]
    return (math.sqrt(float(fresh @ fresh + moved @ moved)) + 2.0 * math.sqrt(t) * t * 2.0**-39) ** 2


def geometric_squares(a: Floats, gaps: Floats, terms: int) -> float:
    """sum_{j < terms} (sum_k a_k (1 - gaps_k)^j)^2, in closed form.

    Pairs give geometric sums with ratio (1 - e)(1 - e') = 1 - d, d = e + e' - e e'.
    """
    d = gaps[:, None] + gaps[None, :] - gaps[:, None] * gaps[None, :]
    ratio = 1.0 - d
    with np.errstate(divide="ignore", invalid="ignore"):
        positive = -np.expm1(terms * np.log1p(-np.minimum(d, 1.0 - 1e-15)))
        power = np.where(ratio > 0.0, positive, 1.0 - (-1.0) ** terms * np.abs(ratio) ** terms)
        sums = np.where(d == 0.0, float(terms), power / np.where(d == 0.0, 1.0, d))
    return float(a @ sums @ a)
