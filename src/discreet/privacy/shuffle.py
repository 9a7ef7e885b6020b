"""Many local reports without their senders: what a report costs anyone who sees the reports in random order.

A report of a local protocol is epsilon_0-DP by itself. If anyone who collects the reports forgets who sent which, and
when, and hands on only the multiset of n of them, then one person hides among the others, too.

**Any report** (Feldman, McMillan, Talwar 2021, Theorem 3.1). Let x, x' be two answers of one person, R the randomiser.
As R is epsilon_0-DP, R(y) >= e^-eps0 (R(x) + R(x'))/2 for every answer y. So every other report is with probability
e^-eps0 a clone: drawn from R(x) or from R(x') by a fair coin. Let C ~ Bin(n - 1, e^-eps0) be the clones and A ~
Bin(C, 1/2) those of the first kind. R(x) and R(x') are the same post-processing of a bit that is 1 with probability p
= e^eps0/(e^eps0 + 1), or 1 - p. Hence the two multisets are post-processings of

    P = (A + D, C + 1 - A - D),    Q = (A + 1 - D, C - A + D),    D ~ Bernoulli(p)

and what is lost between P and Q bounds what is lost between the multisets: those are C + 1 reports of a binary
response, C of them of nothing but chance.

**Randomised response** over k choices (Balle, Bell, Gascon, Nissim 2019; Feldman, McMillan, Talwar 2023). It tells the
truth except for chance: with probability g = k/Z, Z = e^eps0 + k - 1, a report is uniform over the choices, whatever
the answer. Tell anyone who looks which of the other reports are not of this kind: there remain C ~ Bin(n - 1, g)
uniform ones and the one in question. Of these m = C + 1 reports let H say x and H' say x'. With a = e^eps0 - 1, under
the law of m uniform reports,

    P = (m + a H) k/(m Z),    Q = (m + a H') k/(m Z)    (as densities)
    delta(eps; m) = k/(m Z) E[(m + a H - e^eps (m + a H'))+] = k/(m Z) E[(m (1 - e^eps) + a sum of X_i)+],

where X_i is 1, -e^eps or 0 if the i-th report says x, x' or neither. For k = 2 that is what is lost between P and Q
above: all bounds here differ in k and in the law of C alone.

**Through a public function** (Hadamard response, local hashing): a report is a number, uniform and independent of the
answer, and the response of the bucket that the number's function gives the answer. Numbers and buckets together are
uniform with the same g. Where the function tells x and x' apart X_i is as above; where not it is 1 - e^eps with
probability 1/k, else 0. For any convex f the first has the larger mean, by (f(1) + f(-e^eps) - f(1 - e^eps) - f(0))/k
>= 0: the outer two have the sum of the inner two. The X_i are independent, so delta is largest if every function tells
all answers apart, which is the response without functions: its bound holds for every family of functions.

**The sum.** Let T = H + H' ~ Bin(m, 2/k), b and S law and upper tail of Bin(T - 1, 1/2). Given T the positive part
begins at one h, and up to the factor k/(m Z)

    delta(eps; m, T) = (a T - (e^eps - 1) m)/2 b(h - 1) - (e^eps - 1) (m + a T/2) S(h).

Values of T are taken together in runs from t to u: the mean of the sum of the X_i is that of t (the larger one), how it
varies that of u (more in convex order), which gives the sum for T = u and m - a (u - t)/2 reports. One more uniform
report is a post-processing, so delta(eps; m) does not grow with m: runs of values of C are charged by their smallest.
What lies far below the mean of C is charged by 1, and what lies far from the mean of T by k, which the density is
below.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from discreet.errors import ParameterError
from discreet.privacy.budget import Budget
from discreet.privacy.checks import positive_number, probability, whole_number

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_RUNS = 4096  # of C, where T is all of them
_RUNS_OF_C, _RUNS_OF_T = 64, 128
_SLACK = 1e-6  # of the library's tails, which are better than that (tests compare them with exact ones)


def shuffled(epsilon_local: float, reports: int, delta: float, *, choices: int | None = None) -> Budget:
    """What one person loses in `reports` shuffled reports, each of them epsilon_local-DP by itself.

    Unit: one person's answer replaced by another. Rests on: anyone who publishes or looks sees the reports without who
    sent them, when, and in which order; the others are honest (reports made up by liars hide nobody: count only the
    honest). Without that trust the promise of every report by itself still holds.

    Args:
        epsilon_local: Of one report; one report a person.
        reports: How many there are, at least.
        delta: The probability that the promise fails.
        choices: If a report is a randomised response over this many choices, all that are not the true one equally
            likely, which hides better (2 for yes or no); also of a bucket of the answer under a random public
            function. None for any other report.

    Returns:
        Budget(epsilon, delta) with the smallest of the closed and the numerical bounds, rounded up; never more than
        epsilon_local, which holds anyway.
    """
    local, n, most = _checked(epsilon_local, reports, delta)
    best = min(local, shuffled_closed_form(local, n, most))  # holds by the theorem, or as every report by itself
    for kind in (None,) if choices is None else (None, choices):
        best = _smallest(local, n, most, kind, best)
    return Budget(best, most)


def _smallest(local: float, n: int, most: float, choices: int | None, best: float) -> float:
    """The smallest epsilon below `best` whose delta is within the budget, nearly."""
    if shuffled_delta(local, n, best, choices=choices) > most:
        return best
    low, high = 0.0, best
    for _ in range(60):  # an end for those whose delta is that of epsilon 0, which no budget has
        middle = (low + high) / 2
        if high - low <= 1e-6 * high:
            break
        if shuffled_delta(local, n, middle, choices=choices) <= most:
            high = middle
        else:
            low = middle
    return high


def shuffled_closed_form(epsilon_local: float, reports: int, delta: float) -> float:
    """Theorem 3.1 in closed form; infinite where it does not apply (epsilon_local above ln(n/(16 ln(2/delta))))."""
    local, n, most = _checked(epsilon_local, reports, delta)
    if n <= 16 * math.log(2 / most) or local > math.log(n / (16 * math.log(2 / most))):
        return math.inf
    grown = math.exp(local)
    inner = 8 * math.sqrt(grown * math.log(4 / most) / n) + 8 * grown / n
    return math.log1p((grown - 1) / (grown + 1) * inner) * (1 + 1e-12)


def shuffled_delta(epsilon_local: float, reports: int, epsilon: float, *, choices: int | None = None) -> float:
    """The delta that goes with an epsilon by one of the two arguments, rounded up."""
    local, n, _ = _checked(epsilon_local, reports, 0.5)
    k = 2 if choices is None else whole_number("choices", choices, 2, 2**31)
    if epsilon >= local:
        return 0.0
    hiding = math.exp(-local) if choices is None else k / (math.exp(local) + k - 1)
    below, starts, masses = _hiding(n - 1, hiding, _RUNS if k == 2 else _RUNS_OF_C)
    lost = below + float(masses @ _delta_given(local, epsilon, k, starts + 1))
    return min(1.0, lost * (1 + _SLACK) + 1e-300)


@lru_cache(maxsize=16)
def _hiding(others: int, chance: float, runs: int) -> tuple[float, npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """C in runs: the probability to be below all, the first of each, and its probability; the last has no end."""
    from scipy.stats import binom

    law = binom(others, chance)
    starts, _ = _runs(law.mean(), others, runs)
    below = law.cdf(starts - 1)
    return float(below[0]), starts, _masses(below, law.sf(starts - 1))


def _runs(mean: Any, largest: Any, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """First and last values of runs, in the last axis, that cover all near the mean of a binomial law.

    Far below the mean, and above, is little (Chernoff: exp(-15^2/2) and less).
    """
    import numpy as np

    mean, largest = np.asarray(mean, np.float64)[..., None], np.asarray(largest, np.int64)[..., None]
    spread = 15 * np.sqrt(np.maximum(mean, 1.0)) + 120
    first = np.maximum(0, np.floor(mean - spread)).astype(np.int64)
    last = np.minimum(largest, np.ceil(mean + spread)).astype(np.int64)
    if int((last - first).max()) < count:  # every value by itself
        edges = np.minimum(first + np.arange(int((last - first).max()) + 2), last + 1)
    else:  # narrow ones near the mean
        part = np.linspace(-1, 1, count + 1)
        edges = np.clip(np.floor(mean + spread * part * np.abs(part)).astype(np.int64), first, last + 1)
        edges[..., :1], edges[..., -1:] = first, last + 1
    if edges.ndim == 1:
        edges = np.unique(edges)
    return edges[..., :-1], edges[..., 1:] - 1


def _masses(below: npt.NDArray[np.float64], above: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Probabilities of runs from those of being below, and not below, their starts; the last one is open above."""
    import numpy as np

    none = np.zeros((*above.shape[:-1], 1))
    by_above = -np.diff(np.append(above, none, axis=-1), axis=-1)
    by_below = np.diff(np.append(below, none + 1.0, axis=-1), axis=-1)
    masses: npt.NDArray[np.float64] = np.clip(np.where(below < 0.5, by_below, by_above), 0.0, None)
    return masses


def _delta_given(local: float, epsilon: float, k: int, m: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """delta(eps; m) of the module's argument, rounded up."""
    import numpy as np
    from scipy.stats import binom

    if k == 2:
        return np.clip(_delta_of_runs(local, epsilon, k, m, m, m), 0.0, 1.0)
    law = binom(m[:, None], 2 / k)
    first, last = _runs(m * (2 / k), m, _RUNS_OF_T)
    below, above = law.cdf(first - 1), law.sf(first - 1)
    beyond = law.sf(last[:, -1:])
    masses = np.where(first <= last, _masses(below, above), 0.0)
    given = np.where(first <= last, _delta_of_runs(local, epsilon, k, m[:, None], first, np.maximum(last, 0)), 0.0)
    lost: npt.NDArray[np.float64] = (masses * given).sum(axis=1) + k * (below[:, 0] + beyond[:, 0])
    return np.clip(lost, 0.0, 1.0)


def _delta_of_runs(
    local: float, epsilon: float, k: int, m: npt.NDArray[Any], t: npt.NDArray[Any], u: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """delta(eps; m, T) for T from t to u, rounded up."""
    import numpy as np
    from scipy.stats import binom

    a, grown = math.expm1(local), math.exp(epsilon)
    more = math.expm1(epsilon)
    scale = k / ((math.exp(local) + k - 1) * m)
    h = np.floor((more * (m / a - (u - t) / 2) + grown * u) / (1 + grown)).astype(np.int64)
    found = np.zeros(np.broadcast(m, t, u).shape)
    # Any h gives at most the sum from the best one on, so take the largest of those beside it: rounding is harmless.
    others = np.maximum(u - 1, 0)
    for beside in (h, h + 1, h + 2):
        gain = (a * u - more * (m - a * (u - t) / 2)) / 2 * binom.pmf(beside - 1, others, 0.5) * (1 + _SLACK)
        loss = more * (m + a * (t / 2)) * binom.sf(beside - 1, others, 0.5) * (1 - _SLACK)
        found = np.maximum(found, scale * (gain - loss))
    return found


def _checked(epsilon_local: float, reports: int, delta: float) -> tuple[float, int, float]:
    local = positive_number("epsilon_local", epsilon_local)
    if local > 50:
        raise ParameterError(
            f"epsilon_local must be at most 50, not {epsilon_local!r}: a report like that hides nothing"
        )
    return local, whole_number("reports", reports, 1, 2**53), probability("delta", delta)
